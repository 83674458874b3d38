package mcp_test

import (
	"testing"

	"mcpbench/mcp"
)

func TestCacheHints(t *testing.T) {
	const list = "tools/list"
	for _, tt := range []struct {
		name, method, result string
		want                 mcp.CacheHints
		none                 bool
	}{
		{"both", list, `{"tools":[{"ttlMs":1}],"ttlMs":60000,"cacheScope":"public"}`, mcp.CacheHints{TTL: 60000, Scope: "public"}, false},
		{"private", "resources/read", `{"cacheScope":"private","ttlMs":0}`, mcp.CacheHints{Scope: "private"}, false},
		{"negative", list, `{"ttlMs":-5,"cacheScope":"public"}`, mcp.CacheHints{Scope: "public"}, false},
		{"no TTL", "prompts/list", `{"cacheScope":"public"}`, mcp.CacheHints{Scope: "public"}, false},
		{"no scope", "resources/list", `{"ttlMs":7}`, mcp.CacheHints{TTL: 7}, false},
		{"a text", list, `{"ttlMs":"60000"}`, mcp.CacheHints{}, false},
		{"null", list, `{"ttlMs":null,"cacheScope":null}`, mcp.CacheHints{Scope: "other"}, false},
		{"unknown scope", "server/discover", `{"ttlMs":1.5e3,"cacheScope":"team"}`, mcp.CacheHints{TTL: 1500, Scope: "other"}, false},
		{"huge", "resources/templates/list", `{"ttlMs":1e300}`, mcp.CacheHints{TTL: 1 << 53}, false},
		{"beyond a float", list, `{"ttlMs":1e999}`, mcp.CacheHints{TTL: 1 << 53}, false},
		{"escaped key", list, `{"ttl\u004ds":9}`, mcp.CacheHints{TTL: 9}, false},
		{"none", list, `{"tools":[]}`, mcp.CacheHints{}, true},
		{"no result", list, ``, mcp.CacheHints{}, true},
		{"a call", "tools/call", `{"ttlMs":5,"cacheScope":"public"}`, mcp.CacheHints{}, true},
		{"a prompt", "prompts/get", `{"ttlMs":5,"cacheScope":"public"}`, mcp.CacheHints{}, true},
	} {
		got, ok := mcp.V20260728.CacheHints(tt.method, []byte(tt.result))
		if got != tt.want || ok == tt.none {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, ok, tt.want)
		}
		if got, ok := mcp.V20251125.CacheHints(tt.method, []byte(tt.result)); ok {
			t.Errorf("%s: %+v in 2025-11-25, which has no hints", tt.name, got)
		}
	}
	call := []byte(`{"content":[],"ttlMs":5}`)
	if n := testing.AllocsPerRun(100, func() { _, _ = mcp.V20260728.CacheHints("tools/call", call) }); n > 0 {
		t.Errorf("%v allocations for a call", n)
	}
}
