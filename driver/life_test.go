package driver_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/driver"
	"mcpbench/internal/curve"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

const second = time.Second

// staged is a closed load whose sessions change.
func staged(start float64, stages ...curve.Stage) scenarios.Group {
	c, err := curve.Stages(start, stages)
	if err != nil {
		panic(err)
	}
	end, _ := c.End()
	return scenarios.Group{
		Level: c, WarmLevel: start, Changes: true, Sessions: int(c.Max()), Duration: end, InFlight: 1,
	}
}

func to(level float64, over, hold time.Duration) curve.Stage {
	return curve.Stage{Level: level, HasLevel: true, Over: over, Hold: hold}
}

// spans returns when each session was opened and ended, in the order of the opening.
func (k *keep) spans() (opened, ended []time.Duration, reasons map[string]int) {
	rows := k.of(metrics.KindSession)
	slices.SortStableFunc(rows, func(a, b metrics.Sample) int { return int(a.Start - b.Start) })
	reasons = map[string]int{}
	for _, s := range rows {
		opened = append(opened, s.Start)
		ended = append(ended, s.Extra.Session.Ended)
		reasons[s.Extra.Session.EndReason]++
	}
	return opened, ended, reasons
}

// TestSessionsFollowTheStages ramps up to 4 in 4 s, holds for 2 s and ramps down in
// 4 s; a session is on from the moment the level is half way to it.
func TestSessionsFollowTheStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: takes(10 * time.Millisecond)}
		sink, _, err := load{group: staged(0, to(4, 4*second, 2*second), to(0, 4*second, 0)), server: s}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		opened, ended, reasons := sink.spans()
		want := []time.Duration{0, 1500 * time.Millisecond, 2500 * time.Millisecond, 3500 * time.Millisecond}
		near(t, "opened", opened, want, time.Millisecond) // the first before the clock
		slices.Reverse(ended)                             // the last to come is the first to go
		near(t, "ended", ended, []time.Duration{6500 * time.Millisecond, 7500 * time.Millisecond, 8500 * time.Millisecond, 9500 * time.Millisecond}, 12*time.Millisecond)
		if diff := cmp.Diff(map[string]int{"ramp_down": 4}, reasons); diff != "" {
			t.Errorf("reasons (-want +got):\n%s", diff)
		}
		first := map[uint32]time.Duration{}
		for _, i := range sink.of(metrics.KindIteration) {
			if _, ok := first[i.Session]; !ok {
				first[i.Session] = i.Start
			}
		}
		starts := slices.Sorted(maps.Values(first))
		near(t, "first iterations", starts, []time.Duration{500 * time.Millisecond, want[1], want[2], want[3]}, time.Millisecond)
	})
}

func near(t *testing.T, what string, got, want []time.Duration, within time.Duration) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range got {
		ok = ok && (got[i]-want[i]).Abs() <= within
	}
	if !ok {
		t.Errorf("%s at %v, want %v", what, got, want)
	}
}

// TestSessionsEndWithTheIteration: a session that is to go ends when its iteration
// has ended, and not one iteration loses its session.
func TestSessionsEndWithTheIteration(t *testing.T) {
	for _, inFlight := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			g := staged(2, to(2, 0, second), to(0, 0, second))
			g.InFlight = inFlight
			s := &server{answer: takes(300 * time.Millisecond)}
			sink, _, err := load{group: g, steps: 2, server: s}.run(t.Context(), t, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]int{"completed": 4 * inFlight}, sink.iterations()); diff != "" {
				t.Errorf("iterations (-want +got):\n%s", diff)
			}
			_, ended, reasons := sink.spans()
			near(t, "ended", ended, []time.Duration{1200 * time.Millisecond, 1200 * time.Millisecond}, time.Millisecond)
			if reasons["ramp_down"] != 2 {
				t.Errorf("reasons %v", reasons)
			}
		})
	}
}

// TestSessionsEndByAge: each session lives for 2 s; those that think or wait for an
// arrival end at that moment and are replaced at once.
func TestSessionsEndByAge(t *testing.T) {
	life := scenarios.Life{Duration: scenarios.Constant(2 * second)}
	for _, tt := range []struct {
		name  string
		group scenarios.Group
	}{
		{"thinking", func() scenarios.Group {
			g := closed(3, 9*second, 0)
			g.Think = scenarios.Constant(time.Hour)
			return g
		}()},
		{"busy", closed(3, 9*second, 0)},
		{"waiting for arrivals", open(0.1, 3, 9*second)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.group.Life = life
				s := &server{answer: takes(time.Millisecond)}
				sink, _, err := load{group: tt.group, server: s}.run(t.Context(), t, nil)
				if err != nil {
					t.Fatal(err)
				}
				opened, _, reasons := sink.spans()
				var want []time.Duration
				for _, at := range []time.Duration{0, 2, 4, 6, 8} {
					want = append(want, at*second, at*second, at*second)
				}
				near(t, "opened", opened, want, 5*time.Millisecond)
				if diff := cmp.Diff(map[string]int{"expired": 12, "run_end": 3}, reasons); diff != "" {
					t.Errorf("reasons (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestChurnAndStorms: churn ends one session after the other at its rate, a storm a
// share of all at the same moment.
func TestChurnAndStorms(t *testing.T) {
	for _, tt := range []struct {
		name string
		life scenarios.Life
		want []time.Duration // of the ends before that of the run
		kind string
	}{
		{"churn", scenarios.Life{Churn: 2}, []time.Duration{500 * time.Millisecond, second, 1500 * time.Millisecond, 2 * second, 2500 * time.Millisecond}, "churn"},
		{"storm", scenarios.Life{StormEvery: 1300 * time.Millisecond, StormShare: 0.6}, []time.Duration{
			1300 * time.Millisecond, 1300 * time.Millisecond, 1300 * time.Millisecond,
			2600 * time.Millisecond, 2600 * time.Millisecond, 2600 * time.Millisecond,
		}, "storm"},
	} {
		for _, g := range []scenarios.Group{closed(5, 2900*time.Millisecond, 0), open(100, 5, 2900*time.Millisecond)} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g.Life = tt.life
					s := &server{answer: takes(time.Millisecond)}
					sink, _, err := load{group: g, server: s, grace: second}.run(t.Context(), t, nil)
					if err != nil {
						t.Fatal(err)
					}
					_, ended, reasons := sink.spans()
					slices.Sort(ended)
					near(t, "ended", ended[:len(ended)-5], tt.want, 2*time.Millisecond)
					if reasons[tt.kind] != len(tt.want) || reasons["run_end"] != 5 {
						t.Errorf("reasons %v", reasons)
					}
					if n := sink.iterations(); len(n) != 1 || n["completed"] < 280 {
						t.Errorf("iterations %v", n)
					}
				})
			})
		}
	}
}

// TestIdleSessionsAreHeldOpen and make no request.
func TestIdleSessionsAreHeldOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := closed(2, 0, 20)
		g.IdleSessions = 7
		s := &server{answer: takes(100 * time.Millisecond)}
		sink, r, err := load{group: g, server: s}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := r.Gauges(0).SessionsWanted; n != 9 || s.dials.Load() != 9 {
			t.Errorf("%d wanted, %d dialled; want 9", n, s.dials.Load())
		}
		requests := map[int64]int{}
		for _, row := range sink.of(metrics.KindSession) {
			requests[row.Extra.Session.Requests]++
		}
		if diff := cmp.Diff(map[int64]int{0: 7, 10: 2}, requests); diff != "" {
			t.Errorf("sessions by requests (-want +got):\n%s", diff)
		}
	})
}

// endingSession notes how it is closed.
type endingSession struct {
	driver.Session
	note func(mcp.Ending)
}

func (s *endingSession) CloseAs(ctx context.Context, e mcp.Ending) error {
	s.note(e)
	return s.Close(ctx)
}

// TestShareOfRudeClients ends 4,000 sessions by weight; the same seed gives each the
// same end.
func TestShareOfRudeClients(t *testing.T) {
	run := func() (ends map[mcp.Ending]int) {
		synctest.Test(t, func(t *testing.T) {
			ends = map[mcp.Ending]int{}
			var mu sync.Mutex
			g := closed(4, time.Hour, 0)
			g.Iterations = 4000
			g.Life = scenarios.Life{Iterations: 1, Ends: scenarios.Ends{Delete: 6, NoDelete: 3, Drop: 1}}
			s := &server{answer: takes(time.Millisecond)}
			l := load{group: g, server: s}
			plan := l.plan(t)
			dial := plan.Groups[0].Dial
			plan.Groups[0].Dial = func(ctx context.Context, slot int, o mcp.Options) (driver.Session, error) {
				session, err := dial(ctx, slot, o)
				return &endingSession{session, func(e mcp.Ending) { mu.Lock(); ends[e]++; mu.Unlock() }}, err
			}
			c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog})
			r := driver.New(plan, c, nopLog())
			if err := r.Run(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
		return ends
	}
	first, again := run(), run()
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same seed (-first +again):\n%s", diff)
	}
	if n := first[mcp.EndSilent]; n < 1100 || n > 1300 {
		t.Errorf("%d ended without a word, want about 1200", n)
	}
	if n := first[mcp.EndDrop]; n < 340 || n > 460 {
		t.Errorf("%d dropped, want about 400", n)
	}
}

// TestIterationsOfEachSession, whatever becomes of the session.
func TestIterationsOfEachSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := closed(3, 0, 0)
		g.PerSession = 7
		s := &server{answer: takes(10 * time.Millisecond)}
		sink, _, err := load{group: g, server: s, renew: 2, warmup: 100 * time.Millisecond}.run(t.Context(), t, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := map[metrics.Phase]int{}
		for _, i := range sink.of(metrics.KindIteration) {
			n[i.Phase]++
		}
		if n[metrics.PhaseMeasured] != 21 || n[metrics.PhaseWarmup] < 27 {
			t.Errorf("iterations by phase %v, want 21 measured", n)
		}
	})
}
