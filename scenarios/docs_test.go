package scenarios_test

import (
	"os"
	"strings"
	"testing"

	"mcpbench/scenarios"
)

// snippets returns the fenced YAML blocks of a Markdown text.
func snippets(text string) []string {
	var out []string
	for {
		_, after, ok := strings.Cut(text, "```yaml\n")
		if !ok {
			return out
		}
		block, rest, _ := strings.Cut(after, "```")
		out = append(out, block)
		text = rest
	}
}

func formatDoc(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../docs/scenario-format.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestDocumentedScenariosLoad(t *testing.T) {
	schema := schemaOf(t)
	found := snippets(formatDoc(t))
	if len(found) < 5 {
		t.Fatalf("only %d snippets", len(found))
	}
	for i, text := range found {
		s, err := scenarios.Load("snippet.yaml", []byte(text), scenarios.LoadOptions{})
		if err != nil {
			t.Errorf("snippet %d: %v", i, err)
			continue
		}
		if p := mustCompile(t, s); len(p.Unsupported) > 0 || len(p.Warnings) > 0 {
			t.Errorf("snippet %d: unsupported %v, warnings %v", i, p.Unsupported, p.Warnings)
		}
		if err := validates(t, schema, []byte(text)); err != nil {
			t.Errorf("snippet %d: schema: %v", i, err)
		}
	}
}
