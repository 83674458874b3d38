package mcp_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// frameLog keeps what it was shown as one line each.
type frameLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *frameLog) show(f mcp.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	arrow := "<"
	if f.Out {
		arrow = ">"
	}
	line := fmt.Sprintf("%v %s %s", f.At, arrow, f.Channel)
	if f.Status > 0 {
		line += fmt.Sprintf(" %d", f.Status)
	}
	line += strings.Join(append([]string{""}, f.Header...), " ")
	if f.Event != "" {
		line += " (" + f.Event + ")"
	}
	if text := string(f.Data); text != "" {
		if i := strings.Index(text, `"method":"`); i >= 0 {
			text, _, _ = strings.Cut(text[i+10:], `"`)
		} else if i := strings.Index(text, `"result"`); i >= 0 {
			text = "result"
		}
		line += " " + text
	}
	l.lines = append(l.lines, line)
}

// The whole of a session is shown, in order, with the moments of virtual time.
func TestFrames(t *testing.T) {
	const json, sse = "Content-Type: application/json", "Content-Type: text/event-stream"
	const session = " Mcp-Session-Id: s1"
	const state = session + " Mcp-Protocol-Version: 2025-11-25"
	const modern = " Mcp-Protocol-Version: 2026-07-28 Mcp-Method: "
	progress := mcptest.Frame{Delay: time.Second, Event: "message", JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`}
	tests := []struct {
		name    string
		version mcp.Version
		stdio   bool
		answer  mcptest.Answer
		want    []string
	}{
		{"json", "2025-11-25", false, mcptest.Answer{Delay: 2 * time.Second, Result: echoed}, []string{
			"0s > post initialize", "0s < post 200 " + json + session + " result",
			"0s > post" + state + " notifications/initialized", "0s < post 202",
			"0s > post" + state + " tools/call", "2s < post 200 " + json + " result",
			"2s > delete" + state, "2s < delete 204",
		}},
		{"event stream", "2025-11-25", false, mcptest.Answer{Frames: []mcptest.Frame{progress}, Result: echoed}, []string{
			"0s > post initialize", "0s < post 200 " + json + session + " result",
			"0s > post" + state + " notifications/initialized", "0s < post 202",
			"0s > post" + state + " tools/call", "0s < post 200 " + sse, "1s < event (message) notifications/progress", "1s < event result",
			"1s > delete" + state, "1s < delete 204",
		}},
		{"refused", "2026-07-28", false, mcptest.Answer{Status: 503, Type: "text/plain", Raw: "busy", Header: map[string]string{"Retry-After": "7"}}, []string{
			"0s > post" + modern + "server/discover server/discover", "0s < post 200 " + json + " result",
			"0s > post" + modern + "tools/call Mcp-Name: echo tools/call", "0s < post 503 Content-Type: text/plain Retry-After: 7 busy",
		}},
		{"stdio", "2025-11-25", true, mcptest.Answer{Delay: time.Second, Raw: "a banner\n"}, []string{
			"0s > stdio initialize", "0s < stdio result", "0s > stdio notifications/initialized",
			"0s > stdio tools/call", "1s < stdio a banner", "2.5s > stdio notifications/cancelled",
		}},
	}
	for _, tt := range tests {
		if tt.stdio {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := (&mcptest.Peer{SessionID: "s1"}).On("tools/call", tt.answer)
					testFrames(t, p.Stdio(t), tt.version, tt.want)
				})
			})
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				p := (&mcptest.Peer{SessionID: "s1"}).On("tools/call", tt.answer)
				testFrames(h.T, serveHTTP(h.T, p, h.engine), tt.version, tt.want)
			})
		})
	}
}

func testFrames(t *testing.T, transport mcp.Transport, version mcp.Version, want []string) {
	t.Helper()
	var log frameLog
	s, err := mcp.Connect(t.Context(), transport, mcp.Options{Version: version, OnFrame: log.show})
	if err != nil {
		t.Fatal(err)
	}
	req := echo
	req.Timeout = 2500 * time.Millisecond
	_, _ = s.Call(t.Context(), req)
	synctest.Wait()
	closeSession(t, s)
	if d := cmp.Diff(want, log.lines); d != "" {
		t.Errorf("frames (-want +got)\n%s", d)
	}
}
