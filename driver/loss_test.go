package driver_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// losing answers like takes(d), but the calls with these numbers find their session lost.
func losing(d time.Duration, calls ...int64) func(context.Context, int64) error {
	return func(ctx context.Context, n int64) error {
		err := wait(ctx, d)
		for _, c := range calls {
			if n == c && err == nil {
				return &mcp.ExitError{Code: 7}
			}
		}
		return err
	}
}

// endReasons counts the rows of sessions by why they ended.
func (k *keep) endReasons() map[string]int {
	out := map[string]int{}
	for _, row := range k.of(metrics.KindSession) {
		out[row.Extra.Session.EndReason]++
	}
	return out
}

func TestOnSessionLoss(t *testing.T) {
	counted := open(100, 2, 0)
	counted.Iterations = 50
	for _, tc := range []struct {
		name                          string
		load                          load
		want                          error
		text                          string
		iterations, requests, reasons map[string]int
		opened, reopened              int64
		ends                          time.Duration
	}{
		{
			name:       "reopen is what happens by itself",
			load:       load{group: closed(2, 1005*ms, 0), grace: time.Second, server: &server{answer: losing(10*ms, 2)}},
			iterations: map[string]int{"completed": 201, "failed": 1}, requests: map[string]int{"ok": 201, "process_exit": 1},
			reasons: map[string]int{"lost": 1, "run_end": 2}, opened: 3, reopened: 1, ends: 1010 * ms,
		},
		{
			// The other session makes 101 iterations, the last of which begins at 1 s.
			name:       "end_session goes on with the others",
			load:       load{group: closed(2, 1005*ms, 0), grace: time.Second, server: &server{answer: losing(10*ms, 2)}, onLoss: scenarios.LossEnds},
			iterations: map[string]int{"completed": 101, "failed": 1}, requests: map[string]int{"ok": 101, "process_exit": 1},
			reasons: map[string]int{"lost": 1, "run_end": 1}, opened: 2, ends: 1010 * ms,
		},
		{
			name: "end_session without one left ends the group",
			load: load{group: closed(3, time.Minute, 0), server: &server{answer: losing(10*ms, 2, 3, 7)}, onLoss: scenarios.LossEnds},
			want: driver.ErrSessionsLost, text: "group g: every session was lost, and on_session_loss is end_session; the last was session ",
			// Calls 1 to 3 end at 10 ms, two of them lost; then 4 to 7 one after another.
			iterations: map[string]int{"completed": 4, "failed": 3}, requests: map[string]int{"ok": 4, "process_exit": 3},
			reasons: map[string]int{"lost": 3}, opened: 3, ends: 50 * ms,
		},
		{
			name:       "end_session when all was done is no failure",
			load:       load{group: closed(1, 0, 5), server: &server{answer: losing(10*ms, 5)}, onLoss: scenarios.LossEnds},
			iterations: map[string]int{"completed": 4, "failed": 1}, requests: map[string]int{"ok": 4, "process_exit": 1},
			reasons: map[string]int{"lost": 1}, opened: 1, ends: 50 * ms,
		},
		{
			name:       "end_session of an open load: the others serve what comes",
			load:       load{group: open(100, 2, time.Second), grace: time.Second, server: &server{answer: losing(ms, 5)}, onLoss: scenarios.LossEnds},
			iterations: map[string]int{"completed": 99, "failed": 1}, requests: map[string]int{"ok": 99, "process_exit": 1},
			reasons: map[string]int{"lost": 1, "run_end": 1}, opened: 2, ends: time.Second,
		},
		{
			// Two sessions of 103 ms each: call 4, begun at 113 ms, ends at 216 ms, when 22 had been released.
			name: "end_session of an open load: what waits for the last is interrupted",
			load: load{group: open(100, 2, time.Minute), grace: time.Second, server: &server{answer: losing(103*ms, 3, 4)}, onLoss: scenarios.LossEnds},
			want: driver.ErrSessionsLost, iterations: map[string]int{"completed": 2, "failed": 2, "interrupted": 18},
			requests: map[string]int{"ok": 2, "process_exit": 2}, reasons: map[string]int{"lost": 2}, opened: 2, ends: 216 * ms,
		},
		{
			// 25 calls of 25 ms on each session, of which one begins at 10 ms.
			name:       "end_session of an open load at its last arrival",
			load:       load{group: counted, grace: time.Second, server: &server{answer: losing(25*ms, 49, 50)}, onLoss: scenarios.LossEnds},
			iterations: map[string]int{"completed": 48, "failed": 2}, requests: map[string]int{"ok": 48, "process_exit": 2},
			reasons: map[string]int{"lost": 2}, opened: 2, ends: 635 * ms,
		},
		{
			// All 3 are at their second call at 20 ms; what the others have in flight is cut.
			name: "abort ends the run",
			load: load{group: closed(3, time.Minute, 0), server: &server{answer: losing(10*ms, 4)}, onLoss: scenarios.LossAborts, grace: time.Minute},
			want: driver.ErrSessionLost, text: "of server s: the server process exited with code 7",
			reasons: map[string]int{"lost": 1, "run_end": 2}, opened: 3, ends: 20 * ms,
		},
		{
			name: "abort ends an open load too",
			load: load{group: open(100, 1, time.Minute), server: &server{answer: losing(ms, 4)}, onLoss: scenarios.LossAborts, grace: time.Minute},
			want: driver.ErrSessionLost, iterations: map[string]int{"completed": 3, "failed": 1}, requests: map[string]int{"ok": 3, "process_exit": 1},
			reasons: map[string]int{"lost": 1}, opened: 1, ends: 31 * ms,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got, r, err := tc.load.run(t.Context(), t, nil)
				if took := time.Since(began); took != tc.ends {
					t.Errorf("ended after %v, want %v", took, tc.ends)
				}
				if !errors.Is(err, tc.want) || tc.want == nil && err != nil || tc.want != nil && !strings.Contains(err.Error(), tc.text) {
					t.Errorf("error %v, want %v with %q", err, tc.want, tc.text)
				}
				if tc.iterations != nil {
					wantCounts(t, "iterations", got.iterations(), tc.iterations)
					wantCounts(t, "requests", got.requests(), tc.requests)
				}
				wantCounts(t, "session rows", got.endReasons(), tc.reasons)
				if st := r.SessionStats(); st.Opened != tc.opened || st.Reopened != tc.reopened {
					t.Errorf("sessions %+v; want %d opened, %d reopened", st, tc.opened, tc.reopened)
				}
			})
		})
	}
}

// mortal is a session that may be found dead.
type mortal struct {
	driver.Session
	dead *atomic.Bool
}

func (m mortal) Ended() bool { return m.dead.Load() }

// TestAnArrivalOfADeadSlotGoesToAnotherOne: a session that died while it was idle
// has taken the arrival already when that is seen.
func TestAnArrivalOfADeadSlotGoesToAnotherOne(t *testing.T) {
	for _, tc := range []struct {
		name       string
		die        []int // slots
		iterations map[string]int
		want       error
	}{
		{"one of three", []int{1}, map[string]int{"completed": 40}, nil},
		{"all", []int{0, 1, 2}, map[string]int{"completed": 20, "interrupted": 1}, driver.ErrSessionsLost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answer: takes(ms)}
				var dead [3]atomic.Bool
				l := load{group: open(40, 3, time.Second), grace: time.Second, server: s, onLoss: scenarios.LossEnds}
				plan := l.plan(t)
				plan.Groups[0].Dial = func(ctx context.Context, slot int, o mcp.Options) (driver.Session, error) {
					inner, err := s.dial(ctx, slot, o)
					return mortal{inner, &dead[slot]}, err
				}
				timer := time.AfterFunc(490*ms, func() {
					for _, slot := range tc.die {
						dead[slot].Store(true)
					}
				})
				defer timer.Stop()
				sink := &keep{}
				c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog, Sinks: []metrics.Sink{sink}})
				r := driver.New(plan, c, nopLog())
				if err := r.Run(t.Context(), nil); !errors.Is(err, tc.want) || tc.want == nil && err != nil {
					t.Errorf("error %v, want %v", err, tc.want)
				}
				if err := r.Close(t.Context()); err != nil {
					t.Error(err)
				}
				wantCounts(t, "iterations", sink.iterations(), tc.iterations)
				if n := sink.endReasons()["lost"]; n != len(tc.die) {
					t.Errorf("%d sessions lost, want %d", n, len(tc.die))
				}
			})
		})
	}
}

// TestAGroupWithoutSessionsDoesNotCutTheOthers: 2 iterations of the one whose third is
// lost, 101 of the other, the last of which begins at 1 s.
func TestAGroupWithoutSessionsDoesNotCutTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doomed := load{group: closed(1, 1005*ms, 0), grace: time.Second, server: &server{answer: losing(10*ms, 3)}, onLoss: scenarios.LossEnds}
		healthy := load{group: closed(1, 1005*ms, 0), server: &server{answer: takes(10 * ms)}}
		plan, second := doomed.plan(t), healthy.plan(t)
		other := second.Groups[0]
		plan.Groups = append(plan.Groups, other)
		plan.Catalog.Groups = append(plan.Catalog.Groups, second.Catalog.Groups[0])
		sink := &keep{}
		c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog, Sinks: []metrics.Sink{sink}})
		r := driver.New(plan, c, nopLog())
		if err := r.Run(t.Context(), nil); !errors.Is(err, driver.ErrSessionsLost) {
			t.Errorf("error %v", err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantCounts(t, "iterations", sink.iterations(), map[string]int{"completed": 103, "failed": 1})
	})
}
