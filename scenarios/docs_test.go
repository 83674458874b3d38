package scenarios_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

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
	return readDoc(t, "scenario-format.md")
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../docs/" + name)
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

// TestRecipesCompile holds docs/cookbook.md against the language: every recipe is a
// whole scenario without a warning, and only that of tasks waits for a later version.
func TestRecipesCompile(t *testing.T) {
	schema := schemaOf(t)
	files := fstest.MapFS{"data/tenants.csv": {Data: []byte("tenant,token\na,t-a\nb,t-b\n")}}
	o := scenarios.LoadOptions{
		OpenFile: func(name string) (fs.File, error) { return files.Open(name) },
		ReadFile: files.ReadFile,
	}
	found := snippets(readDoc(t, "cookbook.md"))
	if len(found) != 12 {
		t.Errorf("%d recipes, want 12", len(found))
	}
	names := map[string]bool{}
	for i, text := range found {
		s, err := scenarios.Load("recipe.yaml", []byte(text), o)
		if err != nil {
			t.Errorf("recipe %d: %v", i+1, err)
			continue
		}
		p := mustCompile(t, s)
		if names[p.Name] || p.Name == "recipe" {
			t.Errorf("recipe %d: the name %q is not its own", i+1, p.Name)
		}
		names[p.Name] = true
		later := 0
		if p.Name == "task" {
			later = 1
		}
		if len(p.Unsupported) != later || len(p.Warnings) > 0 {
			t.Errorf("recipe %s: unsupported %v, warnings %v", p.Name, p.Unsupported, p.Warnings)
		}
		if err := validates(t, schema, []byte(text)); err != nil {
			t.Errorf("recipe %s: schema: %v", p.Name, err)
		}
	}
}
