package driver

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"mcpbench/internal/curve"
)

// seat is the place of a session: a slot of a closed load whose number of sessions changes: on while it
// is to have a session.
type seat struct {
	begun atomic.Int64 // measured iterations, where each place has a number of them

	mu      sync.Mutex
	on      bool
	used    bool          // it was on at some time
	changed chan struct{} // closed and made anew with each change
}

// set switches the seat on or off, and reports whether that is a change.
func (p *seat) set(on bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on == on {
		return false
	}
	p.on, p.used = on, true
	close(p.changed)
	p.changed = make(chan struct{})
	return true
}

// now returns whether the seat is on, whether it ever was, and a channel that is
// closed when that changes.
func (p *seat) now() (on, used bool, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on, p.used, p.changed
}

// sit returns true when the worker's seat is on, false when ctx ends before. While it
// is off it has no session, but for the one that was opened before the load.
func (w *worker) sit(work, ctx context.Context) bool {
	for {
		on, used, changed := w.seat.now()
		if on {
			return ctx.Err() == nil
		}
		if live := w.slot.Live(); live != nil && used {
			live.Session.life.order("ramp_down")
			w.leave(work, live, false)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (p *seat) isOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on
}

// newSeats returns a seat for each slot, those on that are so in the warm-up.
func newSeats(p *GroupPlan, warm bool) []seat {
	seats := make([]seat, p.Sessions)
	on := p.sessionsAtStart(warm)
	for i := range seats {
		seats[i].on, seats[i].used, seats[i].changed = i < on, i < on, make(chan struct{})
	}
	return seats
}

// sessionsAtStart is how many sessions the load begins with.
func (p *GroupPlan) sessionsAtStart(warm bool) int {
	switch {
	case !p.Varies():
		return p.Sessions
	case warm:
		return int(math.Round(p.WarmLevel))
	}
	return p.Level.Whole(0)
}

// director changes the sessions of a group while its load goes on.
type director struct {
	g     *group
	after time.Duration // length of the warm-up: the times below count from it

	crossings *curve.Crossings
	crossing  curve.Crossing
	crosses   bool

	churned int // sessions that were ended in their turn
	storms  int
}

// directed tells that the group has something for a director to do.
func (p *GroupPlan) directed() bool { return p.Varies() || p.Life.Churn > 0 || p.Life.StormEvery > 0 }

// direct does that until ctx ends.
func (g *group) direct(ctx context.Context) {
	after, ok := g.runner.warmedUp(ctx)
	if !ok {
		return
	}
	d := director{g: g, after: after}
	if g.plan.Varies() {
		d.start()
		d.crossings = g.plan.Level.Crossings(g.plan.Sessions)
		d.crossing, d.crosses = d.crossings.Next()
	}
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		at, act := d.next()
		if act == nil || d.g.plan.Duration > 0 && at >= d.g.plan.Duration {
			return
		}
		t.Reset(d.after + at - g.runner.now())
		select {
		case <-t.C:
			act()
		case <-ctx.Done():
			return
		}
	}
}

// start sets the seats as they are when the warm-up is over.
func (d *director) start() {
	on := d.g.plan.Level.Whole(0)
	for i := range d.g.seats {
		d.switchSeat(i, i < on)
	}
}

// next returns what comes next, and when; nil: nothing more.
func (d *director) next() (at time.Duration, act func()) {
	at = math.MaxInt64
	if d.crosses {
		at, act = d.crossing.At, d.cross
	}
	life := &d.g.plan.Life
	if life.Churn > 0 {
		if t, ok := curve.Constant(life.Churn).When(float64(d.churned + 1)); ok && t < at {
			at, act = t, d.churn
		}
	}
	if life.StormEvery > 0 {
		if t := time.Duration(d.storms+1) * life.StormEvery; t < at {
			at, act = t, d.storm
		}
	}
	return at, act
}

func (d *director) cross() {
	d.switchSeat(d.crossing.Slot, d.crossing.On)
	d.crossing, d.crosses = d.crossings.Next()
}

func (d *director) switchSeat(i int, on bool) {
	if d.g.seats[i].set(on) && !on {
		d.order(i, "ramp_down")
	}
}

// order ends the session of a place, if it has one, and reports that.
func (d *director) order(i int, reason string) bool {
	live := d.g.pool.Slots()[i].Live()
	if live == nil || live.Session.life.due.Load() {
		return false
	}
	live.Session.life.order(reason)
	return true
}

// churn ends the session of the next place that has one, going round.
func (d *director) churn() {
	n := len(d.g.seats)
	for k := range n {
		if d.order((d.churned+k)%n, "churn") {
			break
		}
	}
	d.churned++
}

// storm ends a share of all sessions at once.
func (d *director) storm() {
	n := len(d.g.seats)
	order := d.g.stream("storm", uint64(d.storms)).Perm(n) //nolint:gosec // counts up
	left := int(math.Ceil(d.g.plan.Life.StormShare * float64(n)))
	for _, i := range order[:min(left, n)] {
		d.order(i, "storm")
	}
	d.storms++
}
