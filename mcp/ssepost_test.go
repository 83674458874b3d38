package mcp_test

import (
	"errors"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// A call whose POST is never answered used to wait for its limit, or for ever,
// though its answer had come over the stream.
func TestSSEAnsweredCallWaitsForItsPOST(t *testing.T) {
	tests := []struct {
		name      string
		lag, took time.Duration
		closed    int // connections
	}{
		{"the POST is never answered", time.Hour, 350 * time.Millisecond, 1},
		{"the POST is answered a little later", 300 * time.Millisecond, 300 * time.Millisecond, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				p := (&mcptest.Peer{}).On("tools/call",
					mcptest.Answer{Delay: 100 * time.Millisecond, Result: echoed, Lag: tt.lag}, mcptest.Answer{Result: echoed})
				tr := serveSSE(h.T, p, h.engine)
				conns := watchConns((*mcp.Streamable)(tr))
				s := connect(h.T, tr, mcp.Options{})
				start := time.Now()
				r, err := s.Call(h.Context(), echo)
				if err != nil || string(r.Result) != echoed || r.Timing.End-r.Timing.Start != 100*time.Millisecond {
					h.Errorf("got %+v, %v", r, err)
				}
				if took := time.Since(start); took != tt.took || conns.closed() != tt.closed {
					h.Errorf("took %v, %d connections closed", took, conns.closed())
				}
				if _, err := callAtOnce(h.T, s); err != nil {
					h.Errorf("the next call: %v", err)
				}
			})
		})
	}
}

// A call whose POST took longer than its idle limit used to wait for ever for an
// answer over the stream.
func TestSSEIdleLimitRunsOutInThePOST(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Lag: 2 * time.Second})
	}
	overSSE(t, peer, func(o over) {
		s := connect(o.T, o.transport, mcp.Options{})
		req := echo
		req.Wants = &mcp.Wants{IdleTimeout: time.Second}
		start := time.Now()
		_, err := s.Call(o.Context(), req)
		if e, ok := errors.AsType[*mcp.TimeoutError](err); !ok || e.Limit != mcp.TimeoutIdle {
			o.Errorf("error %v", err)
		}
		if took := time.Since(start); took != 2*time.Second {
			o.Errorf("took %v", took)
		}
	})
}
