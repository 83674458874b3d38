package mcp_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// Wire test 15 and faults B3, B4: a server without a GET stream is no failure, and
// it is not asked again.
func TestGetStreamRefused(t *testing.T) {
	tests := []struct {
		name    string
		answer  mcptest.Answer
		refused int // anomalies
	}{
		{"405", mcptest.Answer{Status: 405}, 0},
		{"404", mcptest.Answer{Status: 404}, 0},
		{"406", mcptest.Answer{Status: 406}, 0},
		{"400", mcptest.Answer{Status: 400, Raw: "no"}, 0},
		{"409", mcptest.Answer{Status: 409}, 1},
		{"200 with JSON", mcptest.Answer{Status: 200, Raw: "{}"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{SessionID: "s"}).On("GET", tt.answer)
				var a mcptest.Anomalies
				s := connect(t, serveHTTP(t, p, engine), mcp.Options{GetStream: true, OnAnomaly: a.Tell})
				time.Sleep(time.Hour) // virtual
				if _, err := s.Call(t.Context(), echo); err != nil {
					t.Error(err)
				}
				if n := len(p.Received("GET")); n != 1 {
					t.Errorf("%d GETs", n)
				}
				if got := a.Counts()[mcp.AnomalyGetStreamRefused]; got != tt.refused || len(a.Texts()) != tt.refused {
					t.Errorf("anomalies %v", a.Texts())
				}
			})
		})
	}
}

// Which versions have a GET stream at all, and that it opens only when asked for.
func TestGetStreamByVersion(t *testing.T) {
	for _, v := range mcp.Versions() {
		for _, ask := range []bool{false, true} {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{SessionID: "s"}).On("GET", mcptest.Answer{SSE: true, Hold: true})
				connect(t, serveHTTP(t, p, engine), mcp.Options{Version: v, GetStream: ask})
				time.Sleep(time.Second) // virtual
				gets := p.Received("GET")
				if got, want := len(gets) == 1, ask && v.Features().GetStream; got != want {
					t.Errorf("%s, asked %v: stream %v, want %v", v, ask, got, want)
				}
				for _, g := range gets {
					if g.Header.Get("Accept") != "text/event-stream" || g.Header.Get("Mcp-Session-Id") != "s" || g.Header.Get("Content-Type") != "" {
						t.Errorf("%s: header %v", v, g.Header)
					}
				}
				want := []string{"initialize", "notifications/initialized", "GET"}
				if len(gets) == 1 && !slices.Equal(p.Methods(), want) {
					t.Errorf("%s: order %v", v, p.Methods())
				}
			})
		}
	}
}

// Wire test 17: what comes on the GET stream is answered, during load too.
func TestGetStreamMessages(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := &mcptest.Peer{SessionID: "s"}
		p.On("tools/call", mcptest.Answer{Delay: time.Second, Result: echoed})
		p.On("GET", mcptest.Answer{Hold: true, Frames: []mcptest.Frame{
			{Delay: 100 * time.Millisecond, JSON: `{"jsonrpc":"2.0","id":"p","method":"ping"}`},
			{JSON: `{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{}}`},
			{JSON: `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`},
			{JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody's","progress":1}}`},
			{JSON: `{"jsonrpc":"2.0","id":2,"result":{}}`}, // answers belong on the POST's stream
			{JSON: `nonsense`},
		}})
		var a mcptest.Anomalies
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{GetStream: true, OnAnomaly: a.Tell})
		start := time.Now()
		r, err := s.Call(t.Context(), echo)
		if err != nil || r.Notifications != 0 || r.Timing.End-r.Timing.Start != time.Second {
			t.Errorf("got %+v, %v", r, err)
		}
		var bodies []string
		for _, m := range p.Received("") {
			bodies = append(bodies, m.Body)
			if at := m.At.Sub(start); at != 100*time.Millisecond {
				t.Errorf("answered after %v", at)
			}
		}
		slices.Sort(bodies)
		want := []string{
			`{"jsonrpc":"2.0","id":"p","result":{}}`,
			`{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"Method not found"}}`,
		}
		if d := cmp.Diff(want, bodies); d != "" {
			t.Errorf("answers (-want +got)\n%s", d)
		}
		wantAnomalies := map[mcp.Anomaly]int{mcp.AnomalyServerRequestRefused: 1, mcp.AnomalyUnknownID: 1, mcp.AnomalyOddEvent: 1, mcp.AnomalyProgressToken: 1}
		if d := cmp.Diff(wantAnomalies, a.Counts()); d != "" {
			t.Errorf("anomalies (-want +got)\n%s", d)
		}
	})
}

// A stream that ends is opened again, from its last event; the pauses grow while
// nothing comes, and not for ever (fault B20).
func TestGetStreamReopens(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		event := mcptest.Answer{Frames: []mcptest.Frame{{ID: "e7", JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`}}}
		empty := mcptest.Answer{SSE: true}
		p := (&mcptest.Peer{SessionID: "s"}).On("GET", event, mcptest.Answer{Type: "text/event-stream", Raw: "retry: 5000\nid: e8\ndata:\n\n"}, mcptest.Answer{Status: 503}, empty)
		var a mcptest.Anomalies
		connect(t, serveHTTP(t, p, engine), mcp.Options{GetStream: true, OnAnomaly: a.Tell})
		time.Sleep(time.Hour) // virtual
		gets := p.Received("GET")
		var pauses []time.Duration
		var lastIDs []string
		for i, g := range gets {
			lastIDs = append(lastIDs, g.Header.Get("Last-Event-Id"))
			if i > 0 {
				pauses = append(pauses, g.At.Sub(gets[i-1].At))
			}
		}
		sec := time.Second
		if want := []time.Duration{1 * sec, 5 * sec, 5 * sec, 8 * sec, 16 * sec, 30 * sec, 30 * sec, 30 * sec}; !slices.Equal(pauses[:], want) {
			t.Errorf("pauses %v, want %v", pauses, want)
		}
		if want := []string{"", "e7", "e8", "e8", "e8", "e8", "e8", "e8", "e8"}; !slices.Equal(lastIDs, want) {
			t.Errorf("last ids %q, want %q", lastIDs, want)
		}
		if a.Counts()[mcp.AnomalyGetStreamLost] != 1 {
			t.Errorf("anomalies %v", a.Texts())
		}
	})
}

// A stream that the server closes every minute is normal and stays open for ever.
func TestGetStreamClosedNowAndThen(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := (&mcptest.Peer{SessionID: "s"}).On("GET", mcptest.Answer{Frames: []mcptest.Frame{{Delay: time.Minute, Raw: ": end\n\n"}}})
		var a mcptest.Anomalies
		connect(t, serveHTTP(t, p, engine), mcp.Options{GetStream: true, OnAnomaly: a.Tell})
		time.Sleep(time.Hour) // virtual
		if n := len(p.Received("GET")); n < 55 || len(a.Texts()) != 0 {
			t.Errorf("%d streams, anomalies %v", n, a.Texts())
		}
	})
}

// Wire test 16: whatever DELETE answers, the session closes, in bounded time.
func TestDelete(t *testing.T) {
	tests := []struct {
		answer    mcptest.Answer
		anomalies int
		fails     bool
	}{
		{mcptest.Answer{Status: http.StatusOK}, 0, false},
		{mcptest.Answer{Status: http.StatusNoContent}, 0, false},
		{mcptest.Answer{Status: http.StatusNotFound}, 0, false},
		{mcptest.Answer{Status: http.StatusMethodNotAllowed}, 0, false},
		{mcptest.Answer{Status: http.StatusInternalServerError}, 1, false},
		{mcptest.Answer{Silent: true}, 0, true},
		{mcptest.Answer{Cut: true}, 0, true},
	}
	for _, tt := range tests {
		t.Run(http.StatusText(tt.answer.Status), func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{SessionID: "s"}).On("DELETE", tt.answer)
				p.On("GET", mcptest.Answer{SSE: true, Hold: true})
				var a mcptest.Anomalies
				s, err := mcp.Connect(t.Context(), serveHTTP(t, p, engine), mcp.Options{GetStream: true, OnAnomaly: a.Tell})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				err = s.Close(t.Context())
				if took := time.Since(start); (err != nil) != tt.fails || took > 5*time.Second {
					t.Errorf("close: %v after %v", err, took)
				}
				if len(a.Texts()) != tt.anomalies || len(p.Received("DELETE")) != 1 {
					t.Errorf("anomalies %v", a.Texts())
				}
			})
		})
	}
}

// After the server forgot the session there is nothing to delete.
func TestNoDeleteAfterLoss(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Status: 404})
		s, err := mcp.Connect(t.Context(), serveHTTP(t, p, engine), mcp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Call(t.Context(), echo); !mcp.SessionLost(err) {
			t.Errorf("error %v", err)
		}
		closeSession(t, s)
		if len(p.Received("DELETE")) != 0 {
			t.Error("DELETE was sent")
		}
	})
}

// A request whose answer may come with something on the GET stream used to be sent
// before the server had that stream: one SDK then fails it.
func TestRequestWaitsForTheGetStream(t *testing.T) {
	for name, tt := range map[string]struct {
		header time.Duration // until the header of the stream
		wants  *mcp.Wants
		waits  time.Duration
	}{
		"plain":                 {50 * time.Millisecond, nil, 0},
		"progress":              {50 * time.Millisecond, &mcp.Wants{Progress: true}, 50 * time.Millisecond},
		"a header that is late": {time.Hour, &mcp.Wants{Progress: true}, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				p := (&mcptest.Peer{SessionID: "s"}).On("GET", mcptest.Answer{Delay: tt.header, SSE: true, Hold: true})
				s := connect(h.T, serveHTTP(h.T, p, h.engine), mcp.Options{GetStream: true})
				began := time.Now()
				req := echo
				req.Wants = tt.wants
				for _, waits := range []time.Duration{tt.waits, 0} { // once only
					if _, err := s.Call(h.Context(), req); err != nil {
						h.Error(err)
					}
					if took := time.Since(began); took != waits {
						h.Errorf("took %v, want %v", took, waits)
					}
					began = time.Now()
				}
			})
		})
	}
}
