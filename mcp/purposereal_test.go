//go:build unix

package mcp_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// Over real sockets, and with TLS between: the moment of a cancellation interrupts
// a read and harms nothing, so that the connection goes on being used.
func TestPurposeOverRealSockets(t *testing.T) {
	for _, engine := range engines {
		for _, secure := range []bool{false, true} {
			t.Run(string(engine), func(t *testing.T) {
				mcptest.NoLeaks(t)
				note := tick(60*ms, "$TOKEN", "1")
				late := mcptest.Answer{Frames: []mcptest.Frame{note, {Delay: 30 * ms, Raw: ":\n\n"}}, Result: echoed}
				p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", late, mcptest.Answer{Result: echoed})
				tr := serveReal(t, p, secure, "http/1.1")
				tr.Engine = engine
				var a mcptest.Anomalies
				s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
				r, err := s.Call(t.Context(), following(mcp.Wants{CancelAfter: 20 * ms, IdleTimeout: 5 * sec}))
				e, ok := errors.AsType[*mcp.CancelledError](err)
				if !ok || e.Sent-r.Timing.Start < 20*ms || e.Stopped-r.Timing.Start < 90*ms || e.Stopped != r.Timing.End || r.Progress != 1 {
					t.Fatalf("got %+v, %+v", r, err)
				}
				if r, err := s.Call(t.Context(), echo); err != nil || r.Timing.Connect != 0 {
					t.Errorf("the next call: %+v, %v", r, err)
				}
				if n := len(p.Received("notifications/cancelled")); n != 1 || len(a.Texts()) != 0 {
					t.Errorf("%d cancellations, anomalies %v", n, a.Texts())
				}
			})
		}
	}
}

// Wire test 25: over HTTP/2 the stream is reset and the connection stays.
func TestCancellationOverHTTP2(t *testing.T) {
	mcptest.NoLeaks(t)
	var gone atomic.Int32
	p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{SSE: true, Hold: true}, mcptest.Answer{Silent: true}, mcptest.Answer{Result: echoed})
	tr := serveReal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r)
		if r.Context().Err() != nil {
			gone.Add(1)
		}
	}), true, "h2")
	s := connect(t, tr, mcp.Options{Version: mcp.V20260728})
	for range 2 {
		r, err := s.Call(t.Context(), mcp.Request{Method: "tools/call", Params: echo.Params, Wants: &mcp.Wants{CancelAfter: 20 * ms}})
		e, ok := errors.AsType[*mcp.CancelledError](err)
		if !ok || e.Stopped != 0 || e.Sent != r.Timing.End {
			t.Errorf("got %+v, %+v", r, err)
		}
	}
	if r, err := s.Call(t.Context(), echo); err != nil || r.Timing.Connect != 0 {
		t.Errorf("the next call: %+v, %v", r, err)
	}
	for deadline := time.Now().Add(5 * sec); gone.Load() < 2 && time.Now().Before(deadline); {
		time.Sleep(ms) // real sockets know no virtual time
	}
	if gone.Load() != 2 || len(p.Received("notifications/cancelled")) != 0 {
		t.Errorf("%d requests were reset, %v came", gone.Load(), p.Methods())
	}
}

// serveReal serves on the loopback interface and returns the transport that reaches it.
func serveReal(t *testing.T, h http.Handler, secure bool, proto string) *mcp.Streamable {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	t.Cleanup(server.Close)
	if !secure {
		server.Start()
		return &mcp.Streamable{URL: server.URL}
	}
	server.EnableHTTP2 = proto == "h2"
	server.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return &mcp.Streamable{URL: server.URL, TLS: &tls.Config{RootCAs: roots, NextProtos: []string{proto}}}
}
