package driver

import (
	"context"
	"sync/atomic"
	"time"

	"mcpbench/mcp"
)

// sleep waits for d, or until ctx ends: then it returns false.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func clampCount(n int) uint16 { return uint16(max(0, min(n, 1<<16-1))) }

// counted is a session whose calls in flight are counted.
type counted struct {
	session *session
	flight  *atomic.Int64
}

// Call implements the caller that mcp.Pages wants.
func (c counted) Call(ctx context.Context, req mcp.Request) (mcp.Reply, error) {
	c.flight.Add(1)
	c.session.calls.begin()
	reply, err := c.session.Call(ctx, req)
	c.session.calls.end()
	c.flight.Add(-1)
	return reply, err
}

// Info implements the caller that mcp.Pages wants.
func (c counted) Info() mcp.Info { return c.session.Info() }
