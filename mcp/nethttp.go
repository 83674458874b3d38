package mcp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// netEngine is the engine on net/http: one http.Transport for each Conn so that
// sessions share no connection, no redirects, no cookies, no proxy, no
// compression. HTTP/2 only when TLS.NextProtos asks for it.
type netEngine struct {
	transport *http.Transport
	url       *url.URL
	host      string
	header    http.Header
	limits    Limits
	now       func() time.Duration
	dialing   dialing

	seat   seat // in a pool
	mu     sync.Mutex
	closed bool
	open   map[*trackedConn]struct{}
	// running are the exchanges on connections of the pool.
	running map[*limit]struct{}
	tcp     time.Duration // of the first connection
	tls     time.Duration
}

// newNetEngine returns an engine for messages to u that carry header.
func newNetEngine(u *url.URL, header http.Header, s *Streamable, o *Options) *netEngine {
	e := &netEngine{
		url: u, host: header.Get("Host"), header: header, limits: o.Limits, now: o.now,
		dialing: newDialing(s.DialContext), open: make(map[*trackedConn]struct{}), seat: s.Connections.join(o.OnAnomaly),
	}
	header.Del("Host")
	config := s.tlsConfig(u)
	e.transport = &http.Transport{
		DialContext:            e.dialTracked,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    dialLimit,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    1 << 10,
		MaxResponseHeaderBytes: o.Limits.HeaderBytes,
		ForceAttemptHTTP2:      slices.Contains(config.NextProtos, "h2"),
	}
	return e
}

func (e *netEngine) retarget(u *url.URL) { e.url = u }

func (e *netEngine) do(ctx context.Context, r *httpRequest, t *stamps) (response, error) {
	began := e.now()
	var m marks
	limited, limit := newLimit(ctx, r.limit, r.bounds, e.now)
	m.onSent, m.onWrote = limit.restart, r.onWrote
	if r.onSent != nil {
		m.onSent = func() {
			limit.restart()
			r.onSent(m.sent.or(began))
		}
	}
	placed, transport, leave, err := e.place(limited, r, limit)
	if err != nil {
		*t = noStamps()
		t.began = began
		limit.stop(nil)
		return nil, err
	}
	req := e.request(r).WithContext(httptrace.WithClientTrace(placed, e.trace(&m)))
	resp, err := transport.RoundTrip(req) //nolint:bodyclose // handed on to the caller of do
	*t = m.stamps()
	t.began = began
	if err != nil {
		defer limit.stop(nil)
		leave()
		return nil, e.fault(limit, m.op(), err)
	}
	return &netResponse{engine: e, resp: resp, limit: limit, leave: leave}, nil
}

func (e *netEngine) request(r *httpRequest) *http.Request {
	header := make(http.Header, len(e.header)+len(r.header)+len(r.extra))
	maps.Copy(header, e.header)
	for _, fields := range [][]headerField{r.header, r.extra} {
		for _, f := range fields {
			header[f.name] = []string{f.value}
		}
	}
	req := &http.Request{
		Method: r.method, URL: e.url, Host: e.host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if r.body != nil {
		// net/http may still read the body when the response is there already.
		body := bytes.Clone(r.body)
		req.ContentLength = int64(len(body))
		// GetBody lets net/http repeat a request on a fresh connection when a
		// kept-alive one turned out closed before any byte was written.
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	return req
}

// netResponse is a response of net/http.
type netResponse struct {
	engine  *netEngine
	resp    *http.Response
	limit   *limit
	hurried *time.Timer // nil: it may take its time
	leave   func()      // gives its place in a pool back
}

// Read implements response.
func (r *netResponse) Read(p []byte) (int, error) { return r.resp.Body.Read(p) }

// Close implements response.
func (r *netResponse) Close() error {
	defer r.limit.stop(nil)
	if r.hurried != nil {
		r.hurried.Stop()
	}
	defer r.leave()
	return r.resp.Body.Close()
}

func (r *netResponse) status() int               { return r.resp.StatusCode }
func (r *netResponse) length() int64             { return r.resp.ContentLength }
func (r *netResponse) header(name string) string { return r.resp.Header.Get(name) }
func (r *netResponse) fault(err error) error     { return r.engine.fault(r.limit, "read", err) }

// atOnce implements response; what came when is not known here.
func (*netResponse) atOnce() bool { return false }

// over implements response; net/http looks after idle connections itself.
func (*netResponse) over(time.Duration) {}

// distrust implements response; net/http itself closes a connection on which
// something comes unasked.
func (*netResponse) distrust() {}

// hurry implements response.
func (r *netResponse) hurry(most time.Duration) error {
	r.hurried = time.AfterFunc(most, func() { r.limit.stop(errClosed) })
	return nil
}

// drain implements response.
func (r *netResponse) drain(most time.Duration) bool {
	if r.hurry(most) != nil {
		return false
	}
	_, err := io.CopyN(io.Discard, r.resp.Body, drainBytes)
	return errors.Is(err, io.EOF)
}

func (e *netEngine) trace(m *marks) *httptrace.ClientTrace {
	var tlsStart atomic.Int64
	return &httptrace.ClientTrace{
		GetConn: func(string) { m.asked.put(e.now()) },
		GotConn: func(info httptrace.GotConnInfo) {
			now := e.now()
			if !info.Reused {
				m.connect.Store(int64(now - m.asked.or(now)))
			}
			m.sent.put(now)
			m.onSent()
		},
		TLSHandshakeStart: func() {
			tlsStart.Store(int64(e.now()))
			m.tls.Store(tlsBegun)
		},
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err != nil {
				return
			}
			m.tls.Store(tlsDone)
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.tls == 0 {
				e.tls = e.now() - time.Duration(tlsStart.Load())
			}
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			m.wrote.Store(info.Err == nil)
			if m.onWrote != nil && info.Err == nil {
				m.onWrote()
			}
		},
		GotFirstResponseByte: func() { m.first.put(e.now()) },
	}
}

// fault sorts an error of net/http. It exports no values for most of them, so
// that some are told by their text.
func (e *netEngine) fault(l *limit, op string, err error) error {
	if l.ran() {
		return l.bounds.fault()
	}
	text := err.Error()
	if strings.Contains(text, "server response headers exceeded") {
		return &LimitError{Limit: LimitHeader, Max: e.limits.HeaderBytes}
	}
	_, badMIME := errors.AsType[textproto.ProtocolError](err)
	_, badMIMEPointer := errors.AsType[*textproto.ProtocolError](err)
	if badMIME || badMIMEPointer || slices.ContainsFunc(malformed, func(s string) bool { return strings.Contains(text, s) }) {
		return &ProtocolError{Kind: FaultBadHTTP, Err: err}
	}
	return &TransportError{Op: op, Err: err}
}

// malformed are words in the errors of net/http about what breaks HTTP.
var malformed = []string{
	"malformed", "Content-Length", "transfer encoding", "chunk", "header line too long", "invalid CR",
	"invalid Trailer key", "bad trailer key", "suspiciously long trailer",
}

func (e *netEngine) phases() (tcp, tls time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tcp, e.tls
}

// trackedConn is a connection that its engine can close.
type trackedConn struct {
	net.Conn
	engine *netEngine
}

// Close closes the connection and forgets it.
func (c *trackedConn) Close() error {
	c.engine.mu.Lock()
	delete(c.engine.open, c)
	c.engine.mu.Unlock()
	return c.Conn.Close()
}

func (e *netEngine) dialTracked(ctx context.Context, network, addr string) (net.Conn, error) {
	start := e.now()
	conn, err := e.dialing.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	took := e.now() - start
	tracked := &trackedConn{Conn: conn, engine: e}
	if e.track(tracked, took) {
		return tracked, nil
	}
	if err := conn.Close(); err != nil {
		return nil, err
	}
	return nil, net.ErrClosed
}

func (e *netEngine) track(c *trackedConn, took time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	if e.tcp == 0 {
		e.tcp = took
	}
	e.open[c] = struct{}{}
	return true
}

func (e *netEngine) close() { e.end((*trackedConn).Close) }

func (e *netEngine) reset() {
	e.end(func(c *trackedConn) error {
		_ = resetConn(c.Conn) // it is closed in any case
		return c.Close()
	})
}

// end closes every connection by close.
func (e *netEngine) end(close func(*trackedConn) error) {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	open := make([]*trackedConn, 0, len(e.open))
	for c := range e.open {
		open = append(open, c)
	}
	for l := range e.running {
		l.stop(errClosed)
	}
	e.mu.Unlock()
	e.dialing.end()
	if first {
		defer e.seat.leave()
	}
	for _, c := range open {
		// A failing close leaves nothing to do.
		if err := close(c); err != nil && !errors.Is(err, net.ErrClosed) {
			continue
		}
	}
	e.transport.CloseIdleConnections() // those it has not noticed yet
}
