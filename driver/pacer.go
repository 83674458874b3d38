package driver

import (
	"context"
	"errors"
	"runtime"
	"time"

	"mcpbench/metrics"
)

// Pacers, the values of GroupPlan.Pacer.
const (
	// PacerEconomical sleeps to the next intended start by a timer of the
	// runtime and releases all that are due: up to about a millisecond late.
	PacerEconomical = "economical"
	// PacerPrecise sleeps on a thread of its own in short naps: late by about a
	// quarter of a millisecond, for about a tenth of a processor. Linux only.
	PacerPrecise = "precise"
)

// preciseFrom is the rate, in arrivals per second, from which PacerFor chooses
// the precise pacer.
const preciseFrom = 500

// PacerFor returns the pacer that suits a rate on this system.
func PacerFor(rate float64) string {
	if rate >= preciseFrom && HasPrecisePacer {
		return PacerPrecise
	}
	return PacerEconomical
}

// pace releases the arrivals of an open load at their intended starts into the
// queue, and closes it when all were taken. Each arrival that no worker gets is
// recorded here. soft ends with the schedule, which leaves the queue to be
// served; user when the run was stopped.
func (g *group) pace(work, soft, user context.Context) {
	defer g.queue.close()
	p := pacer{g: g, precise: g.plan.Pacer == PacerPrecise, timer: time.NewTimer(0)}
	defer p.timer.Stop()
	if p.precise {
		runtime.LockOSThread() // its naps are the thread's, see nap
		defer runtime.UnlockOSThread()
	}
	p.begin()
	scheduleEnd := soft.Done()
	for p.more || p.warm != nil || !g.queue.empty() || scheduleEnd != nil && p.endsByTime() {
		switch p.wait(work.Done(), scheduleEnd, user.Done()) {
		case eventDue:
			p.release()
		case eventWorkOver:
			p.abandon(unserved(work))
			return
		case eventStopped:
			p.abandon(unserved(user))
			return
		case eventScheduleEnd:
			switch cause := context.Cause(soft); {
			case errors.Is(cause, errScheduleEnd):
				p.release() // what became due in the last instant
				p.more, p.warm, scheduleEnd = false, nil, nil
			case errors.Is(cause, ErrSessionsLost):
				p.abandon(metrics.IterInterrupted)
				return
			}
		case eventWarm:
			p.measure()
		case eventEmptied, eventNone:
		}
	}
}

// event is what a pacer waited for.
type event uint8

const (
	eventNone event = iota // nothing yet, wait again
	eventDue
	eventScheduleEnd
	eventStopped
	eventWorkOver
	eventEmptied
	eventWarm // the length of the warm-up is known
)

type pacer struct {
	g        *group
	schedule Schedule
	// warm is closed when the length of the warm-up is known, which ends the arrivals
	// of the warm-up; nil after that.
	warm     <-chan struct{}
	from     time.Duration // when the schedule begins
	until    time.Duration // when the warm-up ends, as long as its arrivals come
	precise  bool
	timer    *time.Timer
	next     time.Duration // intended start of the next arrival, when more
	more     bool
	index    uint64
	measured int64 // arrivals released that were intended after the warm-up
}

// begin starts with the arrivals of the warm-up, if there is one.
func (p *pacer) begin() {
	p.warm = p.g.runner.warm.known
	if p.g.runner.warm.there() {
		p.schedule = p.g.warmSchedule()
		p.advance()
	}
	select {
	case <-p.warm:
		p.measure()
	default:
	}
}

// measure is called when the length of the warm-up is known: the arrivals of the
// measured time follow its last one.
func (p *pacer) measure() {
	p.warm, p.until = nil, p.g.runner.warm.end()
	if p.more && p.next < p.until {
		return // see advance
	}
	p.toMeasured()
}

func (p *pacer) toMeasured() {
	p.schedule, p.from, p.until = p.g.schedule(), p.g.runner.warm.end(), 0
	p.advance()
}

// advance takes the next arrival of the schedule.
func (p *pacer) advance() {
	p.next, p.more = p.schedule.Next()
	p.next += p.from
	if p.until > 0 && (!p.more || p.next >= p.until) {
		p.toMeasured()
	}
}

// napFrom is how long before an intended start the precise pacer changes from
// the runtime's timer, which may be a millisecond late, to naps.
const napFrom = 2 * time.Millisecond

// wait returns when something happens. The precise pacer may return eventNone
// after each nap, so that the ends are looked at in between.
func (p *pacer) wait(workOver, scheduleEnd, stopped <-chan struct{}) event {
	var due <-chan time.Time
	left := p.next - p.g.runner.now()
	switch {
	case !p.more:
	case p.precise && left <= napFrom:
		return p.napTo(left, workOver, scheduleEnd, stopped)
	case p.precise:
		p.timer.Reset(left - napFrom)
		due = p.timer.C
	default:
		p.timer.Reset(left)
		due = p.timer.C
	}
	select {
	case <-due:
		return eventDue // with the precise pacer nothing is due yet, and it naps next
	case <-workOver:
		return eventWorkOver
	case <-stopped:
		return eventStopped
	case <-scheduleEnd:
		return eventScheduleEnd
	case <-p.warm:
		return eventWarm
	case <-p.g.queue.emptied:
		return eventEmptied
	}
}

// napTo takes one nap towards an intended start that is near.
func (p *pacer) napTo(left time.Duration, workOver, scheduleEnd, stopped <-chan struct{}) event {
	select {
	case <-workOver:
		return eventWorkOver
	case <-stopped:
		return eventStopped
	case <-scheduleEnd:
		return eventScheduleEnd
	case <-p.warm:
		return eventWarm
	default:
	}
	if left <= 0 {
		return eventDue
	}
	nap(min(left, longestNap))
	return eventNone
}

// endsByTime reports whether the load lasts until its scheduled end, also when
// the last arrival comes long before it.
func (p *pacer) endsByTime() bool {
	g := p.g.plan
	return g.Duration > 0 && (g.Iterations == 0 || p.measured < g.Iterations)
}

// release lets go of all arrivals that are due.
func (p *pacer) release() {
	now := p.g.runner.now()
	for p.more && p.next <= now {
		a := arrival{index: p.index, intended: p.next, released: now}
		p.g.intended.Add(1)
		if p.g.plan.SkipLate && now-p.next > tooLate || !p.g.queue.push(a) {
			p.g.neverStarted(a, metrics.IterDropped)
		}
		p.index++
		if p.g.runner.phase(p.next) == metrics.PhaseMeasured {
			p.measured++
		}
		p.advance()
	}
}

// tooLate is how long after its intended start an arrival is not released any more
// where the policy is to skip: the lateness from which a run is unsound.
const tooLate = 10 * time.Millisecond

// abandon records every arrival that waits as ended by o.
func (p *pacer) abandon(o metrics.IterationOutcome) {
	for _, a := range p.g.queue.abandon() {
		p.g.neverStarted(a, o)
	}
}

// unserved says what arrivals are that still wait when work ends. At the end of
// the schedule they are dropped: the server was too slow for what was offered,
// which must not pass as an orderly end. When the user ended the run, or it
// could not go on, they are interrupted.
func unserved(ended context.Context) metrics.IterationOutcome {
	if errors.Is(context.Cause(ended), errGraceOver) {
		return metrics.IterDropped
	}
	return metrics.IterInterrupted
}

// neverStarted records an arrival that no session took.
func (g *group) neverStarted(a arrival, o metrics.IterationOutcome) {
	if o == metrics.IterDropped {
		g.dropped.Add(1)
	}
	now := g.runner.now()
	g.runner.collector.Record(metrics.Sample{
		Kind: metrics.KindIteration, Outcome: metrics.Outcome(o), Group: g.index, Step: metrics.NoStep,
		Session: metrics.NoSession, Iteration: a.index, Phase: g.runner.phase(a.intended),
		Intended: a.intended, Release: a.released, Start: now, FirstByte: now, End: now,
	})
}

// isFatal reports whether a cause of ended work is an error of the run itself.
func isFatal(cause error) bool {
	return errors.Is(cause, ErrServerGone) || errors.Is(cause, ErrSessionLost)
}
