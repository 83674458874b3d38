package mcp_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// Wire test 26: the envelope of 2026-07-28.
func TestModernEnvelope(t *testing.T) {
	const meta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"mcpbench","version":"dev"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}`
	tests := []struct {
		method, params, name string // of the request
		want, header         string // params as sent, Mcp-Name ("-": none)
	}{
		{"tools/list", "", "", `{"_meta":{` + meta + `}}`, "-"},
		{"tools/list", "{ }", "", `{ "_meta":{` + meta + `}}`, "-"},
		{"tools/list", `{"cursor":"c"}`, "", `{"cursor":"c","_meta":{` + meta + `}}`, "-"},
		{"tools/call", `{"name":"a","arguments":{"name":"b"}}`, "", `{"name":"a","arguments":{"name":"b"},"_meta":{` + meta + `}}`, "a"},
		{"tools/call", `{"name":"a"}`, "other", `{"name":"a","_meta":{` + meta + `}}`, "other"},
		{"tools/call", `{"name":"größe"}`, "", `{"name":"größe","_meta":{` + meta + `}}`, "=?base64?Z3LDtsOfZQ==?="},
		{"tools/call", `{"_meta":{"progressToken":1},"name":"a"}`, "", `{"_meta":{` + meta + `,"progressToken":1},"name":"a"}`, "a"},
		{"tools/call", `{"_meta":{},"name":"a"}`, "", `{"_meta":{` + meta + `},"name":"a"}`, "a"},
		{"tools/call", `{"name":"_meta","arguments":{"_meta":1}}`, "", `{"name":"_meta","arguments":{"_meta":1},"_meta":{` + meta + `}}`, "_meta"},
		{
			"tools/call", `{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}`, "",
			`{"name":"a","_meta":{` + strings.SplitN(meta, ",", 2)[1] + `,"io.modelcontextprotocol/protocolVersion":"x"}}`, "a",
		},
		{"resources/read", `{"uri":"toy://a"}`, "", `{"uri":"toy://a","_meta":{` + meta + `}}`, "toy://a"},
		{"prompts/get", `{"name":"p"}`, "", `{"name":"p","_meta":{` + meta + `}}`, "p"},
		{"tasks/get", `{"taskId":"k9"}`, "", `{"taskId":"k9","_meta":{` + meta + `}}`, "k9"},
		{"completion/complete", `{"ref":{"name":"x"}}`, "", `{"ref":{"name":"x"},"_meta":{` + meta + `}}`, "-"},
	}
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := &mcptest.Peer{SessionID: "never"}
		p.On("server/discover", mcptest.Answer{
			Result: `{"supportedVersions":["2026-07-28"]}`, Header: map[string]string{"Mcp-Session-Id": "ignored"},
		})
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{Version: mcp.V20260728, Capabilities: []byte(`{"roots":{}}`)})
		for _, tt := range tests {
			before := len(p.Received())
			var params []byte
			if tt.params != "" {
				params = []byte(tt.params)
			}
			if _, err := s.Call(t.Context(), mcp.Request{Method: tt.method, Params: params, Name: tt.name}); err != nil && !isRPC(err) {
				t.Errorf("%s: %v", tt.method, err)
			}
			r := p.Received()[before]
			if string(r.Params) != tt.want {
				t.Errorf("%s %s sent as\n%s, want\n%s", tt.method, tt.params, r.Params, tt.want)
			}
			name := "-"
			if v, ok := r.Header["Mcp-Name"]; ok {
				name = v[0]
			}
			got := []string{name, r.Header.Get("Mcp-Method"), r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Mcp-Session-Id")}
			if want := []string{tt.header, tt.method, "2026-07-28", ""}; !slices.Equal(got, want) {
				t.Errorf("%s %s headers %q, want %q", tt.method, tt.params, got, want)
			}
		}
	})
}

func isRPC(err error) bool {
	_, ok := errors.AsType[*mcp.RPCError](err)
	return ok
}
