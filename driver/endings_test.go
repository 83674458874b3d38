package driver_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

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

// TestWaitOnASubscriptionThatTheServerEnded: after the one update that came the
// server ends the subscription in order, 250 ms after its begin. The waits then
// fail at once, and the session goes on.
func TestWaitOnASubscriptionThatTheServerEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{
			version: mcp.V20260728, endsAfter: 250 * ms,
			news: func(f mcp.Filter) []mcp.Notification { return updates(1)[:min(1, len(f.Resources))] },
		}
		got := play(t.Context(), t, p, `
load: {groups: {g: {iterations: 3}}}
flows:
  f:
    before: [{subscribe: {uris: ["a:x"]}, as: news}]
    steps: [{id: w, wait_for: {notification: resources/updated, from: news, timeout: 3s}}]
`)
		wantCounts(t, "requests", got.requests(), map[string]int{"ok": 2, "transport_error": 2}) // subscribe is one
		wantCounts(t, "iterations", got.iterations(), map[string]int{"completed": 1, "failed": 2})
		rows := got.step("w")
		for i, service := range []time.Duration{100 * ms, 150 * ms, 0} {
			s := rows[i]
			if s.Service() != service || i > 0 && (s.Code != int32(mcp.ClassEnded) || s.Extra.Message != "the server ended the subscription") {
				t.Errorf("wait %d: service time %v, want %v; code %d, extra %+v", i, s.Service(), service, s.Code, s.Extra)
			}
		}
		if len(p.sessions) != 1 {
			t.Errorf("%d sessions, want 1", len(p.sessions))
		}
	})
}

// A user who stops while the servers are still being probed wants none of them started.
func TestNothingIsOpenedAfterAStopBeforeTheRun(t *testing.T) {
	for range 50 { // it was a race
		synctest.Test(t, func(t *testing.T) {
			stop := make(chan struct{})
			close(stop)
			s := &server{answer: takes(time.Millisecond)}
			got, _, err := load{group: closed(8, time.Second, 0), grace: time.Second, server: s}.run(t.Context(), t, stop)
			if n := s.dials.Load(); n != 0 || err != nil || len(got.samples) != 0 {
				t.Errorf("%d dials, %v, %d samples", n, err, len(got.samples))
			}
		})
	}
}

// A second signal cuts the sessions before the results are finished: what servers
// still send would hold that up.
func TestSessionsAreCutBeforeTheResultsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := &server{answer: hang}
		l := load{group: closed(3, 10*time.Second, 0), grace: time.Minute, server: s}
		plan := l.plan(t)
		late := &lastClosed{server: s}
		c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog, Sinks: []metrics.Sink{late}})
		r := driver.New(plan, c, nopLog())
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		time.AfterFunc(2*time.Second, func() { cancel(errors.New("second signal")) })
		if err := r.Run(ctx, stop); err != nil {
			t.Fatal(err)
		}
		if late.closes != 3 {
			t.Errorf("%d of 3 sessions were closed when the results were", late.closes)
		}
		if err := r.Close(ctx); err != nil || s.closes.Load() != 3 {
			t.Errorf("closed again: %v, %d", err, s.closes.Load())
		}
	})
}

// lastClosed is a sink that notes how many sessions were closed when it was.
type lastClosed struct {
	server *server
	closes int64
}

func (*lastClosed) Write([]metrics.Sample) error { return nil }

func (l *lastClosed) Close() error {
	l.closes = l.server.closes.Load()
	return nil
}
