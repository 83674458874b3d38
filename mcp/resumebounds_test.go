package mcp_test

import (
	"errors"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// The other limits of a request go on while its stream is broken: silence counts
// from the last progress, wherever it came, and a cancellation on purpose is due
// when it is due.
func TestResumeKeepsTheLimits(t *testing.T) {
	silent := mcptest.Answer{SSE: true, Hold: true}
	ticks := mcptest.Answer{SSE: true, Hold: true, Frames: []mcptest.Frame{
		{Delay: time.Second, JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$LAST,"progress":1}}`},
		{Delay: 2 * time.Second, JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$LAST,"progress":2}}`},
	}}
	tests := []struct {
		name  string
		get   mcptest.Answer
		retry string
		wants mcp.Wants
		total time.Duration
		kind  mcp.TimeoutKind // 0: cancelled on purpose
		took  time.Duration
	}{
		{"silence within a pause", silent, "60000", mcp.Wants{IdleTimeout: 3 * time.Second}, 0, mcp.TimeoutIdle, 3 * time.Second},
		{"silence within a stream", silent, "1000", mcp.Wants{IdleTimeout: 3 * time.Second}, 0, mcp.TimeoutIdle, 3 * time.Second},
		{"silence after progress", ticks, "1000", mcp.Wants{IdleTimeout: 3 * time.Second, Progress: true}, 0, mcp.TimeoutIdle, 7 * time.Second},
		{"the whole limit after progress", ticks, "1000", mcp.Wants{IdleTimeout: 3 * time.Second, Progress: true}, 5 * time.Second, mcp.TimeoutTotal, 5 * time.Second},
		{"cancelled within a pause", silent, "60000", mcp.Wants{CancelAfter: 3 * time.Second}, 0, 0, 5 * time.Second},
		{"cancelled within a stream", silent, "1000", mcp.Wants{CancelAfter: 3 * time.Second}, 0, 0, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				// The event's id is the progress token.
				p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Type: stream, Raw: "retry: " + tt.retry + "\nid: $TOKEN\ndata:\n\n"})
				p.On("GET", tt.get)
				s := connect(h.T, serveHTTP(h.T, p, h.engine), mcp.Options{})
				req := echo
				req.Timeout, req.Wants = tt.total, &tt.wants
				r, err := s.Call(h.Context(), req)
				if took := r.Timing.End - r.Timing.Start; took != tt.took {
					h.Errorf("took %v, want %v", took, tt.took)
				}
				late, isTimeout := errors.AsType[*mcp.TimeoutError](err)
				purpose, isPurpose := errors.AsType[*mcp.CancelledError](err)
				switch {
				case tt.kind != 0 && (!isTimeout || late.Limit != tt.kind):
					h.Errorf("error %v", err)
				case tt.kind == 0 && (!isPurpose || purpose.Sent-r.Timing.Start != 3*time.Second || purpose.Stopped != 0):
					h.Errorf("error %+v, %v", purpose, err)
				}
				time.Sleep(time.Hour) // virtual
				if n := len(p.Received("notifications/cancelled")); n != 1 || len(p.Received("GET")) > 1 {
					h.Errorf("messages %v", p.Methods())
				}
			})
		})
	}
}

// The end of the stream of a request that was cancelled on purpose is the sign that
// the server stopped, not a stream to take up again.
func TestNoResumeAfterPurpose(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{{Raw: "id: e1\ndata:\n\n"}, {Delay: 4 * time.Second, Raw: ":\n\n"}}})
		p.On("GET", answers("2"))
		s := connect(h.T, serveHTTP(h.T, p, h.engine), mcp.Options{})
		req := echo
		req.Wants = &mcp.Wants{CancelAfter: 3 * time.Second}
		r, err := s.Call(h.Context(), req)
		e, ok := errors.AsType[*mcp.CancelledError](err)
		if !ok || e.Sent-r.Timing.Start != 3*time.Second || e.Stopped-r.Timing.Start != 4*time.Second || len(p.Received("GET")) != 0 {
			h.Errorf("got %+v, %v", e, err)
		}
	})
}
