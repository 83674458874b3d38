package driver_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// abortRun is a run with thresholds that may end it.
type abortRun struct {
	samples []metrics.Sample
	summary *metrics.Summary
	log     *observer.ObservedLogs
	took    time.Duration // of the measured phase and the grace
}

func runWithAbort(t *testing.T, l load, abort metrics.Abort, exprs ...string) abortRun {
	t.Helper()
	return runPlanWithAbort(t, l.plan(t), abort, exprs...)
}

func runPlanWithAbort(t *testing.T, plan *driver.Plan, abort metrics.Abort, exprs ...string) abortRun {
	t.Helper()
	var thresholds []metrics.Threshold
	for _, expr := range exprs {
		th, err := metrics.ParseThreshold(expr)
		if err == nil {
			err = th.Resolve(plan.Catalog)
		}
		if err != nil {
			t.Fatal(err)
		}
		th.Abort = &abort
		thresholds = append(thresholds, th)
	}
	sink := &keep{}
	c := metrics.NewCollector(metrics.CollectorConfig{
		Catalog: plan.Catalog, Sinks: []metrics.Sink{sink}, Warmup: plan.Warmup, Thresholds: thresholds,
	})
	core, logs := observer.New(zap.WarnLevel)
	r := driver.New(plan, c, zap.New(core))
	start := time.Now()
	if err := r.Run(t.Context(), nil); err != nil {
		t.Errorf("Run: %v", err)
	}
	took := time.Since(start)
	if err := r.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	s := c.Summary(metrics.RunInfo{Thresholds: thresholds, MeasuredEnd: r.MeasuredEnd(), SessionOpened: true})
	return abortRun{samples: sink.samples, summary: s, log: logs, took: took}
}

// firstBreach is the oracle: the first second from after on at whose end the
// expectation did not hold of the samples of the window, and what was seen; 0 for none.
func firstBreach(samples []metrics.Sample, warmup time.Duration, a metrics.Abort, holds func(in []metrics.Sample) (v float64, ok bool)) (at, value float64) {
	for e := time.Second; e <= time.Minute; e += time.Second {
		var in []metrics.Sample
		for i := range samples {
			if end := samples[i].End - warmup; samples[i].Phase == metrics.PhaseMeasured && end >= e-a.Window && end < e {
				in = append(in, samples[i])
			}
		}
		if len(in) == 0 || e < a.After {
			continue
		}
		if v, ok := holds(in); !ok {
			return e.Seconds(), v
		}
	}
	return 0, 0
}

func timesOf(in []metrics.Sample) []float64 {
	var out []float64
	for i := range in {
		if in[i].Kind == metrics.KindStep && in[i].Outcome.Timed() {
			out = append(out, float64(in[i].Latency())/1e6)
		}
	}
	slices.Sort(out)
	return out
}

func share(in []metrics.Sample, kind metrics.Kind, counts func(*metrics.Sample) bool) float64 {
	n, of := 0.0, 0.0
	for i := range in {
		if in[i].Kind != kind {
			continue
		}
		of++
		if counts(&in[i]) {
			n++
		}
	}
	if of == 0 {
		return 0
	}
	return 100 * n / of
}

// jumps is a server that answers after slow from the given time since its first
// call on, and in the time before in quick; fails says whether then with an error.
func jumps(at, quick, slow time.Duration, fails bool) *server {
	begun := sync.OnceValue(time.Now)
	s := &server{}
	s.answer = func(ctx context.Context, _ int64) error {
		if time.Since(begun()) < at {
			return wait(ctx, quick)
		}
		if err := wait(ctx, slow); err != nil || !fails {
			return err
		}
		return &mcp.RPCError{Code: -32603, Message: "broken"}
	}
	return s
}

type abortCase struct {
	name   string
	load   load
	abort  metrics.Abort
	expr   string
	holds  func(in []metrics.Sample) (v float64, ok bool)
	wantAt float64
}

// abortCases are loads with the second at which their threshold ends them, 0 for never.
func abortCases() []abortCase {
	dropping := open(50, 1, time.Minute)
	dropping.DropWhenFull = true
	second := func(a, w int) metrics.Abort {
		return metrics.Abort{After: time.Duration(a) * time.Second, Window: time.Duration(w) * time.Second}
	}
	return []abortCase{
		{
			"p95",
			load{group: open(100, 20, time.Minute), server: jumps(6500*time.Millisecond, 5*time.Millisecond, 80*time.Millisecond, false)},
			second(2, 3), "p95(latency) < 40ms", func(in []metrics.Sample) (float64, bool) {
				s := timesOf(in)
				v := s[int(math.Ceil(0.95*float64(len(s))))-1]
				return v, v < 40
			}, 7,
		},
		{
			"p50 of a closed load",
			load{group: closed(3, time.Minute, 0), server: jumps(5*time.Second, 10*time.Millisecond, 90*time.Millisecond, false)},
			second(0, 4), "p50(service_time) < 40ms", func(in []metrics.Sample) (float64, bool) {
				s := timesOf(in)
				v := s[(len(s)+1)/2-1]
				return v, v < 40
			}, 9,
		},
		{
			"max",
			load{group: closed(1, time.Minute, 0), server: jumps(4*time.Second, 10*time.Millisecond, 130*time.Millisecond, false)},
			second(3, 2), "max(latency) <= 100ms", func(in []metrics.Sample) (float64, bool) {
				v := slices.Max(timesOf(in))
				return v, v <= 100
			}, 5,
		},
		{
			"min",
			load{group: closed(1, time.Minute, 0), server: jumps(4*time.Second, 10*time.Millisecond, 130*time.Millisecond, false)},
			second(3, 2), "min(latency) < 100ms", func(in []metrics.Sample) (float64, bool) {
				v := slices.Min(timesOf(in))
				return v, v < 100
			}, 7,
		},
		{
			"errors",
			load{group: open(50, 5, time.Minute), server: jumps(3*time.Second, time.Millisecond, time.Millisecond, true)},
			second(1, 4), "rate(errors) <= 30%", func(in []metrics.Sample) (float64, bool) {
				v := share(in, metrics.KindStep, func(s *metrics.Sample) bool { return s.Outcome.Failed() })
				return v, v <= 30
			}, 5,
		},
		{
			"dropped",
			load{group: dropping, server: jumps(3*time.Second, 5*time.Millisecond, 100*time.Millisecond, false)},
			second(1, 2), "rate(dropped) < 50%", func(in []metrics.Sample) (float64, bool) {
				v := share(in, metrics.KindIteration, func(s *metrics.Sample) bool { return s.IterOutcome() == metrics.IterDropped })
				return v, v < 50
			}, 5,
		},
		{
			"not before after",
			load{group: closed(1, time.Minute, 0), server: jumps(0, 0, 50*time.Millisecond, false)},
			metrics.Abort{After: 6500 * time.Millisecond, Window: time.Second},
			"max(latency) < 40ms", func(in []metrics.Sample) (float64, bool) {
				v := slices.Max(timesOf(in))
				return v, v < 40
			}, 7,
		},
		{
			"the warm-up does not count",
			load{
				group: closed(1, 10*time.Second, 0), warmup: 2500 * time.Millisecond, server: &server{answer: takesFirst(2400*time.Millisecond, 500*time.Millisecond, 20*time.Millisecond)},
			},
			second(0, 10), "max(latency) < 40ms", func(in []metrics.Sample) (float64, bool) {
				v := slices.Max(timesOf(in))
				return v, v < 40
			}, 0,
		},
		{
			"a window without a sample does not end it",
			load{
				group: closed(1, 9*time.Second, 0), grace: 10 * time.Second, server: jumps(3*time.Second, 10*time.Millisecond, 8*time.Second, false),
			},
			second(2, 1), "rate(ok) > 0.5/s", func([]metrics.Sample) (float64, bool) { return 0, true }, 0,
		},
	}
}

func TestThresholdEndsTheLoadAtTheSecondOfTheOracle(t *testing.T) {
	for _, tc := range abortCases() {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.load.grace = max(tc.load.grace, time.Second)
				got := runWithAbort(t, tc.load, tc.abort, tc.expr)
				at, value := firstBreach(got.samples, tc.load.warmup, tc.abort, tc.holds)
				if at != tc.wantAt {
					t.Fatalf("the oracle says %v s, the test %v s", at, tc.wantAt)
				}
				r := got.summary.Thresholds[0]
				if r.AbortedAtS != at || r.Aborted != (at > 0) {
					t.Fatalf("%+v, want an abort at %v s", r, at)
				}
				if at > 0 {
					got.wantAborted(t, at, value)
				}
			})
		})
	}
}

// wantAborted checks what is told of a run that its only threshold ended.
func (got *abortRun) wantAborted(t *testing.T, at, value float64) {
	t.Helper()
	r := &got.summary.Thresholds[0]
	if v := *r.WindowValue; v < value-1e-9 || v > value*(1+1.0/1024) {
		t.Errorf("value %v, want %v", v, value)
	}
	if s := got.summary; s.Verdict != metrics.VerdictFailed || s.ExitCode != metrics.ExitThreshold || r.OK {
		t.Errorf("verdict %s, exit code %d, %+v", s.Verdict, s.ExitCode, r)
	}
	if want := at + 0.1; math.Abs(got.summary.DurationS-want) > 0.2 {
		t.Errorf("%v s measured, want about %v", got.summary.DurationS, want)
	}
	if n := got.log.FilterField(zap.String("threshold", r.Expr)).FilterField(zap.Float64("at_s", at)).Len(); n != 1 {
		t.Errorf("%d log lines: %v", n, got.log.All())
	}
}

// takesFirst is an answer after slow in the first span since the first call, and after quick then.
func takesFirst(span, slow, quick time.Duration) func(context.Context, int64) error {
	begun := sync.OnceValue(time.Now)
	return func(ctx context.Context, _ int64) error {
		if time.Since(begun()) < span-slow {
			return wait(ctx, slow)
		}
		return wait(ctx, quick)
	}
}

func TestOfTwoThresholdsTheSecondEndsTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := load{group: closed(1, time.Minute, 0), grace: time.Second, server: jumps(3*time.Second, 10*time.Millisecond, 50*time.Millisecond, false)}
		got := runWithAbort(t, l, metrics.Abort{After: time.Second, Window: 2 * time.Second}, "max(latency) < 1s", "max(latency) < 40ms")
		first, second := got.summary.Thresholds[0], got.summary.Thresholds[1]
		if !first.OK || first.Aborted || second.OK || second.AbortedAtS != 4 || *second.WindowValue != 50 || second.WindowS != 2 {
			t.Errorf("first %+v, second %+v", first, second)
		}
	})
}

// An aborted threshold counts as failed although the whole measured phase is within it.
func TestAbortedThresholdFailsAlthoughItHoldsInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := load{group: closed(1, time.Minute, 0), grace: time.Second, server: jumps(9*time.Second, 10*time.Millisecond, 100*time.Millisecond, false)}
		got := runWithAbort(t, l, metrics.Abort{Window: time.Second}, "p90(latency) < 40ms")
		r := got.summary.Thresholds[0]
		if *r.Value > 11 || r.OK || *r.WindowValue < 99 || r.AbortedAtS != 10 || got.summary.ExitCode != metrics.ExitThreshold {
			t.Errorf("value %v, window %v, %+v", *r.Value, *r.WindowValue, r)
		}
	})
}

// What becomes less because a load is over is no reason to end the others.
func TestThresholdOfAGroupThatIsOverDoesNotEndTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short, long := closed(1, 3*time.Second, 0), closed(1, 8*time.Second, 0)
		few := closed(1, 0, 250) // ends by iterations after 2.5 s
		spike := open(100, 2, 3*time.Second)
		short.Name, long.Name, few.Name, spike.Name = "short", "long", "few", "spike"
		s := &server{answer: takes(10 * time.Millisecond)}
		flow := scenarios.Flow{Name: "f", Steps: []*scenarios.Step{{ID: "a", Method: "tools/call"}}}
		flow.Do = scenarios.InOrder(flow.Steps)
		p := &scenarios.Program{
			Name: "test", Servers: []scenarios.Server{{Name: "s", Transport: "http"}}, Groups: []scenarios.Group{short, long, few, spike},
			Flows: []scenarios.Flow{flow}, Grace: time.Second, Limits: scenarios.Limits{RequestTimeout: time.Hour, ConnectTimeout: time.Minute},
		}
		plan, err := driver.NewPlan(p, 1, func(int) driver.Dial { return s.dial })
		if err != nil {
			t.Fatal(err)
		}
		got := runPlanWithAbort(t, plan, metrics.Abort{Window: 2 * time.Second},
			"rate(requests{group=short}) > 90/s", "rate(requests{group=few}) > 90/s", "rate(iterations{group=spike}) > 90/s", "rate(requests{group=long}) > 90/s")
		for _, r := range got.summary.Thresholds {
			if r.Aborted {
				t.Errorf("aborted by %+v", r)
			}
		}
		if got.took < 8*time.Second {
			t.Errorf("ended after %v", got.took)
		}
	})
}

// In the grace period nothing is begun, so no threshold is judged.
func TestThresholdIsNotJudgedInTheGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := load{group: closed(2, 4*time.Second, 0), grace: 5 * time.Second, server: &server{answer: takes(900 * time.Millisecond)}}
		l.server.answer = func(ctx context.Context, n int64) error {
			if n == 3 {
				return wait(ctx, 6*time.Second)
			}
			return wait(ctx, 10*time.Millisecond)
		}
		got := runWithAbort(t, l, metrics.Abort{Window: 3 * time.Second}, "rate(requests) > 50/s")
		if r := got.summary.Thresholds[0]; r.Aborted || got.took < 6*time.Second {
			t.Errorf("%+v after %v", r, got.took)
		}
	})
}

// The load that a threshold ends is ended as a user's stop would: what is under
// way may come to its end, what waits is interrupted, and nothing is dropped.
func TestAbortIsGraceful(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := load{group: open(10, 1, time.Minute), grace: 10 * time.Second, server: jumps(2500*time.Millisecond, 50*time.Millisecond, 700*time.Millisecond, false)}
		got := runWithAbort(t, l, metrics.Abort{Window: time.Second}, "max(latency) < 500ms")
		counts := map[string]int{}
		for i := range got.samples {
			if s := &got.samples[i]; s.Kind == metrics.KindIteration {
				counts[s.IterOutcome().String()]++
			}
		}
		// 25 quick ones, then those of 2.5 s and 3.2 s, and from 3.9 s on one is under way at 4.1 s.
		if diff := cmp.Diff(map[string]int{"completed": 28, "interrupted": 14}, counts); diff != "" {
			t.Errorf("iterations (-want +got):\n%s", diff)
		}
		if got.took != 4600*time.Millisecond {
			t.Errorf("ended after %v", got.took)
		}
	})
}
