package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// twentyAborts are windows of 10 s over all kinds of metrics that never end the run.
func twentyAborts(tb testing.TB, n int) *aborts {
	tb.Helper()
	cfg := &CollectorConfig{Catalog: &Catalog{
		Groups:  []GroupInfo{{Name: "g", Open: true}},
		Steps:   []StepInfo{{ID: "a", Method: "tools/call", Checks: []string{"x"}}, {ID: "b", Method: "ping"}},
		Targets: []TargetInfo{{}},
	}}
	some := []string{
		"p95(latency) < 1h", "p99(latency{step=a}) < 1h", "p50(service_time) < 1h", "max(latency) < 1h", "p99(iteration) < 1h",
		"rate(errors) <= 100%", "rate(requests) >= 0/s", "rate(dropped) <= 100%", "rate(achieved) >= 0%", "rate(checks) >= 0%",
	}
	for i := range n {
		t, err := ParseThreshold(some[i%len(some)])
		if err != nil {
			tb.Fatal(err)
		}
		t.Abort = &Abort{Window: DefaultAbortWindow}
		cfg.Thresholds = append(cfg.Thresholds, t)
	}
	a := newAborts(cfg, &warmup{})
	return &a
}

// aSecond are the samples of one second of 1000 requests/s with times over a
// decade, each an iteration.
func aSecond(rng *rand.Rand) []Sample {
	out := make([]Sample, 0, 2000)
	for i := range 1000 {
		end := time.Duration(i) * time.Millisecond
		start := end - time.Duration(1e6*math.Pow(10, rng.Float64()))
		s := Sample{Kind: KindStep, Intended: start, Release: start, Start: start, FirstByte: end, End: end, Step: uint16(i % 2)}
		it := s
		it.Kind, it.Step = KindIteration, NoStep
		out = append(out, s, it)
	}
	return out
}

// fill adds a second of samples and judges it.
func (a *aborts) fill(samples []Sample) {
	for i := range samples {
		s := samples[i]
		s.End += time.Duration(a.next) * time.Second
		s.Start += time.Duration(a.next) * time.Second
		s.Intended, s.Release = s.Start, s.Start
		a.add(&s)
	}
	a.judge(time.Duration(a.next+1)*time.Second + judgeDelay)
}

func TestWindowsDoNotAllocateInTheSteadyState(t *testing.T) {
	a := twentyAborts(t, 20)
	samples := aSecond(rand.New(rand.NewPCG(1, 2)))
	for range 25 {
		a.fill(samples)
	}
	if n := testing.AllocsPerRun(20, func() { a.fill(samples) }); n > 0 {
		t.Errorf("%v allocations a second", n)
	}
	if a.done {
		t.Error("aborted")
	}
}

// TestCellsAreThoseOfTheTotals compares the cells of a window with the histogram.
func TestCellsAreThoseOfTheTotals(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	values := []time.Duration{-1, 0, 1, HistogramLowest - 1, HistogramLowest, HistogramHighest, HistogramHighest + 1, math.MaxInt64}
	for range 2000 {
		values = append(values, time.Duration(math.Exp(rng.Float64()*math.Log(2*float64(HistogramHighest)))))
	}
	for shift := range 42 {
		values = append(values, 1<<shift-1, 1<<shift, 1<<shift+1)
	}
	for _, v := range values {
		var d distribution
		d.record(v)
		want := time.Duration(d.hist.ValueAtQuantile(50))
		if got := cellEdge(int(cellOf(v))); got != want {
			t.Fatalf("%v: the cell ends at %d, in the histogram at %d", v, got, want)
		}
	}
}

// BenchmarkAbortSecond is what is done at the end of a second for 20 thresholds
// over windows that are full, at 1000 requests/s.
func BenchmarkAbortSecond(b *testing.B) {
	for _, window := range []time.Duration{DefaultAbortWindow, MaxAbortWindow} {
		a := twentyAborts(b, 20)
		for i := range a.windows {
			w := &a.windows[i]
			w.t.Abort.Window = window
			*w = newWindow(w.t, a.cfg.Catalog)
		}
		samples := aSecond(rand.New(rand.NewPCG(1, 2)))
		for range window / time.Second {
			a.fill(samples)
		}
		b.Run(fmt.Sprintf("look at %v", window), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range a.windows {
					if _, ok := a.windows[i].measure(); !ok {
						b.Fatal("no value")
					}
				}
			}
		})
		b.Run(fmt.Sprintf("add 2000 samples and judge %v", window), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a.fill(samples)
			}
		})
	}
}

func BenchmarkAbortSample(b *testing.B) {
	for _, n := range []int{0, 1, 20} {
		b.Run(fmt.Sprint(n, " thresholds"), func(b *testing.B) {
			a := twentyAborts(b, n)
			samples := aSecond(rand.New(rand.NewPCG(1, 2)))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				a.add(&samples[i%len(samples)])
				i++
			}
		})
	}
}

// A request that is known only after its second was judged counts in the next.
func TestLateSampleCountsInTheNextSecond(t *testing.T) {
	a := twentyAborts(t, 1)
	a.windows[0].t.Value, a.windows[0].t.Unit = 1, "ms" // p95(latency) < 1ms
	a.judge(time.Second + judgeDelay)
	a.add(&Sample{Kind: KindStep, Intended: NoOffset, Start: 900 * time.Millisecond, End: 950 * time.Millisecond})
	a.judge(2*time.Second + judgeDelay - 1)
	if a.done {
		t.Error("judged before 0.1 s have passed")
	}
	a.judge(2*time.Second + judgeDelay)
	if w := &a.windows[0]; !w.tripped || w.at != 2 {
		t.Errorf("tripped %t at %d, want at 2", w.tripped, w.at)
	}
}
