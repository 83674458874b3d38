//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"mcpbench/metrics"
)

// A pipe of rows used to be opened and closed when the scenario was compiled, which
// ended its writer, and the run then waited for another one.
func TestRowsFromAPipe(t *testing.T) {
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "rows"), filepath.Join(dir, "s.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	scenario := `version: 1
data: {rows: {file: rows, format: jsonl, pick: unique}}
servers: {a: {embedded: http}}
load: {groups: {g: {sessions: 2, duration: 1m}}}
flows: {f: {steps: [{tools/call: {name: echo, arguments: {message: "${{ data.rows.id }}"}}}]}}
`
	if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		written <- func() error {
			w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			for i := range 100 {
				if _, err := fmt.Fprintf(w, "{\"id\": \"%d\"}\n", i); err != nil {
					return err
				}
			}
			return w.Close()
		}()
	}()
	var out, log bytes.Buffer
	code := run(t.Context(), []string{"run", file, "--json", "-q", "-o", filepath.Join(dir, "results")}, streams{in: bytes.NewReader(nil), out: &out, err: &log, env: os.LookupEnv})
	if err := <-written; err != nil {
		t.Errorf("the writer: %v", err)
	}
	var s metrics.Summary
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatalf("exit %d: %v\n%s", code, err, log.String())
	}
	if code != 0 || s.Requests.OK != 100 || s.Iterations.Total != 100 {
		t.Errorf("exit %d, requests %+v", code, s.Requests)
	}
}
