package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// lastWords is how long we wait for what usually goes with a broken pipe: the
	// exit of the process, the end of its output.
	lastWords = time.Second
	// maxReplies is how many lines may wait to be written that nobody waits for: pings
	// that come in one go are all answered.
	maxReplies = 1024
	// joinedBytes is about how much is written at once when many lines wait.
	joinedBytes = 64 << 10
	// defaultGrace is how long a stdio server has for each step of its shutdown.
	defaultGrace = 2 * time.Second
)

// pipeConn speaks JSON-RPC in lines over a pair of pipes (specification,
// basic/transports, stdio). One goroutine reads, one writes all lines that wait in
// one go; callers wait on channels of their own, so that a server which stops
// reading its stdin holds up nobody past the time limit.
type pipeConn struct {
	router
	ending
	r     io.ReadCloser
	w     io.WriteCloser
	proc  *process // nil without one
	grace time.Duration

	wake    chan struct{} // has room for one: there is something to write
	closing chan struct{} // closed by Close
	ended   chan struct{} // closed when the reader has ended

	// Guarded by router.mu.
	queue    []*outgoing
	detached int // lines in the queue that nobody waits for

	loops      sync.WaitGroup
	closeOnce  sync.Once
	closeError error
}

// NewPipe returns a Conn that reads JSON-RPC lines from r and writes them to w: a
// stdio server without a process, for instance one in the same program. Close
// closes both.
func NewPipe(r io.ReadCloser, w io.WriteCloser, o Options) Conn {
	return startPipe(r, w, nil, o.withDefaults())
}

func startPipe(r io.ReadCloser, w io.WriteCloser, p *process, o Options) *pipeConn {
	c := &pipeConn{
		router: newRouter(&o, newEnvelope(&o), AnomalyStdoutNoise), r: r, w: w, proc: p, grace: defaultGrace,
		wake: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	c.carrier = c
	in := newInbox(&c.o, c.env, c.replyToServer, c.answerServer)
	c.inbox = &in
	c.loops.Go(c.write)
	c.loops.Go(c.read)
	return c
}

func (c *pipeConn) describe(i *Info) {
	if c.proc != nil {
		i.Spawn = c.proc.spawn
	}
}

// detach has a line written without waiting for it; dropped is called when the
// server reads so little that too many lines wait already.
func (c *pipeConn) detach(line []byte, dropped func()) {
	c.mu.Lock()
	full := c.detached >= maxReplies
	if !full {
		c.detached++
	}
	c.mu.Unlock()
	if full {
		dropped()
		return
	}
	c.enqueue(&outgoing{line: line, detached: true})
}

// Notify implements Conn. It returns when the line is written.
func (c *pipeConn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return c.put(ctx, method, appendNotification(nil, method, params))
}

// put writes a message and waits until it is written.
func (c *pipeConn) put(ctx context.Context, what string, message []byte) error {
	m := &outgoing{line: oneLine(message), written: make(chan error, 1)}
	c.enqueue(m)
	var err error
	select {
	case err = <-m.written:
	case <-c.down:
		err = c.dead
	case <-ctx.Done():
		err = gaveUp(ctx)
	}
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unqueue(m)
	return fmt.Errorf("%s: %w", what, err)
}

// enqueue hands a line to the writer.
func (c *pipeConn) enqueue(m *outgoing) {
	c.mu.Lock()
	c.queue = append(c.queue, m)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // the writer is about to look anyway
	}
}

// unqueue takes a line back that was not written yet; false when there is none.
func (c *pipeConn) unqueue(m *outgoing) bool {
	i := slices.Index(c.queue, m)
	if i < 0 {
		return false
	}
	c.queue = slices.Delete(c.queue, i, i+1)
	return true
}

// write is the writing goroutine.
func (c *pipeConn) write() {
	var batch []byte
	var notes []*outgoing // in the batch, with somebody waiting
	for {
		select {
		case <-c.wake:
		case <-c.closing:
			return
		}
		// Callers that are about to run add their lines to this write.
		runtime.Gosched()
		for {
			batch, notes = c.join(batch[:0], notes[:0])
			if len(batch) == 0 {
				break
			}
			c.showLines(batch)
			_, err := c.w.Write(batch)
			for _, m := range notes {
				m.written <- err
			}
			if err != nil {
				c.brokenPipe(err)
				return
			}
		}
		clear(notes[:cap(notes)])
		if cap(batch) > 2*joinedBytes {
			batch = nil
		}
	}
}

// join appends the lines that wait, at most about joinedBytes, to batch, and
// those of them whose writing is awaited to notes.
func (c *pipeConn) join(batch []byte, notes []*outgoing) ([]byte, []*outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return batch, notes
	}
	now := c.o.now()
	n := 0
	for _, m := range c.queue {
		if len(batch) > 0 && len(batch)+len(m.line) > joinedBytes {
			break
		}
		n++
		batch = append(append(batch, m.line...), '\n')
		switch {
		case m.call != nil:
			m.call.sent = now
			m.call.track.begin(now)
		case m.whole != nil:
			c.began(m.whole, now)
		case m.detached:
			c.detached--
		default:
			notes = append(notes, m)
		}
	}
	c.queue = slices.Delete(c.queue, 0, n)
	return batch, notes
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
	if c.proc != nil && c.how() == EndDrop {
		kill(c.proc.cmd.Process)
	}
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
	c.inbox.desk.wait()
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
