package scenarios_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"mcpbench/scenarios"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestErrorGolden loads each testdata/errors/*.txtar: bench.yaml is the
// scenario, other files are what it may read, want is everything that check
// would print.
func TestErrorGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string][]byte{}
			for _, f := range archive.Files {
				files[f.Name] = f.Data
			}
			got := checked(files)
			if *update {
				rewrite(t, name, archive, got)
				return
			}
			if diff := cmp.Diff(string(files["want"]), got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func rewrite(t *testing.T, name string, archive *txtar.Archive, got string) {
	t.Helper()
	for i := range archive.Files {
		if archive.Files[i].Name == "want" {
			archive.Files = append(archive.Files[:i], archive.Files[i+1:]...)
			break
		}
	}
	archive.Files = append(archive.Files, txtar.File{Name: "want", Data: []byte(got)})
	if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// checked returns what is wrong with files["bench.yaml"].
func checked(files map[string][]byte) string {
	s, err := scenarios.Load("bench.yaml", files["bench.yaml"], scenarios.LoadOptions{
		Thorough: true,
		Env:      environment(map[string]string{"SET": "value", "EMPTY": "", "HOME": "/home/u"}),
		ReadFile: func(name string) ([]byte, error) {
			if data, ok := files[name]; ok {
				return data, nil
			}
			return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
		},
	})
	var out strings.Builder
	var p *scenarios.Program
	if err == nil {
		p, err = s.Compile()
	}
	if err != nil {
		out.WriteString(err.Error() + "\n")
		return out.String()
	}
	for _, problem := range p.Unsupported {
		out.WriteString("later: " + problem.String() + "\n")
	}
	for _, problem := range p.Warnings {
		out.WriteString("warning: " + problem.String() + "\n")
	}
	return out.String()
}
