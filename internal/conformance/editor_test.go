package conformance

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// editorPatience is how long the language server may take for one answer; it
// takes a second or two to start and to read the schema.
const editorPatience = 30 * time.Second

const schemaLine = "# yaml-language-server: $schema="

// TestEditorsTakeTheSchema opens scenarios in the language server that editors use for
// YAML: what is right has no diagnostic, what is wrong has one, and the operations
// are offered where a step is written.
func TestEditorsTakeTheSchema(t *testing.T) {
	folder, err := filepath.Abs("../../scenarios")
	if err != nil {
		t.Fatal(err)
	}
	e := startEditor(t)
	documents := editedScenarios(t, folder)
	for uri, text := range documents {
		e.open(uri, text)
		for _, d := range e.diagnostics(uri) {
			t.Errorf("%s: line %d: %s", uri, d.Range.Start.Line+1, d.Message)
		}
	}

	const steps = schemaLine + "./mcpbench.schema.json\nversion: 1\nload: {groups: {main: }}\nflows:\n  f:\n    steps:\n      - "
	uri := fileURI(filepath.Join(folder, "broken.yaml"))
	e.open(uri, steps+"ping: {}\n        tiemout: 3s\n")
	found := e.diagnostics(uri)
	if len(found) != 1 || found[0].Range.Start.Line != 7 || !strings.Contains(found[0].Message, "tiemout") {
		t.Errorf("diagnostics of an unknown key in line 8: %+v", found)
	}

	uri = fileURI(filepath.Join(folder, "new.yaml"))
	e.open(uri, steps+"\n")
	offered := e.completions(uri, 6, len("      - "))
	for _, want := range []string{"tools/call", "resources/read", "wait_for", "check", "timeout"} {
		if !slices.Contains(offered, want) {
			t.Errorf("a new step is not offered %s, only %q", want, offered)
		}
	}
}

// editedScenarios returns by URI what is right: the scenarios that are bundled, those in the
// documentation and the examples of the whole language. All name their schema.
func editedScenarios(t *testing.T, folder string) map[string]string {
	t.Helper()
	documents := map[string]string{}
	files, err := filepath.Glob(filepath.Join(folder, "bundled", "*.mcpbench.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(data), schemaLine) {
			t.Errorf("%s does not name its schema", file)
		}
		documents[fileURI(file)] = string(data)
	}
	bundled := len(documents)
	examples := documentedScenarios(t)
	for name, file := range map[string]string{"every-key": filepath.Join(folder, "testdata", "full.yaml"), "every-step": "testdata/full/bench.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples[name] = []string{string(data)}
	}
	for name, texts := range examples {
		for i, text := range texts {
			if !strings.HasPrefix(text, schemaLine) {
				text = schemaLine + "./mcpbench.schema.json\n" + text
			}
			documents[fileURI(filepath.Join(folder, fmt.Sprintf("%s-%d.yaml", name, i+1)))] = text
		}
	}
	if bundled < 7 || len(documents) < bundled+20 {
		t.Errorf("%d scenarios, %d of them bundled: some were not found", len(documents), bundled)
	}
	return documents
}

// fileURI is the URI of a file that need not exist.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// documentedScenarios returns the whole scenarios in the documentation, by the name
// of the file.
func documentedScenarios(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, file := range append(files, "../../README.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(data), "```yaml\n") {
			text, _, fenced := strings.Cut(part, "\n```")
			if fenced && strings.Contains(text, "version: 1\n") && strings.Contains(text, "\nflows:") {
				name := strings.TrimSuffix(filepath.Base(file), ".md")
				out[name] = append(out[name], text+"\n")
			}
		}
	}
	return out
}
