package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbench/internal/target"
)

// TestServerSeesAllSourceAddresses runs four sessions from two addresses; the
// probe, which comes first, and every session use one of them.
func TestServerSeesAllSourceAddresses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is an address of every machine only under Linux")
	}
	type input struct {
		Message string `json:"message"`
	}
	old := mcp.NewServer(&mcp.Implementation{Name: "old", Version: "1"}, nil)
	mcp.AddTool(old, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Message}}}, nil, nil
	})
	streamable := target.New(target.Config{Version: "1"}).Handler()
	sse := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return old }, nil)
	for _, tt := range []struct {
		name    string
		handler http.Handler
		flags   []string
	}{
		{"fast", streamable, []string{"--http-engine", "fast"}},
		{"std", streamable, []string{"--http-engine", "std"}},
		{"fast, pinned", streamable, []string{"--http-engine", "fast", "--protocol", "2025-11-25"}},
		{"SSE fast", sse, []string{"--transport", "sse", "--http-engine", "fast"}},
		{"SSE std", sse, []string{"--transport", "sse", "--http-engine", "std"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var from []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				host, _, _ := net.SplitHostPort(r.RemoteAddr)
				mu.Lock()
				from = append(from, host)
				mu.Unlock()
				tt.handler.ServeHTTP(w, r)
			}))
			defer server.Close()
			var out, log bytes.Buffer
			args := append([]string{
				"run", "--url", server.URL + target.Path, "-t", "echo", "-a", `{"message":"hi"}`, "-c", "4", "-n", "40", "-q",
				"-o", filepath.Join(t.TempDir(), "out"), "--source-ip", "127.0.0.2,127.0.0.3",
			}, tt.flags...)
			if code := run(t.Context(), args, streams{in: bytes.NewReader(nil), out: &out, err: &log, env: os.LookupEnv}); code != 0 {
				t.Fatalf("exit %d\n%s%s", code, out.String(), log.String())
			}
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(from)
			if diff := cmp.Diff([]string{"127.0.0.2", "127.0.0.3"}, slices.Compact(from)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
