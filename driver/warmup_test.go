package driver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/driver"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// phases returns the number of iterations in each phase, and the first start of a
// measured one.
func (k *keep) phases() (n map[string]int, from time.Duration) {
	n, from = map[string]int{}, time.Hour
	for _, s := range k.of(metrics.KindIteration) {
		n[s.Phase.String()]++
		if at := max(s.Intended, s.Start); s.Phase == metrics.PhaseMeasured {
			from = min(from, at)
		}
	}
	return n, from
}

// TestWarmupByIterations: after 50 of them the measured time begins, with the load's
// whole duration, in both kinds of load.
func TestWarmupByIterations(t *testing.T) {
	for _, tt := range []struct {
		name     string
		group    scenarios.Group
		warm     time.Duration
		measured int
	}{
		{"closed", closed(2, 3*second, 0), 2500 * time.Millisecond, 60},
		{"open", open(10, 2, 3*second), 5 * second, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answer: takes(100 * time.Millisecond)}
				goal := &scenarios.WarmupGoal{Iterations: 50, Max: time.Minute}
				sink, r, err := load{group: tt.group, server: s, goal: goal, grace: second}.run(t.Context(), t, nil)
				if err != nil {
					t.Fatal(err)
				}
				n, from := sink.phases()
				if n["measured"] != tt.measured || (from-tt.warm).Abs() > 150*time.Millisecond {
					t.Errorf("%v, measured from %v; want %d from about %v", n, from, tt.measured, tt.warm)
				}
				if end := r.MeasuredEnd(); (end - tt.warm - 3*second).Abs() > 150*time.Millisecond {
					t.Errorf("the load ended at %v", end)
				}
			})
		})
	}
}

// TestWarmupUntilTheMedianIsStable: the server gets faster for 7 s and is then as it
// stays: windows of 2 s agree from the fourth on, and three of them are needed.
func TestWarmupUntilTheMedianIsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &server{answer: func(ctx context.Context, _ int64) error {
			slow := max(0, 7*second-time.Since(began))
			return wait(ctx, 10*time.Millisecond+slow/50)
		}}
		goal := &scenarios.WarmupGoal{Window: 2 * second, Within: 0.1, Max: time.Minute}
		sink, _, err := load{group: closed(1, 3*second, 0), server: s, goal: goal}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, from := sink.phases(); (from - 12*second).Abs() > 20*time.Millisecond {
			t.Errorf("measured from %v, want 12s: the medians of 6-8, 8-10 and 10-12 s agree", from)
		}
	})
}

// TestWarmupEndsByTimeWhenItsGoalIsNotMet.
func TestWarmupEndsByTimeWhenItsGoalIsNotMet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: takes(100 * time.Millisecond)}
		goal := &scenarios.WarmupGoal{Iterations: 1000, Max: 2 * second}
		sink, _, err := load{group: closed(1, second, 0), server: s, goal: goal}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, from := sink.phases(); n["measured"] != 10 || (from-2*second).Abs() > 100*time.Millisecond {
			t.Errorf("%v from %v", n, from)
		}
	})
}

// TestWarmupRunsAtTheFirstLevel: before a ramp from nothing the load is that which
// the ramp leads to, and the measured time has the arrivals of the ramp alone.
func TestWarmupRunsAtTheFirstLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(0, 50, 10*second)
		g.Level = staged(0, to(20, 10*second, 0)).Level
		g.WarmLevel, g.Changes = 20, true
		s := &server{answer: takes(time.Millisecond)}
		sink, _, err := load{group: g, server: s, warmup: 3 * second, grace: second}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := sink.phases()
		if diff := cmp.Diff(map[string]int{"warmup": 60, "measured": 100}, n); diff != "" {
			t.Errorf("iterations by phase (-want +got):\n%s", diff)
		}
	})
}

// TestStepAndIterationTimeouts: what takes longer is a timeout with a number of its
// own, and the iteration failed; thinking counts too.
func TestStepAndIterationTimeouts(t *testing.T) {
	for _, tt := range []struct {
		name            string
		load            load
		code            int32
		requests, ended map[string]int
	}{
		{
			"step",
			load{stepLimit: 300 * time.Millisecond, steps: 2},
			driver.TimeoutStep,
			map[string]int{"ok": 1, "timeout": 1},
			map[string]int{"failed": 1},
		},
		{
			"iteration",
			load{iterationLimit: 500 * time.Millisecond, steps: 2},
			driver.TimeoutIteration,
			map[string]int{"ok": 1, "timeout": 1},
			map[string]int{"failed": 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.load.group = closed(1, 0, 1)
				tt.load.server = &server{answer: func(ctx context.Context, call int64) error {
					return wait(ctx, time.Duration(call*call)*200*time.Millisecond)
				}}
				sink, _, err := tt.load.run(t.Context(), t, nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.requests, sink.requests()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.ended, sink.iterations()); diff != "" {
					t.Errorf("iterations (-want +got):\n%s", diff)
				}
				last := sink.of(metrics.KindStep)[1]
				if last.Code != tt.code || last.End != 500*time.Millisecond {
					t.Errorf("code %d, ended at %v", last.Code, last.End)
				}
			})
		})
	}
}

// TestLateArrivalsAreSkippedWhenAskedFor needs a pacer that is held up, which in
// virtual time only the schedule's own past can do: arrivals of a replay that are due
// before the load begins are not late, so a burst is none either.
func TestBurstIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(0, 1, second)
		g.Process, g.SkipLate = "replay", true
		g.Times = []time.Duration{0, 0, 0, 5 * time.Millisecond, 5 * time.Millisecond}
		s := &server{answer: takes(10 * time.Millisecond)}
		sink, _, err := load{group: g, server: s, grace: second}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int{"completed": 5}, sink.iterations()); diff != "" {
			t.Errorf("iterations (-want +got):\n%s", diff)
		}
	})
}
