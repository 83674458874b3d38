package mcp

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
)

// Ending is the way in which a client leaves its server.
type Ending uint8

// Ways to end a session.
const (
	// EndOrderly is that of Close: what the protocol has for it (specification,
	// basic/lifecycle, shutdown).
	EndOrderly Ending = iota
	// EndSilent closes the connections in order and does not tell the server: there is
	// no DELETE. Over stdio, where nothing else is told, it is EndOrderly.
	EndSilent
	// EndDrop is that of a client that crashed: the connections are reset, with what is
	// under way on them, and the process of a stdio server is killed. What other
	// sessions share stays as it is: a process of a Shared, connections of a pool.
	EndDrop
)

// CloseAs is Close in the given way. Of several calls of both the first decides.
func (s *Session) CloseAs(ctx context.Context, e Ending) error {
	if c, ok := s.conn.(interface{ endAs(e Ending) }); ok {
		c.endAs(e)
	}
	return s.Close(ctx)
}

// ending is what a Conn was told of its end.
type ending struct{ as atomic.Uint32 }

func (e *ending) endAs(as Ending) { e.as.CompareAndSwap(uint32(EndOrderly), uint32(as)) }
func (e *ending) how() Ending     { return Ending(e.as.Load()) } //nolint:gosec // one of three

// endAs implements CloseAs: all is with the requests of the stream's posts.
func (c *sseConn) endAs(e Ending) { c.posts.endAs(e) }

// resetConn closes a connection so that its peer sees a reset, where it has such a
// thing: without waiting for what was not sent yet (SO_LINGER of 0).
func resetConn(c net.Conn) error {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if l, ok := c.(interface{ SetLinger(sec int) error }); ok {
		_ = l.SetLinger(0) // it then closes as others do
	}
	return c.Close() //nolint:wrapcheck // its callers have nothing to add
}
