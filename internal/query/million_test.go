package query_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"mcpbench/metrics"
	"mcpbench/output"
)

const millionScenario = `version: 1
name: million
servers: {a: {transport: http, protocol: "2025-11-25", url: "http://127.0.0.1:1/"}}
load:
  groups:
    all: {iterations: %d, server: a, flow: f, %s}
flows:
  f:
    steps:
      - id: echo
        tools/call: {name: echo, arguments: {message: hello}}
        check: {ok: not result.isError}
      - id: ping
        ping: {}
`

const millionSteps = 2 // of each iteration

// TestMillion makes ROWS requests (20000 by default) in a closed load, and a
// twentieth of that in an open one. What the target, the journal, the tables and
// the summary say of them must agree.
func TestMillion(t *testing.T) {
	rows := int64(number(t, "ROWS", 20_000))
	t.Run("closed", func(t *testing.T) { million(t, rows, "sessions: {count: 16}") })
	t.Run("open", func(t *testing.T) { million(t, rows/20, "arrivals: {rate: 500/s}, max_sessions: 64") })
}

func million(t *testing.T, rows int64, load string) {
	t.Helper()
	iterations := rows / millionSteps
	dir := t.TempDir()
	file, results, kept := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "results"), filepath.Join(dir, "kept")
	if err := os.WriteFile(file, fmt.Appendf(nil, millionScenario, iterations, load), 0o600); err != nil {
		t.Fatal(err)
	}
	target := startTarget(t)
	cmd := exec.CommandContext(t.Context(), mcpbench, "run", file, "--url", target.url, "-o", results)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	peak, err := watch(cmd.Process.Pid, results, kept, ended)
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	took := time.Since(began)

	run := onlyRun(t, results)
	var s metrics.Summary
	data, err := os.ReadFile(filepath.Join(run, "summary.json"))
	if err := errors.Join(err, json.Unmarshal(data, &s)); err != nil {
		t.Fatal(err)
	}
	journal, err := output.Recover(onlyRun(t, kept))
	if err != nil {
		t.Fatal(err)
	}
	db := open(t)
	for name, folder := range map[string]string{"r": run, "again": onlyRun(t, kept)} {
		view(t, db, name, folder, "requests")
	}
	view(t, db, "i", run, "iterations")
	view(t, db, "n", run, "intervals")

	equal(t, "iterations in the summary", s.Iterations.Total, iterations)
	equal(t, "rows in iterations", one[int64](t, db, `SELECT count(*) FROM i`), iterations)
	rows = (iterations - s.Iterations.Dropped) * millionSteps
	equal(t, "requests in the summary", s.Requests.Total, rows)
	equal(t, "requests that the target received", target.received(t), rows)
	equal(t, "request records in the journal", journal.Rows.Requests, rows)
	equal(t, "rows in requests", one[int64](t, db, `SELECT count(*) FROM r`), rows)
	equal(t, "different rows in requests", one[int64](t, db, `SELECT count(*) FROM (SELECT DISTINCT session, iteration, seq FROM r)`), rows)
	equal(t, "rows that the journal makes and requests has not", one[int64](t, db, `SELECT count(*) FROM (FROM again EXCEPT FROM r)`), 0)
	equal(t, "requests in intervals", one[int64](t, db, `SELECT sum(count)::BIGINT FROM n`), rows)
	for i := range s.Steps {
		checkStep(t, db, &s.Steps[i])
	}
	t.Logf("%d requests in %v, %.0f a second; mcpbench: %.1f µs of processor time a request, at most %d MiB; %.2f bytes a row in requests, %.2f in iterations",
		rows, took.Round(time.Millisecond), s.Requests.RatePerS,
		float64((cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()).Microseconds())/float64(rows), peak>>10,
		tableBytes(t, run, "requests")/float64(rows), tableBytes(t, run, "iterations")/float64(iterations))
}

// checkStep compares the rows of a step with its summary and its intervals.
func checkStep(t *testing.T, db *sql.DB, s *metrics.StepSummary) {
	t.Helper()
	for name, c := range map[string]struct {
		rows, hist string
		summary    *metrics.Quantiles
	}{
		"latency": {"latency_ns", "hist", s.Latency},
		"service": {"service_ns", "service_hist", s.Service},
	} {
		what := s.Step + ", " + name
		const timed = `outcome IN ('ok', 'check_failed', 'timeout')`
		n := one[int64](t, db, fmt.Sprintf(`SELECT count(*) FROM r WHERE step = '%s' AND %s`, s.Step, timed))
		equal(t, what+": values in the summary", c.summary.Count, n)
		seconds := intervalHistogram(t, db, s.Step, c.hist)
		equal(t, what+": values in the histograms of intervals", seconds.TotalCount(), n)
		for _, q := range []struct {
			permille int64
			summary  float64 // ms
		}{{500, c.summary.P50}, {900, c.summary.P90}, {990, c.summary.P99}, {999, c.summary.P999}, {1000, c.summary.Max}} {
			rank := (n*q.permille + 999) / 1000
			want := float64(one[int64](t, db, fmt.Sprintf(`SELECT list_sort(list(%s))[%d] FROM r WHERE step = '%s' AND %s`, c.rows, rank, s.Step, timed)))
			t.Logf("%s, quantile %v: %.4f ms in the rows, %.4f in the summary", what, float64(q.permille)/1000, want/1e6, q.summary)
			// Three digits, from 1 µs on.
			if got := q.summary * 1e6; math.Abs(got-want) > max(want/1000, 1000) {
				t.Errorf("%s: the quantile %v is %v ns in the rows, %v in the summary", what, float64(q.permille)/1000, want, got)
			}
			// Two digits.
			if got := float64(seconds.ValueAtQuantile(metrics.NearestRank(float64(q.permille)/10, n))); math.Abs(got-want) > max(want/100, 1000) {
				t.Errorf("%s: the quantile %v is %v ns in the rows, %v in the intervals", what, float64(q.permille)/1000, want, got)
			}
		}
	}
}

// intervalHistogram adds up the histograms of all seconds of a step.
func intervalHistogram(t *testing.T, db *sql.DB, step, column string) *hdrhistogram.Histogram {
	t.Helper()
	var sum *hdrhistogram.Histogram
	for _, row := range query(t, db, fmt.Sprintf(`SELECT %s h, count FROM n WHERE step = '%s' AND outcome_class = 'timed'`, column, step)) {
		payload := base64.StdEncoding.EncodeToString(row["h"].([]byte)) // as the library takes it
		h, err := hdrhistogram.Decode([]byte(payload))
		if err != nil {
			t.Fatalf("%s of %s: %v", column, step, err)
		}
		equal(t, "values in a histogram of an interval", h.TotalCount(), row["count"].(int64))
		if sum == nil {
			sum = hdrhistogram.New(h.LowestTrackableValue(), h.HighestTrackableValue(), int(h.SignificantFigures()))
		}
		if dropped := sum.Merge(h); dropped > 0 {
			t.Errorf("%d values of an interval are out of range", dropped)
		}
	}
	return sum
}

// watch waits for the end of a run. Meanwhile it links the segments of the
// journal into another results folder, for they are removed when they have
// become Parquet, and run.json as it is at the start. It returns the greatest
// resident size of the process in KiB, 0 where that cannot be seen.
func watch(pid int, results, kept string, ended <-chan error) (peak int64, err error) {
	for {
		for _, pattern := range []string{"*/run.json", "*/journal/*.wal"} {
			if err := linkNew(results, kept, pattern); err != nil {
				return peak, err
			}
		}
		if size := peakSize(pid); size > 0 {
			peak = size
		}
		select {
		case err := <-ended:
			return peak, err
		case <-time.After(10 * time.Millisecond): // another process: real time
		}
	}
}

// linkNew links the files that match and are not in the other folder yet.
func linkNew(from, to, pattern string) error {
	files, err := filepath.Glob(filepath.Join(from, pattern))
	if err != nil {
		return err
	}
	for _, file := range files {
		link := filepath.Join(to, strings.TrimPrefix(file, from))
		if _, err := os.Stat(link); err == nil {
			continue
		}
		err := os.MkdirAll(filepath.Dir(link), 0o750)
		if err := errors.Join(err, os.Link(file, link)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// peakSize reads VmHWM, as Linux has it. What the system says when the process
// has ended would count the test itself too, from which it was forked.
func peakSize(pid int) int64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // elsewhere there is none
	_, text, _ := strings.Cut(string(data), "VmHWM:")
	size, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, _ := strconv.ParseInt(size, 10, 64)
	return n
}

// demoTarget is the command's own demo server in a process of its own.
type demoTarget struct {
	url, stats string
	cmd        *exec.Cmd
}

func startTarget(t *testing.T, args ...string) *demoTarget {
	t.Helper()
	d := &demoTarget{stats: t.TempDir()}
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--json-response", "--stats-dir", d.stats}, args...)
	d.cmd = exec.CommandContext(t.Context(), mcpbench, args...)
	d.cmd.Stderr = os.Stderr
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	d.url = strings.TrimSpace(line)
	return d
}

// received ends the target and returns how many requests it counted, without
// those that opened sessions.
func (d *demoTarget) received(t *testing.T) int64 {
	t.Helper()
	if err := errors.Join(d.cmd.Process.Signal(os.Interrupt), d.cmd.Wait()); err != nil {
		t.Fatalf("end the target: %v", err)
	}
	type counts struct{ Received int64 }
	var stats struct {
		Requests counts
		Methods  map[string]counts
	}
	data, err := os.ReadFile(onlyRun(t, d.stats))
	if err := errors.Join(err, json.Unmarshal(data, &stats)); err != nil {
		t.Fatal(err)
	}
	return stats.Requests.Received - stats.Methods["initialize"].Received - stats.Methods["server/discover"].Received
}

func equal(t *testing.T, what string, got, want int64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// view gives a table of a run a name.
func view(t *testing.T, db *sql.DB, name, run, table string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), fmt.Sprintf(`CREATE VIEW %s AS FROM read_parquet('%s/%s/*/*.parquet')`, name, run, table))
	if err != nil {
		t.Fatal(err)
	}
}

// one is the only value of a statement.
func one[T any](t *testing.T, db *sql.DB, statement string) T {
	t.Helper()
	var out T
	if err := db.QueryRowContext(t.Context(), statement).Scan(&out); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return out
}

func tableBytes(t *testing.T, run, table string) (sum float64) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(run, table, "*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		info, err := os.Stat(part)
		if err != nil {
			t.Fatal(err)
		}
		sum += float64(info.Size())
	}
	return sum
}
