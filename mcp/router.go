package mcp

import (
	"context"
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

	givenUp givenUp
	tokens  tokens
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
		tokens: tokens{o: o, env: env},
	}
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
