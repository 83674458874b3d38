package driver

import (
	"context"
	"errors"
	"time"

	"mcpbench/metrics"
)

// pace releases the arrivals of an open load at their intended starts and hands
// them to workers. It keeps those for which no worker is free in order, as many
// as the queue limit allows, and closes g.arrivals when all are handed over.
// Each arrival that no worker gets is recorded here. soft ends with the
// schedule, which leaves the queue to be served; user when the run was stopped.
//
// This is the economical pacer: it sleeps to the next intended start and
// releases all that are due, so an arrival can be late by the timer's
// granularity, about 1 ms; the lateness is recorded.
func (g *group) pace(work, soft, user context.Context) {
	defer close(g.arrivals)
	p := pacer{g: g, schedule: g.schedule(), timer: time.NewTimer(0)}
	defer p.timer.Stop()
	p.next, p.more = p.schedule.Next()
	p.arm()
	scheduleEnd := soft.Done()
	for p.more || p.waiting() > 0 || scheduleEnd != nil && p.endsByTime() {
		var out chan<- arrival
		var head arrival
		if p.waiting() > 0 {
			out, head = g.arrivals, p.queue[p.head]
		}
		var due <-chan time.Time
		if p.more {
			due = p.timer.C
		}
		select {
		case out <- head:
			p.pop()
		case <-due:
			p.release()
			p.arm()
		case <-user.Done():
			p.abandon(p.unserved(user))
			return
		case <-scheduleEnd:
			if errors.Is(context.Cause(soft), errScheduleEnd) {
				p.release() // what became due in the last instant
				p.more, scheduleEnd = false, nil
			}
		case <-work.Done():
			p.abandon(p.unserved(work))
			return
		}
	}
}

type pacer struct {
	g        *group
	schedule Schedule
	timer    *time.Timer
	next     time.Duration // intended start of the next arrival, when more
	more     bool
	index    uint64
	measured int64     // arrivals released that were intended after the warm-up
	queue    []arrival // released, not handed over, from head on
	head     int
}

// endsByTime reports whether the load lasts until its scheduled end, also when
// the last arrival comes long before it.
func (p *pacer) endsByTime() bool {
	g := p.g.plan
	return g.Duration > 0 && (g.Iterations == 0 || p.measured < g.Iterations)
}

func (p *pacer) waiting() int { return len(p.queue) - p.head }

func (p *pacer) pop() {
	p.head++
	switch {
	case p.head == len(p.queue):
		p.queue, p.head = p.queue[:0], 0
	case p.head >= 1024 && p.head*2 >= len(p.queue):
		p.queue = p.queue[:copy(p.queue, p.queue[p.head:])]
		p.head = 0
	}
}

func (p *pacer) arm() {
	if p.more {
		p.timer.Reset(p.next - p.g.runner.now())
	}
}

// release lets go of all arrivals that are due.
func (p *pacer) release() {
	now := p.g.runner.now()
	for p.more && p.next <= now {
		p.admit(arrival{index: p.index, intended: p.next, released: now})
		p.index++
		if p.g.runner.phase(p.next) == metrics.PhaseMeasured {
			p.measured++
		}
		p.next, p.more = p.schedule.Next()
	}
}

func (p *pacer) admit(a arrival) {
	g := p.g
	g.intended.Add(1)
	switch {
	case g.plan.DropWhenFull && p.waiting() == 0:
		select {
		case g.arrivals <- a:
		default:
			p.g.neverStarted(a, metrics.IterDropped)
		}
	case g.plan.DropWhenFull, g.plan.QueueLimit > 0 && p.waiting() >= g.plan.QueueLimit:
		p.g.neverStarted(a, metrics.IterDropped)
	default:
		p.queue = append(p.queue, a)
	}
}

// abandon records every arrival that waits as ended by o.
func (p *pacer) abandon(o metrics.IterationOutcome) {
	for ; p.waiting() > 0; p.pop() {
		p.g.neverStarted(p.queue[p.head], o)
	}
}

// unserved says what arrivals are that still wait when work ends. At the end of
// the schedule they are dropped: the server was too slow for what was offered,
// which must not pass as an orderly end. When the user ended the run, or it
// could not go on, they are interrupted.
func (p *pacer) unserved(ended context.Context) metrics.IterationOutcome {
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
func isFatal(cause error) bool { return errors.Is(cause, ErrServerGone) }
