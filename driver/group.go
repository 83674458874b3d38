package driver

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

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
	}
	// The connect timeout is that of the dial alone, without the steps before.
	g.pool = pool.New(pool.Config{Size: p.Sessions, RenewAfter: p.RenewAfter}, g.dial)
	return g
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
		SessionsWanted: g.plan.Sessions, SessionsActive: s.Active, SessionsConnecting: s.Connecting,
		InFlight: int(inFlight),
	}
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
	for i, slot := range g.pool.Slots() {
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
	var end <-chan time.Time
	if at := g.plan.scheduledEnd(g.runner.plan.Warmup); at > 0 {
		t := time.NewTimer(at - g.runner.now())
		defer t.Stop()
		end = t.C
	}
	select {
	case <-end:
		g.endedByTime.Store(true)
		endSoft(errScheduleEnd)
	case <-soft.Done():
	case <-done:
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

// schedule returns the arrivals of an open group, its draws from a stream of their own.
func (g *group) schedule() Schedule {
	b := Bounds{
		End: g.plan.scheduledEnd(g.runner.plan.Warmup), Count: g.plan.Iterations, Warmup: g.runner.plan.Warmup,
	}
	if g.plan.Process == "poisson" {
		h := fnv.New64a()
		_, _ = h.Write([]byte("arrivals/" + g.plan.Name)) // never fails
		return Poisson(g.plan.Rate, b, rand.New(rand.NewPCG(g.runner.plan.Seed, h.Sum64())))
	}
	return Constant(g.plan.Rate, b)
}

// take gives the next arrival index of a closed load, ok false when the
// iterations are used up. Those begun in the warm-up do not count.
func (g *group) take() (index uint64, ok bool) {
	if n := g.plan.Iterations; n > 0 && g.runner.phase(g.runner.now()) == metrics.PhaseMeasured {
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
