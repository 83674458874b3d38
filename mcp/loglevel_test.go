package mcp_test

import (
	"encoding/json"
	"testing"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// TestLogLevelOfARequest looks for the level in what the server received: it
// stands in _meta where the version has it, and nowhere else.
func TestLogLevelOfARequest(t *testing.T) {
	const key = "io.modelcontextprotocol/logLevel"
	const log = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
	wants := &mcp.Wants{LogLevel: "info"}
	requests := []mcp.Request{
		{Method: "tools/call", Params: []byte(`{"name":"echo"}`), Wants: wants},
		{Method: "tools/call", Params: []byte(`{"name":"echo","_meta":{"k":1}}`), Wants: wants},
		{Method: "tools/call", Params: []byte(`{"name":"echo","_meta":{"` + key + `":"error"}}`), Wants: wants},
		{Method: "tools/list", Wants: wants},
		{Method: "tools/call", Params: []byte(`{"name":"echo"}`), Wants: &mcp.Wants{LogLevel: "info", Progress: true}},
		{Method: "tools/call", Params: []byte(`{"name":"echo"}`)},
	}
	for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
		levels := []string{"info", "info", "error", "info", "info", ""}
		if v == mcp.V20251125 {
			levels = []string{"", "", "error", "", "", ""}
		}
		peer := func() *mcptest.Peer {
			return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{{JSON: log}}, Result: echoed})
		}
		overAll(t, peer, func(o over) {
			if !carries(o.transport, v) {
				o.Skip("HTTP+SSE has no 2026-07-28")
			}
			s := connect(o.T, o.transport, mcp.Options{Version: v})
			for i, req := range requests {
				r, err := s.Call(o.Context(), req)
				if err != nil {
					o.Fatalf("request %d: %v", i, err)
				}
				if o.transport.Kind() == "http" && req.Method == "tools/call" && r.Notifications != 1 {
					o.Errorf("request %d: %d notifications, want 1", i, r.Notifications)
				}
			}
			var got []string
			for _, m := range o.peer.Received("tools/call", "tools/list") {
				got = append(got, levelOf(o.T, m.Body, v))
			}
			if d := cmp.Diff(levels, got); d != "" {
				o.Errorf("%s: levels (-want +got)\n%s", v, d)
			}
		})
	}
}

// levelOf returns the log level in a request of version v, "" for none.
func levelOf(t *testing.T, body string, v mcp.Version) (level string) {
	t.Helper()
	var request struct {
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	if raw := request.Params.Meta["io.modelcontextprotocol/logLevel"]; raw != nil {
		if err := json.Unmarshal(raw, &level); err != nil {
			t.Fatal(err)
		}
	}
	if _, has := request.Params.Meta["io.modelcontextprotocol/protocolVersion"]; has != (v == mcp.V20260728) {
		t.Errorf("_meta of %s: %s", v, body)
	}
	return level
}
