package metrics_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"mcpbench/metrics"
)

// oracleSink keeps everything that it is given, as plain copies.
type oracleSink struct {
	samples   []metrics.Sample
	intervals []metrics.Interval
	load      []metrics.LoadRow
	gauges    []metrics.Gauges // of the first group
	gaugesAt  []time.Duration
	tallies   []metrics.Tallies
	batches   []int           // sizes of the writes
	at        []time.Time     // times of the writes
	wroteAt   map[int64]int64 // second → ms at which its intervals came
	start     time.Time
	closed    int
	fail      error // returned by Write from the failFrom-th batch on
	failFrom  int
	failEnd   error
	hold      chan struct{} // Write waits for it when not nil
}

func (o *oracleSink) Write(batch []metrics.Sample) error {
	if o.hold != nil {
		<-o.hold
	}
	o.batches = append(o.batches, len(batch))
	o.at = append(o.at, time.Now())
	if o.fail != nil && len(o.batches) >= o.failFrom {
		return o.fail
	}
	o.samples = append(o.samples, batch...)
	return nil
}

func (o *oracleSink) WriteIntervals(rows []metrics.Interval) error {
	for _, r := range rows {
		if o.wroteAt == nil {
			o.wroteAt = map[int64]int64{}
		}
		o.wroteAt[r.Second] = time.Since(o.start).Milliseconds()
	}
	o.intervals = append(o.intervals, rows...)
	return nil
}

func (o *oracleSink) WriteLoad(rows []metrics.LoadRow) error {
	o.load = append(o.load, rows...)
	return nil
}

func (o *oracleSink) WriteGauges(at time.Duration, groups []metrics.Gauges) error {
	o.gauges, o.gaugesAt = append(o.gauges, groups[0]), append(o.gaugesAt, at)
	return nil
}

func (o *oracleSink) WriteTallies(t metrics.Tallies) error {
	o.tallies = append(o.tallies, t)
	if len(o.tallies) != len(o.gauges)+1 {
		return fmt.Errorf("%d tallies before %d readings of the gauges", len(o.tallies), len(o.gauges))
	}
	return nil
}

func (o *oracleSink) Close() error {
	o.closed++
	return o.failEnd
}

func oracleCatalog() *metrics.Catalog {
	return &metrics.Catalog{
		Groups: []metrics.GroupInfo{{Name: "open", Flow: "f", Open: true}, {Name: "closed", Flow: "g", Target: 1}},
		Steps: []metrics.StepInfo{
			{ID: "search", Method: "tools/call", Name: "search", Checks: []string{"ok", "fast"}, Tags: map[string]string{"kind": "read"}},
			{ID: "get", Method: "prompts/get", Name: "p", Checks: []string{"ok"}},
			{ID: "ping", Group: 1, Method: "ping", Progress: true},
		},
		Targets: []metrics.TargetInfo{
			{Server: "cat", Transport: "http", ProtocolVersion: "2025-11-25", ServerName: "s", ServerVersion: "1"},
			{Server: "files", Transport: "stdio", ProtocolVersion: "2026-07-28"},
		},
		Protocols: []string{"", "2025-11-25", "2026-07-28"},
	}
}

// randomSample makes a valid sample of any kind that ends within the first six seconds.
func randomSample(r *rand.Rand) metrics.Sample {
	start := time.Duration(r.Int64N(int64(5 * time.Second)))
	end := start + time.Duration(math.Exp(r.Float64()*13)*float64(2*time.Microsecond))
	s := metrics.Sample{
		Start: start, End: end, FirstByte: start + time.Duration(r.Int64N(int64(end-start)+1)),
		Iteration: r.Uint64N(1000), Session: r.Uint32N(50), Step: uint16(r.UintN(3)), Proto: uint8(r.UintN(3)),
		BytesOut: r.Uint32N(5000), BytesIn: r.Uint32N(5000), Rounds: 1,
		Intended: metrics.NoOffset, Release: metrics.NoOffset,
	}
	if s.Step == 2 {
		s.Group = 1
	}
	switch r.IntN(10) {
	case 0, 1:
		s.Kind, s.FirstByte = metrics.KindIteration, 0
		randomIteration(r, &s)
	case 2:
		s.Kind, s.Outcome, s.FirstByte = metrics.KindConnect, randomOutcome(r), s.End
	default:
		s.Kind, s.Outcome = metrics.KindStep, randomOutcome(r)
		if s.Outcome.Answered() {
			s.ChecksFailed = uint32(r.UintN(4)) & (1<<[]int{2, 1, 0}[s.Step] - 1)
		}
	}
	if s.Group == 0 && s.Kind != metrics.KindConnect {
		s.Release = s.Start - time.Duration(r.Int64N(int64(3*time.Millisecond)))
		s.Intended = s.Release - time.Duration(r.Int64N(int64(time.Millisecond)))
	}
	if s.Kind != metrics.KindIteration && s.Outcome != metrics.OK {
		s.Code = r.Int32N(5)
		s.Extra = &metrics.Extra{Message: fmt.Sprintf("message %d", r.IntN(4))}
	}
	if s.Kind == metrics.KindStep && r.IntN(4) == 0 {
		randomProgress(r, &s)
	}
	at := s.Start
	if s.Intended != metrics.NoOffset {
		at = s.Intended
	}
	if at < 1500*time.Millisecond {
		s.Phase = metrics.PhaseWarmup
	}
	return s
}

// randomProgress gives a request up to three progress notifications, and an end
// that was seen when it was cancelled.
func randomProgress(r *rand.Rand, s *metrics.Sample) {
	if s.Extra == nil {
		s.Extra = &metrics.Extra{}
	}
	x := s.Extra
	if n := r.IntN(4); n > 0 {
		s.Notifications, s.Progress, x.HasProgress = uint16(n), uint16(n), true
		x.FirstProgress = time.Duration(r.Int64N(int64(time.Second)))
		x.LastProgress = x.FirstProgress
		for range n - 1 {
			gap := time.Duration(r.Int64N(int64(time.Second)))
			x.Gaps, x.LastProgress = append(x.Gaps, gap), x.LastProgress+gap
		}
	}
	if r.IntN(3) == 0 {
		for range 2 + r.IntN(3) {
			x.Rounds = append(x.Rounds, time.Duration(r.Int64N(int64(time.Second))))
		}
	}
	if x.HasCache = r.IntN(4) == 0; x.HasCache {
		x.CacheTTL, x.CacheScope = r.Int64N(3)*r.Int64N(60_000), []string{"public", "private", "other", ""}[r.IntN(4)]
	}
	if x.HasCancelStop = s.Outcome == metrics.Cancelled && r.IntN(3) > 0; x.HasCancelStop {
		x.CancelStop = time.Duration(r.Int64N(int64(time.Second)))
	}
}

func randomIteration(r *rand.Rand, s *metrics.Sample) {
	o := metrics.IterationOutcome(r.UintN(metrics.NumIterationOutcomes))
	s.Outcome, s.Step = metrics.Outcome(o), metrics.NoStep
	switch o {
	case metrics.IterDropped:
		s.End = s.Start
	case metrics.IterFailed, metrics.IterScriptError:
		s.Step = uint16(r.UintN(3))
	case metrics.IterInterrupted:
		s.Seq = uint16(r.UintN(2))
	case metrics.IterCompleted, metrics.IterAgentLost:
	}
	if r.IntN(3) == 0 {
		s.Group = 1
	} else {
		s.Group = 0
	}
}

func randomOutcome(r *rand.Rand) metrics.Outcome {
	if r.IntN(3) > 0 {
		return metrics.OK
	}
	for {
		if o := metrics.Outcome(r.UintN(uint(metrics.NumOutcomes))); o != metrics.Skipped && o != metrics.Dropped {
			return o
		}
	}
}

// recordRandom records n random samples from several goroutines and returns
// what a sink kept, with the collector ready for Summary.
func recordRandom(t *testing.T, seed uint64, n int) (*metrics.Collector, *oracleSink) {
	t.Helper()
	sink := &oracleSink{start: time.Now()}
	c, stop := startCollector(t, metrics.CollectorConfig{
		Catalog: oracleCatalog(), Sinks: []metrics.Sink{sink}, Warmup: 1500 * time.Millisecond,
	})
	c.StartClock(time.Now())
	var wg sync.WaitGroup
	for w := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, w))
			for range n / 4 {
				s := randomSample(r)
				if err := s.Valid(); err != nil {
					t.Errorf("the generator made an invalid sample: %v", err)
				}
				c.Record(s)
			}
		})
	}
	wg.Wait()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if len(sink.samples) != n/4*4 {
		t.Fatalf("the sink got %d samples, want %d", len(sink.samples), n/4*4)
	}
	return c, sink
}

// sortedFigures is the slow and plain way to the figures of a distribution.
type sortedFigures []time.Duration

func (f sortedFigures) at(q float64) time.Duration {
	rank := (int(math.Round(q*1000))*len(f) + 99_999) / 100_000 // whole numbers: no rounding
	return f[min(max(rank, 1), len(f))-1]
}

// checkQuantiles compares with the sorted values: ends and count exact, the
// mean to rounding, percentiles to the width of a histogram cell of d digits.
func checkQuantiles(t *testing.T, what string, got *metrics.Quantiles, values []time.Duration) {
	t.Helper()
	if len(values) == 0 {
		if got != nil {
			t.Errorf("%s: got %+v of no values", what, got)
		}
		return
	}
	if got == nil {
		t.Errorf("%s: nil, want %d values", what, len(values))
		return
	}
	slices.Sort(values)
	var sum float64
	for _, v := range values {
		sum += float64(v)
	}
	f := sortedFigures(values)
	exact(t, what+" count", float64(got.Count), float64(len(values)))
	exact(t, what+" min", got.Min, float64(values[0])/1e6)
	exact(t, what+" max", got.Max, float64(values[len(values)-1])/1e6)
	exact(t, what+" mean", got.Mean, sum/float64(len(values))/1e6)
	for _, p := range []struct {
		q   float64
		got float64
	}{{50, got.P50}, {90, got.P90}, {99, got.P99}, {99.9, got.P999}} {
		within(t, fmt.Sprintf("%s p%v", what, p.q), time.Duration(p.got*1e6+0.5), f.at(p.q), 3)
	}
}

func exact(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// within checks that got is at most one cell above want: 512 ns or one part in
// 10^digits; values below 1 us are all in the cell of 1 us.
func within(t *testing.T, what string, got, want time.Duration, digits int) {
	t.Helper()
	cell := max(512*time.Nanosecond, time.Duration(float64(want)/math.Pow10(digits))) + 1
	if want < time.Microsecond {
		cell = 1024 * time.Nanosecond
	}
	if got < want-1 || got > want+cell {
		t.Errorf("%s = %v, want %v within %v above", what, got, want, cell)
	}
}
