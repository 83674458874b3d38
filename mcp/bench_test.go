package mcp_test

import (
	"context"
	"testing"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// BenchmarkCall measures one call with the in-memory peer included.
func BenchmarkCall(b *testing.B) {
	for _, bench := range []struct {
		name   string
		answer mcptest.Answer
		open   func(p *mcptest.Peer) mcp.Transport
	}{
		{"http/json", mcptest.Answer{Result: echoed}, func(p *mcptest.Peer) mcp.Transport { return p.HTTP(b) }},
		{"http/sse", mcptest.Answer{Result: echoed, SSE: true}, func(p *mcptest.Peer) mcp.Transport { return p.HTTP(b) }},
		{"stdio", mcptest.Answer{Result: echoed}, func(p *mcptest.Peer) mcp.Transport { return p.Stdio(b) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			tr := bench.open((&mcptest.Peer{}).On("tools/call", bench.answer))
			s, err := mcp.Connect(b.Context(), tr, mcp.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := s.Close(context.WithoutCancel(b.Context())); err != nil {
					b.Error(err)
				}
			}()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Call(b.Context(), echo); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
