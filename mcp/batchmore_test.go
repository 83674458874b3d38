package mcp_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// The stream of a batch that broke is taken up again.
func TestBatchResumed(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{}).On("batch", mcptest.Answer{Frames: []mcptest.Frame{{ID: "e-1", JSON: `{"jsonrpc":"2.0","id":$2,"result":{"n":2}}`}}}).
			On("GET", mcptest.Answer{Frames: []mcptest.Frame{{ID: "e-2", JSON: `{"jsonrpc":"2.0","id":2,"result":{"n":1}}`}}})
		o := over{h.T, p, serveHTTP(h.T, p, h.engine)}
		s := connect(h.T, o.transport, b2503)
		got := batch(o, s, timed(echo, time.Minute), timed(listing, time.Minute))
		if !strings.HasPrefix(got[0], `{"n":1} at `) || got[1] != `{"n":2} at 0` {
			h.Errorf("got %q", got)
		}
		if gets := p.Received("GET"); len(gets) != 1 || gets[0].Header.Get("Last-Event-Id") != "e-1" {
			h.Errorf("got %+v", gets)
		}
	})
}

// A request of a batch is cancelled on purpose as a single one is.
func TestBatchOfWhichOneIsCancelled(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("batch", mcptest.Answer{Delay: time.Second, JSON: `[{"jsonrpc":"2.0","id":$1,"result":{}},{"jsonrpc":"2.0","id":$2,"result":{}}]`})
	}
	overAll(t, peer, func(o over) {
		s := connect(o.T, o.transport, b2503)
		req := echo
		req.Wants = &mcp.Wants{CancelAfter: 300 * time.Millisecond}
		replies, err := s.Batch(o.Context(), []mcp.Request{req, echo})
		if err != nil || replies[1].Err != nil {
			o.Fatalf("got %+v, %v", replies, err)
		}
		e, ok := errors.AsType[*mcp.CancelledError](replies[0].Err)
		if start := replies[0].Reply.Timing.Start; !ok || e.Sent-start != 300*time.Millisecond || e.Stopped-start != time.Second {
			o.Errorf("error %v", replies[0].Err)
		}
	})
}
