package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lastWords is how long we wait for what usually goes with a broken pipe: the
	// exit of the process, the end of its output.
	lastWords = time.Second
	// maxGivenUp is of how many requests given up a late answer is still known as one.
	maxGivenUp = 1024
	// maxReplies is how many answers to server requests may wait to be written.
	maxReplies = 64
	// defaultGrace is how long a stdio server has for each step of its shutdown.
	defaultGrace = 2 * time.Second
)

// pipeConn speaks JSON-RPC in lines over a pair of pipes (specification,
// basic/transports, stdio). One goroutine reads, one writes; callers wait on
// channels of their own, so that a server which stops reading its stdin holds up
// nobody past the time limit.
type pipeConn struct {
	o     Options
	env   *envelope
	inbox inbox
	r     io.ReadCloser
	w     io.WriteCloser
	proc  *process // nil without one
	grace time.Duration

	out     chan *outgoing
	replies chan []byte
	closing chan struct{} // closed by Close
	ended   chan struct{} // closed when the reader has ended
	down    chan struct{} // closed when dead is set

	mu      sync.Mutex    // guards the fields below
	dead    error         // why nothing can be carried any more
	deadAt  time.Duration // when that happened
	pending map[int64]*call
	givenUp map[int64]struct{}
	tokens  map[string]*call // progress tokens of pending calls, as JSON text

	loops      sync.WaitGroup
	closeOnce  sync.Once
	closeError error
}

// outgoing is one line to write.
type outgoing struct {
	line    []byte // without its line feed
	call    *call  // nil for a notification
	written chan error
}

// States of call.state.
const (
	callQueued int32 = iota
	callSent
	callDropped // given up before it was written: it never will be
)

// call is a request in flight.
type call struct {
	state atomic.Int32
	sent  mark
	done  chan answered
	token string

	// Guarded by pipeConn.mu.
	notifications, progress, bytesIn int
}

// answered is what the reader made of an answer.
type answered struct {
	result     json.RawMessage
	err        error
	first, end time.Duration
	bytes      int
}

// NewPipe returns a Conn that reads JSON-RPC lines from r and writes them to w: a
// stdio server without a process, for instance one in the same program. Close
// closes both.
func NewPipe(r io.ReadCloser, w io.WriteCloser, o Options) Conn {
	return startPipe(r, w, nil, o.withDefaults())
}

func startPipe(r io.ReadCloser, w io.WriteCloser, p *process, o Options) *pipeConn {
	c := &pipeConn{
		o: o, env: newEnvelope(&o), r: r, w: w, proc: p, grace: defaultGrace,
		out: make(chan *outgoing), replies: make(chan []byte, maxReplies),
		closing: make(chan struct{}), ended: make(chan struct{}), down: make(chan struct{}),
		pending: make(map[int64]*call), givenUp: make(map[int64]struct{}), tokens: make(map[string]*call),
	}
	c.inbox = inbox{env: c.env, tell: o.OnAnomaly, reply: c.replyToServer}
	c.loops.Go(c.write)
	c.loops.Go(c.read)
	return c
}

// SetVersion implements Conn.
func (c *pipeConn) SetVersion(v Version) { c.env.setVersion(v) }

func (c *pipeConn) describe(i *Info) {
	if c.proc != nil {
		i.Spawn = c.proc.spawn
	}
}

// RoundTrip implements Conn.
func (c *pipeConn) RoundTrip(ctx context.Context, req Request) (Reply, error) {
	reply := Reply{Rounds: 1}
	began := c.o.now()
	reply.Timing = Timing{Start: began, FirstByte: began, End: began}
	if ctx.Err() != nil {
		return reply, gaveUp(ctx)
	}
	id := c.env.nextID()
	line, err := c.env.current().appendRequest(lineBuffer(), id, &req)
	if err != nil {
		return reply, err
	}
	reply.BytesOut = len(line)
	k := &call{done: make(chan answered, 1), token: progressToken(req.Params)}
	c.add(id, k)
	a, err := c.await(ctx, &outgoing{line: oneLine(line), call: k}, req.Timeout)
	if err != nil {
		a = answered{err: err, end: c.endOf(err)}
		c.giveUp(ctx, id, k, req.Method)
	}
	c.settle(id, k, &reply)
	reply.Result = a.result
	reply.BytesIn += a.bytes
	t := &reply.Timing
	t.Start = max(began, k.sent.or(began))
	t.End = max(a.end, t.Start)
	t.FirstByte = t.End
	if a.bytes > 0 {
		t.FirstByte = min(max(a.first, t.Start), t.End)
	}
	return reply, a.err
}

// await hands the line to the writer and waits for the answer, the end of the
// connection, of the time limit, or of ctx.
func (c *pipeConn) await(ctx context.Context, m *outgoing, limit time.Duration) (answered, error) {
	var expired <-chan time.Time
	var timer *time.Timer
	if limit > 0 {
		timer = time.NewTimer(limit)
		defer timer.Stop()
		expired = timer.C
	}
	out := c.out
	for {
		select {
		case out <- m:
			out = nil
		case a := <-m.call.done:
			return a, nil
		case <-c.down:
			return m.call.orElse(c.dead)
		case <-ctx.Done():
			return m.call.orElse(gaveUp(ctx))
		case <-expired:
			// The limit counts from the send.
			now := c.o.now()
			left := m.call.sent.or(now-limit) + limit - now
			if left <= 0 {
				return m.call.orElse(&TimeoutError{Limit: TimeoutTotal})
			}
			timer.Reset(left)
		}
	}
}

// orElse returns the answer if it came just before err did.
func (k *call) orElse(err error) (answered, error) {
	select {
	case a := <-k.done:
		return a, nil
	default:
		return answered{}, err
	}
}

// giveUp forgets a request that nobody waits for any more and cancels it, unless
// it was never written or nothing can be written. initialize must not be
// cancelled (specification, basic/utilities/cancellation).
func (c *pipeConn) giveUp(ctx context.Context, id int64, k *call, method string) {
	unsent := k.state.CompareAndSwap(callQueued, callDropped)
	if !c.abandon(id, k, unsent) || unsent || method == "initialize" {
		return
	}
	reason := "timeout"
	if ctx.Err() != nil {
		reason = "the client gave up"
	}
	line := appendNotification(lineBuffer(), "notifications/cancelled", cancelParams(id, reason))
	c.queue(line, func() { c.o.OnAnomaly(AnomalyCancelFailed, "too many lines wait for the server to read") })
}

// abandon takes a call from the pending ones, so that its answer, if one comes
// still, counts as late. It reports whether the connection is alive.
func (c *pipeConn) abandon(id int64, k *call, unsent bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
	if c.dead != nil {
		return false
	}
	if unsent || len(k.done) > 0 {
		return true // no answer will come, or came at this very moment
	}
	if len(c.givenUp) >= maxGivenUp {
		for old := range c.givenUp {
			delete(c.givenUp, old)
			break
		}
	}
	c.givenUp[id] = struct{}{}
	return true
}

// queue has a line written without waiting for it; dropped is called when the
// server reads so little that too many lines wait already.
func (c *pipeConn) queue(line []byte, dropped func()) {
	select {
	case c.replies <- line:
	default:
		dropped()
	}
}

func (c *pipeConn) replyToServer(payload []byte) {
	c.queue(payload, func() { c.o.OnAnomaly(AnomalyReplyDropped, excerpt(payload)) })
}

// Notify implements Conn. It returns when the line is written.
func (c *pipeConn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	line := oneLine(appendNotification(lineBuffer(), method, params))
	m := &outgoing{line: line, written: make(chan error, 1)}
	out := c.out
	for {
		var err error
		select {
		case out <- m:
			out = nil
			continue
		case err = <-m.written:
		case <-c.down:
			err = c.dead
		case <-ctx.Done():
			err = gaveUp(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		return nil
	}
}

// add registers a call before it can possibly be answered.
func (c *pipeConn) add(id int64, k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[id] = k
	if k.token != "" {
		c.tokens[k.token] = k
	}
}

// settle forgets a call and takes over what was counted for it.
func (c *pipeConn) settle(id int64, k *call, reply *Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
	if c.tokens[k.token] == k {
		delete(c.tokens, k.token)
	}
	reply.Notifications, reply.Progress, reply.BytesIn = k.notifications, k.progress, k.bytesIn
}

// fail makes err the end of the connection, unless it has ended already.
func (c *pipeConn) fail(err error) { c.failAt(c.o.now(), err) }

// failAt is fail for what happened a while ago.
func (c *pipeConn) failAt(at time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead == nil {
		c.dead, c.deadAt = err, at
		close(c.down)
	}
}

// endOf returns when a request ended that failed with err: the connection's own
// end, when that is the reason.
func (c *pipeConn) endOf(err error) time.Duration {
	select {
	case <-c.down:
		if err == c.dead { //nolint:errorlint // the very error that fail was given
			return c.deadAt
		}
	default:
	}
	return c.o.now()
}

func (c *pipeConn) isOver() bool {
	select {
	case <-c.down:
		return true
	default:
		return false
	}
}

// write is the writing goroutine.
func (c *pipeConn) write() {
	for {
		m := &outgoing{}
		select {
		case m = <-c.out:
		case m.line = <-c.replies:
		case <-c.closing:
			return
		}
		if m.call != nil {
			m.call.sent.put(c.o.now())
			if !m.call.state.CompareAndSwap(callQueued, callSent) {
				continue
			}
		}
		_, err := c.w.Write(append(m.line, '\n'))
		if m.written != nil {
			m.written <- err
		}
		if err != nil {
			c.brokenPipe(err)
			return
		}
		releaseLine(m.line)
	}
}

// brokenPipe ends the connection after a failed write. The usual reason is that
// the process ended, which the reader is about to report better.
func (c *pipeConn) brokenPipe(err error) {
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-c.down:
	case <-timer.C:
		c.fail(&TransportError{Op: "write", Err: err, lost: true})
	}
}

// Close implements Conn: the server's stdin is closed, and a process that does
// not end by itself is ended. Requests in flight fail.
func (c *pipeConn) Close(ctx context.Context) error {
	c.closeOnce.Do(func() { c.closeError = c.close(ctx) })
	return c.closeError
}

func (c *pipeConn) close(ctx context.Context) error {
	c.fail(closedError())
	close(c.closing)
	// Closing also ends a write that the server does not take. That it may be
	// closed already, by the far side or by a failed write, is no fault.
	err := c.w.Close()
	if errors.Is(err, io.ErrClosedPipe) {
		err = nil
	}
	if c.proc != nil {
		err = errors.Join(err, c.proc.stop(ctx, c))
	} else {
		c.waitEnded(ctx, c.grace)
	}
	if e := c.r.Close(); e != nil && !errors.Is(e, io.ErrClosedPipe) {
		err = errors.Join(err, e)
	}
	c.loops.Wait()
	return err
}

// waitEnded waits for the end of the server's output, at most as long as given.
func (c *pipeConn) waitEnded(ctx context.Context, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-c.ended:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
