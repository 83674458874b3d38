package mcp_test

import (
	"net"
	"net/http"
	"testing"
	"time"

	"mcpbench/mcp"
)

// A server may close a connection soon after an answer. The next request must
// not fail for it, and must not be sent twice. In real time, over TCP: it is the
// socket that knows.
func TestAConnectionClosedBetweenRequestsCostsNone(t *testing.T) {
	for name, tr := range map[string]*mcp.Streamable{
		"fast": {Engine: mcp.EngineFast}, "std": {Engine: mcp.EngineStd},
		"fast, shared": {Engine: mcp.EngineFast, Connections: mcp.NewConnections(1)},
		"std, shared":  {Engine: mcp.EngineStd, Connections: mcp.NewConnections(1)},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			closed := make(chan struct{}, 100)
			var lc net.ListenConfig
			l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{
				ReadHeaderTimeout: time.Minute,
				IdleTimeout:       time.Millisecond,
				Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					calls++
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(rune('0'+calls)) + `,"result":{"protocolVersion":"2026-07-28","supportedVersions":["2026-07-28"],"capabilities":{}}}`))
				}),
				ConnState: func(_ net.Conn, s http.ConnState) {
					if s == http.StateClosed {
						closed <- struct{}{}
					}
				},
			}
			go func() { _ = server.Serve(l) }()
			defer func() { _ = server.Close() }()
			tr.URL = "http://" + l.Addr().String() + "/mcp"
			s := connect(t, tr, mcp.Options{Version: mcp.V20260728, Base: time.Now()})
			for range 5 {
				<-closed
				time.Sleep(5 * time.Millisecond) // until the end has crossed the loopback, and longer than a probe spares
				if _, err := s.Call(t.Context(), mcp.Request{Method: "tools/call", Params: []byte(`{"name":"x"}`)}); err != nil {
					t.Fatal(err)
				}
			}
			if calls != 6 {
				t.Errorf("the server saw %d requests, want 6", calls)
			}
		})
	}
}
