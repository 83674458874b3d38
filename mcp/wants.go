package mcp

import (
	"context"
	"errors"
	"time"

	"mcpbench/mcp/sse"
)

// onPurpose is the reason that the server is given for Wants.CancelAfter.
const onPurpose = "the client changed its mind"

// begin says that the message of the request is being written.
func (t *tracker) begin(now time.Duration) {
	if t != nil && t.bounds != nil {
		t.bounds.begin(now)
	}
}

// told reports whether the server was told that the request is cancelled on purpose.
func (t *tracker) told() bool { return t != nil && t.bounds.cancelled() }

// cancelled returns the error of a request that was cancelled on purpose and ended
// with err at end, nil when it was not. sign tells whether the end was the
// server's doing. A server session, or a process, that is lost meanwhile is told as such.
func (t *tracker) cancelled(err error, end time.Duration, sign bool) *CancelledError {
	b := t.bounds
	switch {
	case b == nil || SessionLost(err):
		return nil
	case errors.Is(b.why(), errCancelDue):
		return &CancelledError{Sent: end} // by the end itself
	case !b.cancelled():
		return nil
	}
	e := &CancelledError{Sent: b.end()}
	if sign {
		e.Stopped = max(end, e.Sent)
	}
	return e
}

// prepare makes the message of the request.
func (x *exchange) prepare() (err error) {
	if !plain(&x.req) {
		var tell func()
		if !x.rules.CancelByClose {
			c, id := x.conn, x.id // x may be over when it is called
			tell = func() { c.cancelRequest(id, onPurpose) }
		}
		if x.track, err = x.conn.tokens.follow(&x.req, x.id, tell); err != nil {
			return err
		}
	}
	x.out, err = x.rules.appendRequest(x.out[:0], x.id, &x.req)
	x.reply.BytesOut = len(x.out)
	return err
}

// conclude returns what became of a request that is not plain. After a
// cancellation on purpose every end is one of it, with or without an answer: it is
// too late for the caller.
func (x *exchange) conclude(ctx context.Context, err error) error {
	c := x.conn
	c.tokens.end(x.track)
	if err != nil {
		x.stampEnd()
	}
	_, broken := errors.AsType[*TransportError](err)
	ours := x.track.bounds.why() != nil || broken && (ctx.Err() != nil || c.closing.Load())
	cancelled := x.track.cancelled(err, x.end, !ours)
	switch {
	case cancelled != nil:
		x.reply.Result, x.reply.scanned = nil, false
		if cancelled.Stopped == 0 {
			c.givenUp.add(x.id) // an answer may come still, elsewhere
		}
		err = cancelled
	case err != nil:
		err = x.explain(ctx, err)
	}
	c.tokens.fill(x.track, &x.reply)
	return err
}

// progress credits a notification on our stream to the request whose token it
// bears, which need not be this one.
func (x *exchange) progress(m *message, size int) {
	if x.conn.tokens.take(m, size, x.id) == nil {
		x.reply.Notifications++
		return
	}
	x.reply.BytesIn -= size // counted there
}

// afterwards reads what follows the answer on the stream of a request with a
// token, for a while: progress that comes too late.
func (x *exchange) afterwards(resp response, events *sse.Reader) {
	if x.track.key == "" || x.conn.drainMisses.Load() >= maxDrainMisses || resp.hurry(drainLimit) != nil {
		return
	}
	for left := drainBytes; left > 0; {
		ev, err := events.Next()
		if err != nil {
			return
		}
		left -= len(ev.Data)
		if m, err := decodeMessage(ev.Data); err == nil && m.methodName() == "notifications/progress" {
			x.conn.tokens.take(&m, 0, x.id)
		}
	}
}

// follow prepares a request that is not plain, before its message is made.
func (c *router) follow(k *call, req *Request) (err error) {
	if plain(req) {
		return nil
	}
	id := k.id
	k.track, err = c.tokens.follow(req, id, func() { c.carrier.cancel(id, onPurpose) })
	return err
}

// awaitWithin is await for a request with bounds.
func (c *router) awaitWithin(ctx context.Context, k *call, b *bounds) error {
	now := c.o.now()
	next, _ := b.strike(now)
	expired := k.startTimer(next - now)
	defer k.stopTimer()
	for {
		select {
		case <-k.done:
			k.settled = true
			return nil
		case <-c.down:
			return c.dead
		case <-ctx.Done():
			return gaveUp(ctx)
		case <-k.gone:
			return closedError()
		case <-expired:
			next, over := b.strike(c.o.now())
			if over != nil {
				return b.fault()
			}
			if next > 0 {
				k.timer.Reset(next - c.o.now())
			}
		}
	}
}

// conclude returns what became of a request that is not plain.
func (c *router) conclude(k *call, r *Reply, err error) error {
	c.tokens.end(k.track)
	if cancelled := k.track.cancelled(err, r.Timing.End, k.answered); cancelled != nil {
		r.Result, r.scanned = nil, false
		err = cancelled
	}
	c.tokens.fill(k.track, r)
	return err
}
