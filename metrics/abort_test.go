package metrics_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/metrics"
)

// abortCatalog has an open and a closed group with two steps each.
func abortCatalog() *metrics.Catalog {
	return &metrics.Catalog{
		Groups: []metrics.GroupInfo{{Name: "open", Flow: "f", Open: true}, {Name: "closed", Flow: "f"}},
		Steps: []metrics.StepInfo{
			{ID: "a", Group: 0, Method: "tools/call", Checks: []string{"x", "y"}, Progress: true},
			{ID: "b", Group: 0, Method: "ping"},
			{ID: "a", Group: 1, Method: "tools/call", Checks: []string{"y"}},
			{ID: "c", Group: 1, Method: "ping"},
		},
		Targets:   []metrics.TargetInfo{{Server: "srv", Transport: "http", ProtocolVersion: "2025-11-25"}},
		Protocols: []string{"", "2025-11-25"},
	}
}

func abortThreshold(tb testing.TB, cat *metrics.Catalog, expr string, after, window time.Duration) metrics.Threshold {
	tb.Helper()
	t, err := metrics.ParseThreshold(expr)
	if err == nil {
		err = t.Resolve(cat)
	}
	if err != nil {
		tb.Fatalf("%s: %v", expr, err)
	}
	t.Abort = &metrics.Abort{After: after, Window: window}
	return t
}

// abortSample is of any kind and outcome and ends at the given offset.
func abortSample(rng *rand.Rand, warmup, end time.Duration) metrics.Sample {
	// Few values far apart, each a little different, so that no limit between them is near one.
	took := []time.Duration{time.Millisecond, 4 * time.Millisecond, 16 * time.Millisecond, 64 * time.Millisecond}[rng.IntN(4)]
	took += time.Duration(rng.Int64N(int64(took / 20)))
	group := uint8(rng.IntN(2))
	s := metrics.Sample{
		Start: end - took, FirstByte: end - took/2, End: end, Intended: metrics.NoOffset, Release: metrics.NoOffset, Group: group,
		Step: uint16(group)*2 + uint16(rng.IntN(2)), BytesOut: uint32(rng.IntN(1000)), BytesIn: uint32(rng.IntN(1000)),
		Iteration: rng.Uint64(), Session: rng.Uint32(), Phase: metrics.PhaseMeasured,
	}
	if group == 0 {
		s.Intended, s.Release = s.Start-2*took, s.Start-took
	}
	begin := s.Start
	if group == 0 {
		begin = s.Intended
	}
	if begin < warmup {
		s.Phase = metrics.PhaseWarmup
	}
	s.Outcome = []metrics.Outcome{
		metrics.OK, metrics.OK, metrics.OK, metrics.Timeout, metrics.CheckFailed, metrics.RPCError, metrics.ToolError, metrics.Interrupted, metrics.ClientError,
	}[rng.IntN(9)]
	switch rng.IntN(8) {
	case 0, 1:
		s.Kind, s.Step, s.Seq = metrics.KindIteration, metrics.NoStep, uint16(rng.IntN(2))
		s.Outcome = metrics.Outcome(rng.IntN(metrics.NumIterationOutcomes))
	case 2:
		s.Kind = metrics.KindConnect
	default:
		if s.Outcome.Answered() {
			s.ChecksFailed = uint32(rng.IntN(4))
		}
		if rng.IntN(3) == 0 {
			s.Extra = &metrics.Extra{Gaps: []time.Duration{took / 3, took / 2}}
		}
	}
	return s
}

// replay records the samples at their ends and stops when the run is aborted or
// until has come, as a driver would.
func replay(tb testing.TB, cfg metrics.CollectorConfig, samples []metrics.Sample, until time.Duration) *metrics.Collector {
	tb.Helper()
	c, stop := startCollector(tb, cfg)
	t0 := time.Now()
	c.StartClock(t0)
	end := time.NewTimer(until)
	next := time.NewTimer(0)
	<-next.C
	for running := true; running; {
		for len(samples) > 0 && samples[0].End <= time.Since(t0) {
			c.Record(samples[0])
			samples = samples[1:]
		}
		if len(samples) > 0 {
			next.Reset(samples[0].End - time.Since(t0))
		}
		select {
		case <-next.C:
		case <-end.C:
			running = false
		case <-c.Aborted():
			running = false
		}
	}
	if err := stop(); err != nil {
		tb.Error(err)
	}
	return c
}

func randomSamples(rng *rand.Rand, n int, warmup, until time.Duration) []metrics.Sample {
	ends := make([]time.Duration, n)
	for i := range ends {
		ends[i] = time.Duration(rng.Int64N(int64(until)))
	}
	slices.Sort(ends)
	samples := make([]metrics.Sample, n)
	for i, end := range ends {
		samples[i] = abortSample(rng, warmup, end)
	}
	return samples
}

// everyMetric has each metric with each aggregate and unit that it may have. None
// of the thresholds can hold.
func everyMetric() []string {
	var out []string
	for _, m := range []string{"latency{step=a}", "service_time", "ttfb", "gap", "connect", "iteration{group=closed}", "lateness", "queued", "latency{group=open,method=ping}"} {
		for _, agg := range []string{"p0", "p12.5", "p50", "p95", "p99.9", "p100", "mean", "min", "max", "sum"} {
			out = append(out, agg+"("+m+") < 0ms")
		}
		out = append(out, "count("+m+") < 0")
	}
	for _, m := range []string{"requests", "ok", "errors", "errors{outcome=timeout,step=a}", "requests{outcome=ok}", "iterations", "iterations{outcome=failed}", "dropped"} {
		out = append(out, "count("+m+") < 0", "rate("+m+") < 0/s")
	}
	for _, m := range []string{"ok", "errors{step=a}", "requests{outcome=timeout}", "checks", "checks{check=y}", "dropped{group=open}", "achieved"} {
		out = append(out, "rate("+m+") < 0%")
	}
	return append(out, "count(checks{check=x}) < 0", "sum(bytes_sent) < 0B", "rate(bytes_received{step=c}) < 0KiB/s")
}

// TestWindowOverAllIsTheTotal holds every metric, judged by a window over the
// whole measured phase, against the threshold's own value at the end.
func TestWindowOverAllIsTheTotal(t *testing.T) {
	for seed := range uint64(2) {
		synctest.Test(t, func(t *testing.T) {
			const warmup, length = 1300 * time.Millisecond, 5 * time.Second
			rng := rand.New(rand.NewPCG(seed, 1))
			cat := abortCatalog()
			var thresholds []metrics.Threshold
			for _, expr := range everyMetric() {
				thresholds = append(thresholds, abortThreshold(t, cat, expr, length, 7*time.Second))
			}
			samples := randomSamples(rng, 4000, warmup, warmup+length-1)
			// Sessions are counted over the whole run at the end, and by the window in the measured phase.
			samples = slices.DeleteFunc(samples, func(s metrics.Sample) bool {
				return s.Kind == metrics.KindConnect && s.Phase != metrics.PhaseMeasured
			})
			cfg := metrics.CollectorConfig{Catalog: cat, Warmup: warmup, Thresholds: thresholds}
			s := replay(t, cfg, samples, warmup+2*length).Summary(metrics.RunInfo{
				Thresholds: thresholds, MeasuredEnd: warmup + length, SessionOpened: true,
			})
			for i := range s.Thresholds {
				r := &s.Thresholds[i]
				switch {
				case !r.Aborted || r.OK || r.AbortedAtS != 5 || r.WindowS != 5:
					t.Errorf("%s: %+v", r.Expr, r)
				case math.Abs(*r.Value-*r.WindowValue) > 1e-9**r.Value:
					t.Errorf("%s: %v over the window, %v in all", r.Expr, *r.WindowValue, *r.Value)
				}
			}
			if s.Verdict != metrics.VerdictFailed && s.Soundness.Verdict != metrics.Unsound {
				t.Errorf("verdict %s", s.Verdict)
			}
		})
	}
}

// oracle computes what a threshold sees at the end of a second from the samples.
type oracle struct {
	expr string // with a place for the limit
	of   func(in []metrics.Sample) (v float64, ok bool)
}

func latencies(in []metrics.Sample) []float64 {
	var out []float64
	for i := range in {
		if in[i].Kind == metrics.KindStep && in[i].Outcome.Timed() {
			out = append(out, float64(in[i].Latency())/1e6)
		}
	}
	slices.Sort(out)
	return out
}

func ordered(pick func(sorted []float64) float64) func([]metrics.Sample) (float64, bool) {
	return func(in []metrics.Sample) (float64, bool) {
		sorted := latencies(in)
		if len(sorted) == 0 {
			return 0, false
		}
		return pick(sorted), true
	}
}

func shareOf(kind metrics.Kind, counts func(s *metrics.Sample) bool) func([]metrics.Sample) (float64, bool) {
	return func(in []metrics.Sample) (float64, bool) {
		n, of := 0, 0
		for i := range in {
			if in[i].Kind == kind {
				of++
				if counts(&in[i]) {
					n++
				}
			}
		}
		return 100 * float64(n) / float64(of), of > 0
	}
}

var oracles = []oracle{
	{"p95(latency) < %vms", ordered(func(s []float64) float64 { return s[int(math.Ceil(0.95*float64(len(s))))-1] })},
	{"p50(latency) < %vms", ordered(func(s []float64) float64 { return s[int(math.Ceil(0.5*float64(len(s))))-1] })},
	{"max(latency) < %vms", ordered(func(s []float64) float64 { return s[len(s)-1] })},
	{"min(latency) >= %vms", ordered(func(s []float64) float64 { return s[0] })},
	{"rate(errors) < %v%%", shareOf(metrics.KindStep, func(s *metrics.Sample) bool { return s.Outcome.Failed() })},
	{"rate(dropped) < %v%%", shareOf(metrics.KindIteration, func(s *metrics.Sample) bool { return s.IterOutcome() == metrics.IterDropped })},
}

// TestAbortComesAtTheSecondOfTheOracle lets random loads with quiet seconds and
// limits between what is seen go against windows computed from sorted samples.
func TestAbortComesAtTheSecondOfTheOracle(t *testing.T) {
	aborted := 0
	for seed := range uint64(72) {
		synctest.Test(t, func(t *testing.T) {
			if againstOracle(t, seed) {
				aborted++
			}
		})
	}
	if aborted < 24 || aborted > 66 {
		t.Errorf("%d of 72 runs aborted: the limits say little", aborted)
	}
}

// againstOracle holds one random run against the oracle and tells whether it was aborted.
func againstOracle(t *testing.T, seed uint64) (aborted bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	o := oracles[seed%uint64(len(oracles))]
	warmup := time.Duration(rng.IntN(3000)) * time.Millisecond
	window, after := int64(1+rng.IntN(4)), time.Duration(rng.IntN(5000))*time.Millisecond
	const seconds = 10
	samples := randomSamples(rng, 30+rng.IntN(200), warmup, warmup+seconds*time.Second)
	quiet := warmup + time.Duration(rng.IntN(seconds))*time.Second
	samples = slices.DeleteFunc(samples, func(s metrics.Sample) bool { return s.End >= quiet && s.End < quiet+2*time.Second })
	seen := func(e int64) (float64, bool) {
		var in []metrics.Sample
		for i := range samples {
			from, to := warmup+time.Duration(e-window)*time.Second, warmup+time.Duration(e)*time.Second
			if s := &samples[i]; s.Phase == metrics.PhaseMeasured && s.End >= from && s.End < to {
				in = append(in, *s)
			}
		}
		return o.of(in)
	}
	limit := []float64{2, 8, 30, 60, 80, 16.5, 66}[rng.IntN(7)]
	wantAt, wantValue := int64(0), 0.0
	for e := int64(1); e <= seconds && wantAt == 0; e++ {
		v, ok := seen(e)
		if ok && time.Duration(e)*time.Second >= after && (v < limit) == (o.expr == "min(latency) >= %vms") {
			wantAt, wantValue = e, v
		}
	}
	th := abortThreshold(t, abortCatalog(), fmt.Sprintf(o.expr, limit), after, time.Duration(window)*time.Second)
	cfg := metrics.CollectorConfig{Catalog: abortCatalog(), Warmup: warmup, Thresholds: []metrics.Threshold{th}}
	c := replay(t, cfg, samples, warmup+seconds*time.Second+500*time.Millisecond)
	got := metrics.ThresholdResult{}
	for _, r := range c.AbortedBy() {
		got = r
	}
	if got.AbortedAtS != float64(wantAt) {
		t.Fatalf("seed %d: %s after %v over %d s: aborted at %v s, want %d", seed, th.Expr, after, window, got.AbortedAtS, wantAt)
	}
	if wantAt > 0 && (*got.WindowValue < wantValue-1e-9 || *got.WindowValue > wantValue*(1+1.0/1024)+1e-9) {
		t.Errorf("seed %d: %s: %v at %d s, want %v", seed, th.Expr, *got.WindowValue, wantAt, wantValue)
	}
	return wantAt > 0
}
