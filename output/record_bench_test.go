package output_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mcpbench/metrics"
	"mcpbench/output"
)

// benchCatalog has three steps without anything special in a closed load, and
// the same with checks and tags in an open one.
func benchCatalog() *metrics.Catalog {
	cat := &metrics.Catalog{
		Groups: []metrics.GroupInfo{
			{Name: "steady", Flow: "browse"},
			{Name: "peak", Flow: "buy", Open: true},
		},
		Targets:   []metrics.TargetInfo{{Server: "catalog", Transport: "http"}},
		Protocols: []string{"", "2025-11-25"},
	}
	for group, checks := range [][]string{nil, {"ok", "not_empty"}} {
		for _, id := range []string{"search", "read", "order"} {
			step := metrics.StepInfo{ID: id, Group: group, Method: "tools/call", Name: id, Checks: checks}
			if checks != nil {
				step.Tags = map[string]string{"kind": id, "team": "shop"}
			}
			cat.Steps = append(cat.Steps, step)
		}
	}
	return cat
}

// load is how a recording is made up.
type load struct {
	sessions int
	rate     float64       // requests a second
	median   time.Duration // of the service time, log-normal
	full     bool          // every column of the schema holds something
}

// The plain load is closed: 64 sessions that call without a pause. The full one
// is open, with checks, tags, failures, notifications, new connections and
// trace ids.
var (
	plainLoad = load{sessions: 64, rate: 50_000, median: 1200 * time.Microsecond}
	fullLoad  = load{sessions: 64, rate: 10_000, median: 300 * time.Microsecond, full: true}
)

// samples makes n requests in the order of their ends, as they are recorded:
// nanoseconds that no compression can foresee, from a fixed seed.
func (l load) samples(n int) []metrics.Sample {
	rng := rand.New(rand.NewPCG(20261201, 7))
	out := make([]metrics.Sample, n)
	at := 0.0
	for i := range out {
		at += rng.ExpFloat64() * float64(time.Second) / l.rate
		service := time.Duration(float64(l.median) * math.Exp(rng.NormFloat64()*0.35))
		start := time.Duration(at)
		seq := i / l.sessions % 3 // each session does the three steps in turn
		s := metrics.Sample{
			Kind: metrics.KindStep, Step: uint16(seq), Seq: uint16(seq), Proto: 1, Rounds: 1,
			Intended: metrics.NoOffset, Release: metrics.NoOffset,
			Start: start, FirstByte: start + service - time.Duration(2000+rng.IntN(20_000)), End: start + service,
			Iteration: uint64(i%l.sessions + i/(3*l.sessions)*l.sessions), Session: uint32(rng.IntN(l.sessions)),
			HTTPStatus: 200, BytesOut: 141 + uint32(seq), BytesIn: 388 + rng.Uint32N(3),
		}
		if l.full {
			l.fill(&s, rng, i)
		}
		out[i] = s
	}
	slices.SortFunc(out, func(a, b metrics.Sample) int { return cmp.Compare(a.End, b.End) })
	return out
}

// fill adds what only some loads have.
func (l load) fill(s *metrics.Sample, rng *rand.Rand, i int) {
	s.Group, s.Step = 1, s.Step+3
	s.Intended = time.Duration(float64(i) * float64(time.Second) / l.rate)
	s.Release = s.Intended + time.Duration(50_000+rng.IntN(100_000))
	moved := s.Release + time.Duration(2_000+rng.IntN(10_000)) - s.Start
	s.Start, s.FirstByte, s.End = s.Start+moved, s.FirstByte+moved, s.End+moved
	s.BytesIn = 2000 + rng.Uint32N(200)
	if rng.IntN(20) == 0 {
		s.Notifications, s.Progress = uint16(rng.IntN(4)), uint16(rng.IntN(2))
	}
	extra := func() *metrics.Extra {
		if s.Extra == nil {
			s.Extra = &metrics.Extra{}
		}
		return s.Extra
	}
	if rng.IntN(1000) == 0 {
		extra().Connect, s.HasConnect = time.Duration(80_000+rng.IntN(50_000)), true
	}
	if rng.IntN(1000) == 0 {
		id := make([]byte, 32)
		for j := range id {
			id[j] = "0123456789abcdef"[rng.IntN(16)]
		}
		extra().TraceID = string(id)
	}
	switch rng.IntN(400) {
	case 0:
		s.Outcome, s.Code, extra().Message = metrics.RPCError, -32603, "internal error: upstream answered #"
	case 1:
		s.Outcome, s.HTTPStatus, s.Code, extra().Message = metrics.HTTPError, 503, 503, "503 Service Unavailable"
	case 2, 3:
		s.Outcome, s.ChecksFailed = metrics.CheckFailed, 1+rng.Uint32N(3)
	}
}

// record writes samples as the collector hands them over.
func (s testSink) record(tb testing.TB, samples []metrics.Sample) {
	tb.Helper()
	for slab := range slices.Chunk(samples, slabRows) {
		if err := s.Write(slab); err != nil {
			tb.Fatal(err)
		}
	}
}

// bytesPerRow is the size of all parts of the table requests.
func (s testSink) bytesPerRow(tb testing.TB, rows int) float64 {
	tb.Helper()
	size, err := s.folder.TableBytes("requests")
	if err != nil {
		tb.Fatal(err)
	}
	return float64(size) / float64(rows)
}

// TestBytesPerRow holds the size of a recorded request. It depends on how many
// digits of the times are random: four times as long makes them two bits more
// in each of the three or four columns of times.
func TestBytesPerRow(t *testing.T) {
	for _, c := range []struct {
		name string
		load load
		most float64
	}{{"plain", plainLoad, 14}, {"full", fullLoad, 18}} {
		t.Run(c.name, func(t *testing.T) {
			sink := newBenchSink(t)
			sink.record(t, c.load.samples(groupRows))
			if err := sink.Close(); err != nil {
				t.Fatal(err)
			}
			got := sink.bytesPerRow(t, groupRows)
			t.Logf("%.2f bytes a row", got)
			if got > c.most {
				t.Errorf("%.2f bytes a row, want at most %v", got, c.most)
			}
		})
	}
}

const (
	slabRows  = 1024      // of a batch, as the collector hands them over
	groupRows = 256 << 10 // of a row group by default
)

func newBenchSink(tb testing.TB) testSink {
	tb.Helper()
	folder, err := output.Create(tb.TempDir(), "RUN")
	if err != nil {
		tb.Fatal(err)
	}
	p, err := output.NewParquet(output.ParquetConfig{
		Folder: folder, RunID: "01JDZK3T5W8Q7N2M4X6Y9A0BCD", Catalog: benchCatalog(), T0: t0,
		Run: &output.RunFile{RunID: "01JDZK3T5W8Q7N2M4X6Y9A0BCD", Mcpbench: "1.2.3"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return testSink{p, folder, folder.Path()}
}

// BenchmarkRecordRows is journal and compaction together, a row group for each
// loop, by the CPU time of this process.
func BenchmarkRecordRows(b *testing.B) {
	for _, c := range []struct {
		name string
		load load
	}{{"plain", plainLoad}, {"full", fullLoad}} {
		b.Run(c.name, func(b *testing.B) {
			samples := c.load.samples(groupRows)
			sink := newBenchSink(b)
			rows := 0
			before := cpuTime(b)
			for b.Loop() {
				sink.record(b, samples)
				rows += len(samples)
			}
			if err := sink.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(rows)/(cpuTime(b)-before).Seconds(), "rows/core-s")
			b.ReportMetric(sink.bytesPerRow(b, rows), "B/row")
		})
	}
}
