package driver

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"mcpbench/metrics"
	"mcpbench/pool"
	"mcpbench/scenarios"
)

// pass is where a worker is in a flow.
type pass struct {
	live *pool.Live[*session]
	// outcome and failed are of the first step that failed.
	outcome metrics.IterationOutcome
	failed  uint16
	// endSession tells that a step that failed asks for the end of the session.
	endSession bool
	// called is the on_error of the call of a flow that the worker is in, or of what is
	// around that call; else 0.
	called scenarios.OnError
	rows   []bool // by row of the part: the session lacks the step; nil: it has all
	first  uint16 // the catalog index of row 0
}

// do does what a flow says, one action after the other, and reports
// whether the next one may begin.
func (w *worker) do(ctx context.Context, p *pass, actions []*scenarios.Action) bool {
	for _, a := range actions {
		if !w.act(ctx, p, a) {
			return false
		}
		if timeIsOver(ctx) {
			return p.runOut(a)
		}
	}
	return true
}

// nowhere is an action that makes no row.
var nowhere = &scenarios.Action{Row: -1}

// runOut ends an iteration whose time is over.
func (p *pass) runOut(a *scenarios.Action) bool {
	if p.outcome == metrics.IterCompleted {
		p.outcome, p.failed = metrics.IterFailed, metrics.NoStep
		if a.Row >= 0 {
			p.failed = p.first + uint16(a.Row) //nolint:gosec // NewPlan bounds the steps
		}
	}
	return false
}

// stopped ends a pass whose ctx has ended at a.
func (p *pass) stopped(ctx context.Context, a *scenarios.Action) bool {
	if timeIsOver(ctx) {
		return p.runOut(a)
	}
	return p.interrupt()
}

func (w *worker) act(ctx context.Context, p *pass, a *scenarios.Action) bool {
	if a.Kind == scenarios.ActStep && p.rows != nil && p.rows[a.Row] {
		return true // skipped: the version does not have it
	}
	if a.Conditional() {
		switch skip, err := a.Skip(&w.env); {
		case err != nil:
			return w.broken(ctx, p, a, err)
		case skip:
			return true
		}
	}
	switch a.Kind {
	case scenarios.ActStep:
		if !w.reopen(ctx, p) {
			return false
		}
		return w.judge(p, a, w.step(ctx, p.live, a.Step, p.first+uint16(a.Row))) //nolint:gosec // NewPlan bounds the steps
	case scenarios.ActThink:
		return w.think(ctx, p, a)
	case scenarios.ActRandom:
		return w.do(ctx, p, a.Branches[a.Choose(&w.env)])
	case scenarios.ActParallel:
		return w.beside(ctx, p, a)
	case scenarios.ActRepeat:
		return w.repeat(ctx, p, a)
	case scenarios.ActCall:
		back, err := a.Enter(&w.env)
		if err != nil {
			return w.broken(ctx, p, a, err)
		}
		outer := p.called
		p.called = a.OnError.Or(outer)
		more := w.do(ctx, p, a.Branches[0])
		p.called = outer
		w.env.Return(back)
		return more
	case scenarios.ActConnect:
		return w.reopen(ctx, p)
	case scenarios.ActDisconnect:
		w.disconnect(ctx, p)
	}
	return true
}

// reopen makes sure of a session: the one before may have been lost to another
// request on it, or closed. What comes next goes to the new one.
func (w *worker) reopen(ctx context.Context, p *pass) bool {
	if w.once != nil || !w.moved && p.live != nil || w.slot.Live() == p.live && p.live != nil {
		return true
	}
	w.record()
	w.leaveCurrent(ctx)
	live, ok := w.enter(ctx)
	if ok {
		w.on = live
	}
	switch {
	case !ok && p.outcome != metrics.IterCompleted && w.slot.Ended():
		return false // it failed, and there is nothing to go on with
	case !ok && timeIsOver(ctx):
		return p.runOut(nowhere)
	case !ok:
		return p.interrupt()
	}
	if live != p.live {
		p.live, p.rows = live, live.Session.skipped
		w.env.Protocol = string(live.Session.version)
	}
	return true
}

func (p *pass) interrupt() bool {
	p.outcome, p.failed = metrics.IterInterrupted, metrics.NoStep
	return false
}

// judge takes the outcome of a step, and reports whether the next one may begin.
func (w *worker) judge(p *pass, a *scenarios.Action, o metrics.Outcome) bool {
	outcome := metrics.IterFailed
	switch {
	case o == metrics.Interrupted:
		return p.interrupt()
	case o == metrics.ScriptError:
		outcome = metrics.IterScriptError
	case o.Failed(), o == metrics.ClientError:
	default:
		return true
	}
	if p.outcome == metrics.IterCompleted {
		p.outcome, p.failed = outcome, p.first+uint16(max(a.Row, 0)) //nolint:gosec // NewPlan bounds the steps
	}
	fallback := w.g.plan.OnError
	if w.once != nil {
		fallback = scenarios.NextIteration // what a session has once ends with the first failure
	}
	switch a.OnError.Or(p.called).Or(a.FlowOnError).Or(fallback) {
	case scenarios.Continue:
		return true
	case scenarios.EndSession:
		p.endSession = true
	case scenarios.NextIteration:
	}
	return false
}

// broken records that an expression of a control step failed; nothing was sent.
func (w *worker) broken(ctx context.Context, p *pass, a *scenarios.Action, err error) bool {
	if !w.reopen(ctx, p) {
		return false
	}
	w.record()
	if a.Row < 0 { // nothing in this part makes rows
		p.outcome = metrics.IterScriptError
		w.failure = own(err)
		return false
	}
	return w.judge(p, a, w.scriptError(p.live.Session, p.first+uint16(a.Row), err)) //nolint:gosec // NewPlan bounds the steps
}

// think pauses. In an open load the next step is intended for the end of the pause.
func (w *worker) think(ctx context.Context, p *pass, a *scenarios.Action) bool {
	d := a.Think(&w.env)
	w.record()
	w.evaluated = true
	if w.arrival.intended != metrics.NoOffset {
		if w.moved {
			w.prev += d
		} else {
			w.arrival.intended += d
			w.arrival.released += d
		}
	}
	if !sleep(ctx, d) {
		return p.stopped(ctx, a)
	}
	return true
}

func (w *worker) repeat(ctx context.Context, p *pass, a *scenarios.Action) bool {
	var loop scenarios.Loop
	for {
		more, err := a.Again(&w.env, &loop)
		switch {
		case err != nil:
			return w.broken(ctx, p, a, err)
		case !more:
			return true
		case ctx.Err() != nil:
			a.Stop(&w.env, &loop)
			return p.stopped(ctx, a)
		}
		if !w.do(ctx, p, a.Branches[0]) {
			a.Stop(&w.env, &loop)
			return false
		}
	}
}

// beside performs all steps of a parallel at the same time, each by a worker of
// its own on the same session, and goes on when all have ended.
func (w *worker) beside(ctx context.Context, p *pass, a *scenarios.Action) bool {
	if !w.reopen(ctx, p) {
		return false
	}
	w.record()
	w.evaluated = true
	actions := a.Branches[0]
	if w.others == nil {
		w.others = map[*scenarios.Action][]*worker{}
	}
	others := w.others[a]
	if others == nil {
		for range actions {
			others = append(others, w.assistant())
		}
		w.others[a] = others
	}
	passes, more := make([]pass, len(actions)), make([]bool, len(actions))
	var all sync.WaitGroup
	for i, o := range others {
		passes[i] = *p
		passes[i].outcome = metrics.IterCompleted
		o.follow(w)
		all.Go(func() {
			more[i] = o.act(ctx, &passes[i], actions[i])
			o.leaveCurrent(ctx)
		})
	}
	all.Wait()
	goOn := w.join(p, others, passes)
	return goOn && !slices.Contains(more, false)
}

// assistant is a worker for one step of a parallel.
func (w *worker) assistant() *worker {
	o := &worker{g: w.g, slot: w.slot, did: w.did, giveUp: w.giveUp, endLoad: w.endLoad, chief: w, seat: w.seat}
	if w.once != nil {
		o.once = &once{}
	}
	return o
}

// follow makes the worker go on where its chief is.
func (w *worker) follow(chief *worker) {
	w.arrival, w.prev, w.moved, w.seq = chief.arrival, chief.prev, chief.moved, 0
	w.env.Fork(&chief.env)
	w.failure = ""
}

// join takes over what assistants have done, and reports whether none was interrupted.
func (w *worker) join(p *pass, others []*worker, passes []pass) bool {
	var samples []metrics.Sample
	interrupted := false
	for i, o := range others {
		samples = append(samples, o.last...)
		clear(o.last)
		o.last = o.last[:0]
		w.env.Join(&o.env)
		w.prev = max(w.prev, o.prev)
		q := &passes[i]
		w.moved = w.moved || o.moved
		p.endSession = p.endSession || q.endSession
		switch {
		case q.outcome == metrics.IterInterrupted:
			interrupted = true
		case q.outcome != metrics.IterCompleted && p.outcome == metrics.IterCompleted:
			p.outcome, p.failed = q.outcome, q.failed
			w.failure = o.failure
		}
	}
	slices.SortStableFunc(samples, func(a, b metrics.Sample) int { return int(a.End - b.End) })
	for _, s := range samples {
		s.Seq = w.next()
		w.keep(s)
	}
	w.record()
	if i := slices.IndexFunc(samples, func(s metrics.Sample) bool { return s.Outcome != metrics.OK }); w.once != nil && i >= 0 {
		w.once.last = samples[i]
	}
	if interrupted {
		return p.interrupt()
	}
	return true
}

// errDisconnected is the end of a session that a step asked for.
var errDisconnected = fmt.Errorf("a step disconnected it: %w", pool.ErrRenew)

// disconnect closes the session in order.
func (w *worker) disconnect(ctx context.Context, p *pass) {
	if p.live != nil && w.slot.Live() == p.live {
		w.record()
		w.evaluated = true
		w.end(ctx, p.live, "disconnected", errDisconnected)
	}
	p.live, w.moved = nil, true
}

// end closes a session in order and records it.
func (w *worker) end(ctx context.Context, live *pool.Live[*session], reason string, cause error) {
	w.g.finish(ctx, live.Session, w.slot.Index())
	if w.slot.Discard(ctx, live, cause) {
		w.g.endSession(live.Session, reason, nil)
		close(live.Session.life.gone)
	}
}
