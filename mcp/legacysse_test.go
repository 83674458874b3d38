package mcp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// overSSE runs f over HTTP+SSE with each engine, each in a bubble.
func overSSE(t *testing.T, peer func() *mcptest.Peer, f func(o over)) {
	t.Helper()
	overHTTP(t, func(h onHTTP) {
		p := peer()
		f(over{h.T, p, serveSSE(h.T, p, h.engine)})
	})
}

func plainPeer() *mcptest.Peer { return &mcptest.Peer{} }

// scriptedGet is the stream as it stands.
func scriptedGet(frames ...mcptest.Frame) func() *mcptest.Peer {
	return func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("GET", mcptest.Answer{Frames: frames, Hold: true})
	}
}

func endpoint(uri string) mcptest.Frame { return mcptest.Frame{Event: "endpoint", JSON: uri} }

// What goes over the wire, and what is known of the session, in each version.
func TestSSESession(t *testing.T) {
	for _, v := range mcp.Versions() {
		t.Run(string(v), func(t *testing.T) {
			overSSE(t, plainPeer, func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				if !carries(tr, v) {
					_, err := mcp.Connect(t.Context(), tr, mcp.Options{Version: v})
					contains(t, err, "HTTP+SSE", string(v))
					return
				}
				var a mcptest.Anomalies
				s := connect(t, tr, mcp.Options{Version: v, OnAnomaly: a.Tell})
				r, err := s.Call(t.Context(), echo)
				if err != nil || string(r.Result) != echoed || r.HTTPStatus != 202 || r.Rounds != 1 {
					t.Errorf("got %+v, %v", r, err)
				}
				if i := s.Info(); i.Transport != "sse" || i.Version != v || i.Server.Name != "peer" || i.ServerSession != "" || i.Engine == "" {
					t.Errorf("info %+v", i)
				}
				if d := cmp.Diff([]string{"GET", "initialize", "notifications/initialized", "tools/call"}, p.Methods()); d != "" {
					t.Errorf("messages (-want +got)\n%s", d)
				}
				checkSSEHeaders(t, p, v)
				if len(a.Texts()) > 0 {
					t.Errorf("anomalies %v", a.Texts())
				}
			})
		})
	}
}

func checkSSEHeaders(t *testing.T, p *mcptest.Peer, v mcp.Version) {
	t.Helper()
	for i, r := range p.Received() {
		url, accept, kind, version := "/message?session=1", "", "application/json", ""
		if i == 0 {
			url, accept, kind = "/sse?tenant=1", "text/event-stream", ""
		}
		if i > 1 && v.Features().VersionHeader {
			version = string(v) // basic/transports, "Protocol Version Header": on all after initialize
		}
		got := []string{r.URL, r.Header.Get("Accept"), r.Header.Get("Content-Type"), r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Mcp-Session-Id")}
		if d := cmp.Diff([]string{url, accept, kind, version, ""}, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", r.Method, d)
		}
	}
}

// Wire test 36: the endpoint may be written in three ways; another origin is
// refused, and nothing is sent there.
func TestSSEEndpoint(t *testing.T) {
	tests := []struct {
		name, endpoint string
		posts          string // "": refused
	}{
		{"absolute, same origin", "http://mcptest/m?session=1", "/m?session=1"},
		{"absolute, default port named", "http://mcptest:80/m?session=1", "/m?session=1"},
		{"relative path", "/a/b?session=1", "/a/b?session=1"},
		{"relative without a slash", "m?session=1", "/m?session=1"},
		{"query only", "?session=1", "/sse?session=1"},
		{"with blanks", "/m?session=1&x=a b", "/m?session=1&x=a%20b"},
		{"other host", "http://evil/m?session=1", ""},
		{"other port", "http://mcptest:8080/m?session=1", ""},
		{"other scheme", "https://mcptest/m?session=1", ""},
		{"scheme-relative other host", "//evil/m?session=1", ""},
		{"empty", "", ""},
		{"no URI", "/m?session=1\x01", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overSSE(t, scriptedGet(endpoint(tt.endpoint)), func(o over) {
				if sse, ok := o.transport.(*mcp.LegacySSE); ok {
					sse.Header = http.Header{"Authorization": {"Bearer x"}}
				}
				if tt.posts != "" {
					testEndpoint(o, tt.posts)
					return
				}
				_, err := mcp.Connect(o.Context(), o.transport, mcp.Options{})
				wantFault(o.T, err, mcp.FaultEndpoint)
				if d := cmp.Diff([]string{"GET"}, o.peer.Methods()); d != "" {
					o.Errorf("messages (-want +got)\n%s", d)
				}
			})
		})
	}
}

func testEndpoint(o over, posts string) {
	s := connect(o.T, o.transport, mcp.Options{})
	if _, err := s.Call(o.Context(), echo); err != nil {
		o.Error(err)
	}
	for _, r := range o.peer.Received()[1:] {
		if r.URL != posts || r.Header.Get("Authorization") != "Bearer x" {
			o.Errorf("%s went to %s with %v", r.Method, r.URL, r.Header)
		}
	}
}

// What else may come where the endpoint event is due.
func TestSSEOpening(t *testing.T) {
	message := mcptest.Frame{JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`}
	tests := []struct {
		name   string
		get    mcptest.Answer
		fault  mcp.ProtocolFault
		status int // of an *HTTPError
	}{
		{"a message first", mcptest.Answer{Frames: []mcptest.Frame{message, endpoint("/message?session=1")}, Hold: true}, mcp.FaultEndpoint, 0},
		{"a named message first", mcptest.Answer{Frames: []mcptest.Frame{{Event: "message", JSON: `{}`}}, Hold: true}, mcp.FaultEndpoint, 0},
		{"ends at once", mcptest.Answer{Frames: []mcptest.Frame{{Raw: ": bye\n\n"}}}, mcp.FaultEndpoint, 0},
		{"ends within the event", mcptest.Answer{Frames: []mcptest.Frame{{Raw: "event: endpoint\ndata: /message?session=1\n"}}}, mcp.FaultEndpoint, 0},
		{"JSON", mcptest.Answer{Raw: `{}`, Type: "application/json"}, mcp.FaultContentType, 0},
		{"HTML", mcptest.Answer{Raw: "<html>", Type: "text/html"}, mcp.FaultContentType, 0},
		{"compressed", mcptest.Answer{Status: 200, Type: "text/event-stream", Raw: "\x1f\x8b", Header: map[string]string{"Content-Encoding": "gzip"}}, mcp.FaultContentEncoding, 0},
		{"404", mcptest.Answer{Status: 404, Raw: "not here", Type: "text/plain"}, 0, 404},
		{"405", mcptest.Answer{Status: 405}, 0, 405},
		{"401", mcptest.Answer{Status: 401, Header: map[string]string{"Www-Authenticate": "Bearer"}}, 0, 401},
		{"503", mcptest.Answer{Status: 503}, 0, 503},
		{"302", mcptest.Answer{Status: 302, Header: map[string]string{"Location": "http://evil/"}}, 0, 302},
		{"no content", mcptest.Answer{Status: 204}, mcp.FaultContentType, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overSSE(t, func() *mcptest.Peer { return (&mcptest.Peer{}).On("GET", tt.get) }, func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				_, err := mcp.Connect(t.Context(), tr, mcp.Options{})
				if tt.fault != 0 {
					wantFault(t, err, tt.fault)
				} else if e, ok := errors.AsType[*mcp.HTTPError](err); !ok || e.Status != tt.status || e.Lost {
					t.Errorf("error %v", err)
				}
				if d := cmp.Diff([]string{"GET"}, p.Methods()); d != "" {
					t.Errorf("messages (-want +got)\n%s", d)
				}
			})
		})
	}
}

func TestSSEOddEventsBeforeTheEndpoint(t *testing.T) {
	peer := scriptedGet(mcptest.Frame{Raw: "retry: 100\n\n"}, mcptest.Frame{Event: "open", JSON: "hello"},
		mcptest.Frame{Event: "prime", ID: "1"}, mcptest.Frame{Raw: "event: endpoint\r\ndata: /message?session=1\r\n\r\n"})
	overSSE(t, peer, func(o over) {
		t, tr := o.T, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
		if _, err := s.Call(t.Context(), echo); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(map[mcp.Anomaly]int{mcp.AnomalyOddEvent: 1}, a.Counts()); d != "" {
			t.Errorf("anomalies (-want +got)\n%s", d)
		}
	})
}

// The wait for the endpoint ends with the dial's context, and without one after
// half a minute.
func TestSSENoEndpoint(t *testing.T) {
	cause := errors.New("connect limit")
	peers := map[string]func() *mcptest.Peer{
		"a silent stream": scriptedGet(mcptest.Frame{Raw: ": ok\n\n"}),
		"heartbeats":      scriptedGet(slices.Repeat([]mcptest.Frame{{Raw: ": still here\n\n", Delay: time.Second}}, 100)...),
		"no response":     func() *mcptest.Peer { return (&mcptest.Peer{}).On("GET", mcptest.Answer{Silent: true}) },
	}
	for name, peer := range peers {
		for _, bounded := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				overSSE(t, peer, func(o over) {
					t, tr := o.T, o.transport
					ctx, want := t.Context(), 30*time.Second
					if bounded {
						var cancel context.CancelFunc
						want = 10 * time.Second
						ctx, cancel = context.WithTimeoutCause(ctx, want, cause)
						defer cancel()
					}
					start := time.Now()
					_, err := mcp.Connect(ctx, tr, mcp.Options{})
					if took := time.Since(start); took != want {
						t.Errorf("took %v, want %v", took, want)
					}
					contains(t, err, "no endpoint event")
					if bounded != errors.Is(err, cause) {
						t.Errorf("error %v", err)
					}
				})
			})
		}
	}
}

func TestSSEServerIsNotThere(t *testing.T) {
	for _, engine := range engines {
		refused := &mcp.LegacySSE{URL: "http://127.0.0.1:1/sse", Engine: engine, DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: io.ErrClosedPipe}
		}}
		_, err := mcp.Connect(t.Context(), refused, mcp.Options{})
		if e, ok := errors.AsType[*mcp.TransportError](err); !ok || e.Op != "dial" {
			t.Errorf("error %v", err)
		}
		if _, err := mcp.Connect(t.Context(), &mcp.LegacySSE{URL: "ftp://h/"}, mcp.Options{}); err == nil {
			t.Error("ftp is no scheme of ours")
		}
	}
}

// A second endpoint event changes nothing.
func TestSSESecondEndpoint(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{
			endpoint("/other?session=1"), endpoint("http://evil/"),
			{Event: "endpoint", JSON: `{"jsonrpc":"2.0","id":$ID,"result":{}}`},
			{Event: "tick", JSON: "12:00"},
			{JSON: `{"type":"heartbeat"}`},
			{Raw: "data: {broken\n\n"},
			{Raw: "event: x\ndata\n\n"},
		}, Result: echoed})
	}
	overSSE(t, peer, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
		for range 2 {
			if r, err := s.Call(t.Context(), echo); err != nil || string(r.Result) != echoed {
				t.Errorf("got %+v, %v", r, err)
			}
		}
		for _, r := range p.Received("tools/call") {
			if r.URL != "/message?session=1" {
				t.Errorf("posted to %s", r.URL)
			}
		}
		if d := cmp.Diff(map[mcp.Anomaly]int{mcp.AnomalyOddEvent: 12}, a.Counts()); d != "" {
			t.Errorf("anomalies (-want +got)\n%s", d)
		}
	})
}

// An answer under another event name counts, as an odd one.
func TestSSEAnswerUnderAnotherName(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Raw: "event: result\ndata: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":" + echoed + "}\n\n"})
	}
	overSSE(t, peer, func(o over) {
		var a mcptest.Anomalies
		s := connect(o.T, o.transport, mcp.Options{OnAnomaly: a.Tell})
		if r, err := s.Call(o.Context(), echo); err != nil || string(r.Result) != echoed || a.Counts()[mcp.AnomalyOddEvent] != 1 {
			o.Errorf("got %+v, %v, %v", r, err, a.Texts())
		}
	})
}

// Whose answers come is told by their ids; those of nobody are counted.
func TestSSEForeignAnswers(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{
			{JSON: `{"jsonrpc":"2.0","id":999,"result":{}}`},
			{JSON: `{"jsonrpc":"2.0","id":"$ID","result":{}}`},
			{JSON: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what"}}`},
			{JSON: `{"jsonrpc":"2.0","id":1,"result":{}}`},
		}, Raw: strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":"+echoed+"}\n\n", 3)})
	}
	overSSE(t, peer, func(o over) {
		t, tr := o.T, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
		if r, err := s.Call(t.Context(), echo); err != nil || string(r.Result) != echoed {
			t.Errorf("got %+v, %v", r, err)
		}
		synctest.Wait()
		want := map[mcp.Anomaly]int{mcp.AnomalyUnknownID: 3, mcp.AnomalyDuplicateAnswer: 3}
		if d := cmp.Diff(want, a.Counts()); d != "" {
			t.Errorf("anomalies (-want +got)\n%s", d)
		}
	})
}

// The stream and the POSTs are shown as frames.
func TestSSEFrames(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("initialize", mcptest.Answer{Delay: time.Second, Result: new(mcptest.Peer).InitializeResult("2025-11-25")}).
			On("tools/call", mcptest.Answer{Delay: time.Second, Status: 400, Type: "text/plain", Raw: "no"})
	}
	overSSE(t, peer, func(o over) {
		const version = " Mcp-Protocol-Version: 2025-11-25"
		var log frameLog
		s := connect(o.T, o.transport, mcp.Options{OnFrame: log.show})
		_, _ = s.Call(o.Context(), echo)
		want := []string{
			"0s > get", "0s < get 200 Content-Type: text/event-stream", `0s < get (endpoint) "/message?session=1"`,
			"0s > post initialize 1", `0s < post 202 Content-Type: text/plain; charset=utf-8 "Accepted"`, "1s < get (message) #1",
			"1s > post" + version + " notifications/initialized", `1s < post 202 Content-Type: text/plain; charset=utf-8 "Accepted"`,
			"1s > post" + version + " tools/call 2", `1s < post 400 Content-Type: text/plain "no"`,
		}
		if d := cmp.Diff(want, log.lines); d != "" {
			o.Errorf("frames (-want +got)\n%s", d)
		}
	})
}
