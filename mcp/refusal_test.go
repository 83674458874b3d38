package mcp_test

import (
	"errors"
	"testing"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// Wire test 14 and the rest of the matrix: answers outside 2xx.
func TestHTTPRefusals(t *testing.T) {
	const rpc = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"unknown"}}`
	const noSession = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`
	tests := []struct {
		name    string
		session string
		answer  mcptest.Answer
		rpc     int64 // code, 0: an HTTP error
		lost    bool
		text    string
	}{
		{"404 with a session", "s", mcptest.Answer{Status: 404, Raw: "session not found", Type: "text/plain"}, 0, true, "HTTP status 404 (the server session is gone): session not found"},
		{"404 with a session and a JSON-RPC body", "s", mcptest.Answer{Status: 404, JSON: rpc}, 0, true, "404"},
		{"404 without a session", "", mcptest.Answer{Status: 404, Raw: "not here", Type: "text/html"}, 0, false, "HTTP status 404: not here"},
		{"404 without a session, JSON-RPC", "", mcptest.Answer{Status: 404, JSON: rpc}, -32601, false, "HTTP 404"},
		{"400 No valid session ID", "s", mcptest.Answer{Status: 400, JSON: noSession}, -32000, true, "No valid session ID"},
		{"the same without a session", "", mcptest.Answer{Status: 400, JSON: noSession}, -32000, false, "No valid session ID"},
		{"400 JSON-RPC", "s", mcptest.Answer{Status: 400, JSON: rpc}, -32601, false, "(HTTP 400): unknown"},
		{"400 text (go-sdk)", "s", mcptest.Answer{Status: 400, Raw: "JSON RPC not handled", Type: "text/plain"}, 0, false, "JSON RPC not handled"},
		{"400 about another request", "s", mcptest.Answer{Status: 400, JSON: `{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":""}}`}, 0, false, "status 400"},
		{"301", "s", mcptest.Answer{Status: 301, Header: map[string]string{"Location": "https://elsewhere/"}}, 0, false, "Location: https://elsewhere/"},
		{"307", "s", mcptest.Answer{Status: 307, Header: map[string]string{"Location": "/mcp/"}}, 0, false, "Location: /mcp/"},
		{"403", "s", mcptest.Answer{Status: 403, Raw: "{}"}, 0, false, "HTTP status 403: {}"},
		{"429", "s", mcptest.Answer{Status: 429, Header: map[string]string{"Retry-After": "3600"}}, 0, false, "Retry-After: 3600"},
		{"500", "s", mcptest.Answer{Status: 500, Raw: "oops", Type: "text/plain"}, 0, false, "HTTP status 500: oops"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				r, err := callRefused(t, engine, tt.session, tt.answer)
				contains(t, err, tt.text)
				if r.HTTPStatus != tt.answer.Status {
					t.Errorf("status %d", r.HTTPStatus)
				}
				if e, ok := errors.AsType[*mcp.RPCError](err); ok != (tt.rpc != 0) || ok && (e.Code != tt.rpc || e.HTTPStatus != tt.answer.Status) {
					t.Errorf("error %v", err)
				}
				if e, ok := errors.AsType[*mcp.HTTPError](err); ok && (e.Status != tt.answer.Status || e.Lost != tt.lost) {
					t.Errorf("error %+v", e)
				}
				if mcp.SessionLost(err) != tt.lost {
					t.Errorf("SessionLost is %v, want %v", !tt.lost, tt.lost)
				}
			})
		})
	}
}

// callRefused makes one call that gets the answer, and checks that nothing is
// repeated and nothing re-opened.
func callRefused(t *testing.T, engine mcp.Engine, session string, answer mcptest.Answer) (mcp.Reply, error) {
	t.Helper()
	p := (&mcptest.Peer{SessionID: session}).On("tools/call", answer)
	s := connect(t, serveHTTP(t, p, engine), mcp.Options{})
	r, err := s.Call(t.Context(), echo)
	if n := len(p.Received("tools/call", "initialize")); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
	return r, err
}

// Wire tests 21 and 22: failures in their own layers, over both transports.
func TestErrorsAndToolErrors(t *testing.T) {
	tests := []struct {
		name      string
		req       mcp.Request
		answer    mcptest.Answer
		code      int64
		toolError bool
	}{
		{"-32002", mcp.Request{Method: "resources/read", Params: []byte(`{"uri":"toy://x"}`)}, mcptest.Answer{Error: `{"code":-32002,"message":"gone","data":{"uri":"toy://x"}}`}, -32002, false},
		{"code 0 (go-sdk)", echo, mcptest.Answer{Error: `{"code":0,"message":"duplicate"}`}, 0, false},
		{"error in SSE", echo, mcptest.Answer{Error: `{"code":-32602,"message":"no"}`, SSE: true}, -32602, false},
		{"empty contents", mcp.Request{Method: "resources/read", Params: []byte(`{"uri":"toy://x"}`)}, mcptest.Answer{Result: `{"contents":[]}`}, 1, false},
		{"isError", echo, mcptest.Answer{Result: `{"content":[{"type":"text","text":"MCP error -32602: no"}],"isError":true}`}, 1, true},
		{"isError false", echo, mcptest.Answer{Result: `{"isError":false,"content":[]}`}, 1, false},
		{"isError inside the content", echo, mcptest.Answer{Result: `{"content":[],"structuredContent":{"isError":true}}`}, 1, false},
		{"isError of another method", mcp.Request{Method: "prompts/get", Params: []byte(`{"name":"p"}`)}, mcptest.Answer{Result: `{"isError":true}`}, 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			peer := func() *mcptest.Peer { return (&mcptest.Peer{}).On(tt.req.Method, tt.answer) }
			overAll(t, peer, func(o over) {
				t, tr := o.T, o.transport
				s := connect(t, tr, mcp.Options{})
				r, err := s.Call(t.Context(), tt.req)
				if r.ToolError != tt.toolError {
					t.Errorf("ToolError %v", r.ToolError)
				}
				if tt.answer.Error == "" {
					if err != nil || string(r.Result) != tt.answer.Result {
						t.Errorf("got %s, %v", r.Result, err)
					}
					return
				}
				e, ok := errors.AsType[*mcp.RPCError](err)
				if !ok || e.Code != tt.code || r.Result != nil || r.BytesIn == 0 {
					t.Errorf("got %+v, %v", r, err)
				}
			})
		})
	}
}

// Wire test 39: resultType in 2026-07-28, and only there.
func TestResultType(t *testing.T) {
	tests := []struct {
		resultType string
		fault      mcp.ProtocolFault // 0: fine
	}{
		{``, 0},
		{`"resultType":"complete",`, 0},
		{`"resultType":"weird",`, mcp.FaultResultType},
		{`"resultType":7,`, mcp.FaultResultType},
		{`"resultType":"input_required",`, mcp.FaultInputRequired},
		{`"resultType":"task",`, mcp.FaultTask},
	}
	for _, tt := range tests {
		peer := func() *mcptest.Peer {
			return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Result: `{` + tt.resultType + `"content":null}`})
		}
		overBoth(t, peer, func(o over) {
			t, tr := o.T, o.transport
			s := connect(t, tr, mcp.Options{Version: mcp.V20260728})
			r, err := s.Call(t.Context(), echo)
			if tt.fault == 0 && err != nil {
				t.Errorf("%s: %v", tt.resultType, err)
			} else if tt.fault != 0 {
				wantFault(t, err, tt.fault)
			}
			if r.Result == nil {
				t.Errorf("%s: the result is lost", tt.resultType)
			}
			old := connect(t, tr, mcp.Options{Version: mcp.V20251125})
			if _, err := old.Call(t.Context(), echo); err != nil {
				t.Errorf("%s in 2025-11-25: %v", tt.resultType, err)
			}
		})
	}
}

// Wire test 45: an array of messages is fine in 2025-03-26 and a fault elsewhere.
func TestReceivedBatch(t *testing.T) {
	const batch = `[{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":77,"result":{}},{"jsonrpc":"2.0","id":$ID,"result":` + echoed + `}]`
	for _, v := range mcp.Versions() {
		for _, stream := range []bool{false, true} {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{JSON: batch, SSE: stream})
			}
			overAll(t, peer, func(o over) {
				t, tr := o.T, o.transport
				if !carries(tr, v) {
					return
				}
				var a mcptest.Anomalies
				s := connect(t, tr, mcp.Options{Version: v, OnAnomaly: a.Tell})
				r, err := s.Call(t.Context(), echo)
				if v != mcp.V20250326 {
					wantFault(t, err, mcp.FaultBatch)
					return
				}
				if err != nil || string(r.Result) != echoed || a.Counts()[mcp.AnomalyUnknownID] != 1 {
					t.Errorf("got %+v, %v, %v", r, err, a.Texts())
				}
			})
		}
	}
}
