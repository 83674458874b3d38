package output_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
	"mcpbench/output"
)

// lawfulSamples are samples as a run makes them, of all kinds.
func lawfulSamples(n int, seed uint64) []metrics.Sample {
	rng := rand.New(rand.NewPCG(seed, 9))
	cat := testCatalog()
	var out []metrics.Sample
	arrivals := make([]uint64, len(cat.Groups))
	for i := range n {
		start := time.Duration(i) * 3 * time.Millisecond
		step := uint16(rng.IntN(len(cat.Steps)))
		s := metrics.Sample{
			Kind: metrics.KindStep, Step: step, Group: uint8(cat.Steps[step].Group),
			Intended: metrics.NoOffset, Release: metrics.NoOffset,
			Start: start, FirstByte: start + time.Duration(rng.IntN(1e6)), End: start + time.Duration(1e6+rng.IntN(5e6)),
			Session: uint32(rng.IntN(20)), Proto: uint8(1 + rng.IntN(2)), Rounds: 1,
			BytesOut: rng.Uint32N(1000), BytesIn: rng.Uint32N(100000), HTTPStatus: 200,
		}
		s.Iteration = arrivals[s.Group]
		arrivals[s.Group]++
		if rng.IntN(4) == 0 {
			s.Outcome = metrics.Outcome(rng.IntN(int(metrics.Skipped)))
			s.Extra = &metrics.Extra{Message: fmt.Sprintf("error %d", rng.IntN(3)), TraceID: "trace"}
			if s.Outcome == metrics.RPCError || s.Outcome == metrics.Timeout {
				s.Code = -int32(rng.IntN(3))
			}
		}
		if rng.IntN(4) == 0 {
			if s.Extra == nil {
				s.Extra = &metrics.Extra{}
			}
			randomProgress(rng, s.Extra)
		}
		if checks := len(cat.Steps[step].Checks); checks > 0 && s.Outcome.Answered() {
			s.ChecksFailed = rng.Uint32N(1 << checks)
		}
		if start < 200*time.Millisecond {
			s.Phase = metrics.PhaseWarmup
		}
		it := s
		it.Kind, it.Seq, it.Outcome, it.Step, it.Extra, it.ChecksFailed, it.Code = metrics.KindIteration, 1, metrics.OK, metrics.NoStep, nil, 0, 0
		if cat.Groups[s.Group].Open {
			s.Intended, s.Release = start-2*time.Millisecond, start-time.Millisecond
			it.Intended, it.Release = s.Intended, s.Release
		}
		if s.Outcome != metrics.OK {
			it.Outcome, it.Step = metrics.Outcome(metrics.IterFailed), step
		}
		out = append(out, s, it)
		if i%50 == 0 {
			c := metrics.Sample{Kind: metrics.KindConnect, Session: uint32(i), Start: start, End: start + 5*time.Millisecond, Outcome: metrics.OK, Proto: 1}
			row := c
			row.Kind, row.Extra = metrics.KindSession, &metrics.Extra{Session: &metrics.SessionInfo{Server: "catalog", Transport: "http", EndReason: "run_end", Requests: 3}}
			out = append(out, c, row)
		}
	}
	return out
}

// tables reads all tables of a folder, each sorted, histograms apart.
func tables(t *testing.T, dir string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, table := range []string{"requests", "iterations", "sessions", "intervals", "load"} {
		parts, err := filepath.Glob(filepath.Join(dir, table, "agent=local", "*"))
		if err != nil {
			t.Fatal(err)
		}
		out[table] = []string{}
		for _, part := range parts {
			for _, r := range readRows(t, part) {
				sortTags(r)
				var b strings.Builder
				for _, column := range slices.Sorted(maps.Keys(r)) {
					if column == "outcomes.key_value.key" || column == "outcomes.key_value.value" {
						continue // a map, in its own order
					}
					fmt.Fprintf(&b, "%s=%q ", column, r[column])
				}
				out[table] = append(out[table], b.String())
			}
		}
		sort.Strings(out[table])
	}
	return out
}

// copyFolder is what a kill leaves: the files as they are, and no lock.
func copyFolder(tb testing.TB, dir string) string {
	tb.Helper()
	to := filepath.Join(tb.TempDir(), "RUN")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		tb.Fatal(err)
	}
	return to
}

// killSink copies the folder of a run at its end, before it is compacted. It
// does not come to write the figures of the last seconds.
type killSink struct {
	sink   testSink
	tb     testing.TB
	killed string
}

func (k *killSink) Write(batch []metrics.Sample) error { return k.sink.Write(batch) }

func (k *killSink) Close() error {
	k.killed = copyFolder(k.tb, k.sink.dir)
	return k.sink.Close()
}

// TestRecoveredRunEqualsTheLiveOne is the law that rows and summary are two
// views of the same samples: after a kill before the end, tables and summary
// are those that the run would have had.
func TestRecoveredRunEqualsTheLiveOne(t *testing.T) {
	for _, rows := range []int{0, 700} { // all in the journal; most in parts
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			config := output.ParquetConfig{PartRows: rows, RowGroupRows: 256, Warmup: 200 * time.Millisecond}
			whole, sink := newSink(t, config), &killSink{tb: t, sink: newSink(t, config)}
			run := &output.RunFile{RunID: "RUN", Mcpbench: "1.2.3", StartedAt: t0, Scenario: output.ScenarioRef{Name: "s"}, Seed: 7}
			if err := sink.sink.folder.WriteRun(run); err != nil {
				t.Fatal(err)
			}
			c := metrics.NewCollector(metrics.CollectorConfig{
				Catalog: testCatalog(), Sinks: []metrics.Sink{whole, sink}, Warmup: 200 * time.Millisecond, SlabLimit: 1000,
			})
			for _, s := range lawfulSamples(3000, 5) {
				c.Record(s)
			}
			c.Close()
			if err := c.Run(); err != nil {
				t.Fatal(err)
			}
			live := c.Summary(metrics.RunInfo{RunID: "RUN", Scenario: "s", StartedAt: t0, Seed: 7, Signal: syscall.SIGKILL, CutOff: true, ResultsDir: sink.killed})

			report, err := output.Recover(sink.killed)
			if err != nil || report.Verdict != metrics.VerdictInterrupted || !report.Summarized || report.Err() != nil {
				t.Fatalf("Recover: %+v, %v", report, err)
			}
			want, got := tables(t, whole.dir), tables(t, sink.killed)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("tables (-live +recovered):\n%s", diff)
			}
			sameSummary(t, live, filepath.Join(sink.killed, "summary.json"))

			finished(t, sink.killed)
		})
	}
}

// finished sees to it that a recovered folder is whole, and that doing it
// again changes nothing.
func finished(t *testing.T, dir string) {
	t.Helper()
	before := tree(t, dir)
	if report, err := output.Recover(dir); !report.Complete || err != nil {
		t.Errorf("Recover again: %+v, %v, want nothing to do", report, err)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("the second Recover changed files (-before +after):\n%s", diff)
	}
	var file output.RunFile
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err := errors.Join(err, json.Unmarshal(data, &file)); err != nil {
		t.Fatal(err)
	}
	if file.Verdict != "interrupted" || file.EndedAt == nil || *file.ExitCode != 137 || len(file.Targets) != 2 || file.Seed != 7 {
		t.Errorf("run.json: %s", data)
	}
}

// sameSummary compares a live summary with a file. Sums of floating point come
// in another order, so the means may differ in their last digits.
func sameSummary(t *testing.T, live *metrics.Summary, path string) {
	t.Helper()
	want, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := errors.Join(json.Unmarshal(want, &a), json.Unmarshal(got, &b)); err != nil {
		t.Fatal(err)
	}
	near := cmp.Comparer(func(x, y float64) bool { return x == y || (x-y)/x < 1e-9 && (y-x)/x < 1e-9 })
	if diff := cmp.Diff(a, b, near); diff != "" {
		t.Errorf("summary (-live +recovered):\n%s", diff)
	}
}

// tree lists all files of a folder with their contents' sizes and times.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			data, rerr := os.ReadFile(path)
			out, err = append(out, fmt.Sprintf("%s %x", strings.TrimPrefix(path, dir), data)), rerr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var errKilled = errors.New("killed")

// TestKillAtEachStepOfACompaction stops the compaction before each of its
// steps, and then finds every row once.
func TestKillAtEachStepOfACompaction(t *testing.T) {
	samples := lawfulSamples(300, 3)
	writeAll := func(sink testSink) error {
		var errs []error
		for batch := samples; len(batch) > 0; batch = batch[min(50, len(batch)):] {
			errs = append(errs, sink.Write(batch[:min(50, len(batch))]))
		}
		return errors.Join(append(errs, sink.Close())...)
	}
	steps := 0
	count := func(string) error { steps++; return nil }
	config := output.ParquetConfig{PartRows: 400, RowGroupRows: 100}
	whole := newSink(t, output.WithSteps(config, count))
	if err := writeAll(whole); err != nil {
		t.Fatal(err)
	}
	want := tables(t, whole.dir)
	if steps < 12 {
		t.Fatalf("only %d steps", steps)
	}
	for at := range steps {
		n := 0
		sink := newSink(t, output.WithSteps(config, func(string) error {
			if n++; n > at {
				return errKilled
			}
			return nil
		}))
		if err := sink.folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0}); err != nil {
			t.Fatal(err)
		}
		err := writeAll(sink)
		if !errors.Is(err, errKilled) {
			t.Fatalf("step %d: %v", at, err)
		}
		onceEach(t, at, copyFolder(t, sink.dir), want)
	}
}

// onceEach recovers a folder whose compaction was killed at a step, and holds
// its rows against those of a whole one.
func onceEach(t *testing.T, step int, dir string, want map[string][]string) {
	t.Helper()
	if _, err := output.Recover(dir); err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	got := tables(t, dir)
	// After the failure the collector gets an error and stops writing.
	for _, table := range []string{"requests", "iterations", "sessions"} {
		if !subset(got[table], want[table]) {
			t.Errorf("step %d: %s has rows that were not written, or twice", step, table)
		}
	}
	if n := len(got["iterations"]); n < 150 || len(got["requests"]) < n {
		t.Errorf("step %d: %d requests and %d iterations", step, len(got["requests"]), n)
	}
	for _, file := range tree(t, dir) {
		if name, _, _ := strings.Cut(file, " "); strings.HasSuffix(name, ".partial") || strings.HasPrefix(name, "/journal") {
			t.Errorf("step %d: %s is left", step, name)
		}
	}
}

// subset reports whether each of a, both sorted, is in b as often at least.
func subset(a, b []string) bool {
	for _, s := range b {
		if len(a) > 0 && a[0] == s {
			a = a[1:]
		}
	}
	return len(a) == 0
}

// TestTruncatedJournalKeepsWholeBatches cuts the journal at many places.
func TestTruncatedJournalKeepsWholeBatches(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	if err := sink.folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0}); err != nil {
		t.Fatal(err)
	}
	wal := filepath.Join(sink.dir, "journal", "000000.wal")
	size := func() int64 {
		info, err := os.Stat(wal)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	ends := []int64{size()}
	for range 4 {
		if err := sink.Write(lawfulSamples(5, 1)); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, size())
	}
	for cut := int64(0); cut <= ends[4]; cut += 53 {
		dir := copyFolder(t, sink.dir)
		if err := os.Truncate(filepath.Join(dir, "journal", "000000.wal"), cut); err != nil {
			t.Fatal(err)
		}
		batches := 0
		for batches < 4 && ends[batches+1] <= cut {
			batches++
		}
		report, err := output.Recover(dir)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if n := len(tables(t, dir)["requests"]); n != 5*batches {
			t.Errorf("cut at %d: %d requests, want %d; %+v", cut, n, 5*batches, report)
		}
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFlippedBitIsCountedAndTheSegmentKept(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	if err := sink.folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := sink.Write(lawfulSamples(5, 1)); err != nil {
			t.Fatal(err)
		}
	}
	dir := copyFolder(t, sink.dir)
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	wal := filepath.Join(dir, "journal", "000000.wal")
	data, err := os.ReadFile(wal)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndex(data, []byte("\xf7MJ1"))
	second := bytes.LastIndex(data[:last], []byte("\xf7MJ1"))
	data[second+30] ^= 4
	data[25] ^= 1 // the metadata of the segment: those of the connects stand in
	if err := os.WriteFile(wal, data, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := output.Recover(dir)
	if err != nil {
		t.Fatal(err)
	}
	// 5 requests, 5 iterations and 1 session were in the second batch, 1 record were the metadata.
	if n := len(tables(t, dir)["requests"]); n != 10 || len(report.Lost.Places) != 2 || report.Lost.Records != 12 || report.Lost.Bytes == 0 {
		t.Errorf("%d requests, want 10; %+v", n, report)
	}
	if _, err := os.Stat(wal + ".damaged"); err != nil {
		t.Errorf("the damaged segment was not kept: %v", err)
	}
}
