package mcp

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// bufferBytes is how much is read at once; longer header lines make a buffer of their own.
const bufferBytes = 4096

// buffers are what a connection needs only while a request is in flight, so that
// an idle session is small.
type buffers struct {
	out []byte
	in  []byte
}

var bufferPool = sync.Pool{New: func() any { return &buffers{in: make([]byte, bufferBytes)} }}

func takeBuffers() *buffers {
	b, ok := bufferPool.Get().(*buffers)
	if !ok {
		b = &buffers{in: make([]byte, bufferBytes)}
	}
	return b
}

func (b *buffers) free() {
	if cap(b.in) > bufferBytes {
		b.in = make([]byte, bufferBytes)
	}
	bufferPool.Put(b)
}

// fastConn is a connection of a fastEngine, and the response that it carries. It
// belongs to one exchange at a time.
type fastConn struct {
	engine *fastEngine
	wire   wire
	stream net.Conn      // the wire, or TLS over it
	trip   time.Duration // opening it took so long: about a round trip

	idleSince time.Duration
	idleFor   time.Duration // before this exchange, 0 on a new connection
	used      bool          // it has carried an exchange
	partly    bool          // the request could not be written whole
	answered  bool          // a byte of the response arrived
	later     bool          // more was read after that
	placed    bool          // it has a place in a pool

	buf  *buffers
	r, w int // what was read and not consumed is buf.in[r:w]

	code    int
	values  [len(keptHeaders)]string // kept between exchanges, most of them repeat
	present uint8                    // which of them this response has
	framing framing
	// last is the header of the response before, with what it said: the next one
	// is often the same, byte for byte, and then need not be read again.
	last struct {
		text    []byte
		code    int
		present uint8
		framing framing
	}

	mu      sync.Mutex // guards the fields below
	busy    bool
	shutted bool
	ended   <-chan struct{} // of the context that is watched
	unwatch func() bool
}

// exchange sends m, which is the message of r, and reads the header of the
// response. now is the present.
func (c *fastConn) exchange(ctx context.Context, r *httpRequest, m packed, now time.Duration, t *stamps) error {
	c.buf, c.r, c.w = m.buf, 0, 0
	c.answered, c.later, c.partly, c.present = false, false, false, 0
	c.framing = framing{}
	c.idleSince = 0
	if err := c.watch(ctx); err != nil {
		return err
	}
	if err := c.send(r, m.rest, now, t); err != nil {
		// A server may answer and close without reading the request to its end.
		c.partly = true
		if c.wire.expired(err) || c.readEarly(t) != nil {
			return &TransportError{Op: "write", Err: err}
		}
		c.framing.last = true
		return nil
	}
	if r.onWrote != nil {
		r.onWrote()
	}
	return c.readHead(t)
}

func (c *fastConn) send(r *httpRequest, rest []byte, now time.Duration, t *stamps) error {
	out := c.buf.out
	t.sent = now
	if r.onSent != nil {
		r.onSent(now)
	}
	until := time.Duration(0)
	if r.limit > 0 {
		until = now + r.limit
	}
	if c.wire.bounds = r.bounds; r.bounds != nil {
		until = r.bounds.begin(now)
	}
	if err := c.wire.limit(until, now); err != nil {
		return err
	}
	if c.wire.swapper != nil && rest == nil && r.onWrote == nil {
		wrote, read, err := c.wire.swap(out, c.buf.in)
		if read > 0 {
			c.w = read
			c.arrived(t)
		}
		if out = out[wrote:]; err != nil || len(out) == 0 {
			return err
		}
	}
	_, err := c.stream.Write(out)
	if err == nil && rest != nil {
		_, err = c.stream.Write(rest)
	}
	return err
}

// arrived notes the first bytes of the response.
func (c *fastConn) arrived(t *stamps) {
	if !c.answered {
		c.answered = true
		t.first = c.engine.now()
	}
}

// readEarly reads the header of a response that came though the request could
// not be written whole.
func (c *fastConn) readEarly(t *stamps) error {
	if err := c.hurry(drainLimit); err != nil {
		return err
	}
	return c.readHead(t)
}

// stale reports whether err means that the server had closed the kept
// connection rather than failed to answer. sent is when the request was.
func (c *fastConn) stale(err error, sent time.Duration) bool {
	if !c.used || c.answered || c.wire.expired(err) || !isTransport(err) || c.isShut() || c.wire.bounds.cancelled() {
		return false
	}
	return c.partly || c.idleFor >= staleAfter && c.engine.now()-sent <= max(staleAfter, 2*c.trip)
}

func isTransport(err error) bool {
	_, protocol := errors.AsType[*ProtocolError](err)
	_, limit := errors.AsType[*LimitError](err)
	return !protocol && !limit
}

// fault implements response.
func (c *fastConn) fault(err error) error {
	if c.wire.expired(err) {
		return c.wire.bounds.fault()
	}
	if _, ok := errors.AsType[*TransportError](err); ok || !isTransport(err) {
		return err
	}
	return &TransportError{Op: "read", Err: err}
}

// watch makes the end of ctx close the connection for as long as an exchange is
// on it. The registration stays for the next exchange, which usually has the
// same context.
func (c *fastConn) watch(ctx context.Context) error {
	ended := ctx.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = true
	if ended != c.ended {
		if c.unwatch != nil {
			c.unwatch()
			c.unwatch = nil
		}
		c.ended = ended
		if ended != nil {
			c.unwatch = context.AfterFunc(ctx, func() { c.giveUp(ended) })
		}
	}
	if c.shutted {
		return net.ErrClosed
	}
	return ctx.Err() // had it ended while the connection was idle, nobody would tell
}

// giveUp closes the connection if its exchange has the context that ended.
func (c *fastConn) giveUp(ended <-chan struct{}) {
	c.mu.Lock()
	hit := c.busy && c.ended == ended
	c.shutted = c.shutted || hit
	c.mu.Unlock()
	if hit {
		c.closeSocket()
	}
}

// shut closes the connection from outside; an exchange on it fails.
func (c *fastConn) shut() {
	c.mu.Lock()
	c.shutted = true
	if c.unwatch != nil {
		c.unwatch()
		c.unwatch = nil
	}
	c.mu.Unlock()
	c.closeSocket()
}

func (c *fastConn) isShut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shutted
}

// closeSocket closes the socket under TLS too: an alert could block, and the peer
// learns the same. The error says nothing that anybody could act on.
func (c *fastConn) closeSocket() {
	if err := c.wire.Close(); err != nil {
		return
	}
}

// discard closes the connection after its exchange.
func (c *fastConn) discard() {
	c.engine.forget(c)
	c.shut()
	c.giveBack()
	if c.placed {
		c.placed = false
		c.engine.seat.exit()
	}
}

// Close implements response: it keeps the connection for the next exchange when
// the body was read to its end and nothing follows it, else it closes it.
func (c *fastConn) Close() error {
	if c.buf == nil {
		return nil // closed before
	}
	if !c.framing.done || c.framing.last || c.r != c.w {
		c.discard()
		return nil
	}
	c.giveBack()
	c.used = true
	if c.idleSince == 0 {
		c.idleSince = c.engine.now()
	}
	c.mu.Lock()
	c.busy = false
	alive := !c.shutted
	c.mu.Unlock()
	if !alive || !c.engine.keep(c) {
		c.discard()
	}
	return nil
}

func (c *fastConn) giveBack() {
	if c.buf != nil {
		c.buf.free()
		c.buf = nil
	}
}

// fill reads more into the buffer, behind what is there.
func (c *fastConn) fill() error {
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
	b := c.buf
	if c.w == len(b.in) {
		if c.r > 0 {
			c.w = copy(b.in, b.in[c.r:c.w])
			c.r = 0
		} else {
			larger := make([]byte, 2*len(b.in))
			copy(larger, b.in[:c.w])
			b.in = larger
		}
	}
	c.later = c.answered
	n, err := c.stream.Read(b.in[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// atOnce implements response.
func (c *fastConn) atOnce() bool { return !c.later }

// over implements response.
func (c *fastConn) over(at time.Duration) { c.idleSince = at }

// distrust implements response.
func (c *fastConn) distrust() { c.framing.last = true }

// status implements response.
func (c *fastConn) status() int { return c.code }

// header implements response.
func (c *fastConn) header(name string) string {
	for i, kept := range keptHeaders {
		if kept == name && c.present&(1<<i) != 0 {
			return c.values[i]
		}
	}
	return ""
}

// hurry implements response.
func (c *fastConn) hurry(most time.Duration) error {
	c.wire.bounds = nil
	now := c.engine.now()
	if until := now + most; c.wire.until == 0 || c.wire.until > until {
		return c.wire.limit(until, now)
	}
	return nil
}

// drain implements response.
func (c *fastConn) drain(most time.Duration) bool {
	// Usually nothing but the end is there already.
	if rest := c.buf.in[c.r:c.w]; c.framing.left != 0 || string(rest) != "\r\n0\r\n\r\n" {
		if c.hurry(most) != nil {
			return false
		}
	}
	for left := drainBytes; left > 0; {
		part, err := c.part()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		c.r += len(part)
		c.took(len(part))
		left -= len(part)
	}
	return false
}
