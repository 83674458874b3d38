// Package mcptest plays an MCP server for tests: scripted, over HTTP or stdio, in
// memory or as a process of its own, in real or in virtual time.
package mcptest

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// Listener is an in-memory net.Listener. Together with its DialContext it serves
// a real http.Server and http.Transport, also in a synctest bubble, where the
// waits of real sockets would not count as blocked.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns an open Listener.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept; further dialling is refused.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a placeholder.
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "memory" }
func (addr) String() string  { return "mcptest" }

// DialContext connects to the listener, whatever the address.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	refused := &net.OpError{Op: "dial", Net: "memory", Addr: addr{}, Err: syscall.ECONNREFUSED}
	select {
	case <-l.closed:
		return nil, refused
	default:
	}
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
