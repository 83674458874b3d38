package driver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

func open(rate float64, sessions int, d time.Duration) scenarios.Group {
	return scenarios.Group{Open: true, Process: "constant", Rate: rate, Sessions: sessions, Duration: d, InFlight: 1}
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

// TestEveryArrivalLeavesOneRow runs loads that end in every possible way.
func TestEveryArrivalLeavesOneRow(t *testing.T) {
	failing := func(context.Context, int64) error { return &mcp.RPCError{Code: -32603, Message: "no"} }
	queueOf := func(n int) scenarios.Group {
		g := open(100, 1, time.Second)
		g.QueueLimit = n
		return g
	}
	dropping := open(100, 2, time.Second)
	dropping.DropWhenFull = true
	many := open(100, 1, time.Second)
	many.InFlight = 10
	counted := open(100, 4, 0)
	counted.Iterations = 250
	for _, tc := range []ending{
		{
			name:       "all served",
			load:       load{group: open(100, 4, time.Second), grace: time.Second, server: &server{answer: takes(time.Millisecond)}},
			iterations: map[string]int{"completed": 100}, requests: map[string]int{"ok": 100}, ends: time.Second,
		},
		{
			name:       "a count instead of a duration",
			load:       load{group: counted, grace: time.Second, server: &server{answer: takes(time.Millisecond)}},
			iterations: map[string]int{"completed": 250}, requests: map[string]int{"ok": 250}, ends: 2491 * time.Millisecond,
		},
		{
			name:       "failures",
			load:       load{group: open(100, 4, time.Second), grace: time.Second, server: &server{answer: failing}},
			iterations: map[string]int{"failed": 100}, requests: map[string]int{"rpc_error": 100},
		},
		{
			// One session at 100 ms each: 10 served in the second, then the queue drains in the grace period.
			name:       "the queue drains in the grace period",
			load:       load{group: open(100, 1, time.Second), grace: 20 * time.Second, server: &server{answer: takes(100 * time.Millisecond)}},
			iterations: map[string]int{"completed": 100}, requests: map[string]int{"ok": 100}, ends: 10 * time.Second,
		},
		{
			// Served until 3 s: 29 ended at 2.9 s, the 30th ends at 3 s with the grace period. What waits is dropped.
			name:       "what still waits after the grace period is dropped",
			load:       load{group: open(100, 1, time.Second), grace: 1950 * time.Millisecond, server: &server{answer: takes(100 * time.Millisecond)}},
			iterations: map[string]int{"completed": 29, "interrupted": 1, "dropped": 70},
			requests:   map[string]int{"ok": 29, "interrupted": 1}, ends: 2950 * time.Millisecond,
		},
		{
			name:       "queue limit",
			load:       load{group: queueOf(5), grace: 20 * time.Second, server: &server{answer: takes(105 * time.Millisecond)}},
			iterations: map[string]int{"completed": 15, "dropped": 85}, requests: map[string]int{"ok": 15},
		},
		{
			// Each of two sessions is busy for 35 ms: of arrivals every 10 ms, two of four start.
			name:       "drop when no session is free",
			load:       load{group: dropping, grace: time.Second, server: &server{answer: takes(35 * time.Millisecond)}},
			iterations: map[string]int{"completed": 50, "dropped": 50}, requests: map[string]int{"ok": 50},
		},
		{
			name:       "ten in flight on one session",
			load:       load{group: many, grace: time.Second, server: &server{answer: takes(95 * time.Millisecond)}},
			iterations: map[string]int{"completed": 100}, requests: map[string]int{"ok": 100}, ends: 1085 * time.Millisecond,
		},
		{
			name:       "hung calls are interrupted after the grace period",
			load:       load{group: open(10, 100, time.Second), grace: 2 * time.Second, server: &server{answer: hang}},
			iterations: map[string]int{"interrupted": 10}, requests: map[string]int{"interrupted": 10}, ends: 3 * time.Second,
		},
		{
			name: "stopped by the user: what waits is interrupted, what runs may end",
			load: load{group: open(100, 1, time.Minute), grace: 2 * time.Second, server: &server{answer: takes(100 * time.Millisecond)}},
			stop: 1005 * time.Millisecond,
			// 101 released; 10 ended by 1 s, the eleventh ends at 1.1 s.
			iterations: map[string]int{"completed": 11, "interrupted": 90}, requests: map[string]int{"ok": 11},
			ends: 1100 * time.Millisecond,
		},
		{
			name:       "stopped by the user with hung calls: ends with the grace period",
			load:       load{group: open(100, 1000, time.Minute), grace: 2 * time.Second, server: &server{answer: hang}},
			stop:       6*time.Second - time.Millisecond,
			iterations: map[string]int{"interrupted": 600}, requests: map[string]int{"interrupted": 600},
			ends: 8*time.Second - time.Millisecond,
		},
		{
			name: "stopped at once",
			load: load{group: open(100, 10, time.Minute), grace: time.Hour, server: &server{answer: hang}},
			stop: time.Second, kill: 1505 * time.Millisecond,
			iterations: map[string]int{"interrupted": 101}, requests: map[string]int{"interrupted": 10},
			ends: 1505 * time.Millisecond,
		},
		{
			name:       "closed by time",
			load:       load{group: closed(3, time.Second, 0), grace: time.Second, server: &server{answer: takes(110 * time.Millisecond)}},
			iterations: map[string]int{"completed": 30}, requests: map[string]int{"ok": 30}, ends: 1100 * time.Millisecond,
		},
		{
			name:       "closed by count",
			load:       load{group: closed(3, 0, 10), grace: time.Second, server: &server{answer: takes(100 * time.Millisecond)}},
			iterations: map[string]int{"completed": 10}, requests: map[string]int{"ok": 10}, ends: 400 * time.Millisecond,
		},
		{
			name: "closed, hung, stopped by the user",
			load: load{group: closed(5, time.Minute, 0), grace: 3 * time.Second, server: &server{answer: hang}},
			stop: time.Second, iterations: map[string]int{"interrupted": 5}, requests: map[string]int{"interrupted": 5},
			ends: 4 * time.Second,
		},
		{
			name:       "a timeout counts at its limit",
			load:       load{group: closed(1, time.Second, 0), limit: 240 * time.Millisecond, grace: time.Second, server: &server{answer: hang}},
			iterations: map[string]int{"failed": 5}, requests: map[string]int{"timeout": 5}, ends: 1200 * time.Millisecond,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tc.check(t) })
		})
	}
}

// ending is a load, how the user ends it, and what must come of it.
type ending struct {
	name       string
	load       load
	stop, kill time.Duration // when the user stops, 0 never
	iterations map[string]int
	requests   map[string]int
	ends       time.Duration // of the whole run, 0: not looked at
}

func (tc ending) check(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stop := make(chan struct{})
	var timers []*time.Timer
	if tc.stop > 0 {
		timers = append(timers, time.AfterFunc(tc.stop, func() { close(stop) }))
	}
	if tc.kill > 0 {
		timers = append(timers, time.AfterFunc(tc.kill, func() { cancel(errors.New("second signal")) }))
	}
	start := time.Now()
	got, r, err := tc.load.run(ctx, t, stop)
	for _, timer := range timers {
		timer.Stop()
	}
	if err != nil {
		t.Fatal(err)
	}
	wantCounts(t, "iterations", got.iterations(), tc.iterations)
	wantCounts(t, "requests", got.requests(), tc.requests)
	if took := time.Since(start); tc.ends > 0 && took != tc.ends {
		t.Errorf("run took %v, want %v", took, tc.ends)
	}
	wantOnceEach(t, got)
	g := r.Gauges(0)
	if rows := int64(len(got.of(metrics.KindIteration))); g.Intended != rows && tc.load.group.Open || g.InFlight != 0 {
		t.Errorf("gauges %+v after %d rows", g, rows)
	}
}

// wantOnceEach checks that the arrival indexes are 0, 1, … each once.
func wantOnceEach(t *testing.T, k *keep) {
	t.Helper()
	var seen []uint64
	for _, it := range k.of(metrics.KindIteration) {
		seen = append(seen, it.Iteration)
	}
	slices.Sort(seen)
	for i, index := range seen {
		if uint64(i) != index {
			t.Fatalf("arrival indexes %v: not each once", seen)
		}
	}
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

func TestALostSessionIsCountedOnceAndReopened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := &mcp.HTTPError{Status: 404, Body: "gone", Lost: true}
		s := &server{answer: func(ctx context.Context, n int64) error {
			if n == 5 {
				return lost
			}
			return wait(ctx, 10*time.Millisecond)
		}}
		got, r, err := load{group: closed(1, 0, 20), server: s}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "requests", got.requests(), map[string]int{"ok": 19, "http_error": 1})
		wantCounts(t, "iterations", got.iterations(), map[string]int{"completed": 19, "failed": 1})
		if st := r.SessionStats(); st.Opened != 2 || st.Reopened != 1 {
			t.Errorf("sessions %+v; want 2 opened, 1 reopened", st)
		}
		reasons := map[string]int{}
		for _, row := range got.of(metrics.KindSession) {
			reasons[row.Extra.Session.EndReason]++
		}
		wantCounts(t, "session rows", reasons, map[string]int{"lost": 1, "run_end": 1})
	})
}

func TestALostSessionDoesNotCutTheOtherRequestsOnIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(ctx context.Context, n int64) error {
			if n == 3 { // when others are in flight
				return &mcp.HTTPError{Status: 404, Lost: true}
			}
			return wait(ctx, 50*time.Millisecond)
		}}
		group := closed(1, 0, 20)
		group.InFlight = 4
		got, r, err := load{group: group, server: s}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "requests", got.requests(), map[string]int{"ok": 19, "http_error": 1})
		if st := r.SessionStats(); st.Reopened != 1 {
			t.Errorf("sessions %+v; want 1 reopened", st)
		}
	})
}

// TestTheFirstArrivalIsNotDropped runs in real time: what it is about is
// whether workers are ready when the pacer starts, and a bubble hides that.
func TestTheFirstArrivalIsNotDropped(t *testing.T) {
	for range 30 {
		group := open(1000, 4, 0)
		group.Iterations, group.DropWhenFull = 1, true
		got, _, err := load{group: group, server: &server{answer: takes(0)}}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "iterations", got.iterations(), map[string]int{"completed": 1})
	}
}

func TestASlotThatCannotDialDoesNotHoldUpTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: takes(time.Millisecond), refuse: func(n int64) error {
			if n == 1 {
				return nil
			}
			return errors.New("refused")
		}}
		start := time.Now()
		got, _, err := load{group: open(100, 2, time.Second), grace: time.Second, server: s}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "iterations", got.iterations(), map[string]int{"completed": 100})
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
		for _, it := range got.of(metrics.KindIteration) {
			if late, _ := it.Lateness(); late != 0 {
				t.Fatalf("arrival %d was %v late", it.Iteration, late)
			}
		}
	})
}

// TestArrivalsWaitWhileNoSessionCanBeOpened restarts the server in the middle
// of an open load: no arrival fails without a request, each waits its turn.
func TestArrivalsWaitWhileNoSessionCanBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		down := func() bool {
			at := time.Since(start)
			return at >= time.Second && at < 1500*time.Millisecond
		}
		s := &server{
			answer: func(ctx context.Context, _ int64) error {
				if down() {
					return &mcp.HTTPError{Status: 404, Lost: true}
				}
				return wait(ctx, time.Millisecond)
			},
			refuse: func(int64) error {
				if down() {
					return errors.New("refused")
				}
				return nil
			},
		}
		group := open(100, 2, 3*time.Second)
		group.InFlight = 2
		got, _, err := load{group: group, grace: time.Second, server: s}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		counts, requests := got.iterations(), got.requests()
		if counts["completed"]+counts["failed"] != 300 || counts["failed"] != requests["http_error"] || counts["failed"] > 4 {
			t.Errorf("iterations %v, requests %v", counts, requests)
		}
	})
}

func TestAStopInTheGracePeriodDoesNotStretchTheMeasuredPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(7*time.Second, func() { close(stop) })
		s := &server{answer: takes(time.Second)}
		_, r, err := load{group: open(20, 1, 2*time.Second), grace: time.Minute, server: s}.run(t.Context(), t, stop)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.MeasuredEnd(); got != 2*time.Second {
			t.Errorf("MeasuredEnd() = %v, want 2s", got)
		}
	})
}

func TestSessionsAreRenewedAfterTheirIterations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: takes(time.Millisecond)}
		got, r, err := load{group: closed(1, 0, 20), renew: 5, server: s}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		if st := r.SessionStats(); st.Opened != 4 || st.Reopened != 0 {
			t.Errorf("sessions %+v; want 4 opened, none reopened", st)
		}
		for _, row := range got.of(metrics.KindSession) {
			if row.Extra.Session.Requests != 5 || row.Extra.Session.EndReason != "renewed" {
				t.Errorf("session row %+v", row.Extra.Session)
			}
		}
	})
}

func TestNoSessionAtAll(t *testing.T) {
	refused := errors.New("refused")
	s := &server{refuse: func(int64) error { return refused }}
	got, _, err := load{group: closed(3, time.Second, 0), server: s}.run(t.Context(), t, nil)
	if !errors.Is(err, driver.ErrNoSession) || !errors.Is(err, refused) {
		t.Errorf("err = %v; want ErrNoSession with the reason", err)
	}
	if n := len(got.of(metrics.KindSession)); n != 3 {
		t.Errorf("%d session rows, want 3", n)
	}
	if s.calls.Load() != 0 {
		t.Errorf("%d requests sent", s.calls.Load())
	}
}

func TestAServerThatIsGoneForGoodEndsARunWithoutDuration(t *testing.T) {
	for _, group := range []scenarios.Group{closed(2, 0, 1000), func() scenarios.Group {
		g := open(100, 2, 0)
		g.Iterations = 1000
		return g
	}()} {
		t.Run(fmt.Sprintf("open=%v", group.Open), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{
					answer: func(ctx context.Context, n int64) error {
						if n >= 10 {
							return &mcp.HTTPError{Status: 404, Lost: true}
						}
						return wait(ctx, time.Millisecond)
					},
					refuse: func(n int64) error {
						if n > 2 {
							return errors.New("connection refused")
						}
						return nil
					},
				}
				got, _, err := load{group: group, grace: time.Second, server: s}.run(t.Context(), t, nil)
				if !errors.Is(err, driver.ErrServerGone) {
					t.Errorf("err = %v, want ErrServerGone", err)
				}
				wantOnceEach(t, got)
			})
		})
	}
}

func TestSessionsDialledBeforeTheClockHaveNegativeOffsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: takes(time.Millisecond), refuse: func(int64) error {
			time.Sleep(30 * time.Millisecond)
			return nil
		}}
		got, _, err := load{group: closed(4, time.Second, 0), server: s}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got.of(metrics.KindConnect) {
			if c.Phase != metrics.PhaseSetup || c.Start != -30*time.Millisecond || c.End != 0 {
				t.Errorf("connect sample from %v to %v in %v", c.Start, c.End, c.Phase)
			}
		}
		for _, it := range got.of(metrics.KindIteration) {
			if it.Start < 0 {
				t.Errorf("iteration %d starts at %v", it.Iteration, it.Start)
			}
		}
	})
}

// fullDisk is a sink that fails once it holds some samples.
type fullDisk struct{ left int }

var errDiskFull = errors.New("no space left on device")

func (f *fullDisk) Write(batch []metrics.Sample) error {
	if f.left -= len(batch); f.left < 0 {
		return errDiskFull
	}
	return nil
}

func (f *fullDisk) Close() error { return nil }

func TestARunWhoseResultsCannotBeWrittenEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: takes(10 * time.Millisecond)}
		plan := load{group: closed(2, time.Hour, 0), grace: time.Second, server: s}.plan(t)
		c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog, Sinks: []metrics.Sink{&fullDisk{left: 1000}}})
		r := driver.New(plan, c, nopLog())
		start := time.Now()
		if err := r.Run(t.Context(), nil); !errors.Is(err, errDiskFull) {
			t.Errorf("Run: %v, want %v", err, errDiskFull)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("went on for %v without a place to write to", took)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestStopWhileSessionsAreOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		s := &server{answer: takes(0)}
		plan := load{group: closed(3, time.Minute, 0), server: s}.plan(t)
		plan.Groups[0].Dial = func(ctx context.Context, _ int, _ mcp.Options) (driver.Session, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog})
		r := driver.New(plan, c, nopLog())
		start := time.Now()
		if err := r.Run(t.Context(), stop); err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
