package mcp_test

import (
	"context"
	"errors"
	"net"
	"strings"
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

// The level from which on a request wants log messages was not sent.
func TestLogLevelOfARequest(t *testing.T) {
	for _, v := range mcp.Versions() {
		t.Run(string(v), func(t *testing.T) {
			overBoth(t, func() *mcptest.Peer { return &mcptest.Peer{} }, func(o over) {
				s := connect(o.T, o.transport, mcp.Options{Version: v})
				w := &mcp.Wants{Progress: true, LogLevel: "warning"}
				for _, params := range []string{`{"name":"echo"}`, `{"name":"echo","_meta":{"k":1}}`} {
					if _, err := s.Call(o.Context(), mcp.Request{Method: "tools/call", Params: []byte(params), Wants: w}); err != nil {
						o.Error(err)
					}
				}
				for _, r := range o.peer.Received("tools/call") {
					has := strings.Contains(string(r.Params), `"io.modelcontextprotocol/logLevel":"warning"`)
					if has != (v == mcp.V20260728) || !strings.Contains(string(r.Params), `"progressToken"`) {
						o.Errorf("sent %s", r.Params)
					}
				}
			})
		})
	}
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
