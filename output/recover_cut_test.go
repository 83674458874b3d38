package output_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
	"mcpbench/output"
)

// killed is the folder of a run that was killed after write.
func killed(tb testing.TB, c output.ParquetConfig, write func(sink testSink)) string {
	tb.Helper()
	sink := newSink(tb, c)
	if err := sink.folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0, Seed: 7, Tags: map[string]string{"team": "search"}}); err != nil {
		tb.Fatal(err)
	}
	write(sink)
	dir := copyFolder(tb, sink.dir)
	if err := sink.Close(); err != nil {
		tb.Fatal(err)
	}
	return dir
}

func (s testSink) must(tb testing.TB, errs ...error) {
	tb.Helper()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
}

// tableRows reads all rows of a table.
func tableRows(tb testing.TB, dir, table string) []row {
	tb.Helper()
	parts, err := filepath.Glob(filepath.Join(dir, table, "agent=local", "part-*.parquet"))
	if err != nil {
		tb.Fatal(err)
	}
	var out []row
	for _, part := range parts {
		out = append(out, readRows(tb, part)...)
	}
	return out
}

func readSummary(tb testing.TB, dir string) *metrics.Summary {
	tb.Helper()
	s := &metrics.Summary{}
	data, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err := errors.Join(err, json.Unmarshal(data, s)); err != nil {
		tb.Fatal(err)
	}
	return s
}

const ms = time.Millisecond

// arrival is a completed iteration of the open group, with its request.
func arrival(i uint64, intended time.Duration, session uint32) []metrics.Sample {
	s := metrics.Sample{
		Kind: metrics.KindStep, Step: 2, Group: 1, Proto: 1, Rounds: 1, Iteration: i, Session: session,
		Intended: intended, Release: intended + ms, Start: intended + 2*ms, FirstByte: intended + 3*ms, End: intended + 4*ms,
	}
	it := s
	it.Kind, it.Step, it.Seq = metrics.KindIteration, metrics.NoStep, 1
	return []metrics.Sample{s, it}
}

// connects are sessions that opened, and one that has ended by now.
func connects(n uint32) []metrics.Sample {
	code := int32(3)
	var out []metrics.Sample
	for i := range n {
		start := time.Duration(i)*ms - time.Second
		c := metrics.Sample{
			Kind: metrics.KindConnect, Group: 1, Step: metrics.NoStep, Session: i, Proto: 1, Phase: metrics.PhaseSetup,
			Intended: metrics.NoOffset, Release: metrics.NoOffset, Start: start, FirstByte: start + 5*ms, End: start + 5*ms,
			Extra: &metrics.Extra{Session: &metrics.SessionInfo{
				Server: "files", Transport: "stdio", Negotiated: "2025-11-25", Era: "legacy", Spawn: 3 * ms, Handshake: 2 * ms,
			}},
		}
		out = append(out, c)
	}
	ended := out[0]
	info := *ended.Extra.Session
	info.EndReason, info.ExitCode, info.Ended = "lost", &code, ms
	ended.Kind, ended.Extra = metrics.KindSession, &metrics.Extra{Session: &info, Message: "exit status 3"}
	return append(out, ended)
}

// frozen is a run whose server froze after the fifth arrival and that was
// killed at 3.25 s, with 32 arrivals due. It writes what the collector would
// have written by then.
func frozen(tb testing.TB, sink testSink) {
	tb.Helper()
	sink.must(tb, sink.Write(connects(3)))
	for i := range uint64(5) {
		sink.must(tb, sink.Write(arrival(i, time.Duration(i)*100*ms, 1+uint32(i%2))))
	}
	// The sixth has made one of its requests.
	begun := arrival(5, 500*ms, 2)[0]
	sink.must(tb, sink.Write([]metrics.Sample{begun}))
	for at := 100 * ms; at <= 3250*ms; at += 100 * ms {
		n := int64(at / (100 * ms))
		sink.must(tb, sink.WriteGauges(at, []metrics.Gauges{{}, {
			Intended: n, Started: min(n, 7), Completed: min(n, 5), SessionsWanted: 3, SessionsActive: 2, InFlight: int(min(n, 7) - min(n, 5)),
		}}))
		if at == 2000*ms { // second 0 is handed over
			sink.must(tb, sink.WriteLoad([]metrics.LoadRow{
				{Group: 0}, {Group: 1, Intended: 10, Started: 7, Completed: 5, SessionsWanted: 3, SessionsActive: 2, InFlight: 2},
			}))
		}
	}
}

// TestKilledOpenLoadCountsWhatWasWaiting is the summary that hid all arrivals
// behind a frozen server and called the run sound.
func TestKilledOpenLoadCountsWhatWasWaiting(t *testing.T) {
	dir := killed(t, output.ParquetConfig{}, func(sink testSink) { frozen(t, sink) })
	report, err := output.Recover(dir)
	if err != nil || report.Err() != nil {
		t.Fatalf("Recover: %+v, %v, %v", report, err, report.Err())
	}
	if report.Interrupted != 27 || report.Sessions != 2 || report.At != 3200*ms {
		t.Errorf("report %+v, want 27 iterations and 2 sessions at 3.2 s", report)
	}
	s := readSummary(t, dir)
	if s.Iterations.Total != 32 || s.Iterations.Completed != 5 || s.Iterations.Interrupted != 27 {
		t.Errorf("iterations %+v, want 5 of 32 completed, and 27 interrupted", s.Iterations)
	}
	if l := s.Load[1]; l.Intended != 32 || l.Started != 6 || l.RatePerS != 10 || l.Sessions != 3 {
		t.Errorf("load %+v, want 32 arrivals at 10/s", l)
	}
	want := metrics.Soundness{Verdict: metrics.Unsound, Reasons: []string{"the run was cut off: 27 iterations were due or under way without a known end"}}
	if got := s.Soundness; got.Verdict != want.Verdict || !slices.Equal(got.Reasons, want.Reasons) {
		t.Errorf("soundness %+v, want %+v", got, want)
	}
	if s.Verdict != metrics.VerdictInterrupted || s.ExitCode != 137 || s.DurationS != 3.2 || s.Tags["team"] != "search" {
		t.Errorf("verdict %s, exit code %d, %v s, tags %v", s.Verdict, s.ExitCode, s.DurationS, s.Tags)
	}
	var got []string
	for _, r := range tableRows(t, dir, "iterations") {
		if r["outcome"] == "interrupted" {
			got = append(got, fmt.Sprint(r["iteration"], " ", r["session"], " ", r["intended_offset_ns"], " ", r["start_offset_ns"], " ", r["end_offset_ns"], " ", r["steps"]))
		}
	}
	rows := []string{"5 2 500000000 502000000 3200000000 1"} // what its request tells
	for i := 6; i < 32; i++ {
		rows = append(rows, fmt.Sprint(i, "   3200000000 3200000000 0"))
	}
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Errorf("interrupted iterations (-want +got):\n%s", diff)
	}
	finished(t, dir)
}

// TestKilledRunWithStepsOnceASession: their requests belong to their session and to
// no iteration.
func TestKilledRunWithStepsOnceASession(t *testing.T) {
	dir := killed(t, output.ParquetConfig{}, func(sink testSink) {
		frozen(t, sink)
		for session := uint32(1); session <= 2; session++ {
			before := arrival(metrics.NoIteration, 50*ms, session)[0]
			before.Phase, before.Intended, before.Release = metrics.PhaseSetup, metrics.NoOffset, metrics.NoOffset
			sink.must(t, sink.Write([]metrics.Sample{before}))
		}
	})
	report, err := output.Recover(dir)
	if err != nil || report.Interrupted != 27 || report.Sessions != 2 {
		t.Fatalf("Recover: %+v, %v, want 27 iterations and 2 sessions", report, err)
	}
	for _, r := range tableRows(t, dir, "sessions") {
		if r["end_reason"] == "run_cut" && r["requests"] != "4" {
			t.Errorf("session %s: %s requests, want 3 of iterations and 1 before", r["session"], r["requests"])
		}
	}
	if s := readSummary(t, dir); s.Iterations.Total != 32 || s.Requests.Total != 6 {
		t.Errorf("%d iterations, %d requests; want 32 and 6", s.Iterations.Total, s.Requests.Total)
	}
}

// TestKilledRunHasItsSessions: the table of a run that was killed had no row of
// the sessions that were open then.
func TestKilledRunHasItsSessions(t *testing.T) {
	dir := killed(t, output.ParquetConfig{}, func(sink testSink) { frozen(t, sink) })
	if _, err := output.Recover(dir); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range tableRows(t, dir, "sessions") {
		got = append(got, strings.Join([]string{
			r["session"], r["server"], r["transport"], r["negotiated_version"], r["era"], r["spawn_ns"], r["handshake_ns"],
			r["outcome"], r["requests"], r["end_reason"], r["exit_code"],
		}, " "))
	}
	want := []string{
		"0 files stdio 2025-11-25 legacy 3000000 2000000 ok 0 lost 3",
		"1 files stdio 2025-11-25 legacy 3000000 2000000 ok 3 run_cut ",
		"2 files stdio 2025-11-25 legacy 3000000 2000000 ok 3 run_cut ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
	if s := readSummary(t, dir).Sessions; s.Opened != 3 || s.Connect.Count != 3 {
		t.Errorf("sessions of the summary %+v, want 3 opened", s)
	}
}

// TestKilledRunHasItsLoadRows: the rows of the last seconds were missing, and
// all of a short run.
func TestKilledRunHasItsLoadRows(t *testing.T) {
	dir := killed(t, output.ParquetConfig{}, func(sink testSink) { frozen(t, sink) })
	if _, err := output.Recover(dir); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range tableRows(t, dir, "load") {
		if r["group"] == "spike" {
			got = append(got, strings.Join([]string{
				r["second"], r["phase"], r["intended"], r["started"], r["completed"], r["sessions_wanted"], r["sessions_active"], r["in_flight"],
			}, " "))
		}
	}
	want := []string{"0 measured 10 7 5 3 2 2", "1 measured 10 0 0 3 2 2", "2 measured 10 0 0 3 2 2", "3 measured 2 0 0 3 2 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("load rows of the open group (-want +got):\n%s", diff)
	}
	if n := len(tableRows(t, dir, "load")); n != 8 {
		t.Errorf("%d load rows, want one for each of 4 seconds and 2 groups", n)
	}
}

// TestCutIterationsOfTheWarmupStayOutOfTheFigures has a server that hangs from
// the start: 10 arrivals of the warm-up and 15 after it wait when the run is killed.
func TestCutIterationsOfTheWarmupStayOutOfTheFigures(t *testing.T) {
	dir := killed(t, output.ParquetConfig{Warmup: time.Second}, func(sink testSink) {
		sink.must(t, sink.Write(connects(2)))
		for at := 100 * ms; at <= 2500*ms; at += 100 * ms {
			sink.must(t, sink.WriteGauges(at, []metrics.Gauges{{}, {Intended: int64(at / (100 * ms)), SessionsWanted: 1}}))
		}
	})
	if _, err := output.Recover(dir); err != nil {
		t.Fatal(err)
	}
	s := readSummary(t, dir)
	if s.Iterations.Total != 15 || s.Iterations.Interrupted != 15 || s.DurationS != 1.5 || s.WarmupS != 1 {
		t.Errorf("%+v in %v s, want 15 interrupted of the measured 1.5 s", s.Iterations, s.DurationS)
	}
	warmup := 0
	for _, r := range tableRows(t, dir, "iterations") {
		if r["warmup"] == "true" {
			warmup++
		}
	}
	if warmup != 10 {
		t.Errorf("%d iterations of the warm-up, want 10", warmup)
	}
}

// TestMarksAreBoundedAndKeepTheLastSeconds writes readings for an hour of
// virtual time and many groups.
func TestMarksAreBoundedAndKeepTheLastSeconds(t *testing.T) {
	cat := testCatalog()
	for i := range 60 {
		cat.Groups = append(cat.Groups, metrics.GroupInfo{Name: "g" + strconv.Itoa(i), Open: true})
	}
	folder, err := output.Create(t.TempDir(), "RUN")
	if err != nil {
		t.Fatal(err)
	}
	p, err := output.NewParquet(output.ParquetConfig{Folder: folder, RunID: "RUN", Catalog: cat, T0: t0})
	if err := errors.Join(err, folder.WriteRun(&output.RunFile{RunID: "RUN", StartedAt: t0})); err != nil {
		t.Fatal(err)
	}
	gauges := make([]metrics.Gauges, len(cat.Groups))
	var most, at int64
	for n := range int64(36000) {
		at = n * int64(100*ms)
		for i := range gauges {
			gauges[i].Intended = n / 100
		}
		if err := p.WriteGauges(time.Duration(at), gauges); err != nil {
			t.Fatal(err)
		}
		if n%100 == 0 {
			most = max(most, sizeOf(t, filepath.Join(folder.Path(), "journal")))
		}
	}
	if most > 3<<20 {
		t.Errorf("the journal of nothing takes %d bytes, want less than 3 MiB", most)
	}
	dir := copyFolder(t, folder.Path())
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if report, err := output.Recover(dir); err != nil || report.At != time.Duration(at) || report.Interrupted != 62*359 || report.Err() != nil {
		t.Errorf("Recover: %+v, %v, %v, want 62 times 359 interrupted", report, err, report.Err())
	}
	seconds := map[string]bool{}
	for _, r := range tableRows(t, dir, "load") {
		seconds[r["second"]] = true
	}
	for s := 3595; s < 3600; s++ {
		if !seconds[strconv.Itoa(s)] {
			t.Errorf("second %d has no load row", s)
		}
	}
}

// sizeOf sums the files of a folder.
func sizeOf(tb testing.TB, dir string) int64 {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	var sum int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // it may have been compacted just now
			sum += info.Size()
		}
	}
	return sum
}
