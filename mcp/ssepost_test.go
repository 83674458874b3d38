package mcp_test

import (
	"errors"
	"testing"
	"testing/synctest"
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

// The limits of a request hold also while its POST is not answered.
func TestSSEPostThatHangsKeepsTheLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		wants mcp.Wants
		takes time.Duration
		check func(err error) bool
	}{
		"idle": {mcp.Wants{IdleTimeout: time.Second}, time.Second, func(err error) bool {
			e, ok := errors.AsType[*mcp.TimeoutError](err)
			return ok && e.Limit == mcp.TimeoutIdle
		}},
		"cancelled on purpose": {mcp.Wants{CancelAfter: time.Second}, 3 * time.Second, func(err error) bool {
			e, ok := errors.AsType[*mcp.CancelledError](err)
			return ok && e.Stopped == 0
		}},
	} {
		for _, engine := range engines {
			t.Run(name+" "+string(engine), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Silent: true})
					tr := serveSSE(t, p, engine)
					slowDials((*mcp.Streamable)(tr), 700*time.Millisecond)
					s := connect(t, tr, mcp.Options{})
					req := echo
					req.Timeout, req.Wants = time.Minute, &tt.wants
					r, err := s.Call(t.Context(), req)
					if took := r.Timing.End - r.Timing.Start; !tt.check(err) || took != tt.takes {
						t.Errorf("%v after %v", err, took)
					}
					time.Sleep(time.Second) // virtual: it has a connection of its own
					if got := len(p.Received("notifications/cancelled")); got != 1 {
						t.Errorf("%d cancellations", got)
					}
				})
			})
		}
	}
}

// A POST that is not answered holds a request whose answer is there no longer than
// its limits.
func TestSSEPostThatHangsAfterTheAnswer(t *testing.T) {
	for _, engine := range engines {
		t.Run(string(engine), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Result: echoed, Lag: time.Hour})
				s := connect(t, serveSSE(t, p, engine), mcp.Options{})
				req, began := echo, time.Now()
				req.Timeout, req.Wants = time.Minute, &mcp.Wants{IdleTimeout: 5 * time.Second}
				r, err := s.Call(t.Context(), req)
				if took := time.Since(began); err != nil || took > time.Minute || r.Timing.End-r.Timing.Start != 0 {
					t.Errorf("%v after %v, %+v", err, took, r.Timing)
				}
			})
		})
	}
}
