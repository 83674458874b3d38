// Package scenarios loads, checks and compiles scenarios: which servers to
// load, how, and with what requests. It also holds the scenarios that come with
// mcpbench, reads the server entries of editors' configurations, and makes
// arguments for a tool from its input schema.
package scenarios

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"mcpbench/internal/nearest"
)

//go:embed bundled/*.mcpbench.yaml
var bundledFiles embed.FS

// BundledScenario is a scenario that comes with mcpbench and runs on its demo
// target.
type BundledScenario struct {
	Name, Description string
	Data              []byte // the file
}

const bundledEnd = ".mcpbench.yaml"

// Bundled returns the scenarios that come with mcpbench, by name.
func Bundled() []BundledScenario {
	entries, err := bundledFiles.ReadDir("bundled")
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	out := make([]BundledScenario, 0, len(entries))
	for _, e := range entries {
		data, err := bundledFiles.ReadFile(path.Join("bundled", e.Name()))
		if err != nil {
			panic(err) // as above
		}
		b := BundledScenario{Name: strings.TrimSuffix(e.Name(), bundledEnd), Data: data}
		for line := range strings.SplitSeq(string(data), "\n") {
			if text, ok := strings.CutPrefix(line, "description: "); ok {
				b.Description = text
				break
			}
		}
		out = append(out, b)
	}
	return out
}

// LoadBundled loads the bundled scenario called name, with or without a leading
// @. An unknown name is an error with the nearest one.
func LoadBundled(name string, o LoadOptions) (*Scenario, error) {
	name = strings.TrimPrefix(name, "@")
	var known []string
	for _, b := range Bundled() {
		if b.Name == name {
			return Load("@"+name, b.Data, o)
		}
		known = append(known, b.Name)
	}
	hint := nearest.DidYouMean(name, known)
	return nil, fmt.Errorf("there is no bundled scenario @%s%s; there are: @%s", name, hint, strings.Join(known, ", @"))
}
