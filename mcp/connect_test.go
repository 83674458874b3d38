package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// What the acceptance of a notification says beside its status need not be waited for.
func TestNotificationWhoseAnswerNeverEnds(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{}).On("notifications/initialized", mcptest.Answer{Status: 200, Type: "application/json", Raw: "{", Hold: true})
		ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		s, err := mcp.Connect(ctx, serveHTTP(h.T, p, h.engine), mcp.Options{})
		if err != nil {
			h.Fatal(err)
		}
		defer closeSession(h.T, s)
		if _, err := s.Call(h.Context(), echo); err != nil || time.Since(began) > time.Second {
			h.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// Wire test 1: what follows initialize carries session and version, initialize neither.
func TestHandshakeHeaders(t *testing.T) {
	for _, v := range mcp.Versions() {
		if v.Features().Handshake {
			t.Run(string(v), func(t *testing.T) {
				overHTTP(t, func(h onHTTP) { testHandshakeHeaders(h.T, h.engine, v) })
			})
		}
	}
}

func testHandshakeHeaders(t *testing.T, engine mcp.Engine, v mcp.Version) {
	t.Helper()
	p := &mcptest.Peer{SessionID: "s-1"}
	s := connect(t, serveHTTP(t, p, engine), mcp.Options{Version: v, Client: mcp.Implementation{Name: "n", Version: "3"}})
	if _, err := s.Call(t.Context(), echo); err != nil {
		t.Fatal(err)
	}
	if want := []string{"initialize", "notifications/initialized", "tools/call"}; !slices.Equal(p.Methods(), want) {
		t.Errorf("got %v, want %v", p.Methods(), want)
	}
	initialize := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,`+
		`"capabilities":{},"clientInfo":{"name":"n","version":"3"}}}`, v)
	if got := p.Received()[0].Body; got != initialize {
		t.Errorf("initialize is %s\nwant %s", got, initialize)
	}
	for i, r := range p.Received() {
		session, version := "s-1", ""
		if v.Features().VersionHeader {
			version = string(v)
		}
		if i == 0 {
			session, version = "", ""
		}
		got := []string{
			r.Header.Get("Mcp-Session-Id"), r.Header.Get("Mcp-Protocol-Version"),
			r.Header.Get("Accept"), r.Header.Get("Content-Type"), r.Header.Get("Mcp-Method"),
			r.Header.Get("User-Agent"), r.Header.Get("Accept-Encoding"), r.Header.Get("Origin"),
		}
		want := []string{session, version, "application/json, text/event-stream", "application/json", "", "n/3", "", ""}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s headers (-want +got)\n%s", r.Method, d)
		}
	}
}

// Wire test 2: the version the server answers is the one that counts.
func TestUnpinnedTakesTheAnswer(t *testing.T) {
	peer := func() *mcptest.Peer { return &mcptest.Peer{Versions: []string{"2025-06-18", "2024-11-05"}} }
	overAll(t, peer, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		s := connect(t, tr, mcp.Options{})
		i := s.Info()
		if i.Version != mcp.V20250618 || i.Requested != "" || i.Server.Name != "peer" || i.Transport != tr.Kind() {
			t.Errorf("info %+v", i)
		}
		if string(i.Capabilities) != `{"tools":{}}` {
			t.Errorf("capabilities %s", i.Capabilities)
		}
		var params struct{ ProtocolVersion string }
		if err := json.Unmarshal(p.Received("initialize")[0].Params, &params); err != nil || params.ProtocolVersion != "2025-11-25" {
			t.Errorf("asked for %q, %v", params.ProtocolVersion, err)
		}
		synctest.Wait() // over stdio a notification is sent when it is written
		if h := p.Received("notifications/initialized")[0].Header; h != nil && h.Get("Mcp-Protocol-Version") != "2025-06-18" {
			t.Errorf("header %q", h.Get("Mcp-Protocol-Version"))
		}
	})
}

// Wire test 3: an answer we may not use ends the session, and initialized is not sent.
func TestVersionMismatch(t *testing.T) {
	tests := []struct {
		name   string
		pinned mcp.Version
		answer string
		ask    mcp.Version
	}{
		{"unknown version", "", "2030-01-01", mcp.V20251125},
		{"modern version in initialize", "", "2026-07-28", mcp.V20251125},
		{"pinned, another known one", mcp.V20250618, "2025-11-25", mcp.V20250618},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			peer := func() *mcptest.Peer {
				p := &mcptest.Peer{SessionID: "s"}
				return p.On("initialize", mcptest.Answer{Result: `{"protocolVersion":"` + tt.answer + `","capabilities":{}}`})
			}
			overAll(t, peer, func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				_, err := mcp.Connect(t.Context(), tr, mcp.Options{Version: tt.pinned})
				e, ok := errors.AsType[*mcp.VersionError](err)
				if !ok || e.Asked != tt.ask || e.Answer != tt.answer {
					t.Errorf("error %v", err)
				}
				want := []string{"initialize"}
				switch tr.Kind() {
				case "http":
					want = append(want, "DELETE")
				case "sse":
					want = append([]string{"GET"}, want...)
				}
				if d := cmp.Diff(want, p.Methods()); d != "" {
					t.Errorf("messages (-want +got)\n%s", d)
				}
			})
		})
	}
}

// Wire tests 4 and 5: no session id means none is ever sent; an odd one is echoed,
// whatever the case of the header's name.
func TestSessionID(t *testing.T) {
	for _, id := range []string{"", "s!~\"x", "84b4cd92-662f"} {
		t.Run("id "+id, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) { testSessionID(h.T, h.engine, id) })
		})
	}
}

func testSessionID(t *testing.T, engine mcp.Engine, id string) {
	t.Helper()
	p := &mcptest.Peer{}
	if id != "" {
		p.On("initialize", mcptest.Answer{
			Result: p.InitializeResult("2025-11-25"), Header: map[string]string{"mcp-session-id": id},
		})
		p.On("DELETE", mcptest.Answer{Status: 200})
	}
	s, err := mcp.Connect(t.Context(), serveHTTP(t, p, engine), mcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Call(t.Context(), echo); err != nil {
		t.Error(err)
	}
	closeSession(t, s)
	if got := s.Info().ServerSession; got != id {
		t.Errorf("session %q, want %q", got, id)
	}
	for _, r := range p.Received()[1:] {
		if got := r.Header.Get("Mcp-Session-Id"); got != id {
			t.Errorf("%s carried %q, want %q", r.Method, got, id)
		}
	}
	if got, want := len(p.Received("DELETE")) > 0, id != ""; got != want {
		t.Errorf("DELETE sent: %v, want %v", got, want)
	}
}

// Wire test 6: any 2xx accepts notifications/initialized.
func TestInitializedAnswers(t *testing.T) {
	tests := []struct {
		answer    mcptest.Answer
		ok        bool
		anomalies int
	}{
		{mcptest.Answer{Status: 202}, true, 0},
		{mcptest.Answer{Status: 202, Raw: "Accepted", Type: "text/plain"}, true, 0},
		{mcptest.Answer{Status: 200}, true, 1},
		{mcptest.Answer{Status: 204}, true, 1},
		{mcptest.Answer{Status: 400, Raw: "no"}, false, 0},
		{mcptest.Answer{Status: 500}, false, 0},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.answer.Status, tt.answer.Raw), func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{SessionID: "s"}).On("notifications/initialized", tt.answer)
				var a mcptest.Anomalies
				s, err := mcp.Connect(t.Context(), serveHTTP(t, p, engine), mcp.Options{OnAnomaly: a.Tell})
				if s != nil {
					closeSession(t, s)
				}
				if (err == nil) != tt.ok {
					t.Errorf("error %v", err)
				}
				if e, ok := errors.AsType[*mcp.HTTPError](err); !tt.ok && (!ok || e.Status != tt.answer.Status) {
					t.Errorf("error %v", err)
				}
				if got := a.Counts()[mcp.AnomalyOddStatus]; got != tt.anomalies {
					t.Errorf("%d odd statuses: %v", got, a.Texts())
				}
				if len(p.Received("DELETE")) != 1 {
					t.Error("the server session was not ended")
				}
			})
		})
	}
}

// Wire test 24: initialize that runs out of time is not cancelled.
func TestConnectTimeout(t *testing.T) {
	cause := errors.New("connect limit")
	peer := func() *mcptest.Peer { return (&mcptest.Peer{}).On("initialize", mcptest.Answer{Silent: true}) }
	overAll(t, peer, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, cause)
		defer cancel()
		start := time.Now()
		_, err := mcp.Connect(ctx, tr, mcp.Options{})
		if !errors.Is(err, cause) {
			t.Errorf("error %v, want the cause of the context", err)
		}
		if took := time.Since(start); took > 11*time.Second {
			t.Errorf("took %v", took)
		}
		if got := p.Received("initialize", "notifications/cancelled"); len(got) != 1 {
			t.Errorf("messages %v", p.Methods())
		}
	})
}

func TestConnectToModern(t *testing.T) {
	overBoth(t, func() *mcptest.Peer { return &mcptest.Peer{} }, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		s := connect(t, tr, mcp.Options{Version: mcp.V20260728})
		i := s.Info()
		if i.Version != mcp.V20260728 || i.Server.Name != "peer" || len(i.Supported) != 5 || i.ServerSession != "" {
			t.Errorf("info %+v", i)
		}
		if want := []string{"server/discover"}; !slices.Equal(p.Methods(), want) {
			t.Errorf("messages %v, want %v", p.Methods(), want)
		}
	})
}

// Wire tests 30 and 32: a server that does not serve the pinned 2026-07-28.
func TestConnectToModernRefused(t *testing.T) {
	tests := []struct {
		name    string
		answer  mcptest.Answer
		offered []string // nil: not a *VersionError
		text    string
	}{
		{"-32022", mcptest.Answer{Status: 400, Error: `{"code":-32022,"message":"no","data":{"supported":["2025-11-25","2025-06-18"],"requested":"2026-07-28"}}`}, []string{"2025-11-25", "2025-06-18"}, "offers 2025-11-25"},
		{"listed without it (go-sdk stateful)", mcptest.Answer{Result: `{"resultType":"complete","supportedVersions":["2025-11-25"],"capabilities":{}}`}, []string{"2025-11-25"}, "does not speak"},
		{"-32601", mcptest.Answer{Error: `{"code":-32601,"message":"Method not found"}`}, nil, "not a 2026-07-28 server"},
		{"TypeScript SDK", mcptest.Answer{Status: 400, JSON: `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`}, nil, "not a 2026-07-28 server"},
		{"405", mcptest.Answer{Status: 405, Raw: "no", Type: "text/plain"}, nil, "not a 2026-07-28 server"},
		{"503 says nothing about it", mcptest.Answer{Status: 503, Raw: "busy", Type: "text/plain"}, nil, "server/discover: HTTP status 503"},
		{"-32021 comes from a modern server", mcptest.Answer{Status: 400, Error: `{"code":-32021,"message":"need x"}`}, nil, "server/discover: JSON-RPC error -32021"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{}).On("server/discover", tt.answer)
				_, err := mcp.Connect(t.Context(), serveHTTP(t, p, engine), mcp.Options{Version: mcp.V20260728})
				contains(t, err, tt.text)
				e, ok := errors.AsType[*mcp.VersionError](err)
				if ok != (tt.offered != nil) || ok && !slices.Equal(e.Offered, tt.offered) {
					t.Errorf("error %v", err)
				}
				if len(p.Methods()) != 1 {
					t.Errorf("messages %v", p.Methods())
				}
			})
		})
	}
}

func TestConnectFailures(t *testing.T) {
	tests := []struct {
		name   string
		answer mcptest.Answer
		text   string
	}{
		{"refused", mcptest.Answer{Status: 401, Header: map[string]string{"Www-Authenticate": `Bearer realm="x"`}, Raw: "who?"}, `initialize: HTTP status 401, WWW-Authenticate: Bearer realm="x": who?`},
		{"modern only", mcptest.Answer{Status: 400, Error: `{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}`}, "it offers 2026-07-28"},
		{"JSON-RPC error", mcptest.Answer{Error: `{"code":-32603,"message":"boom"}`}, "initialize: JSON-RPC error -32603: boom"},
		{"no version", mcptest.Answer{Result: `{"capabilities":{}}`}, "no protocolVersion"},
		{"wrong shape", mcptest.Answer{Result: `{"protocolVersion":7}`}, "bad_result"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{}).On("initialize", tt.answer)
				_, err := mcp.Connect(t.Context(), serveHTTP(t, p, engine), mcp.Options{})
				contains(t, err, tt.text)
			})
		})
	}
}

func TestDialRefusesBadConfiguration(t *testing.T) {
	tests := []struct {
		tr   mcp.Transport
		text string
	}{
		{&mcp.Streamable{URL: "ftp://x/"}, "http or https"},
		{&mcp.Streamable{URL: "http:///mcp"}, "no host"},
		{&mcp.Streamable{URL: "http://user:geheim@x:bad/"}, "server URL"},
		{&mcp.Streamable{URL: "http://x/", Header: http.Header{"A B": {"c"}}}, `header "A B"`},
		{&mcp.Streamable{URL: "http://x/", Header: http.Header{"Ab": {"c\r\nd: e"}}}, `header "Ab"`},
		{&mcp.Stdio{}, "no command"},
		{&mcp.Stdio{Command: "no-such-command-here"}, `"no-such-command-here"`},
	}
	for _, tt := range tests {
		_, err := mcp.Connect(t.Context(), tt.tr, mcp.Options{})
		contains(t, err, tt.text)
		if err != nil && (errors.Is(err, context.Canceled) || containsText(err, "geheim")) {
			t.Errorf("error %v", err)
		}
	}
	_, err := mcp.Connect(t.Context(), &mcp.Stdio{Command: "x"}, mcp.Options{Version: "2030-01-01"})
	contains(t, err, "unknown protocol version")
}

func TestConnectToNobody(t *testing.T) {
	l := mcptest.Listen()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := mcp.Connect(t.Context(), &mcp.Streamable{URL: "http://nobody/", DialContext: l.DialContext}, mcp.Options{})
	e, ok := errors.AsType[*mcp.TransportError](err)
	if !ok || e.Op != "dial" || e.Class() != mcp.ClassRefused || e.ClientFault() {
		t.Errorf("error %v", err)
	}
}
