package mcp_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// lean is a transport to a server that costs next to nothing.
type lean struct {
	name string
	open func(tb testing.TB) mcp.Transport
}

func leanServers() []lean {
	http := func(engine mcp.Engine, sse bool) func(tb testing.TB) mcp.Transport {
		return func(tb testing.TB) mcp.Transport {
			tb.Helper()
			tr := mcptest.Lean{SSE: sse}.HTTP(tb)
			tr.Engine = engine
			return tr
		}
	}
	return []lean{
		{"http/json/fast", http(mcp.EngineFast, false)},
		{"http/json/std", http(mcp.EngineStd, false)},
		{"http/sse/fast", http(mcp.EngineFast, true)},
		{"http/sse/std", http(mcp.EngineStd, true)},
		{"legacy sse/fast", func(tb testing.TB) mcp.Transport {
			tb.Helper()
			tr := mcptest.Lean{}.LegacySSE(tb)
			tr.Engine = mcp.EngineFast
			return tr
		}},
		{"stdio", func(tb testing.TB) mcp.Transport { tb.Helper(); return mcptest.Process(tb, mcptest.Cheap) }},
	}
}

// request is a call as a driver makes it: with a limit, and the buffer of the
// result before.
func request(last mcp.Reply) mcp.Request {
	req := echo
	req.Timeout = 10 * time.Second
	req.ResultBuf = last.Result[:0]
	return req
}

// BenchmarkRoundTrip measures one call to a server that costs next to nothing.
func BenchmarkRoundTrip(b *testing.B) {
	for _, server := range leanServers() {
		b.Run(server.name, func(b *testing.B) {
			s := openLean(b, server)
			b.ReportAllocs()
			var last mcp.Reply
			for b.Loop() {
				r, err := s.Call(b.Context(), request(last))
				if err != nil {
					b.Fatal(err)
				}
				last = r
			}
		})
	}
}

// BenchmarkDepth8 measures calls of which eight are in flight at any time.
func BenchmarkDepth8(b *testing.B) {
	for _, server := range leanServers() {
		b.Run(server.name, func(b *testing.B) {
			s := openLean(b, server)
			b.ReportAllocs()
			var callers sync.WaitGroup
			share := make(chan struct{}, 1024)
			for range 8 {
				callers.Go(func() {
					var last mcp.Reply
					for range share {
						for range 16 {
							r, err := s.Call(b.Context(), request(last))
							if err != nil {
								b.Error(err)
							}
							last = r
						}
					}
				})
			}
			b.ResetTimer()
			for range (b.N + 15) / 16 {
				share <- struct{}{}
			}
			close(share)
			callers.Wait()
		})
	}
}

func openLean(tb testing.TB, server lean) *mcp.Session {
	tb.Helper()
	s, err := mcp.Connect(tb.Context(), server.open(tb), mcp.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// In the steady state a call allocates nothing, when its caller hands in the
// buffer for the result: over HTTP, over HTTP+SSE, and over stdio.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget on purpose")
	}
	for _, server := range leanServers() {
		if strings.HasSuffix(server.name, "std") {
			continue // net/http allocates as it likes
		}
		t.Run(server.name, func(t *testing.T) {
			s := openLean(t, server)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var last mcp.Reply
			var failed error
			n := testing.AllocsPerRun(2000, func() {
				r, err := s.Call(ctx, request(last))
				if err != nil {
					failed = err
				}
				last = r
			})
			if failed != nil || string(last.Result) != mcptest.LeanResult {
				t.Fatalf("got %+v, %v", last, failed)
			}
			if n != 0 {
				t.Errorf("%v allocations a call", n)
			}
		})
	}
}
