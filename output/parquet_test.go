package output_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"mcpbench/metrics"
	"mcpbench/output"
)

func TestRequestsRoundTrip(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{RowGroupRows: 300})
	samples := randomSamples(2000, 7)
	for batch := samples; len(batch) > 0; batch = batch[min(128, len(batch)):] {
		if err := sink.Write(batch[:min(128, len(batch))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	kept := make([]metrics.Sample, 0, len(samples))
	for _, s := range samples {
		if s.Outcome != metrics.Skipped {
			kept = append(kept, s)
		}
	}
	var got []row
	for _, part := range sink.parts(t, "requests") {
		got = append(got, readRows(t, part)...)
	}
	if len(got) != len(kept) {
		t.Fatalf("rows: got %d, want %d", len(got), len(kept))
	}
	for at := 0; at < len(kept); at += 300 { // each row group is sorted by itself
		group := kept[at:min(at+300, len(kept))]
		sort.SliceStable(group, func(i, j int) bool { return group[i].Start < group[j].Start })
		for i := range group {
			if diff := cmp.Diff(wantRequest(&group[i]), sortTags(got[at+i])); diff != "" {
				t.Fatalf("row %d (-want +got):\n%s", at+i, diff)
			}
		}
	}
}

// A row group has several pages, and each begins with empty columns.
func TestRowsAcrossPages(t *testing.T) {
	samples := randomSamples(40_000, 17)
	for i := range samples {
		if samples[i].Outcome == metrics.Skipped {
			samples[i].Outcome = metrics.OK
		}
	}
	sink := newSink(t, output.ParquetConfig{})
	if err := errors.Join(sink.Write(samples), sink.Close()); err != nil {
		t.Fatal(err)
	}
	sort.SliceStable(samples, func(i, j int) bool { return samples[i].Start < samples[j].Start })
	got := readRows(t, sink.parts(t, "requests")[0])
	if len(got) != len(samples) {
		t.Fatalf("rows: got %d, want %d", len(got), len(samples))
	}
	for i := range samples {
		if want, got := wantRequest(&samples[i]), sortTags(got[i]); !maps.Equal(want, got) {
			t.Fatalf("row %d (-want +got):\n%s", i, cmp.Diff(want, got))
		}
	}
}

func TestPartsAreCompleteAndBounded(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{RowGroupRows: 100, PartRows: 200}) // of all tables together
	for i, s := range randomSamples(500, 3) {
		s.Outcome = metrics.OK
		s.Iteration = uint64(i)
		if err := sink.Write([]metrics.Sample{s}); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	var rows []int64
	for i, name := range sink.parts(t, "requests") {
		if want := fmt.Sprintf("part-%05d.parquet", i); filepath.Base(name) != want {
			t.Errorf("part %d: got name %s, want %s", i, filepath.Base(name), want)
		}
		f := openParquet(t, name)
		rows = append(rows, f.NumRows())
		if v, _ := f.Lookup("mcpbench.schema_version"); v != "1" {
			t.Errorf("part %d: schema version %q, want 1", i, v)
		}
		if v, _ := f.Lookup("mcpbench.run"); !strings.Contains(v, `"run_id":"RUN"`) {
			t.Errorf("part %d: metadata mcpbench.run is %q", i, v)
		}
		for _, g := range f.RowGroups() {
			if n := g.NumRows(); n > 100 {
				t.Errorf("part %d: a row group of %d rows, want at most 100", i, n)
			}
			if c := g.SortingColumns(); len(c) != 1 || c[0].Path()[0] != "start_offset_ns" || c[0].Descending() {
				t.Errorf("part %d: sorting columns %v", i, c)
			}
		}
	}
	if diff := cmp.Diff([]int64{200, 200, 100}, rows); diff != "" {
		t.Errorf("rows of the parts (-want +got):\n%s", diff)
	}
}

func TestEmptyTablesKeepTheirSchema(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"requests", "iterations", "sessions", "intervals", "load"} {
		parts := sink.parts(t, table)
		if len(parts) != 1 || filepath.Base(parts[0]) != "part-00000.parquet" {
			t.Errorf("%s: parts %v", table, parts)
			continue
		}
		if n := openParquet(t, parts[0]).NumRows(); n != 0 {
			t.Errorf("%s: %d rows, want 0", table, n)
		}
	}
}

// TestSchemaGolden pins names, types and nullability of all columns.
func TestSchemaGolden(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if err := output.WriteRuns(output.ParquetConfig{Folder: sink.folder}, &metrics.Summary{}); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, table := range []string{"requests", "iterations", "sessions", "intervals", "load", "runs"} {
		f := openParquet(t, sink.parts(t, table)[0])
		if err := parquet.PrintSchema(&b, table, f.Schema()); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n\n")
	}
	golden(t, "schema.txt", b.String())
}

func TestColumnEncodings(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	if err := sink.Write(randomSamples(1000, 5)); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	f := openParquet(t, sink.parts(t, "requests")[0])
	want := map[string]string{ // those that the documentation of the columns names
		"run_id": "RLE_DICTIONARY", "group": "RLE_DICTIONARY", "flow": "RLE_DICTIONARY", "step": "RLE_DICTIONARY",
		"protocol_version": "RLE_DICTIONARY", "transport": "RLE_DICTIONARY", "method": "RLE_DICTIONARY",
		"name": "RLE_DICTIONARY", "outcome": "RLE_DICTIONARY", "error_message": "RLE_DICTIONARY",
		"session": "DELTA_BINARY_PACKED", "iteration": "DELTA_BINARY_PACKED", "seq": "DELTA_BINARY_PACKED",
		"started_at": "DELTA_BINARY_PACKED", "start_offset_ns": "DELTA_BINARY_PACKED",
	}
	for _, c := range f.Metadata().RowGroups[0].Columns {
		m := c.MetaData
		if m.Codec.String() != "ZSTD" {
			t.Errorf("%v: codec %s, want ZSTD", m.PathInSchema, m.Codec)
		}
		if w := want[m.PathInSchema[0]]; w != "" && !strings.Contains(fmt.Sprint(m.Encoding), w) {
			t.Errorf("%v: encodings %v, want %s", m.PathInSchema, m.Encoding, w)
		}
		delete(want, m.PathInSchema[0])
	}
	if len(want) > 0 {
		t.Errorf("columns not found: %v", want)
	}
}

func TestIterationAndSessionRows(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	exit := int32(3)
	err := sink.Write([]metrics.Sample{
		{Kind: metrics.KindConnect, Outcome: metrics.OK},
		{Kind: metrics.KindIteration, Intended: metrics.NoOffset, Release: metrics.NoOffset, Start: 5, End: 9, Iteration: 1, Session: 4, Step: metrics.NoStep, Seq: 3},
		{Kind: metrics.KindIteration, Group: 1, Intended: 10, Release: 12, Start: 15, End: 19, Iteration: 2, Session: 5, Step: 2, Seq: 1, Outcome: metrics.Outcome(metrics.IterFailed), Phase: metrics.PhaseWarmup},
		{Kind: metrics.KindIteration, Group: 1, Intended: 20, Release: 21, Start: 30, End: 30, Iteration: 3, Step: metrics.NoStep, Outcome: metrics.Outcome(metrics.IterDropped)},
		{Kind: metrics.KindSession, Session: 7, Start: -5, Extra: &metrics.Extra{Session: &metrics.SessionInfo{
			Server: "files", Transport: "stdio", Requested: "2025-11-25", Negotiated: "2025-11-25", Era: "legacy",
			Spawn: 11, Handshake: 12, Requests: 99, EndReason: "lost", ExitCode: &exit,
		}}},
		{Kind: metrics.KindSession, Session: 8, Outcome: metrics.TransportError, Extra: &metrics.Extra{Message: "connection refused", Session: &metrics.SessionInfo{
			Server: "catalog", Transport: "http", TCP: 1, TLS: 2, EndReason: "connect_failed",
		}}},
	})
	if err := errors.Join(err, sink.Close()); err != nil {
		t.Fatal(err)
	}
	wantIterations := []row{
		{"trial": "0", "group": "steady", "flow": "browse", "iteration": "1", "session": "4", "start_offset_ns": "5", "end_offset_ns": "9", "outcome": "completed", "steps": "3", "warmup": "false"},
		{"trial": "0", "group": "spike", "flow": "one_search", "iteration": "2", "session": "5", "intended_offset_ns": "10", "start_offset_ns": "15", "end_offset_ns": "19", "lateness_ns": "2", "queued_ns": "3", "outcome": "failed", "failed_step": "search", "steps": "1", "warmup": "true"},
		{"trial": "0", "group": "spike", "flow": "one_search", "iteration": "3", "intended_offset_ns": "20", "start_offset_ns": "30", "end_offset_ns": "30", "lateness_ns": "1", "queued_ns": "9", "outcome": "dropped", "steps": "0", "warmup": "false"},
	}
	if diff := cmp.Diff(wantIterations, readRows(t, sink.parts(t, "iterations")[0])); diff != "" {
		t.Errorf("iterations (-want +got):\n%s", diff)
	}
	wantSessions := []row{
		{"session": "7", "server": "files", "trial": "0", "transport": "stdio", "requested_version": "2025-11-25", "negotiated_version": "2025-11-25", "era": "legacy", "spawn_ns": "11", "handshake_ns": "12", "outcome": "ok", "requests": "99", "end_reason": "lost", "exit_code": "3"},
		{"session": "8", "server": "catalog", "trial": "0", "transport": "http", "tcp_ns": "1", "tls_ns": "2", "outcome": "transport_error", "error": "connection refused", "requests": "0", "end_reason": "connect_failed"},
	}
	if diff := cmp.Diff(wantSessions, readRows(t, sink.parts(t, "sessions")[0])); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}

func TestIntervalsAndLoad(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{})
	hist := hdrhistogram.New(1000, int64(time.Hour), 2)
	for i := range 1000 {
		if err := hist.RecordValue(int64(i+1) * int64(time.Microsecond) * 10); err != nil {
			t.Fatal(err)
		}
	}
	const exactMax = 9_999_900 // below the upper bound of its bucket
	var outcomes [metrics.NumOutcomes]int64
	outcomes[metrics.OK], outcomes[metrics.Timeout] = 998, 2
	err := sink.WriteIntervals([]metrics.Interval{
		{Second: 3, Step: 0, Proto: 2, Count: 1000, Outcomes: outcomes, Passed: []int64{990, 0, 5}, Failed: []int64{10, 0, 0}, BytesOut: 7, BytesIn: 8, Min: 10, Max: exactMax, Hist: hist, Service: hist},
		{Second: 4, Step: 2, Proto: 1, Phase: metrics.PhaseWarmup, Class: metrics.ClassOther, Count: 1},
	})
	empty := hdrhistogram.New(1000, int64(time.Hour), 2)
	err = errors.Join(err, sink.WriteLoad([]metrics.LoadRow{
		{Second: 3, Group: 1, Intended: 10, Started: 9, Completed: 8, Dropped: 1, SessionsWanted: 5, SessionsActive: 4, SessionsConnecting: 3, InFlight: 2, Lateness: hist, Queued: empty},
	}))
	if err := errors.Join(err, sink.Close()); err != nil {
		t.Fatal(err)
	}
	got := readRows(t, sink.parts(t, "intervals")[0])
	for i := range got {
		for _, column := range []string{"hist", "service_hist"} {
			if i == 0 {
				sameHistogram(t, hist, got[i][column])
			}
			delete(got[i], column)
		}
	}
	// The column of the map is in the order of the map.
	if got[0]["outcomes.key_value.key"] == "timeout|ok" {
		got[0]["outcomes.key_value.key"], got[0]["outcomes.key_value.value"] = "ok|timeout", "998|2"
	}
	want := []row{
		{
			"trial": "0", "target": "0", "group": "steady", "step": "search", "protocol_version": "2026-07-28", "transport": "http",
			"second": "3", "phase": "measured", "outcome_class": "timed", "count": "1000", "bytes_sent": "7", "bytes_received": "8",
			"outcomes.key_value.key": "ok|timeout", "outcomes.key_value.value": "998|2",
			"checks.list.element.name": "ok|fast", "checks.list.element.passed": "990|5", "checks.list.element.failed": "10|0",
			"p50_ns": fmt.Sprint(hist.ValueAtQuantile(50)), "p90_ns": fmt.Sprint(hist.ValueAtQuantile(90)), "p99_ns": fmt.Sprint(hist.ValueAtQuantile(99)),
			"p999_ns": fmt.Sprint(exactMax), "max_ns": fmt.Sprint(exactMax),
		},
		{
			"trial": "0", "target": "1", "group": "spike", "step": "search", "protocol_version": "2025-11-25", "transport": "stdio",
			"second": "4", "phase": "warmup", "outcome_class": "other", "count": "1", "bytes_sent": "0", "bytes_received": "0",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("intervals (-want +got):\n%s", diff)
	}
	load := readRows(t, sink.parts(t, "load")[0])
	sameHistogram(t, hist, load[0]["lateness_hist"])
	delete(load[0], "lateness_hist")
	wantLoad := []row{{
		"trial": "0", "group": "spike", "second": "3", "phase": "measured", "intended": "10", "started": "9", "completed": "8", "dropped": "1",
		"sessions_wanted": "5", "sessions_active": "4", "sessions_connecting": "3", "in_flight": "2",
	}}
	if diff := cmp.Diff(wantLoad, load); diff != "" {
		t.Errorf("load (-want +got):\n%s", diff)
	}
}

// sameHistogram decodes a column with the library, which takes base64.
func sameHistogram(t *testing.T, want *hdrhistogram.Histogram, payload string) {
	t.Helper()
	got, err := hdrhistogram.Decode([]byte(base64.StdEncoding.EncodeToString([]byte(payload))))
	if err != nil {
		t.Errorf("decode histogram: %v", err)
		return
	}
	if !want.Equals(got) || want.TotalCount() != got.TotalCount() {
		t.Errorf("histogram differs: %d values, want %d", got.TotalCount(), want.TotalCount())
	}
}

func TestFailedCompactionKeepsItsSegment(t *testing.T) {
	sink := newSink(t, output.ParquetConfig{RowGroupRows: 10, PartRows: 10})
	samples := randomSamples(100, 9)
	for i := range samples {
		samples[i].Outcome = metrics.OK
	}
	if err := sink.Write(samples[:10]); err != nil {
		t.Fatal(err)
	}
	// The next part cannot be opened: a folder has its name.
	blocked := filepath.Join(sink.dir, "requests", "agent=local", "part-00001.parquet.partial")
	if err := os.MkdirAll(blocked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := sink.Write(samples[10:]); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err == nil || !strings.Contains(err.Error(), "part-00001.parquet") || !strings.Contains(err.Error(), "mcpbench recover "+sink.dir+" ") {
		t.Errorf("Close: got error %v, want one that names the file and what to do", err)
	}
	if err := sink.Write(samples); err == nil {
		t.Error("Write: got no error after a failure")
	}
	if n := openParquet(t, sink.parts(t, "requests")[0]).NumRows(); n != 10 {
		t.Errorf("first part: %d rows, want 10", n)
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	ended := t0
	if err := sink.folder.WriteRun(&output.RunFile{RunID: "RUN", Verdict: "error", EndedAt: &ended}); err != nil {
		t.Fatal(err)
	}
	report, err := output.Recover(sink.dir)
	if err != nil || report.Rows.Requests != 90 || report.Verdict != "error" {
		t.Errorf("Recover: got %+v, %v, want 90 requests and the verdict that was there", report, err)
	}
	if n := openParquet(t, sink.parts(t, "requests")[1]).NumRows(); n != 90 {
		t.Errorf("second part: %d rows, want 90", n)
	}
	if _, err := os.Stat(filepath.Join(sink.dir, "journal")); err == nil {
		t.Error("the journal is still there")
	}
}
