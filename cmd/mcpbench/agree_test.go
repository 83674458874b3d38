package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/parquet-go/parquet-go"
	"github.com/rogpeppe/go-internal/testscript"

	"mcpbench/internal/target"
	"mcpbench/metrics"
)

// Columns of the results that the tests count.
type (
	requestColumns struct {
		Step      string `parquet:"step"`
		Outcome   string `parquet:"outcome"`
		Intended  *int64 `parquet:"intended_offset_ns"`
		Lateness  *int64 `parquet:"lateness_ns"`
		Queued    *int64 `parquet:"queued_ns"`
		Latency   int64  `parquet:"latency_ns"`
		Service   int64  `parquet:"service_ns"`
		Protocol  string `parquet:"protocol_version"`
		Transport string `parquet:"transport"`
		Warmup    bool   `parquet:"warmup"`
	}
	iterationColumns struct {
		Outcome string `parquet:"outcome"`
		Warmup  bool   `parquet:"warmup"`
	}
	sessionColumns struct {
		Outcome   string `parquet:"outcome"`
		EndReason string `parquet:"end_reason"`
	}
	intervalColumns struct {
		Step  string `parquet:"step"`
		Phase string `parquet:"phase"`
		Class string `parquet:"outcome_class"`
		Count int64  `parquet:"count"`
		Hist  []byte `parquet:"hist"`
	}
	loadColumns struct {
		Phase    string `parquet:"phase"`
		Intended int64  `parquet:"intended"`
		Started  int64  `parquet:"started"`
		Dropped  int64  `parquet:"dropped"`
	}
)

// table reads all parts of one table of a results folder.
func table[T any](ts *testscript.TestScript, dir, name string) []T {
	parts, err := filepath.Glob(filepath.Join(dir, name, "agent=local", "part-*.parquet"))
	ts.Check(err)
	var out []T
	for _, part := range parts {
		rows, err := parquet.ReadFile[T](part)
		ts.Check(err)
		out = append(out, rows...)
	}
	return out
}

// cmdAgree is "agree DIR [STATS_DIR]": the only run in DIR has the same counts
// in its summary, its rows, its histograms and, with a second folder, in the
// counters that the target wrote.
func cmdAgree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: agree DIR [STATS_DIR]")
	}
	runs, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*"))
	ts.Check(err)
	if len(runs) != 1 {
		ts.Fatalf("%d runs in %s, want 1", len(runs), args[0])
	}
	var s metrics.Summary
	data, err := os.ReadFile(filepath.Join(runs[0], "summary.json"))
	ts.Check(err)
	ts.Check(json.Unmarshal(data, &s))
	equal := func(what string, got, want int64) {
		ts.Logf("%s: %d = %d", what, got, want)
		if got != want {
			ts.Fatalf("%s: %d and %d", what, got, want)
		}
	}

	requests := table[requestColumns](ts, runs[0], "requests")
	var measured, ok, timed int64
	for _, r := range requests {
		switch {
		case r.Warmup:
			continue
		case r.Outcome == "ok":
			ok++
			timed++
		case r.Outcome == "timeout", r.Outcome == "check_failed":
			timed++
		}
		measured++
	}
	equal("request rows and summary", measured, s.Requests.Total)
	equal("ok rows and summary", ok, s.Requests.OK)
	equal("ok + failed + other and total", s.Requests.OK+s.Requests.Failed+s.Requests.Other, s.Requests.Total)

	var inHistograms, inSteps int64
	for _, step := range s.Steps {
		inSteps += step.Count
		if step.Latency != nil {
			inHistograms += step.Latency.Count
		}
	}
	equal("steps and total", inSteps, s.Requests.Total)
	equal("latency histograms and timed rows", inHistograms, timed)

	var counts, values, all int64
	for _, i := range table[intervalColumns](ts, runs[0], "intervals") {
		all += i.Count
		if i.Phase != "measured" {
			continue
		}
		counts += i.Count
		if i.Class == "timed" {
			values += histogram(ts, i.Hist).TotalCount()
		}
	}
	equal("intervals and summary", counts, s.Requests.Total)
	equal("interval histograms and timed rows", values, timed)
	equal("intervals of all phases and request rows", all, int64(len(requests)))

	var iterations int64
	for _, i := range table[iterationColumns](ts, runs[0], "iterations") {
		if !i.Warmup {
			iterations++
		}
	}
	equal("iteration rows and summary", iterations, s.Iterations.Total)
	it := s.Iterations
	equal("iteration outcomes and total",
		it.Completed+it.Failed+it.Dropped+it.Interrupted+it.ScriptError+it.AgentLost, it.Total)
	equal("session rows and summary", int64(len(table[sessionColumns](ts, runs[0], "sessions"))), s.Sessions.Opened+s.Sessions.Failed)

	var started int64
	for _, l := range table[loadColumns](ts, runs[0], "load") {
		started += l.Started + l.Dropped
	}
	allIterations := int64(len(table[iterationColumns](ts, runs[0], "iterations")))
	equal("load rows and iteration rows", started, allIterations)

	if len(args) > 1 {
		stats, _, err := target.ReadStats(ts.MkAbs(args[1]))
		ts.Check(err)
		received := stats.Requests.Received - stats.Methods["initialize"].Received - stats.Methods["server/discover"].Received
		equal("request rows and the target's own count", int64(len(requests)), received)
	}
}

// histogram decodes the V2 payload that the intervals table holds.
func histogram(ts *testscript.TestScript, payload []byte) *hdrhistogram.Histogram {
	h, err := hdrhistogram.Decode(encodeBase64(payload))
	ts.Check(err)
	return h
}

// cmdRows is "rows DIR OUTCOME=N...": the outcomes of all request rows.
func cmdRows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: rows DIR/RUN/TABLE OUTCOME=N...")
	}
	dirs, err := filepath.Glob(ts.MkAbs(filepath.Dir(args[0])))
	ts.Check(err)
	if len(dirs) != 1 {
		ts.Fatalf("%d runs match %s, want 1", len(dirs), args[0])
	}
	got := map[string]int{}
	for _, r := range table[iterationColumns](ts, dirs[0], filepath.Base(args[0])) {
		got[r.Outcome]++
	}
	want := map[string]int{}
	for _, a := range args[1:] {
		name, n, _ := strings.Cut(a, "=")
		want[name] = atoi(ts, n)
	}
	if len(got) != len(want) {
		ts.Fatalf("rows by outcome: %v, want %v", got, want)
	}
	for name, n := range want {
		if got[name] != n {
			ts.Fatalf("rows by outcome: %v, want %v", got, want)
		}
	}
}

func encodeBase64(b []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(b)) }

func atoi(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}
