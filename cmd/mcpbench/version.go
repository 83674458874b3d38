package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"mcpbench/mcp"
)

// version is replaced at link time by a release.
var version = "0.1.0-dev"

// build is what version --json prints.
type build struct {
	Version   string        `json:"version"`
	Go        string        `json:"go"`
	Platform  string        `json:"platform"`
	Revision  string        `json:"revision,omitempty"`
	Protocols []mcp.Version `json:"protocols"`
}

func thisBuild() build {
	b := build{
		Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Protocols: mcp.Versions(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	return b
}

func newVersionCommand(s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				enc := json.NewEncoder(s.out)
				enc.SetIndent("", "  ")
				return printed(0, enc.Encode(b))
			}
			return printed(fmt.Fprintf(s.out, "mcpbench %s %s %s\n", b.Version, b.Go, b.Platform))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
