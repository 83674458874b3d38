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
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// dialLimit bounds opening one TCP connection when no context does.
const dialLimit = 30 * time.Second

// netEngine is the engine on net/http: HTTP/1.1, one http.Transport for each
// Conn so that sessions share no connection, no redirects, no cookies, no
// proxy, no compression.
type netEngine struct {
	transport *http.Transport
	url       *url.URL
	host      string
	header    http.Header
	limits    Limits
	now       func() time.Duration
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)

	mu     sync.Mutex
	closed bool
	open   map[*trackedConn]struct{}
	tcp    time.Duration // of the first connection
	tls    time.Duration
}

// newNetEngine returns an engine for messages to u that carry header.
func newNetEngine(u *url.URL, header http.Header, s *Streamable, o *Options) *netEngine {
	e := &netEngine{
		url: u, host: header.Get("Host"), header: header, limits: o.Limits, now: o.now,
		dial: s.DialContext, open: make(map[*trackedConn]struct{}),
	}
	header.Del("Host")
	if e.dial == nil {
		e.dial = (&net.Dialer{Timeout: dialLimit}).DialContext
	}
	config := s.TLS
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	e.transport = &http.Transport{
		DialContext:            e.dialTracked,
		TLSClientConfig:        config.Clone(),
		TLSHandshakeTimeout:    dialLimit,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    1 << 10,
		MaxResponseHeaderBytes: o.Limits.HeaderBytes,
	}
	return e
}

func (e *netEngine) do(ctx context.Context, r *httpRequest, m *marks) (*httpResponse, error) {
	header := make(http.Header, len(e.header)+len(r.header))
	maps.Copy(header, e.header)
	for _, f := range r.header {
		header[http.CanonicalHeaderKey(f.name)] = []string{f.value}
	}
	req := &http.Request{
		Method: r.method, URL: e.url, Host: e.host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if r.body != nil {
		req.ContentLength = int64(len(r.body))
		// GetBody lets net/http repeat a request on a fresh connection when a
		// kept-alive one turned out closed before any byte was written.
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.body)), nil }
		req.Body = io.NopCloser(bytes.NewReader(r.body))
	}
	req = req.WithContext(httptrace.WithClientTrace(ctx, e.trace(m)))
	resp, err := e.transport.RoundTrip(req) //nolint:bodyclose // handed on to the caller of do
	if err != nil {
		return nil, e.fault(m.op(), err)
	}
	return &httpResponse{
		status: resp.StatusCode, length: resp.ContentLength, header: resp.Header.Get, body: resp.Body,
	}, nil
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
			if m.onSent != nil {
				m.onSent()
			}
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

func (e *netEngine) bodyError(err error) error { return e.fault("read", err) }

// fault sorts an error of net/http. It exports no values for most of them, so
// that some are told by their text.
func (e *netEngine) fault(op string, err error) error {
	text := err.Error()
	if strings.Contains(text, "server response headers exceeded") {
		return &LimitError{Limit: LimitHeader, Max: e.limits.HeaderBytes}
	}
	_, badMIME := errors.AsType[textproto.ProtocolError](err)
	_, badMIMEPointer := errors.AsType[*textproto.ProtocolError](err)
	if badMIME || badMIMEPointer || strings.Contains(text, "malformed") ||
		strings.Contains(text, "invalid byte in chunk length") || strings.Contains(text, "bad Content-Length") {
		return &ProtocolError{Kind: FaultBadHTTP, Err: err}
	}
	return &TransportError{Op: op, Err: err}
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
	conn, err := e.dial(ctx, network, addr)
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

func (e *netEngine) close() {
	e.mu.Lock()
	e.closed = true
	open := make([]*trackedConn, 0, len(e.open))
	for c := range e.open {
		open = append(open, c)
	}
	e.mu.Unlock()
	e.transport.CloseIdleConnections()
	for _, c := range open {
		// What is left was in use; a failing close leaves nothing to do.
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			continue
		}
	}
}
