package mcp

import (
	"sync/atomic"
	"time"
)

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

func (m *mark) clear() { m.set.Store(false) }

// or returns the moment, or other if it has not come.
func (m *mark) or(other time.Duration) time.Duration {
	if m.set.Load() {
		return time.Duration(m.at.Load())
	}
	return other
}

// marks are what net/http tells of one exchange, partly from goroutines of its
// own, and possibly after the exchange is over.
type marks struct {
	asked   mark         // a connection was asked for
	sent    mark         // the connection is there, the first byte is about to be written
	connect atomic.Int64 // opening the connection took so long; 0 when it was reused
	first   mark         // first byte of the response
	wrote   atomic.Bool  // the request was written whole
	tls     atomic.Int32 // see tlsNone

	onSent, onWrote func() // onWrote may be nil
}

// States of marks.tls.
const (
	tlsNone int32 = iota
	tlsBegun
	tlsDone
)

// stamps returns what is known by now.
func (m *marks) stamps() stamps {
	return stamps{sent: m.sent.or(-1), first: m.first.or(-1), connect: time.Duration(m.connect.Load())}
}

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
