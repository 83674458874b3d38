package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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
	arrow := "<"
	if f.Out {
		arrow = ">"
	}
	parts := []string{f.At.String(), arrow, string(f.Channel)}
	if f.Status > 0 {
		parts = append(parts, fmt.Sprint(f.Status))
	}
	parts = append(parts, f.Header...)
	if f.Event != "" {
		parts = append(parts, "("+f.Event+")")
	}
	if f.EventID != "" {
		parts = append(parts, "id="+f.EventID)
	}
	if f.Retry > 0 {
		parts = append(parts, "retry="+f.Retry.String())
	}
	switch method, id := f.Names(); {
	case method != "":
		parts = append(parts, method+" "+id)
	case id != "":
		parts = append(parts, "#"+id)
	case len(f.Data) > 0:
		parts = append(parts, fmt.Sprintf("%q", f.Data))
	}
	if f.Cut {
		parts = append(parts, "cut")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, strings.TrimRight(strings.Join(parts, " "), " "))
}

func (l *frameLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// Fields as they are shown.
const (
	typeJSON    = "Content-Type: application/json"
	typeEvents  = "Content-Type: text/event-stream"
	idField     = "Mcp-Session-Id: s1"
	legacyState = idField + " Mcp-Protocol-Version: 2025-11-25 "
	modernState = "Mcp-Protocol-Version: 2026-07-28 Mcp-Method: "
)

// opened are the frames of a handshake over HTTP in 2025-11-25.
var opened = []string{
	"0s > post initialize 1", "0s < post 200 " + typeJSON + " " + idField + " #1",
	"0s > post " + legacyState + "notifications/initialized", "0s < post 202",
}

// A session is shown as it goes over the wire: each version's handshake, one
// call answered a second later, the end.
func TestFramesOfEachVersion(t *testing.T) {
	legacy := func(held string) []string {
		return []string{
			"0s > post initialize 1", "0s < post 200 " + typeJSON + " " + idField + " #1",
			"0s > post " + held + "notifications/initialized", "0s < post 202",
			"0s > post " + held + "tools/call 2", "1s < post 200 " + typeJSON + " #2",
			strings.TrimRight("1s > delete "+held, " "), "1s < delete 204",
		}
	}
	http := map[mcp.Version][]string{
		mcp.V20241105: legacy(idField + " "),
		mcp.V20250326: legacy(idField + " "),
		mcp.V20250618: legacy(idField + " Mcp-Protocol-Version: 2025-06-18 "),
		mcp.V20251125: legacy(legacyState),
		mcp.V20260728: {
			"0s > post " + modernState + "server/discover server/discover 1", "0s < post 200 " + typeJSON + " #1",
			"0s > post " + modernState + "tools/call Mcp-Name: echo tools/call 2", "1s < post 200 " + typeJSON + " #2",
		},
	}
	for _, v := range mcp.Versions() {
		t.Run(string(v), func(t *testing.T) {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{SessionID: "s1"}).On("tools/call", mcptest.Answer{Delay: time.Second, Result: echoed})
			}
			overBoth(t, peer, func(o over) {
				want := http[v]
				if o.transport.Kind() == "stdio" {
					want = []string{
						"0s > stdio initialize 1", "0s < stdio #1", "0s > stdio notifications/initialized",
						"0s > stdio tools/call 2", "1s < stdio #2",
					}
					if v == mcp.V20260728 {
						want = []string{"0s > stdio server/discover 1", "0s < stdio #1", "0s > stdio tools/call 2", "1s < stdio #2"}
					}
				}
				var log frameLog
				s, err := mcp.Connect(o.Context(), o.transport, mcp.Options{Version: v, OnFrame: log.show})
				if err != nil {
					o.Fatal(err)
				}
				if _, err := s.Call(o.Context(), echo); err != nil {
					o.Error(err)
				}
				closeSession(o.T, s)
				if d := cmp.Diff(want, log.all()); d != "" {
					o.Errorf("frames (-want +got)\n%s", d)
				}
			})
		})
	}
}

// What else can happen to a call over HTTP. The handshake was as ever.
func TestFramesOverHTTP(t *testing.T) {
	progress := mcptest.Frame{Delay: time.Second, Event: "message", ID: "e1", JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`}
	ping := mcptest.Frame{Delay: time.Second, JSON: `{"jsonrpc":"2.0","id":"x","method":"ping"}`}
	later := mcptest.Frame{Delay: time.Second, JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`}
	tests := []struct {
		name   string
		answer mcptest.Answer
		want   []string
	}{
		{"event stream", mcptest.Answer{Frames: []mcptest.Frame{{Raw: "id: e0\nretry: 10\ndata: \n\n"}, progress}, Result: echoed}, []string{
			"0s < post 200 " + typeEvents, "0s < event id=e0 retry=10ms", "1s < event (message) id=e1 notifications/progress", "1s < event #2",
		}},
		{"a request of the server", mcptest.Answer{Frames: []mcptest.Frame{ping, later}, Result: echoed}, []string{
			"0s < post 200 " + typeEvents, "1s < event ping \"x\"",
			"1s > post " + legacyState + "#\"x\"", "1s < post 202", "2s < event notifications/message", "2s < event #2",
		}},
		{"HTTP error", mcptest.Answer{Status: 503, Type: "text/plain", Raw: "busy", Header: map[string]string{"Retry-After": "7"}}, []string{
			`0s < post 503 Content-Type: text/plain Retry-After: 7 "busy"`,
		}},
		{"JSON-RPC error", mcptest.Answer{Status: 400, Error: `{"code":-32602,"message":"no"}`}, []string{"0s < post 400 " + typeJSON + " #2"}},
		{"no JSON", mcptest.Answer{Raw: "<html>", Type: "text/html"}, []string{`0s < post 200 Content-Type: text/html "<html>"`}},
		{"accepted", mcptest.Answer{Status: 202}, []string{"0s < post 202"}},
		{"cut short", mcptest.Answer{Raw: `{"jsonrpc":"2.0",`, Cut: true}, []string{`0s < post 200 ` + typeJSON + ` "{\"jsonrpc\":\"2.0\"," cut`}},
		{"too long", mcptest.Answer{Result: resultOf(5000)}, []string{"0s < post 200 " + typeJSON + " #2 cut"}},
		{"said to be too long", mcptest.Answer{Result: resultOf(5000), Header: map[string]string{"Content-Length": "5000"}}, []string{"0s < post 200 " + typeJSON + " cut"}},
		{"timeout", mcptest.Answer{Silent: true}, []string{
			"3s > post " + legacyState + "notifications/cancelled", "3s < post 202",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t := h.T
				p := (&mcptest.Peer{SessionID: "s1"}).On("tools/call", tt.answer)
				var log frameLog
				s := connect(t, serveHTTP(t, p, h.engine), mcp.Options{OnFrame: log.show, Limits: mcp.Limits{MessageBytes: 4000}})
				req := echo
				req.Timeout = 3 * time.Second
				_, _ = s.Call(t.Context(), req)
				synctest.Wait()
				want := slices.Concat(opened, []string{"0s > post " + legacyState + "tools/call 2"}, tt.want)
				if d := cmp.Diff(want, log.all()); d != "" {
					t.Errorf("frames (-want +got)\n%s", d)
				}
			})
		})
	}
}

// The GET stream, the one that is refused, and the body that goes with an acceptance.
func TestFramesOfTheGetStream(t *testing.T) {
	news := mcptest.Frame{Delay: time.Second, ID: "7", JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`}
	for name, tt := range map[string]struct {
		answer mcptest.Answer
		want   []string
	}{
		"open":    {mcptest.Answer{Frames: []mcptest.Frame{news}, Hold: true}, []string{"0s < get 200 " + typeEvents, "1s < get id=7 notifications/message"}},
		"refused": {mcptest.Answer{Status: 405, Type: "text/plain", Raw: "no stream"}, []string{`0s < get 405 Content-Type: text/plain "no stream"`}},
	} {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t := h.T
				p := (&mcptest.Peer{SessionID: "s1"}).On("GET", tt.answer).
					On("notifications/initialized", mcptest.Answer{Status: 202, Type: "text/plain", Raw: "Accepted"})
				var log frameLog
				connect(t, serveHTTP(t, p, h.engine), mcp.Options{OnFrame: log.show, GetStream: true})
				time.Sleep(2 * time.Second) // virtual
				want := slices.Concat(opened[:3], []string{
					`0s < post 202 Content-Type: text/plain "Accepted"`, strings.TrimRight("0s > get "+legacyState, " "),
				}, tt.want)
				if d := cmp.Diff(want, log.all()); d != "" {
					t.Errorf("frames (-want +got)\n%s", d)
				}
			})
		})
	}
}

// A stream that is taken up again is shown as the GET that it is.
func TestFramesOfAResumedStream(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{SessionID: "s1"}).On("tools/call", mcptest.Answer{Type: stream, Raw: primed["TypeScript"]})
		p.On("GET", answers("2"))
		var log frameLog
		s := connect(h.T, serveHTTP(h.T, p, h.engine), mcp.Options{OnFrame: log.show})
		if _, err := s.Call(h.Context(), echo); err != nil {
			h.Error(err)
		}
		want := slices.Concat(opened, []string{
			"0s > post " + legacyState + "tools/call 2", "0s < post 200 " + typeEvents, "0s < event id=e0 retry=50ms",
			"50ms > get " + legacyState + "Last-Event-ID: e0", "50ms < get 200 " + typeEvents, "50ms < get #2",
		})
		if d := cmp.Diff(want, log.all()); d != "" {
			h.Errorf("frames (-want +got)\n%s", d)
		}
	})
}

// Over HTTP+SSE answers come over the stream.
func TestFramesOverSSE(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Delay: time.Second, Result: echoed})
		var log frameLog
		s, err := mcp.Connect(h.Context(), serveSSE(h.T, p, h.engine), mcp.Options{Version: mcp.V20241105, OnFrame: log.show})
		if err != nil {
			h.Fatal(err)
		}
		if _, err := s.Call(h.Context(), echo); err != nil {
			h.Error(err)
		}
		closeSession(h.T, s)
		got := log.all()
		for i, line := range got { // the order of a response and of what comes over the stream is open
			got[i] = strings.Replace(line, "Content-Type: text/plain; charset=utf-8 ", "", 1)
		}
		slices.Sort(got)
		want := []string{
			`0s < get (endpoint) "/message?session=1"`, "0s < get (message) #1", "0s < get 200 " + typeEvents,
			`0s < post 202 "Accepted"`, `0s < post 202 "Accepted"`, `0s < post 202 "Accepted"`, "0s > get",
			"0s > post initialize 1", "0s > post notifications/initialized", "0s > post tools/call 2", "1s < get (message) #2",
		}
		if d := cmp.Diff(want, got); d != "" {
			h.Errorf("frames (-want +got)\n%s", d)
		}
	})
}

// Arguments that go into headers are shown there too.
func TestFramesShowParamHeaders(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{}).On("tools/list", mcptest.Answer{
			Result: `{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"message":{"type":"string","x-mcp-header":"Text"}}}}]}`,
		})
		var log frameLog
		s := connect(h.T, serveHTTP(h.T, p, h.engine), mcp.Options{Version: mcp.V20260728, OnFrame: log.show, ParamHeaders: &mcp.ParamHeaders{}})
		if _, err := s.Call(h.Context(), echo); err != nil {
			h.Error(err)
		}
		want := []string{
			"0s > post " + modernState + "server/discover server/discover 1", "0s < post 200 " + typeJSON + " #1",
			"0s > post " + modernState + "tools/list tools/list 2", "0s < post 200 " + typeJSON + " #2",
			"0s > post " + modernState + "tools/call Mcp-Name: echo Mcp-Param-Text: hi tools/call 3", "0s < post 200 " + typeJSON + " #3",
		}
		if d := cmp.Diff(want, log.all()); d != "" {
			h.Errorf("frames (-want +got)\n%s", d)
		}
	})
}

// Over pipes: lines that are no messages, blank ones left out, one that is too
// long, a batch, a cancellation.
func TestFramesOverPipes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Delay: time.Second, Raw: "a banner\n\r\n  \n[{}]\n" + strings.Repeat("x", 3000) + "\n"})
		var log frameLog
		s := connect(t, p.Stdio(t), mcp.Options{OnFrame: log.show, Limits: mcp.Limits{MessageBytes: 2000}})
		req := echo
		req.Timeout = 2 * time.Second
		_, _ = s.Call(t.Context(), req)
		synctest.Wait()
		want := []string{
			"0s > stdio initialize 1", "0s < stdio #1", "0s > stdio notifications/initialized", "0s > stdio tools/call 2",
			`1s < stdio "a banner"`, `1s < stdio "[{}]"`, fmt.Sprintf("1s < stdio %q cut", strings.Repeat("x", 2000)),
			"2s > stdio notifications/cancelled",
		}
		if d := cmp.Diff(want, log.all()); d != "" {
			t.Errorf("frames (-want +got)\n%s", d)
		}
	})
}

// A request is shown when it is sent, not when something comes back; one that no
// connection was there for is not.
func TestFrameOfARequestWithoutAnAnswer(t *testing.T) {
	overBoth(t, func() *mcptest.Peer { return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Silent: true}) }, func(o over) {
		var log frameLog
		s := connect(o.T, o.transport, mcp.Options{Version: mcp.V20260728, OnFrame: log.show})
		ctx, cancel := context.WithCancel(o.Context())
		defer cancel()
		var calling sync.WaitGroup
		calling.Go(func() { _, _ = s.Call(ctx, echo) })
		time.Sleep(time.Minute) // virtual
		if lines := log.all(); len(lines) != 3 || !strings.HasSuffix(lines[2], "tools/call 2") {
			o.Errorf("frames while the server is silent: %q", lines)
		}
		cancel()
		calling.Wait()
	})
	overHTTP(t, func(h onHTTP) {
		var log frameLog
		l := mcptest.Listen()
		_ = l.Close() // refuses
		tr := &mcp.Streamable{URL: "http://mcptest/", DialContext: l.DialContext, Engine: h.engine}
		if _, err := mcp.Connect(h.Context(), tr, mcp.Options{OnFrame: log.show}); err == nil || len(log.all()) != 0 {
			h.Errorf("%v, %q", err, log.all())
		}
	})
}

// idCount counts frames by the ids in them.
type idCount struct {
	mu      sync.Mutex
	out, in map[string]int
}

func (c *idCount) show(f mcp.Frame) {
	_, id := f.Names()
	if sum := bytes.Count(f.Data, []byte{0}); sum > 0 || id == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Out {
		c.out[id]++
	} else {
		c.in[id]++
	}
}

// Many calls at once, each frame looked at to its last byte: for the race detector.
func TestFramesOfManyCalls(t *testing.T) {
	const callers, each = 8, 50
	for _, server := range leanServers() {
		t.Run(server.name, func(t *testing.T) {
			count := idCount{out: map[string]int{}, in: map[string]int{}}
			s, err := mcp.Connect(t.Context(), server.open(t), mcp.Options{OnFrame: count.show})
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for range each {
						if _, err := s.Call(t.Context(), echo); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			closeSession(t, s)
			count.compare(t, callers*each+1)
		})
	}
}

// compare makes sure that there are n ids, not all of those given out, and that
// each went out and came in once.
func (c *idCount) compare(t *testing.T, n int) {
	t.Helper()
	if d := cmp.Diff(c.out, c.in); d != "" {
		t.Errorf("frames by id, out and in (-out +in)\n%s", d)
	}
	if len(c.out) != n {
		t.Errorf("%d ids, want %d", len(c.out), n)
	}
	for id, times := range c.out {
		if times != 1 {
			t.Errorf("id %s came %d times", id, times)
		}
	}
}
