package scenarios_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"mcpbench/scenarios"
)

func FuzzLoad(f *testing.F) {
	full, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add([]byte(bigScenario))
	for _, b := range scenarios.Bundled() {
		f.Add(b.Data)
	}
	names, err := filepath.Glob("testdata/errors/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scenarios.Load("g.yaml", data, scenarios.LoadOptions{Env: environment(map[string]string{"SET": "value"})})
		if err != nil {
			placed(t, strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)), err)
			return
		}
		if _, err := s.Compile(); err != nil {
			return
		}
		s.Settings()
		if _, err := scenarios.Load("g.yaml", s.Resolved(), scenarios.LoadOptions{}); err != nil && !strings.Contains(string(data), "$") {
			t.Errorf("resolved does not load: %v\n%s", err, s.Resolved())
		}
	})
}

// FuzzTemplate puts a text into an argument, as JSON.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"plain", "${{ 1 + 1 }}", "a ${{ session.index }} b", "$${{ x }}", "${{ \"}}\" }}", "${{ {\"a\": 1} }}", "${{", "\x00\xff", "${{ map(1..3, # + 1) }}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkTemplate(t, text)
	})
}
