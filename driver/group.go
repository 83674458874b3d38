package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"mcpbench/internal/curve"
	"mcpbench/metrics"
	"mcpbench/pool"
	"mcpbench/scenarios"
)

// arrival is one planned iteration. In a closed load intended and released are
// metrics.NoOffset.
type arrival struct {
	index              uint64
	intended, released time.Duration
}

// group runs one load group.
type group struct {
	runner *Runner
	plan   *GroupPlan
	index  uint8
	pool   *pool.Pool[*session]
	queue  *queue // open load

	seats    []seat        // one for each session that works
	next     atomic.Uint64 // closed load: arrival indexes given out
	measured atomic.Int64  // closed load: of these, begun after the warm-up

	endedByTime atomic.Bool           // the load lasted until its scheduled end
	paced       atomic.Bool           // open load: every arrival was taken
	refusal     atomic.Pointer[error] // the first dial that failed before the load
	afterFailed atomic.Bool           // a step after has failed

	tools    atomic.Pointer[scenarios.Tools] // nil until they were asked for
	learning chan struct{}                   // held by the session that asks

	intended, dropped atomic.Int64
	tallies           []tally // one for each worker
}

// tally is what one worker has done. Each is written by its worker alone, so that
// counting costs no traffic between processors, and read by anybody.
type tally struct {
	started, completed, inFlight atomic.Int64
	_                            [40]byte // fills a cache line
}

func newGroup(r *Runner, index int, p *GroupPlan) *group {
	g := &group{
		runner: r, plan: p, index: uint8(index), //nolint:gosec // NewPlan allows 255 groups
		learning: make(chan struct{}, 1),
		queue:    newQueue(p.QueueLimit, p.DropWhenFull),
		tallies:  make([]tally, p.Sessions*max(1, p.InFlight)),
		seats:    newSeats(p, r.warm.there()),
	}
	// The connect timeout is that of the dial alone, without the steps before.
	c := pool.Config{Size: p.Sessions + p.IdleSessions, RenewAfter: p.RenewAfter}
	if p.Life.StormEvery > 0 {
		c.DialParallel = min(p.Sessions, stormDials)
	}
	g.pool = pool.New(c, g.dial)
	return g
}

// stormDials is how many sessions may be dialled at once where storms are wanted.
const stormDials = 1024

// opensAtStart tells that a slot gets its session before the clock starts. The
// first of a ramp is among them: that the server can be reached must be known.
func (g *group) opensAtStart(slot int) bool {
	return slot == 0 || slot >= len(g.seats) || g.seats[slot].isOn()
}

func (g *group) gauges() metrics.Gauges {
	s := g.pool.Stats()
	var started, completed, inFlight int64
	for i := range g.tallies {
		t := &g.tallies[i]
		completed += t.completed.Load() // before started, which is never less
		started += t.started.Load()
		inFlight += t.inFlight.Load()
	}
	intended := started
	if g.plan.Open {
		intended = g.intended.Load()
	}
	return metrics.Gauges{
		Intended: intended, Started: started, Completed: completed, Dropped: g.dropped.Load(),
		SessionsWanted: g.wanted(), SessionsActive: s.Active, SessionsConnecting: s.Connecting,
		InFlight: int(inFlight),
	}
}

// wanted is how many sessions there should be.
func (g *group) wanted() int {
	n := g.plan.IdleSessions
	for i := range g.seats {
		if g.seats[i].isOn() {
			n++
		}
	}
	return n
}

// run drives the group until its load has ended and all its work with it. soft
// ends new work, work ends everything; the group's own end of schedule and
// grace period are nested in them.
func (g *group) run(work, soft context.Context) error {
	user := soft
	work, endWork := context.WithCancelCause(work)
	defer endWork(errGraceOver)
	soft, endSoft := context.WithCancelCause(soft)
	defer endSoft(errScheduleEnd)

	var keeper sync.WaitGroup
	done := make(chan struct{})
	keeper.Go(func() { g.keepTime(soft, endSoft, endWork, done) })
	defer keeper.Wait()
	defer close(done)

	feed, endFeed := context.WithCancelCause(work)
	defer endFeed(errScheduleEnd)
	giveUp := func(cause error) {
		endSoft(cause)
		endWork(cause)
	}
	dial, endDial := context.WithCancelCause(soft)
	usedUp := func() {
		g.runner.collector.LoadOver(int(g.index))
		endDial(errScheduleEnd)
	}
	defer usedUp()
	var workers, waiting sync.WaitGroup
	each := max(1, g.plan.InFlight)
	if g.plan.directed() {
		directing, endDirecting := context.WithCancel(soft)
		workers.Go(func() { g.direct(directing) })
		defer endDirecting() // when the iterations are used up before
	}
	for i, slot := range g.pool.Slots()[:g.plan.Sessions] {
		for j := range each {
			w := newWorker(g, slot, &g.tallies[i*each+j], giveUp)
			w.endLoad = endSoft
			if !g.plan.Open {
				workers.Go(func() { w.loop(work, soft, dial, usedUp) })
				continue
			}
			waiting.Add(1)
			workers.Go(func() { w.serveArrivals(work, feed, sync.OnceFunc(waiting.Done)) })
		}
	}
	if g.plan.Open {
		waiting.Wait() // whether a session is free must be known at the first arrival
		g.pace(work, soft, user)
		g.paced.Store(true)
		g.runner.collector.LoadOver(int(g.index))
		endFeed(errScheduleEnd)
	}
	workers.Wait()
	for _, a := range g.queue.abandon() { // given back, when nobody was left to take it
		g.neverStarted(a, unserved(work))
	}
	for _, cause := range []error{context.Cause(work), context.Cause(soft)} {
		if cause != nil && (isFatal(cause) || errors.Is(cause, ErrSessionsLost)) {
			return fmt.Errorf("group %s: %w", g.plan.Name, cause)
		}
	}
	return nil
}

// keepTime ends new work at the scheduled end, and work in flight when the
// grace period after that, or after soft has ended for another reason, is over.
func (g *group) keepTime(soft context.Context, endSoft, endWork context.CancelCauseFunc, done <-chan struct{}) {
	if !g.untilEnd(soft, endSoft, done) {
		return
	}
	g.runner.collector.LoadOver(int(g.index))
	grace := time.NewTimer(g.runner.plan.Grace)
	defer grace.Stop()
	select {
	case <-grace.C:
		endWork(errGraceOver)
	case <-done:
	}
}

// untilEnd waits for the scheduled end, which ends soft, or for that of soft; false
// when done comes first.
func (g *group) untilEnd(soft context.Context, endSoft context.CancelCauseFunc, done <-chan struct{}) bool {
	var end <-chan time.Time
	select {
	case <-g.runner.warm.known:
		if g.plan.Duration > 0 {
			t := time.NewTimer(g.runner.warm.end() + g.plan.Duration - g.runner.now())
			defer t.Stop()
			end = t.C
		}
	case <-soft.Done():
	case <-done:
		return false
	}
	select {
	case <-end:
		g.endedByTime.Store(true)
		endSoft(errScheduleEnd)
	case <-soft.Done():
	case <-done:
		return false
	}
	return true
}

// schedule returns the arrivals of the measured time of an open group, as offsets
// from its beginning. Its draws come from a stream of their own.
func (g *group) schedule() Schedule {
	p, b := g.plan, Bounds{End: g.plan.Duration, Count: g.plan.Iterations}
	switch p.Process {
	case "poisson":
		return Poisson(p.Level, b, g.stream("arrivals", 0))
	case "replay":
		return Replay(p.Times, b)
	}
	return Uniform(p.Level, b)
}

// warmSchedule returns the arrivals of the warm-up.
func (g *group) warmSchedule() Schedule {
	p, b := g.plan, Bounds{}
	level := curve.Constant(p.WarmLevel)
	if p.Process == "poisson" {
		return Poisson(level, b, g.stream("arrivals of the warm-up", 0))
	}
	return Uniform(level, b)
}

// take gives the index of an iteration of a closed load that begins at the given time, ok
// false when the
// iterations are used up. Those begun in the warm-up do not count.
func (g *group) take(p *seat, at time.Duration) (index uint64, ok bool) {
	measured := g.runner.phase(at) == metrics.PhaseMeasured
	if n := g.plan.PerSession; n > 0 && measured {
		if p.begun.Add(1) > n {
			return 0, false
		}
	}
	if n := g.plan.Iterations; n > 0 && measured {
		if g.measured.Add(1) > n {
			return 0, false
		}
	}
	return g.next.Add(1) - 1, true
}

// dialFailed is called after a failed dial. Without a duration nothing but
// iterations would end the load, and without a server there are none.
func (g *group) dialFailed(giveUp context.CancelCauseFunc) {
	if g.plan.Duration == 0 && g.pool.Hopeless() {
		giveUp(ErrServerGone)
	}
}

// usedUp reports whether a closed load has no iteration left to give out.
func (g *group) usedUp() bool {
	return g.plan.Iterations > 0 && g.measured.Load() >= g.plan.Iterations
}

// checkSteps makes sure that the version of s has at least one of the flow's
// steps, and tells which of them it lacks.
func (g *group) checkSteps(s *session) error {
	have := 0
	for i, step := range g.plan.Steps {
		if !s.lacks(i) {
			have++
			continue
		}
		g.runner.log.Warn("step skipped: its method does not exist in this protocol version",
			zap.String("group", g.plan.Name), zap.String("step", step.ID), zap.String("protocol", string(s.version)))
	}
	if have == 0 {
		return fmt.Errorf("group %s: %w: %s", g.plan.Name, ErrNothingToDo, s.version)
	}
	return nil
}
