package mcp

import (
	"context"
	"net"
	"time"
)

// dialLimit bounds opening one TCP connection when no context does.
const dialLimit = 30 * time.Second

// dialing opens the connections of an engine, until its end. Safe for concurrent use.
type dialing struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	over context.Context //nolint:containedctx // ends with the engine
	end  context.CancelFunc
}

// newDialing returns one that dials by that function, or TCP when it is nil.
func newDialing(dial func(ctx context.Context, network, addr string) (net.Conn, error)) dialing {
	d := dialing{dial: dial}
	if d.dial == nil {
		d.dial = (&net.Dialer{Timeout: dialLimit}).DialContext
	}
	d.over, d.end = context.WithCancel(context.Background())
	return d
}

// connect opens a connection, within ctx. After the end the error is net.ErrClosed.
func (d *dialing) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.over, cancel)()
	conn, err := d.dial(ctx, network, addr)
	if err != nil && d.over.Err() != nil {
		return nil, net.ErrClosed
	}
	return conn, err
}
