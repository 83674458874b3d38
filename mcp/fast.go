package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// staleAfter is how long a kept connection must have been idle for its end,
	// without a byte of an answer, to count as the server's keep-alive limit. A
	// connection in steady use that ends so is a failure of the server. So is an
	// end that comes later after the request than this, or than two round trips:
	// one that was under way when the request went out arrives before.
	staleAfter = 100 * time.Millisecond
	// probeAfter is how long a kept connection must have been idle to be looked at
	// before it is used: a server may have closed it meanwhile, and a request must
	// not fail for what could be known. Shorter gaps, those of a closed load, are
	// spared the system call.
	probeAfter = time.Millisecond
	// joinBytes is up to which size a body is written together with its header.
	joinBytes = 64 << 10
)

// fastEngine is our own HTTP/1.1 (RFC 9112): one connection for each request in
// flight, kept alive for the next ones. A request that found its kept connection
// closed by the server is sent once more over a new one and reported as
// AnomalyStaleConnection: when the request could not be written whole, or when
// the connection had been idle and ended as the request came, before the first
// byte of an answer.
type fastEngine struct {
	address string
	target  string // of the request line
	host    string
	header  []headerField // the user's, which those of a message override
	tls     *tls.Config   // nil: plain
	limits  Limits
	now     func() time.Duration
	tell    func(Anomaly, string)
	dialing dialing
	base    time.Time // of now
	seat    seat      // in a pool; without one each exchange finds its connection here

	head atomic.Pointer[requestHead]

	mu     sync.Mutex
	closed bool
	idle   []*fastConn
	open   map[*fastConn]struct{}
	tcp    time.Duration // of the first connection
	shake  time.Duration // its TLS handshake
}

// requestHead is what all messages with the same method and header begin with.
type requestHead struct {
	method string
	header *headerField
	text   []byte
	late   []headerField // of the user's fields those that a message may override
}

// newFastEngine returns an engine for messages to u that carry header.
func newFastEngine(u *url.URL, header http.Header, s *Streamable, o *Options) *fastEngine {
	e := &fastEngine{
		address: net.JoinHostPort(u.Hostname(), port(u)), target: u.RequestURI(),
		host: header.Get("Host"), limits: o.Limits, now: o.now, tell: o.OnAnomaly,
		dialing: newDialing(s.DialContext), open: make(map[*fastConn]struct{}), base: o.Base, seat: s.Connections.join(o.OnAnomaly),
	}
	if e.host == "" {
		e.host = u.Host
	}
	for name, values := range header {
		if name == "Host" || name == "Content-Length" {
			continue
		}
		for _, v := range values {
			e.header = append(e.header, headerField{name, strings.Trim(v, " \t")})
		}
	}
	// Sorted, so that equal configurations send equal bytes.
	slices.SortStableFunc(e.header, func(a, b headerField) int { return strings.Compare(a.name, b.name) })
	if u.Scheme == "https" {
		e.tls = s.tlsConfig(u)
	}
	return e
}

func (e *fastEngine) retarget(u *url.URL) { e.target = u.RequestURI() }

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

func (e *fastEngine) do(ctx context.Context, r *httpRequest, t *stamps) (response, error) {
	*t = noStamps()
	m := e.pack(r)
	c, now, err := e.take(ctx, r, t)
	if err != nil {
		m.buf.free()
		return nil, err
	}
	err = c.exchange(ctx, r, m, now, t)
	if err != nil && c.stale(err, t.sent) && ctx.Err() == nil {
		placed := c.placed
		c.placed = false
		c.discard()
		e.tell(AnomalyStaleConnection, "sent again: "+err.Error())
		if c, err = e.dial(ctx, r, t); err != nil {
			if placed {
				e.seat.exit()
			}
			return nil, err
		}
		c.placed = placed
		err = c.exchange(ctx, r, e.pack(r), e.now(), t)
	}
	if err != nil {
		err = c.fault(err)
		c.discard()
		return nil, err
	}
	return c, nil
}

// take returns a connection for one exchange, a kept one that seems alive or a
// new one, and the present.
func (e *fastEngine) take(ctx context.Context, r *httpRequest, t *stamps) (*fastConn, time.Duration, error) {
	t.began = e.now()
	if e.seat.pool != nil {
		return e.takeShared(ctx, r, t)
	}
	for {
		c := e.kept()
		if c == nil {
			c, err := e.dial(ctx, r, t)
			return c, e.now(), err
		}
		c.idleFor = t.began - c.idleSince
		if c.idleFor < probeAfter {
			return c, t.began, nil
		}
		if alive(c.wire.Conn, e.tls != nil) {
			return c, e.now(), nil
		}
		c.discard()
	}
}

// kept returns the connection that was given back last, nil when there is none.
func (e *fastEngine) kept() *fastConn {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.idle)
	if n == 0 {
		return nil
	}
	c := e.idle[n-1]
	e.idle[n-1] = nil
	e.idle = e.idle[:n-1]
	return c
}

// keep takes back a connection after an exchange; false when the engine is closed.
func (e *fastEngine) keep(c *fastConn) bool {
	if e.seat.pool != nil {
		return e.keepShared(c)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.idle = append(e.idle, c)
	}
	return !e.closed
}

// dial opens a connection. r.limit bounds TCP and TLS together.
func (e *fastEngine) dial(ctx context.Context, r *httpRequest, t *stamps) (*fastConn, error) {
	limited := ctx
	if r.limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, r.limit, errTimeout)
		defer cancel()
	}
	began := e.now()
	fail := func(op string, err error) (*fastConn, error) {
		if ctx.Err() == nil && errors.Is(context.Cause(limited), errTimeout) {
			return nil, &TimeoutError{Limit: TimeoutTotal}
		}
		return nil, &TransportError{Op: op, Err: err}
	}
	socket, err := e.dialing.connect(limited, "tcp", e.address)
	if err != nil {
		return fail("dial", err)
	}
	tcp := e.now() - began
	c := &fastConn{engine: e, trip: tcp, wire: wire{Conn: socket, now: e.now}}
	c.stream = &c.wire
	if !e.add(c) {
		c.closeSocket()
		return fail("dial", net.ErrClosed)
	}
	var shake time.Duration
	if e.tls != nil {
		secure := tls.Client(&c.wire, e.tls)
		bounded, cancel := context.WithTimeout(limited, dialLimit)
		defer cancel()
		if err := secure.HandshakeContext(bounded); err != nil {
			c.discard()
			return fail("tls", err)
		}
		shake = e.now() - began - tcp
		c.stream = secure
	} else {
		c.wire.swapper = newSwapper(socket)
	}
	e.opened(tcp, shake)
	t.connect = e.now() - began
	return c, nil
}

func (e *fastEngine) add(c *fastConn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.open[c] = struct{}{}
	}
	return !e.closed
}

func (e *fastEngine) forget(c *fastConn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, c)
}

// opened notes how long the first connection took to open.
func (e *fastEngine) opened(tcp, shake time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tcp == 0 {
		e.tcp, e.shake = tcp, shake
	}
}

func (e *fastEngine) phases() (tcp, tls time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tcp, e.shake
}

func (e *fastEngine) close() { e.end((*fastConn).shut) }

func (e *fastEngine) reset() {
	e.end(func(c *fastConn) {
		_ = resetConn(c.wire.Conn) // it is closed in any case
		c.shut()
	})
}

// end closes every connection by close.
func (e *fastEngine) end(close func(*fastConn)) {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.idle = nil
	open := e.open
	e.open = make(map[*fastConn]struct{})
	e.mu.Unlock()
	e.dialing.end()
	for c := range open {
		close(c)
	}
	if first {
		e.seat.leave()
	}
}

// packed is a request as it goes over the wire.
type packed struct {
	buf  *buffers // buf.out is the header, with the body unless that is large
	rest []byte   // the large body
}

// pack makes the message of r.
func (e *fastEngine) pack(r *httpRequest) packed {
	m := packed{buf: takeBuffers()}
	head := e.requestHead(r)
	dst := append(m.buf.out[:0], head.text...)
	for _, f := range head.late {
		if !has(r.extra, f.name) {
			dst = appendField(dst, f)
		}
	}
	for _, f := range r.extra {
		dst = appendField(dst, f)
	}
	if r.method == http.MethodPost {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(r.body)), 10)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	if len(r.body) > joinBytes {
		m.rest = r.body
	} else {
		dst = append(dst, r.body...)
	}
	m.buf.out = dst
	return m
}

// requestHead returns the beginning of r, which is made once for each method and header.
func (e *fastEngine) requestHead(r *httpRequest) *requestHead {
	var key *headerField
	if len(r.header) > 0 {
		key = &r.header[0]
	}
	if h := e.head.Load(); h != nil && h.method == r.method && h.header == key {
		return h
	}
	h := &requestHead{method: r.method, header: key}
	h.text = append(h.text, r.method+" "+e.target+" HTTP/1.1\r\nHost: "+e.host+"\r\n"...)
	for _, f := range e.header {
		switch {
		case has(r.header, f.name):
		case f.name == methodField || f.name == nameField || strings.HasPrefix(f.name, paramField):
			h.late = append(h.late, f)
		default:
			h.text = appendField(h.text, f)
		}
	}
	for _, f := range r.header {
		h.text = appendField(h.text, f)
	}
	e.head.Store(h)
	return h
}

// has reports whether a field of that name, spelt alike, is among fields.
func has(fields []headerField, name string) bool {
	return slices.ContainsFunc(fields, func(f headerField) bool { return f.name == name })
}

func appendField(dst []byte, f headerField) []byte {
	dst = append(dst, f.name...)
	dst = append(dst, ": "...)
	dst = append(dst, f.value...)
	return append(dst, "\r\n"...)
}
