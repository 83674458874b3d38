package mcp

import (
	"context"
	"errors"
	"sync"
	"time"
)

// router sends requests and gives each its answer where answers come in any order
// on one stream: a pipe, or the event stream of HTTP+SSE. Callers wait on channels
// of their own; one goroutine, the Conn's, reads and hands each message to line.
type router struct {
	o       Options
	env     *envelope
	inbox   *inbox
	carrier carrier
	noise   Anomaly       // what input that is no message counts as
	down    chan struct{} // closed when dead is set

	mu     sync.Mutex    // guards the fields below, and those of calls in the table
	dead   error         // why nothing can be carried any more
	deadAt time.Duration // when that happened
	calls  callTable
	free   []*call
	// batches are those under way, oldest first.
	batches []*batch

	givenUp *givenUp
	tokens  *tokens

	// Of the router of one batch over Streamable HTTP: the batch, and a number for its stream.
	own    *batch
	stream int64
}

// carrier takes messages to the server.
type carrier interface {
	// send sends the line of k, or hands it over to be sent. limit bounds what it
	// waits for, 0 is none.
	send(ctx context.Context, k *call, limit time.Duration) error
	// unsend takes back what was handed over and not sent yet; false when there is
	// nothing to take. The caller holds router.mu.
	unsend(k *call) bool
	// cancel tells the server that a request is given up. It does not wait.
	cancel(id int64, reason string)
}

// newRouter returns a router that lacks its inbox and its carrier.
func newRouter(o *Options, env *envelope, noise Anomaly) router {
	return router{
		o: *o, env: env, noise: noise, down: make(chan struct{}),
		givenUp: new(givenUp), tokens: &tokens{o: o, env: env},
	}
}

// SetVersion implements Conn.
func (c *router) SetVersion(v Version) { c.env.setVersion(v) }

// RoundTrip implements Conn.
func (c *router) RoundTrip(ctx context.Context, req Request) (Reply, error) {
	return c.roundTrip(ctx, req, nil)
}

// roundTrip is RoundTrip for a session that may end before the connection, when gone
// is closed; nil is never.
func (c *router) roundTrip(ctx context.Context, req Request, gone <-chan struct{}) (Reply, error) {
	began := c.o.now()
	if ctx.Err() != nil {
		return Reply{Rounds: 1, Timing: Timing{Start: began, FirstByte: began, End: began}}, gaveUp(ctx)
	}
	k := c.begin(&req)
	k.gone = gone
	err := c.follow(k, &req)
	if err == nil {
		k.line, err = c.env.current().appendRequest(k.line[:0], k.id, &req)
	}
	if err == nil {
		k.reply.BytesOut = len(k.line)
		err = c.carrier.send(ctx, k, req.Timeout)
	}
	return c.outcome(ctx, k, &req, began, err)
}

// outcome waits for the answer to a request that was handed over, unless that failed
// with err, and returns what became of it; k is over then. began is when its caller came.
func (c *router) outcome(ctx context.Context, k *call, req *Request, began time.Duration, err error) (Reply, error) {
	if err == nil {
		err = c.await(ctx, k, req.Timeout)
	}
	switch {
	case err == nil && k.late(req.Timeout):
		// The answer came after the limit, and before anybody was there to see it.
		k.reply.Result, k.reply.ToolError = nil, false
		k.err, k.end = &TimeoutError{Limit: TimeoutTotal}, k.sent+req.Timeout
	case err != nil && !c.giveUp(ctx, k, req.Method, err):
		k.err, k.end = err, c.endOf(err)
	}
	reply, err := k.finish(began)
	if k.track != nil {
		err = c.conclude(k, &reply, err)
	}
	c.recycle(k)
	return reply, err
}

// await waits for the answer, the end of the connection, of a limit of the request,
// or of ctx.
func (c *router) await(ctx context.Context, k *call, limit time.Duration) error {
	left := limit
	switch {
	case k.track.limits() != nil:
		var err error
		if left, err = c.strike(k, limit); err != nil {
			return err // what took so long was the sending
		}
	case k.posting != nil && k.batch == nil && limit > 0:
		left = max(limit-k.posting.spent, 1) // the limit counts from the send
	}
	expired := k.startTimer(left)
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
			left, err := c.strike(k, limit)
			if err != nil {
				return err
			}
			if left > 0 {
				k.timer.Reset(left)
			}
		}
	}
}

// strike looks whether the time of k is over, and returns how long it has still
// until the next look, or not more than 0 for no further one.
func (c *router) strike(k *call, limit time.Duration) (left time.Duration, err error) {
	if b := k.track.limits(); b != nil {
		next, over := b.strike(c.o.now())
		if over != nil {
			return 0, b.fault()
		}
		if next == 0 {
			return 0, nil
		}
		return max(1, next-c.o.now()), nil
	}
	// The limit counts from the send.
	left = c.sent(k, limit) + limit - c.o.now()
	if left <= 0 {
		return 0, &TimeoutError{Limit: TimeoutTotal}
	}
	return left, nil
}

// sent returns when k was sent, and if it was not, so long ago that its limit is over.
func (c *router) sent(k *call, limit time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return or(k.sent, c.o.now()-limit)
}

// giveUp forgets a request that nobody waits for any more because of err, and
// cancels it, unless it was never written, was refused, or nothing can be written.
// initialize must not be cancelled (specification, basic/utilities/cancellation),
// and whoever does not answer server/discover may be about to be sent initialize,
// before which nothing else is due. It reports whether the answer came at this
// very moment.
func (c *router) giveUp(ctx context.Context, k *call, method string, err error) (answered bool) {
	answered, cancel := c.abandon(k)
	if answered || !cancel || method == "initialize" || method == "server/discover" || k.track.told() || errors.Is(context.Cause(ctx), errServerEnded) {
		return answered
	}
	_, late := errors.AsType[*TimeoutError](err)
	switch {
	case ctx.Err() != nil:
		c.carrier.cancel(k.id, "the client gave up")
	case late:
		c.carrier.cancel(k.id, "timeout")
	case errors.Is(err, errClosed): // the session alone, not the connection
		c.carrier.cancel(k.id, "the session ended")
	}
	return false
}

// abandon takes a call from the table, so that its answer, if one comes still,
// counts as late. cancel tells that the server has it and can be told.
func (c *router) abandon(k *call) (answered, cancel bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.remove(k) {
		return true, false
	}
	if k.batch != nil {
		k.batch.gaveUp = true
		c.givenUp.add(k.id) // the others may be sent still, and it with them
		return false, k.sent >= 0 && c.dead == nil
	}
	if c.carrier.unsend(k) || k.sent < 0 || c.dead != nil {
		return false, false
	}
	c.givenUp.add(k.id)
	return false, true
}

// fail makes err the end of the connection, unless it has ended already.
func (c *router) fail(err error) { c.failAt(c.o.now(), err) }

// failAt is fail for what happened a while ago.
func (c *router) failAt(at time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead == nil {
		c.dead, c.deadAt = err, at
		close(c.down)
		c.inbox.desk.stop(err)
		c.o.post.end(err)
	}
}

// endOf returns when a request ended that failed with err: the connection's own
// end, when that is the reason.
func (c *router) endOf(err error) time.Duration {
	select {
	case <-c.down:
		if err == c.dead { //nolint:errorlint // the very error that fail was given
			return c.deadAt
		}
	default:
	}
	return c.o.now()
}

func (c *router) isOver() bool {
	select {
	case <-c.down:
		return true
	default:
		return false
	}
}
