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
	if b := t.limits(); b != nil {
		b.begin(now)
	}
}

// limits returns the bounds of the request, nil when Request.Timeout is all.
func (t *tracker) limits() *bounds {
	if t == nil {
		return nil
	}
	return t.bounds
}

// told reports whether the server was told that the request is cancelled on purpose.
func (t *tracker) told() bool { return t.limits().cancelled() }

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
	if err := x.rules.checkMethod(x.req.Method); err != nil {
		return err
	}
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
	if x.conn.tokens.take(m, size, x.id, x.conn.o.now()) == nil {
		x.reply.Notifications++
		return
	}
	x.reply.BytesIn -= size // counted there
}

// mindsTheRest reports whether what follows the answer on its stream matters to
// anybody: to a request with a token, and to who watches. What comes with a
// subscription ends with it.
func (x *exchange) mindsTheRest() bool {
	return x.track != nil && x.track.key != "" || x.conn.o.post.watches() && x.req.listening() == nil
}

// afterwards reads what follows the answer, for a while: progress that comes too
// late, and what some servers send beside the answer rather than before it.
func (x *exchange) afterwards(resp response, events *sse.Reader) {
	c := x.conn
	if c.drainMisses.Load() >= maxDrainMisses || resp.hurry(drainLimit) != nil {
		return
	}
	for left := drainBytes; left > 0; {
		ev, err := events.Next()
		if err != nil {
			return
		}
		left -= len(ev.Data)
		m, err := decodeMessage(ev.Data)
		if err != nil {
			continue
		}
		switch m.kind() {
		case kindRequest:
			c.inbox.request(&m)
		case kindNotification:
			if c.inbox.notification(&m) {
				c.tokens.take(&m, 0, x.id, c.o.now())
			}
			c.o.post.deliver(&m, ev.Data, nil)
		case kindOther, kindResponse:
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
