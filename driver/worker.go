package driver

import (
	"context"
	"errors"
	"time"

	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/pool"
	"mcpbench/scenarios"
)

// worker replays iterations on one slot, one at a time. With several requests
// in flight a slot has several workers.
type worker struct {
	g    *group
	slot *pool.Slot[*session]
	did  *tally
	env  scenarios.Env
	once *once  // it performs what a session has once; nil for iterations
	buf  []byte // params of the request being sent
	// result is the memory of the last result, for the next one.
	result []byte

	// chief is the worker that this one performs a step of a parallel for; nil
	// for one of its own.
	chief  *worker
	others map[*scenarios.Action][]*worker // for each parallel, one for each of its steps

	// of the iteration being replayed
	arrival arrival
	prev    time.Duration // end of the step before; open load
	seq     uint16
	// moved tells that a request of the iteration has ended: what comes next is
	// not released by the pacer any more.
	moved   bool
	pass    pass
	page    int                 // of the listing
	made    scenarios.Generated // of a step that makes its arguments
	failure string              // masked: why a part of a flow failed that makes no rows

	evaluated bool // checks or expressions took time
	// last holds the sample of the last request, if any: it is recorded before
	// the next request, or together with the iteration.
	last []metrics.Sample

	now time.Duration // when it began, and when it has ended

	giveUp context.CancelCauseFunc // ends the group's load, see group.dialFailed
	// endLoad ends it in order, as the end of its schedule does.
	endLoad context.CancelCauseFunc
	badRow  error // of the iteration: a row that cannot be read

	seat   *seat
	waiter *waiter              // open load
	on     *pool.Live[*session] // that an iteration runs on, see life
}

func newWorker(g *group, slot *pool.Slot[*session], did *tally, giveUp context.CancelCauseFunc) *worker {
	w := &worker{g: g, slot: slot, did: did, giveUp: giveUp, seat: &g.seats[slot.Index()], waiter: newWaiter()}
	w.env.Seed = g.runner.plan.Seed
	w.env.Group = int(g.index)
	w.env.Session = slot.Index()
	return w
}

// loop is a closed load: the next iteration starts when the one before has
// ended and the think time is over. usedUp is called when it ends because all
// iterations have begun, and ends dial, in which other workers may still be
// opening a session that is not needed any more.
func (w *worker) loop(work, soft, dial context.Context, usedUp func()) {
	defer func() {
		if w.g.usedUp() {
			usedUp()
		}
	}()
	var last *pool.Live[*session]
	for w.sit(work, dial) && soft.Err() == nil && !w.g.usedUp() {
		live, ok := w.enter(dial)
		if !ok {
			return
		}
		if live != last || !w.g.plan.Think.IsZero() {
			w.now = w.g.runner.now() // else it is the end of the iteration before
			last = live
		}
		index, ok := w.g.take(w.seat, w.now)
		if !ok || !w.feed(work, index) {
			w.leave(work, live, true)
			return
		}
		if w.g.plan.Feeds != nil {
			w.afterFeed()
		}
		w.iterate(work, arrival{index: index, intended: metrics.NoOffset, released: metrics.NoOffset}, live)
		pause := w.g.plan.ThinkTime(&w.env)
		if w.seq == 0 {
			pause = max(pause, idlePause)
		}
		if !w.pause(soft, dial, pause) {
			return
		}
	}
}

// afterFeed makes the iteration begin when its rows are there, unless it was counted
// in the phase before.
func (w *worker) afterFeed() {
	r := w.g.runner
	if now := r.now(); r.phase(now) == r.phase(w.now) {
		w.now = now
	}
}

// pause waits for d between two iterations, or until soft ends: then it returns
// false. When the session is to end meanwhile, it does, and another takes its place.
func (w *worker) pause(soft, dial context.Context, d time.Duration) bool {
	if d <= 0 {
		return soft.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		var over <-chan struct{}
		if live := w.slot.Live(); live != nil {
			over = live.Session.life.over
		}
		select {
		case <-t.C:
			return true
		case <-soft.Done():
			return false
		case <-over:
			if !w.replace(dial) {
				return soft.Err() == nil
			}
		}
	}
}

// replace ends the slot's session, which is due, and opens another unless the
// place is to have none. It returns false when there is none.
func (w *worker) replace(ctx context.Context) bool {
	if live := w.slot.Live(); live != nil && !w.seat.isOn() {
		w.leave(ctx, live, false)
		return false
	}
	_, ok := w.session(ctx)
	return ok
}

// idlePause is the least time between two iterations of a session that made no
// request: conditions left out every step, and without a pause the worker would
// do nothing but look at them again.
const idlePause = 10 * time.Millisecond

// serveArrivals is an open load: it takes arrivals while it has a session.
// ready is called once, when it waits for the first or cannot yet.
func (w *worker) serveArrivals(work, feed context.Context, ready func()) {
	defer ready()
	if w.slot.Live() == nil {
		ready() // the dial may take long, and the load does not wait for it
	}
	for work.Err() == nil { // what waits then is the pacer's to record
		live, ok := w.session(feed)
		if !ok {
			return
		}
		a, how := w.g.queue.take(w.waiter, ready, live.Session.life.over)
		switch how {
		case tookNone:
			return
		case tookLeave:
			continue // another session takes the place of this one
		case tookOne:
		}
		// The session may have been lost while we waited, which can be long.
		live, ok = w.enter(work)
		if !ok {
			w.unservable(work, a)
			return
		}
		if !w.feed(work, a.index) {
			w.g.neverStarted(a, metrics.IterInterrupted)
			w.leave(work, live, true)
			continue
		}
		w.now = w.g.runner.now()
		w.iterate(work, a, live)
	}
}

// feed takes the rows of an iteration. When there are none left the group's load
// ends, and it reports false.
func (w *worker) feed(ctx context.Context, index uint64) bool {
	if w.g.plan.Feeds == nil {
		return true
	}
	w.badRow = w.g.plan.Feeds.Fill(ctx, &w.env, index)
	if errors.Is(w.badRow, scenarios.ErrDataEnd) || w.badRow != nil && ctx.Err() != nil {
		w.endLoad(errScheduleEnd)
		return false
	}
	return true
}

// session returns the slot's session, dialled if need be, again and again with
// the slot's waits in between, until ctx or the slot ends: then ok is false. One
// that is to end does so first.
func (w *worker) session(ctx context.Context) (live *pool.Live[*session], ok bool) {
	for {
		live, err := w.slot.Session(ctx)
		switch {
		case err == nil && ended(live.Session): // it died while nothing was asked of it
			w.lose(ctx, live, errDiedIdle)
		case err == nil && live.Session.life.due.Load():
			w.leave(ctx, live, false)
			select {
			case <-live.Session.life.gone:
			case <-ctx.Done():
				return nil, false
			}
		case err == nil:
			return live, true
		case ctx.Err() != nil || errors.Is(err, pool.ErrSlotEnded):
			return nil, false
		default:
			w.g.dialFailed(w.giveUp)
		}
	}
}

// enter is session for an iteration that begins on it; leave ends that.
func (w *worker) enter(ctx context.Context) (live *pool.Live[*session], ok bool) {
	for {
		if live, ok = w.session(ctx); !ok || live.Session.life.enter() {
			return live, ok
		}
	}
}

// errDiedIdle is the loss of a session that no request was there to see.
var errDiedIdle = errors.New("the session ended while it was idle")

// ended reports whether a session is known to be of no more use.
func ended(s *session) bool {
	e, ok := s.Session.(interface{ Ended() bool })
	return ok && e.Ended()
}

// iterate replays the flow once and records the iteration. The worker has entered
// the session, and leaves the one that it is on at the end.
func (w *worker) iterate(ctx context.Context, a arrival, live *pool.Live[*session]) {
	g, r := w.g, w.g.runner
	w.did.started.Add(1)
	w.arrival, w.seq, w.evaluated, w.moved, w.on = a, 0, false, false, live
	out := metrics.Sample{
		Kind: metrics.KindIteration, Group: g.index, Session: live.Session.number, Proto: live.Session.proto,
		Iteration: a.index, Intended: a.intended, Release: a.released, Start: w.now,
	}
	p := w.replay(ctx, live)
	outcome := p.outcome
	out.Step = p.failed
	switch {
	case p.live == nil: // disconnected
	case w.slot.Done(p.live):
		p.live.Session.life.order("renewed")
	case p.endSession:
		p.live.Session.life.order("on_error")
	}
	out.Outcome = metrics.Outcome(outcome)
	out.Seq = w.seq
	w.now = w.prev // nothing was done since the last answer but recording it
	if outcome != metrics.IterCompleted || w.evaluated || w.seq == 0 {
		w.now = r.now()
	}
	out.End = w.now
	out.FirstByte = out.End
	out.Phase = r.phase(phaseAt(&out))
	if outcome != metrics.IterInterrupted {
		w.did.completed.Add(1)
	}
	w.last = append(w.last, out)
	w.record()
	if r.warm.warming() {
		r.warm.iterated()
	}
	w.leaveCurrent(ctx)
}

// leaveCurrent leaves the session that the worker is on, if any.
func (w *worker) leaveCurrent(ctx context.Context) {
	if live := w.on; live != nil {
		w.on = nil
		w.leave(ctx, live, true)
	}
}

// keep puts a sample of a request among those that are ready.
func (w *worker) keep(s metrics.Sample) {
	if w.once != nil && w.chief == nil {
		w.once.last = s
		w.g.runner.recordSinceBase(s)
		return
	}
	w.last = append(w.last, s)
}

// record hands over the samples that are ready.
func (w *worker) record() {
	if len(w.last) > 0 && w.chief == nil { // the chief records when all have ended
		w.g.runner.collector.RecordAll(w.last)
		clear(w.last) // what they point to
		w.last = w.last[:0]
	}
}

// replay performs the flow and returns how it went.
func (w *worker) replay(ctx context.Context, live *pool.Live[*session]) *pass {
	w.env.Iteration = w.arrival.index
	w.env.Protocol = string(live.Session.version)
	w.env.Tools = w.g.tools.Load()
	w.env.Begin(live.Session.saved)
	w.pass = pass{
		live: live, rows: live.Session.skipped, first: w.g.plan.FirstStep,
		outcome: metrics.IterCompleted, failed: metrics.NoStep,
	}
	if w.badRow != nil {
		w.pass.failed, w.pass.outcome = w.pass.first, metrics.IterScriptError
		w.scriptError(live.Session, w.pass.first, w.badRow)
		return &w.pass
	}
	if limit := w.g.plan.IterTimeout; limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit, errIterationTime)
		defer cancel()
		w.do(limited, &w.pass, w.g.plan.Do)
		return &w.pass
	}
	w.do(ctx, &w.pass, w.g.plan.Do)
	return &w.pass
}

// timeIsOver reports whether ctx ended because the iteration has used up its time.
func timeIsOver(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), errIterationTime)
}

// step performs one step and records each of its requests: one, or one for
// each page of a listing. It returns the first outcome that is not ok.
func (w *worker) step(ctx context.Context, live *pool.Live[*session], step *scenarios.Step, id uint16) metrics.Outcome {
	w.record()
	w.page = 0
	if limit := w.g.plan.StepTimeout; limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit, errStepTime)
		defer cancel()
		ctx = limited
	}
	params, err := w.params(step)
	if err != nil {
		return w.scriptError(live.Session, id, err)
	}
	w.buf = params
	req := mcp.Request{
		Method: step.Method, Params: params, Name: step.RequestName, Timeout: step.Timeout,
		ResultBuf: w.result[:0], // what is needed of the last one was taken
	}
	if req.Timeout == 0 {
		req.Timeout = w.g.plan.RequestTimeout
	}
	if step.Kind != scenarios.StepRequest {
		return w.listen(ctx, live, step, id, req)
	}
	if step.Progress || step.LogLevel != "" || step.Cancels() {
		req.Wants = &mcp.Wants{
			Progress: step.Progress, IdleTimeout: step.IdleTimeout, LogLevel: step.LogLevel, CancelAfter: step.CancelAfter(&w.env),
		}
	}
	call := counted{live.Session, &w.did.inFlight}
	if !step.AllPages {
		reply, err := call.Call(ctx, req)
		return w.finish(ctx, live, step, id, req.Timeout, reply, err)
	}
	outcome := metrics.OK
	for reply, err := range mcp.Pages(ctx, call, req) {
		o := w.finish(ctx, live, step, id, req.Timeout, reply, err)
		w.record() // the next page may take long
		w.page++
		if o != metrics.OK {
			outcome = o
			break
		}
	}
	return outcome
}

// params makes the params of a step's request.
func (w *worker) params(step *scenarios.Step) ([]byte, error) {
	if !step.Generates() {
		w.made = scenarios.Generated{}
		return step.Render(w.buf[:0], &w.env)
	}
	params, made, err := step.Generate(w.buf[:0], &w.env)
	w.made = made
	return params, err
}

// keepResult bounds the memory that a worker keeps between results: many
// sessions wait idly, each with its own.
const keepResult = 64 << 10

// finish classifies one exchange, evaluates the checks, records the sample and
// gives up a session that is lost.
func (w *worker) finish(
	ctx context.Context, live *pool.Live[*session], step *scenarios.Step, id uint16,
	timeout time.Duration, reply mcp.Reply, err error,
) metrics.Outcome {
	if cap(reply.Result) > cap(w.result) && cap(reply.Result) <= keepResult {
		w.result = reply.Result
	}
	s := w.sample(live.Session, id)
	w.place(&s, reply.Timing)
	s.BytesOut, s.BytesIn = uint32(reply.BytesOut), uint32(reply.BytesIn)            //nolint:gosec // messages are limited well below 4 GiB
	s.HTTPStatus, s.Rounds = uint16(reply.HTTPStatus), uint8(min(reply.Rounds, 255)) //nolint:gosec // three digits
	s.Notifications, s.Progress = clampCount(reply.Notifications), clampCount(reply.Progress)
	s.Outcome, s.Code = Classify(ctx, reply, err)
	if s.Outcome == metrics.Timeout && s.End > s.Start+timeout {
		s.End = s.Start + timeout // a timeout counts at its limit
		s.FirstByte = min(s.FirstByte, s.End)
	}
	switch {
	case s.Outcome == metrics.Cancelled: // on purpose; there is nothing to say
	case err != nil:
		s.Extra = &metrics.Extra{Message: message(err)}
	case reply.ToolError:
		s.Extra = &metrics.Extra{Message: toolMessage(reply.Result)}
	}
	if reply.Timing.Connect > 0 {
		s.HasConnect = true
		if s.Extra == nil {
			s.Extra = &metrics.Extra{}
		}
		s.Extra.Connect = reply.Timing.Connect
	}
	if reply.More != nil || s.Outcome == metrics.Cancelled {
		addMore(&s, reply, err)
	}
	if err == nil {
		addHints(&s, live.Session.version, step.Method, reply.Result)
	}
	if step.Generates() {
		w.judgeMade(&s)
	}
	if step.Expects() {
		w.expect(&s, step, reply)
	}
	w.check(&s, step, reply)
	if warm := &w.g.runner.warm; warm.warming() && s.Outcome == metrics.OK {
		warm.timed(s.Latency())
	}
	w.prev, w.moved = s.End, true
	w.keep(s)
	if mcp.SessionLost(err) && w.once == nil {
		w.lose(ctx, live, err)
	}
	return s.Outcome
}
