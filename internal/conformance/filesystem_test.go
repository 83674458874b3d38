package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const filesystemScenario = `version: 1
name: read-a-file
servers:
  files:
    from: {file: .mcp.json, server: filesystem}
load:
  groups:
    readers:
      server: files
      flow: read
      sessions: {count: 2}
      iterations: 40
flows:
  read:
    steps:
      - id: read
        tools/call:
          name: read_text_file
          arguments: {path: "FILE"}
        check:
          ok: not result.isError
          content: result.content[0].text contains "EXPECTED"
`

// The server of an editor's configuration reads a file, and a check looks at
// what it read.
func TestFilesystemFromEditorConfig(t *testing.T) {
	for _, tt := range []struct {
		name, expected string
		failed         int64
	}{
		{"right expectation", "pack my box", 0},
		{"wrong expectation", "five dozen mugs", 40},
	} {
		t.Run(tt.name, func(t *testing.T) { readFile(t, tt.expected, tt.failed) })
	}
}

func readFile(t *testing.T, expected string, failed int64) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "note.txt")
	write(t, file, "pack my box with five dozen jugs\n")
	command := script(t, "server-filesystem", dir)
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"filesystem": map[string]any{"command": command[0], "args": command[1:]},
	}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".mcp.json"), string(config))
	scenario := filepath.Join(dir, "files.yaml")
	write(t, scenario, strings.NewReplacer("FILE", file, "EXPECTED", expected).Replace(filesystemScenario))

	r := bench(t, []string{scenario})
	if left := processesWith(t, dir); left > 0 {
		t.Errorf("%d processes of the server are left", left)
	}
	if r.exit != 0 {
		t.Errorf("exit code %d, want 0", r.exit)
	}
	r.checkCounts(t)
	// A check is a verdict beside the outcome: the requests stay ok.
	if c := r.summary.Requests; c.OK != 40 || c.Failed != 0 || c.ChecksFailed != failed {
		t.Errorf("requests: %d ok, %d failed, %d with failed checks, want 40, 0, %d", c.OK, c.Failed, c.ChecksFailed, failed)
	}
	for _, check := range r.summary.Checks {
		want := int64(0)
		if check.Name == "content" {
			want = failed
		}
		if check.Failed != want || check.Passed != 40-want {
			t.Errorf("check %s: %d passed, %d failed, want %d, %d", check.Name, check.Passed, check.Failed, 40-want, want)
		}
	}
	if len(r.summary.Checks) != 2 {
		t.Errorf("checks %+v, want 2", r.summary.Checks)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
