// Package outgoing opens TCP connections from chosen addresses of this machine
// and counts those that are open.
package outgoing

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// dialLimit bounds opening one connection when no context does.
const dialLimit = 30 * time.Second

// ParseAddresses reads a list of IP addresses, separated by commas.
func ParseAddresses(text string) ([]netip.Addr, error) {
	var out []netip.Addr
	for item := range strings.SplitSeq(text, ",") {
		a, err := netip.ParseAddr(strings.TrimSpace(item))
		if err != nil {
			return nil, fmt.Errorf("%q is no IP address", strings.TrimSpace(item))
		}
		out = append(out, a.Unmap())
	}
	return out, nil
}

// CheckOurs finds out whether the addresses are this machine's, by taking a port
// of each for a moment. Nothing is sent.
func CheckOurs(ctx context.Context, addresses []netip.Addr) error {
	for _, a := range addresses {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(a, 0).String())
		if err != nil {
			return fmt.Errorf("%s is no address of this machine: %w", a, err)
		}
		_ = l.Close() // nobody was to connect
	}
	return nil
}

// Dialer opens connections to one server. The zero value leaves the source address
// to the system. Its methods may be called from any goroutine; Sources is not
// changed after the first of them.
type Dialer struct {
	// Sources are the addresses to dial from, in turn by slot; none: the system chooses.
	Sources []netip.Addr

	mu   sync.Mutex // guards held
	held map[string]int64
}

// Slot returns the dial function for one slot, as net.Dialer has it.
func (d *Dialer) Slot(slot int) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialLimit}
	if n := len(d.Sources); n > 0 {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(d.Sources[slot%n], 0))
		dialer.Control = bindLate
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return conn, nil
		}
		target := tcp.RemoteAddr().String()
		d.add(target, 1)
		return &connection{TCPConn: tcp, closed: sync.OnceFunc(func() { d.add(target, -1) })}, nil
	}
}

// Held returns how many connections are open to the one address that has most.
func (d *Dialer) Held() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var most int64
	for _, n := range d.held {
		most = max(most, n)
	}
	return most
}

func (d *Dialer) add(target string, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == nil {
		d.held = map[string]int64{}
	}
	if d.held[target] += n; d.held[target] == 0 {
		delete(d.held, target)
	}
}

// connection is a TCP connection whose end is counted.
type connection struct {
	*net.TCPConn
	closed func()
}

// Socket returns the connection itself, for who reads and writes by system calls.
func (c *connection) Socket() *net.TCPConn { return c.TCPConn }

// Close closes the connection.
func (c *connection) Close() error {
	c.closed()
	return c.TCPConn.Close()
}
