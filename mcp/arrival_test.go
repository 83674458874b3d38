package mcp_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// Progress that came in one piece with the answer was stamped when it was looked at,
// after the end of the request.
func TestProgressIsNotStampedAfterTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}` + "\n" +
			`{"jsonrpc":"2.0","id":$ID,"result":{}}` + "\n"
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Raw: both})
		busy := func(f mcp.Frame) {
			if !f.Out {
				time.Sleep(ms) // the client has something else to do
			}
		}
		s := connect(t, p.Stdio(t), mcp.Options{OnFrame: busy})
		r, err := s.Call(t.Context(), following(mcp.Wants{}))
		if err != nil || r.Progress != 1 || r.More.Last > r.Timing.End || r.More.First < r.Timing.Start {
			t.Errorf("got %+v, %+v, %v", r.Timing, r.More, err)
		}
	})
}

// Over HTTP+SSE the time until a cancellation, and the silence allowed, began before
// the connection for the POST was opened.
func TestConnectingDoesNotCountOverSSE(t *testing.T) {
	for _, engine := range engines {
		t.Run(string(engine), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{})
				tr := serveSSE(t, p, engine)
				dial := tr.DialContext
				tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					time.Sleep(30 * ms)
					return dial(ctx, network, addr)
				}
				s := connect(t, tr, mcp.Options{})
				var calls sync.WaitGroup
				for range 4 { // of which all but one need a new connection
					calls.Go(func() {
						r, err := s.Call(t.Context(), following(mcp.Wants{CancelAfter: 20 * ms}))
						e, ok := errors.AsType[*mcp.CancelledError](err)
						if !ok || e.Sent-r.Timing.Start != 20*ms {
							t.Errorf("connecting took %v, cancelled after %v: %+v, %v", r.Timing.Connect, e.Sent-r.Timing.Start, r, err)
						}
						r, err = s.Call(t.Context(), following(mcp.Wants{IdleTimeout: 20 * ms}))
						if _, ok := errors.AsType[*mcp.TimeoutError](err); !ok || r.Timing.End-r.Timing.Start != 20*ms {
							t.Errorf("the silence was %v: %v", r.Timing.End-r.Timing.Start, err)
						}
					})
				}
				calls.Wait()
			})
		})
	}
}
