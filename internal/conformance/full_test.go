package conformance

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mcpbench/metrics"
)

// TestFullScenario runs a scenario with every kind of step against the npm servers
// everything and filesystem: rows of the outcome that each is to have.
func TestFullScenario(t *testing.T) {
	file, err := filepath.Abs(filepath.Join("testdata", "full", "bench.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir, out := filepath.Dir(file), t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin.mcpbench, "run", file, "--json", "-o", out)
	cmd.Dir = dir
	npm := filepath.Dir(filepath.Dir(filepath.Dir(script(t, "server-everything")[1])))
	cmd.Env = append(os.Environ(), "NPM="+npm, "FILES="+filepath.Join(dir, "docs"))
	stdout, err := cmd.Output()
	if err != nil {
		var log []byte
		if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as os/exec returns it
			log = exit.Stderr
		}
		t.Fatalf("%v\n%s\n%s", err, stdout, log)
	}
	var sum metrics.Summary
	if err := json.Unmarshal(stdout, &sum); err != nil {
		t.Fatal(err)
	}
	if sum.Requests.Failed != 0 || sum.Requests.Outcomes["script_error"] != 0 || sum.Iterations.Total != sum.Iterations.Completed {
		t.Errorf("requests %+v, iterations %+v", sum.Requests, sum.Iterations)
	}
	counts := map[string]int64{}
	for i := range sum.Steps {
		s := &sum.Steps[i]
		counts[s.Step] += s.Count
	}
	for _, c := range sum.Checks {
		if c.Failed > 0 || c.Passed == 0 {
			t.Errorf("check %+v", c)
		}
	}
	for step, want := range map[string]int64{
		"search": 12, "slow": 12, "progress": 12, "twice.sum": 24, "unknown": 12, "raw": 12, "ping": 12, "generate echo": 12,
		"tools/call read_text_file": 5, // as many as there are rows
	} {
		if counts[step] != want {
			t.Errorf("%d requests of step %s, want %d", counts[step], step, want)
		}
	}
	if n := sum.Requests.Outcomes["cancelled"]; n != 12 {
		t.Errorf("%d requests cancelled, want 12", n)
	}
	asked := slices.ContainsFunc(sum.ServerRequests, func(r metrics.ServerRequestSummary) bool {
		return r.Method == "sampling/createMessage" && r.Count == 12
	})
	if !asked {
		t.Errorf("the server asked %+v", sum.ServerRequests)
	}
	tags := map[string]int{}
	for _, row := range readTable[taggedRow](t, out, "requests") {
		tags[row.Step+" "+row.Tags["kind"]+row.Tags["expected"]]++
	}
	if tags["search read"] != 12 || tags["unknown tool_error"]+tags["unknown rpc_error"] != 12 {
		t.Errorf("tags of the rows: %v", tags)
	}
}

type taggedRow struct {
	Step string            `parquet:"step"`
	Tags map[string]string `parquet:"tags,optional"`
}
