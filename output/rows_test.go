package output_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"mcpbench/metrics"
	"mcpbench/output"
)

var t0 = time.Date(2026, 12, 1, 10, 0, 0, 123456789, time.UTC)

func testCatalog() *metrics.Catalog {
	return &metrics.Catalog{
		Groups: []metrics.GroupInfo{
			{Name: "steady", Flow: "browse", Target: 0},
			{Name: "spike", Flow: "one_search", Open: true, Target: 1},
		},
		Steps: []metrics.StepInfo{
			{ID: "search", Group: 0, Method: "tools/call", Name: "search", Checks: []string{"ok", "some", "fast"}, Tags: map[string]string{"kind": "read"}},
			{ID: "resources/read", Group: 0, Method: "resources/read", Name: "catalog://item/{id}"},
			{ID: "search", Group: 1, Method: "tools/call", Name: "search", Checks: []string{"ok"}},
		},
		Targets: []metrics.TargetInfo{
			{Server: "catalog", Transport: "http"},
			{Server: "files", Transport: "stdio"},
		},
		Protocols: []string{"", "2025-11-25", "2026-07-28"},
	}
}

// randomSamples makes n requests with every outcome and all combinations of
// nullable columns, in an order that is not that of their starts.
func randomSamples(n int, seed uint64) []metrics.Sample {
	rng := rand.New(rand.NewPCG(seed, 1))
	cat := testCatalog()
	out := make([]metrics.Sample, n)
	for i := range out {
		step := uint16(rng.IntN(len(cat.Steps)))
		group := uint8(cat.Steps[step].Group)
		start := time.Duration(i)*50*time.Microsecond + time.Duration(rng.IntN(int(100*time.Millisecond))) - time.Second
		s := metrics.Sample{
			Kind: metrics.KindStep, Step: step, Group: group,
			Intended: metrics.NoOffset, Release: metrics.NoOffset,
			Start: start, FirstByte: start + time.Millisecond, End: start + 2*time.Millisecond,
			Outcome:   metrics.Outcome(rng.IntN(metrics.NumOutcomes)),
			Iteration: uint64(i / 3), Seq: uint16(i % 3), Session: uint32(rng.IntN(20)),
			Proto: uint8(rng.IntN(3)), Rounds: uint8(rng.IntN(4)), Code: int32(rng.IntN(65536) - 32768),
			BytesOut: rng.Uint32N(1000), BytesIn: rng.Uint32(), ChecksFailed: rng.Uint32N(8),
			Phase: metrics.Phase(rng.IntN(3)), Trial: uint16(rng.IntN(2)),
			Notifications: uint16(rng.IntN(5)), Progress: uint16(rng.IntN(3)),
		}
		if rng.IntN(2) == 0 {
			s.HTTPStatus = 200
		}
		if rng.IntN(3) == 0 {
			s.FirstByte = s.End
		}
		if cat.Groups[group].Open {
			s.Intended, s.Release = start-3*time.Millisecond, start-time.Duration(rng.IntN(2))*time.Millisecond
		}
		if rng.IntN(2) == 0 {
			s.HasConnect = rng.IntN(2) == 0
			s.Extra = &metrics.Extra{Connect: time.Duration(rng.IntN(1000)), Retries: uint16(rng.IntN(3)), TaskPolls: uint16(rng.IntN(3))}
			if rng.IntN(2) == 0 {
				s.Extra.Message = fmt.Sprintf("error %d: \x1b[31mbad", i%7)
			}
			if rng.IntN(2) == 0 {
				s.Extra.TraceID = fmt.Sprintf("%032x", i)
			}
			if rng.IntN(2) == 0 {
				s.Extra.Tags = map[string]string{"a": fmt.Sprint(i % 4), "b": ""}
			}
			randomProgress(rng, s.Extra)
		}
		if rng.IntN(20) == 0 {
			s.Iteration = metrics.NoIteration
		}
		out[i] = s
	}
	return out
}

// randomProgress gives some requests times of their progress, and of their end
// after a cancellation.
func randomProgress(rng *rand.Rand, x *metrics.Extra) {
	if x.HasProgress = rng.IntN(2) == 0; x.HasProgress {
		x.FirstProgress = time.Duration(rng.IntN(1e9))
		x.LastProgress = x.FirstProgress
		for range rng.IntN(4) {
			gap := time.Duration(rng.IntN(1e9))
			x.Gaps, x.LastProgress = append(x.Gaps, gap), x.LastProgress+gap
		}
	}
	if rng.IntN(3) == 0 {
		for range 2 + rng.IntN(3) {
			x.Rounds = append(x.Rounds, time.Duration(rng.IntN(1e9)))
		}
	}
	if x.HasCache = rng.IntN(3) == 0; x.HasCache {
		x.CacheTTL, x.CacheScope = rng.Int64N(2)*rng.Int64N(1e6), []string{"public", "private", ""}[rng.IntN(3)]
	}
	if x.HasCancelStop = rng.IntN(3) == 0; x.HasCancelStop {
		x.CancelStop = time.Duration(rng.IntN(2) * rng.IntN(1e9))
	}
}

type testSink struct {
	*output.Parquet
	folder *output.Folder
	dir    string
}

func newSink(tb testing.TB, c output.ParquetConfig) testSink {
	tb.Helper()
	folder, err := output.Create(tb.TempDir(), "RUN")
	if err != nil {
		tb.Fatal(err)
	}
	c.Folder, c.RunID, c.Catalog, c.T0 = folder, "RUN", testCatalog(), t0
	c.Run = &output.RunFile{RunID: "RUN", Mcpbench: "1.2.3"}
	p, err := output.NewParquet(c)
	if err != nil {
		tb.Fatal(err)
	}
	return testSink{p, folder, folder.Path()}
}

func (s testSink) parts(tb testing.TB, table string) []string {
	tb.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, table, "agent=local", "*"))
	if err != nil {
		tb.Fatal(err)
	}
	sort.Strings(names)
	return names
}

// row is one row by column path, as strings; null is absent.
type row map[string]string

// readRows reads a table by the file's own schema, so that it does not lean on
// the types that wrote it.
func readRows(tb testing.TB, path string) []row {
	tb.Helper()
	f := openParquet(tb, path)
	var out []row
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		buf := make([]parquet.Row, 100)
		for {
			n, err := rows.ReadRows(buf)
			for _, r := range buf[:n] {
				out = append(out, asRow(f.Schema().Columns(), r))
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				tb.Fatal(err)
			}
		}
		if err := rows.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

func asRow(columns [][]string, r parquet.Row) row {
	m := row{}
	for column, values := range r.Range {
		var parts []string
		for _, v := range values {
			if !v.IsNull() {
				parts = append(parts, v.String())
			}
		}
		if parts != nil {
			m[strings.Join(columns[column], ".")] = strings.Join(parts, "|")
		}
	}
	return m
}

func openParquet(tb testing.TB, path string) *parquet.File {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		tb.Fatalf("open %s: %v", path, err)
	}
	return f
}

// wantRequest says, straight from the documentation of the columns, what the
// row of a sample holds.
func wantRequest(s *metrics.Sample) row {
	cat := testCatalog()
	step, group := cat.Steps[s.Step], cat.Groups[s.Group]
	target := cat.Targets[group.Target]
	r := row{
		"run_id": "RUN", "group": group.Name, "flow": group.Flow, "step": step.ID,
		"trial": fmt.Sprint(s.Trial), "target": fmt.Sprint(group.Target),
		"protocol_version": cat.Protocols[s.Proto], "transport": target.Transport,
		"session": fmt.Sprint(s.Session), "iteration": fmt.Sprint(int64(s.Iteration)), "seq": fmt.Sprint(s.Seq),
		"started_at":      fmt.Sprint(t0.Truncate(time.Microsecond).Add(s.Start).UnixMicro()),
		"start_offset_ns": fmt.Sprint(s.Start.Nanoseconds()),
		"latency_ns":      fmt.Sprint((s.End - s.Start).Nanoseconds()), "service_ns": fmt.Sprint((s.End - s.Start).Nanoseconds()),
		"method": step.Method, "name": step.Name, "outcome": s.Outcome.String(),
		"request_bytes": fmt.Sprint(s.BytesOut), "response_bytes": fmt.Sprint(min(s.BytesIn, 1<<31-1)),
		"notifications": fmt.Sprint(s.Notifications), "progress": fmt.Sprint(s.Progress),
		"retries": "0", "task_polls": "0",
		"warmup": fmt.Sprint(s.Phase != metrics.PhaseMeasured),
	}
	if group.Open {
		r["intended_offset_ns"] = fmt.Sprint(s.Intended.Nanoseconds())
		r["lateness_ns"] = fmt.Sprint((s.Release - s.Intended).Nanoseconds())
		r["queued_ns"] = fmt.Sprint((s.Start - s.Release).Nanoseconds())
		r["latency_ns"] = fmt.Sprint((s.End - s.Intended).Nanoseconds())
	}
	switch s.Outcome.String() {
	case "ok", "check_failed", "tool_error", "rpc_error", "http_error":
		r["ttfb_ns"] = fmt.Sprint((s.FirstByte - s.Start).Nanoseconds())
	default:
		if s.FirstByte != s.End {
			r["ttfb_ns"] = fmt.Sprint((s.FirstByte - s.Start).Nanoseconds())
		}
	}
	if strings.Contains(" check_failed timeout rpc_error protocol_error limit_exceeded http_error transport_error process_exit client_error ", " "+s.Outcome.String()+" ") {
		r["error_code"] = fmt.Sprint(s.Code)
	}
	if s.HTTPStatus != 0 {
		r["http_status"] = fmt.Sprint(s.HTTPStatus)
	}
	if s.Rounds > 1 {
		r["rounds"] = fmt.Sprint(s.Rounds)
	}
	tags := step.Tags
	if x := s.Extra; x != nil {
		wantProgress(r, x)
		if s.HasConnect {
			r["connect_ns"] = fmt.Sprint(x.Connect.Nanoseconds())
		}
		if x.Message != "" {
			r["error_message"] = x.Message
		}
		if x.TraceID != "" {
			r["trace_id"] = x.TraceID
		}
		r["retries"], r["task_polls"] = fmt.Sprint(x.Retries), fmt.Sprint(x.TaskPolls)
		if x.Tags != nil {
			tags = x.Tags
		}
	}
	wantTags(r, tags)
	if s.Outcome.CountsChecks() && len(step.Checks) > 0 {
		var ok []string
		for i := range step.Checks {
			ok = append(ok, fmt.Sprint(s.Outcome.Answered() && s.ChecksFailed>>i&1 == 0))
		}
		r["checks.list.element.name"], r["checks.list.element.ok"] = strings.Join(step.Checks, "|"), strings.Join(ok, "|")
	}
	return r
}

func wantProgress(r row, x *metrics.Extra) {
	if x.HasProgress {
		r["first_progress_ns"], r["last_progress_ns"] = fmt.Sprint(x.FirstProgress.Nanoseconds()), fmt.Sprint(x.LastProgress.Nanoseconds())
	}
	if x.HasCancelStop {
		r["cancel_stop_ns"] = fmt.Sprint(x.CancelStop.Nanoseconds())
	}
	if x.HasCache {
		r["cache_ttl_ms"] = fmt.Sprint(x.CacheTTL)
		if x.CacheScope != "" {
			r["cache_scope"] = x.CacheScope
		}
	}
	for column, all := range map[string][]time.Duration{"progress_gaps_ns": x.Gaps, "round_ns": x.Rounds} {
		var texts []string
		for _, d := range all {
			texts = append(texts, fmt.Sprint(d.Nanoseconds()))
		}
		if texts != nil {
			r[column+".list.element"] = strings.Join(texts, "|")
		}
	}
}

func wantTags(r row, tags map[string]string) {
	var keys, values []string
	for k := range tags {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		values = append(values, tags[k])
	}
	if len(keys) > 0 {
		r["tags.key_value.key"], r["tags.key_value.value"] = strings.Join(keys, "|"), strings.Join(values, "|")
	}
}

// sortTags puts the keys of the tags map of a row in order: a map has none.
func sortTags(r row) row {
	if r["tags.key_value.key"] == "b|a" {
		v := strings.Split(r["tags.key_value.value"], "|")
		r["tags.key_value.key"], r["tags.key_value.value"] = "a|b", v[1]+"|"+v[0]
	}
	return r
}
