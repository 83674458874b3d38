package driver_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/internal/curve"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

func open(rate float64, sessions int, d time.Duration) scenarios.Group {
	return scenarios.Group{
		Open: true, Process: "constant", Level: curve.Constant(rate), WarmLevel: rate, Sessions: sessions, Duration: d, InFlight: 1,
	}
}

func closed(sessions int, d time.Duration, n int64) scenarios.Group {
	return scenarios.Group{Sessions: sessions, Duration: d, Iterations: n, InFlight: 1}
}

func wantCounts(t *testing.T, what string, got, want map[string]int) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// TestLatencyCountsTheWaitBehindAFreeze compares every latency of an open load
// against a server that freezes with a queue simulated by hand.
func TestLatencyCountsTheWaitBehindAFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const service, freeze = time.Millisecond, 400 * time.Millisecond
		var mu sync.Mutex
		var frozen time.Time
		s := &server{}
		s.answer = func(ctx context.Context, n int64) error {
			mu.Lock()
			until := frozen
			if n%300 == 0 {
				frozen = time.Now().Add(freeze)
				until = frozen
			}
			mu.Unlock()
			return wait(ctx, max(0, time.Until(until))+service)
		}
		got, _, err := load{group: open(200, 2, 4*time.Second), grace: 5 * time.Second, server: s}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "iterations", got.iterations(), map[string]int{"completed": 800})

		want := queueOfTwo(800, 5*time.Millisecond, service, freeze)
		latencies := make([]time.Duration, 800)
		for _, it := range got.of(metrics.KindIteration) {
			latencies[it.Iteration] = it.Latency()
			if late, _ := it.Lateness(); late != 0 {
				t.Errorf("arrival %d released %v late in virtual time", it.Iteration, late)
			}
		}
		if d := cmp.Diff(want, latencies); d != "" {
			t.Errorf("latencies (-want +got):\n%s", d)
		}
		slices.Sort(latencies)
		if p99 := latencies[791]; p99 < 300*time.Millisecond {
			t.Errorf("p99 latency %v: the freeze is hidden", p99)
		}
		var services []time.Duration
		for _, r := range got.of(metrics.KindStep) {
			services = append(services, r.Service())
		}
		slices.Sort(services)
		if p50 := services[400]; p50 != service {
			t.Errorf("p50 service time %v, want %v", p50, service)
		}
	})
}

// queueOfTwo is the oracle: the latencies of n arrivals at a fixed interval on
// two sessions, each arrival on the one that is free first, of a server that
// freezes at each 300th call.
func queueOfTwo(n int, interval, service, freeze time.Duration) []time.Duration {
	var free [2]time.Duration
	var frozenUntil time.Duration
	out := make([]time.Duration, n)
	for k := range out {
		at := time.Duration(k) * interval
		i := 0
		if free[1] < free[0] {
			i = 1
		}
		start := max(at, free[i])
		if (k+1)%300 == 0 {
			frozenUntil = start + freeze
		}
		free[i] = max(start, frozenUntil) + service
		out[k] = free[i] - at
	}
	return out
}

func TestStepsOfAnIterationDoNotInheritEarlierTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: takes(7 * time.Millisecond)}
		got, _, err := load{group: open(10, 1, time.Second), steps: 3, grace: time.Second, server: s}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.of(metrics.KindStep) {
			if r.Latency() != 7*time.Millisecond {
				t.Errorf("arrival %d step %d: latency %v, want 7ms", r.Iteration, r.Step, r.Latency())
			}
		}
		for _, it := range got.of(metrics.KindIteration) {
			if it.Latency() != 21*time.Millisecond || it.Seq != 3 {
				t.Errorf("iteration %d: latency %v, %d requests; want 21ms, 3", it.Iteration, it.Latency(), it.Seq)
			}
		}
	})
}

func TestTimeoutSampleEndsAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(ctx context.Context, n int64) error {
			err := hang(ctx, n)
			time.Sleep(3 * time.Millisecond) // a client that notices a little late
			return err
		}}
		got, _, err := load{group: closed(1, 0, 2), limit: 250 * time.Millisecond, server: s}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.of(metrics.KindStep) {
			if r.Service() != 250*time.Millisecond {
				t.Errorf("service time %v, want 250ms", r.Service())
			}
		}
	})
}

func TestWarmupIsMarkedAndIterationsOfItDoNotCount(t *testing.T) {
	for _, tc := range []struct {
		name  string
		group scenarios.Group
	}{
		{"closed", closed(1, 0, 10)},
		{"open", func() scenarios.Group { g := open(10, 5, 0); g.Iterations = 10; return g }()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answer: takes(100 * time.Millisecond)}
				got, _, err := load{group: tc.group, warmup: 2 * time.Second, server: s}.run(t.Context(), t, nil)
				if err != nil {
					t.Fatal(err)
				}
				phases := map[string]int{}
				for _, it := range got.of(metrics.KindIteration) {
					phases[it.Phase.String()]++
				}
				wantCounts(t, "iterations by phase", phases, map[string]int{"warmup": 20, "measured": 10})
			})
		})
	}
}
