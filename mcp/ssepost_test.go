package mcp_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

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
