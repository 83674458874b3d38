package query_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mcpbench/metrics"
)

const scenario = `version: 1
name: queries
servers: {a: {transport: http, url: "http://127.0.0.1:1/"}}
load:
  warmup: 200ms
  groups:
    closed: {duration: 2s, server: a, flow: f, sessions: {count: 2}, think: 5ms}
    open: {duration: 2s, server: a, flow: g, arrivals: {rate: 100/s}, max_sessions: 4}
flows:
  f:
    steps:
      - id: echo
        tools/call: {name: echo, arguments: {n: "${{ iteration.index }}"}}
        check: {ok: not result.isError, odd: iteration.index % 2 == 1}
  g:
    steps:
      - id: fail
        tools/call: {name: fail, arguments: {}}
`

// TestQueriesOfTheDocumentation runs the six queries on a real run and
// compares them with its summary.
func TestQueriesOfTheDocumentation(t *testing.T) {
	server := newFake(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	results := filepath.Join(dir, "results")
	cmd := exec.CommandContext(t.Context(), mcpbench, "run", file, "--url", server.url, "-o", results)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var s metrics.Summary
	data, err := os.ReadFile(filepath.Join(onlyRun(t, results), "summary.json"))
	if err := errors.Join(err, json.Unmarshal(data, &s)); err != nil {
		t.Fatal(err)
	}
	db := open(t)
	all := statements(t, filepath.Join("testdata", "queries.sql"), results)
	if len(all) != 7 {
		t.Fatalf("%d statements, want a view and six queries", len(all))
	}
	if _, err := db.ExecContext(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	answers := make([][]map[string]any, len(all))
	for i, q := range all[1:] {
		if answers[i+1] = query(t, db, q); len(answers[i+1]) == 0 {
			t.Errorf("query %d: no rows", i+1)
		}
	}
	byStep := map[string]map[string]any{}
	for _, row := range answers[1] {
		byStep[row["step"].(string)] = row
	}
	for _, step := range s.Steps {
		row := byStep[step.Step]
		if row["n"].(int64) != step.Count {
			t.Errorf("step %s: %v rows, summary %d", step.Step, row["n"], step.Count)
		}
		if step.Latency == nil {
			continue
		}
		for i, want := range []float64{step.Latency.P50, step.Latency.P90, step.Latency.P99} {
			got := float64(row["p"].([]any)[i].(int64)) / 1e6
			if math.Abs(got-want) > want/1000+0.001 { // three digits, 1 µs
				t.Errorf("step %s: quantile %d is %v ms in the rows, %v in the summary", step.Step, i, got, want)
			}
		}
	}
	for _, row := range answers[3] {
		for _, c := range s.Checks {
			if c.Name == row["name"] && (row["n"].(int64) != c.Passed+c.Failed || row["failed"].(int64) != c.Failed) {
				t.Errorf("check %s: %v, summary %+v", c.Name, row, c)
			}
		}
	}
	if e := answers[5][0]; e["outcome"] != "rpc_error" || e["n"].(int64) != s.Requests.Outcomes["rpc_error"] || e["error_code"].(int32) != -32000 {
		t.Errorf("errors: %v, summary %v", answers[5], s.Requests.Outcomes)
	}
}
