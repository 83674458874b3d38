package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"mcpbench/metrics"
)

// runResult is what one run of the command left.
type runResult struct {
	exit       int
	took       time.Duration
	out, log   string           // standard output and error
	summary    *metrics.Summary // nil when nothing was printed
	requests   []requestRow
	iterations []iterationRow
	sessions   []sessionRow
}

type requestRow struct {
	ProtocolVersion string `parquet:"protocol_version"`
	Transport       string `parquet:"transport"`
	Outcome         string `parquet:"outcome"`
	Lateness        *int64 `parquet:"lateness_ns"`
	Queued          *int64 `parquet:"queued_ns"`
	Latency         int64  `parquet:"latency_ns"`
	Service         int64  `parquet:"service_ns"`
	HTTPStatus      *int32 `parquet:"http_status"`
}

type iterationRow struct {
	Outcome  string `parquet:"outcome"`
	Intended *int64 `parquet:"intended_offset_ns"`
	End      int64  `parquet:"end_offset_ns"`
	Lateness *int64 `parquet:"lateness_ns"`
}

type sessionRow struct {
	Negotiated *string `parquet:"negotiated_version"`
	Outcome    string  `parquet:"outcome"`
	Requests   int64   `parquet:"requests"`
}

const ms = float64(time.Millisecond)

// bench runs `mcpbench run ARGS --json -o DIR` and reads what it left. tail is
// put at the very end, for the command of a stdio server.
func bench(t *testing.T, args []string, tail ...string) *runResult {
	t.Helper()
	dir := t.TempDir()
	all := append([]string{"run"}, args...)
	all = append(all, "--json", "-o", dir)
	all = append(all, tail...)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin.mcpbench, all...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // a hang shows its goroutines
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir = t.TempDir()
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	began := time.Now()
	err := cmd.Run()
	r := &runResult{took: time.Since(began), out: out.String(), log: log.String(), exit: cmd.ProcessState.ExitCode()}
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("mcpbench %v: %v\n%s", all, err, r.log)
	} else if ok && !exit.Exited() {
		t.Fatalf("mcpbench %v: %v\n%s", all, err, r.log)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("mcpbench %v\nexit %d\nstdout:\n%s\nstderr:\n%s", all, r.exit, r.out, r.log)
		}
	})
	if out.Len() == 0 {
		return r
	}
	r.summary = &metrics.Summary{}
	if err := json.Unmarshal(out.Bytes(), r.summary); err != nil {
		t.Fatalf("standard output is not the summary: %v", err)
	}
	if r.summary.ExitCode != r.exit {
		t.Errorf("exit_code is %d, but the exit code was %d", r.summary.ExitCode, r.exit)
	}
	r.requests = readTable[requestRow](t, dir, "requests")
	r.iterations = readTable[iterationRow](t, dir, "iterations")
	r.sessions = readTable[sessionRow](t, dir, "sessions")
	return r
}

// readTable reads all rows of a table of the only run in dir.
func readTable[Row any](t *testing.T, dir, table string) []Row {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(dir, "*", table, "agent=local", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	for _, part := range parts {
		more, err := parquet.ReadFile[Row](part)
		if err != nil {
			t.Fatalf("read %s: %v", part, err)
		}
		rows = append(rows, more...)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", table, "agent=local", "*.partial")); len(left) > 0 {
		t.Errorf("unfinished parts: %v", left)
	}
	return rows
}

// checkCounts compares the tables with the summary.
func (r *runResult) checkCounts(t *testing.T) {
	t.Helper()
	s := r.summary
	if s == nil {
		t.Fatal("no summary")
	}
	if got, want := int64(len(r.requests)), s.Requests.Total; got != want {
		t.Errorf("%d rows in requests, but the summary counts %d", got, want)
	}
	if got, want := int64(len(r.iterations)), s.Iterations.Total; got != want {
		t.Errorf("%d rows in iterations, but the summary counts %d", got, want)
	}
	byOutcome := map[string]int64{}
	for _, row := range r.requests {
		byOutcome[row.Outcome]++
	}
	for outcome, n := range s.Requests.Outcomes {
		if byOutcome[outcome] != n {
			t.Errorf("%d rows with outcome %s, but the summary counts %d", byOutcome[outcome], outcome, n)
		}
	}
	var steps int64
	for _, step := range s.Steps {
		steps += step.Count
	}
	if steps != s.Requests.Total {
		t.Errorf("the steps count %d requests together, but the summary %d", steps, s.Requests.Total)
	}
	var inSessions int64
	for _, row := range r.sessions {
		inSessions += row.Requests
	}
	if inSessions != s.Requests.Total {
		t.Errorf("the rows in sessions count %d requests together, but the summary %d", inSessions, s.Requests.Total)
	}
	if s.DurationS > r.took.Seconds() {
		t.Errorf("duration_s is %v, but the whole command took %v", s.DurationS, r.took)
	}
	r.checkQuantiles(t)
}

// checkQuantiles compares the figures of a summary with one step with those of
// the rows.
func (r *runResult) checkQuantiles(t *testing.T) {
	t.Helper()
	var latency, service []float64
	for _, row := range r.requests {
		if row.Outcome == "ok" || row.Outcome == "check_failed" || row.Outcome == "timeout" {
			latency = append(latency, float64(row.Latency)/ms)
			service = append(service, float64(row.Service)/ms)
		}
	}
	if len(r.summary.Steps) != 1 {
		t.Fatalf("%d steps, want 1", len(r.summary.Steps))
	}
	step := r.summary.Steps[0]
	for name, c := range map[string]struct {
		rows []float64
		got  *metrics.Quantiles
	}{"latency": {latency, step.Latency}, "service": {service, step.Service}} {
		if len(c.rows) == 0 || c.got == nil {
			if len(c.rows) != 0 || c.got != nil {
				t.Errorf("%s: %d rows, but the summary has %+v", name, len(c.rows), c.got)
			}
			continue
		}
		if c.got.Count != int64(len(c.rows)) || c.got.Max != slices.Max(c.rows) || c.got.Min != slices.Min(c.rows) {
			t.Errorf("%s: %d rows from %v to %v, but the summary has %+v",
				name, len(c.rows), slices.Min(c.rows), slices.Max(c.rows), c.got)
		}
		for q, got := range map[float64]float64{0.5: c.got.P50, 0.9: c.got.P90, 0.99: c.got.P99, 0.999: c.got.P999} {
			// Definitions differ in whether the rank is rounded up or down; and
			// the histogram has three digits, counted from 1 µs.
			low, high := ranked(c.rows, math.Floor(q*float64(len(c.rows)))), quantile(c.rows, q)
			if got < 0.998*low-0.002 || got > 1.002*high+0.002 {
				t.Errorf("%s: the quantile %v of the rows is from %v to %v ms, in the summary %v", name, q, low, high, got)
			}
		}
	}
}

// quantile returns the smallest value that at least the share q of them does not exceed.
func quantile(values []float64, q float64) float64 {
	return ranked(values, math.Ceil(q*float64(len(values))))
}

// ranked returns the value with the given rank, the smallest having rank 1.
func ranked(values []float64, rank float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(values))[max(int(rank)-1, 0)]
}
