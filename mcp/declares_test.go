package mcp_test

import (
	"encoding/json"
	"slices"
	"testing"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// What a server declares, and what may then be asked of it, by version.
func TestDeclares(t *testing.T) {
	all := mcp.Versions()
	legacy, modern := all[1:], all[:1]
	tests := []struct {
		method, capabilities string
		yes                  []mcp.Version // the rest: no
	}{
		{"tools/list", `{"tools":{}}`, all},
		{"tools/call", `{"tools":{"listChanged":false}}`, all},
		{"tools/call", `{"prompts":{}}`, nil},
		{"tools/call", `{"tools":null}`, nil},
		{"tools/call", `{"tools":true}`, nil},
		{"tools/call", ``, nil},
		{"resources/read", `{"resources":{}}`, all},
		{"resources/templates/list", `{}`, nil},
		{"prompts/get", `{"prompts":{}}`, all},
		{"resources/subscribe", `{"resources":{}}`, nil},
		{"resources/subscribe", `{"resources":{"subscribe":false,"listChanged":true}}`, nil},
		{"resources/subscribe", `{"resources":{"subscribe":"true"}}`, nil},
		{"resources/subscribe", `{"resources":{"subscribe":true}}`, legacy},
		{"resources/unsubscribe", `{"resources":{"subscribe":true}}`, legacy},
		{"logging/setLevel", `{"tools":{}}`, nil},
		{"logging/setLevel", `{"logging":{}}`, legacy},
		{"completion/complete", `{"prompts":{}}`, []mcp.Version{mcp.V20241105}},
		{"completion/complete", `{"completions":{}}`, all},
		{"subscriptions/listen", `{"tools":{},"resources":{},"prompts":{"listChanged":false}}`, nil},
		{"subscriptions/listen", `{"tools":{"listChanged":true}}`, modern},
		{"subscriptions/listen", `{"resources":{"subscribe":true}}`, modern},
		{"tasks/get", `{"tasks":{}}`, []mcp.Version{mcp.V20251125}},
		{"tasks/get", `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, modern},
		{"tasks/list", `{"tasks":{"cancel":{}}}`, nil},
		{"tasks/cancel", `{"tasks":{"cancel":{}}}`, []mcp.Version{mcp.V20251125}},
		{"tasks/update", `{"tasks":{}}`, nil},
		{"ping", `{}`, legacy},
		{"initialize", `{}`, legacy},
		{"server/discover", `{}`, modern},
		{"vendor/own", `{}`, all},
		{"notifications/tools/list_changed", `{"tools":{}}`, nil},
		{"notifications/tools/list_changed", `{"tools":{"listChanged":true}}`, all},
		{"notifications/prompts/list_changed", `{"tools":{"listChanged":true}}`, nil},
		{"notifications/resources/list_changed", `{"resources":{"listChanged":true}}`, all},
		{"notifications/resources/updated", `{"resources":{"listChanged":true}}`, nil},
		{"notifications/resources/updated", `{"resources":{"subscribe":true}}`, all},
		{"notifications/message", `{"logging":{}}`, all},
		{"notifications/message", `{}`, nil},
		{"notifications/progress", `{}`, all},
		{"notifications/cancelled", `{}`, all},
		{"notifications/subscriptions/acknowledged", `{}`, modern},
		{"notifications/elicitation/complete", `{}`, []mcp.Version{mcp.V20251125}},
	}
	for _, tt := range tests {
		for _, v := range all {
			i := mcp.Info{Version: v, Capabilities: json.RawMessage(tt.capabilities)}
			if got := i.Declares(tt.method); got != slices.Contains(tt.yes, v) {
				t.Errorf("%s of %s in %s: %v", tt.method, tt.capabilities, v, got)
			}
		}
	}
}

// What is not declared can be sent all the same: whoever probes a server wants to.
func TestUndeclaredIsSent(t *testing.T) {
	overAll(t, plainPeer, func(o over) {
		s := connect(o.T, o.transport, mcp.Options{})
		if s.Info().Declares("logging/setLevel") || !s.Info().Declares("tools/call") {
			o.Errorf("capabilities %s", s.Info().Capabilities)
		}
		o.peer.On("logging/setLevel", mcptest.Answer{Result: "{}"})
		if _, err := s.Call(o.Context(), mcp.Request{Method: "logging/setLevel", Params: []byte(`{"level":"info"}`)}); err != nil {
			o.Error(err)
		}
	})
}
