package driver_test

import (
	"context"
	"errors"
	"fmt"
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

// TestIterationsEndThoughASessionCannotBeOpened: a worker that still tried to open
// its session when all iterations were done kept the run from ending.
func TestIterationsEndThoughASessionCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: takes(ms), refuse: func(n int64) error {
			if n > 1 {
				return errors.New("one session is enough")
			}
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		got, _, err := load{group: closed(2, 0, 3), server: s}.run(ctx, t, nil)
		if took := time.Since(began); took > time.Second || err != nil {
			t.Errorf("took %v, error %v; want 3 ms", took, err)
		}
		wantCounts(t, "iterations", got.iterations(), map[string]int{"completed": 3})
	})
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
		// What opened has what its row will have, for the case that the run is killed.
		rows := got.of(metrics.KindSession)
		for i, c := range got.of(metrics.KindConnect) {
			want := *rows[i].Extra.Session
			want.Ended, want.Requests, want.EndReason = 0, 0, ""
			if have := *c.Extra.Session; have.Negotiated != want.Negotiated || have.Server != want.Server || have.EndReason != "" || have.Transport != want.Transport {
				t.Errorf("connect %d knows %+v of its session, want %+v", i, have, want)
			}
		}
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

// Whoever watches sessions knows them by the numbers that the rows have, also
// those that were opened anew; what it sets is what the session is dialled with.
func TestWatchedSessionsHaveTheNumbersOfTheResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		watched := map[uint32]int{}
		shown := 0
		s := &server{answer: takes(time.Millisecond)}
		l := load{group: closed(3, 0, 30), server: s, renew: 4, watch: func(group int, session uint32, o *mcp.Options) {
			mu.Lock()
			defer mu.Unlock()
			watched[session]++
			o.OnFrame = func(mcp.Frame) { shown++ }
			if group != 0 || o.Base.IsZero() {
				t.Errorf("group %d, base %v", group, o.Base)
			}
		}}
		s.onDial = func(o mcp.Options) {
			mu.Lock()
			defer mu.Unlock()
			o.OnFrame(mcp.Frame{})
		}
		got, _, err := l.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[uint32]int{}
		for _, row := range got.of(metrics.KindSession) {
			rows[row.Session]++
		}
		if d := cmp.Diff(rows, watched); d != "" || len(rows) < 6 || shown != len(rows) {
			t.Errorf("%d frames; sessions (-rows +watched)\n%s", shown, d)
		}
	})
}
