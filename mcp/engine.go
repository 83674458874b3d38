package mcp

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// engine moves HTTP messages for one Conn and knows nothing of MCP: the rules
// of the protocol are in httpConn, whatever engine it has.
type engine interface {
	// do sends r and returns the response once its header is there. Errors are
	// of this package's types, unless they come from the end of ctx. The end of
	// ctx also ends the reading of the body.
	do(ctx context.Context, r *httpRequest, m *marks) (*httpResponse, error)
	// bodyError turns an error of reading a response body into one of this package's.
	bodyError(err error) error
	// phases returns how long TCP and TLS of the first connection took.
	phases() (tcp, tls time.Duration)
	// close closes every connection, also those in use.
	close()
}

type httpRequest struct {
	method string
	header []headerField // beside those that the engine adds to every request
	body   []byte        // not changed until the connection is done with it
}

type headerField struct{ name, value string }

type httpResponse struct {
	status int
	length int64 // of the body, -1 when unknown
	header func(name string) string
	body   io.ReadCloser
}

// mark is a moment, an offset since Options.Base, that may not have come. Safe
// for concurrent use.
type mark struct {
	at  atomic.Int64
	set atomic.Bool
}

func (m *mark) put(at time.Duration) {
	m.at.Store(int64(at))
	m.set.Store(true)
}

// or returns the moment, or other if it has not come.
func (m *mark) or(other time.Duration) time.Duration {
	if m.set.Load() {
		return time.Duration(m.at.Load())
	}
	return other
}

// marks are the moments of one HTTP exchange. An engine may still set them from
// a goroutine of its own after do returned.
type marks struct {
	asked   mark         // a connection was asked for
	sent    mark         // the connection is there, the first byte is about to be written
	connect atomic.Int64 // opening the connection took so long; 0 when it was reused
	first   mark         // first byte of the response
	wrote   atomic.Bool  // the request was written whole
	tls     atomic.Int32 // see tlsNone
	// onSent and onWrote, if set, are called in the course of do.
	onSent, onWrote func()
}

// States of marks.tls.
const (
	tlsNone int32 = iota
	tlsBegun
	tlsDone
)

// op names the part of the exchange that was going on, for a TransportError.
func (m *marks) op() string {
	switch {
	case !m.sent.set.Load() && m.tls.Load() == tlsBegun:
		return "tls"
	case !m.sent.set.Load():
		return "dial"
	case !m.wrote.Load():
		return "write"
	}
	return "read"
}
