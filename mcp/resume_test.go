package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// primed is the beginning of a stream that can be resumed, as three servers write it.
var primed = map[string]string{
	"specification": "id: e0\ndata:\n\nretry: 50\ndata:\n\n",
	"go-sdk":        "event: prime\nid: e0\ndata: \n\nevent: close\nretry: 50\ndata: \n\n",
	"TypeScript":    "id: e0\nretry: 50\ndata: \n\n",
}

const stream = "text/event-stream"

// answers is a stream with the answer to the request of that id.
func answers(id string) mcptest.Answer {
	return mcptest.Answer{SSE: true, JSON: `{"jsonrpc":"2.0","id":` + id + `,"result":` + echoed + `}`}
}

// Wire test 10: after a priming event and an early close the client waits as long
// as it was told, asks for the rest by GET and has its answer; nothing is sent twice.
func TestResume(t *testing.T) {
	for name, raw := range primed {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) { testResume(h, raw) })
		})
	}
}

func testResume(h onHTTP, raw string) {
	t, engine := h.T, h.engine
	p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Type: stream, Raw: raw})
	p.On("GET", answers("2"))
	var a mcptest.Anomalies
	s := connect(t, serveHTTP(t, p, engine), mcp.Options{OnAnomaly: a.Tell})
	r, err := s.Call(t.Context(), echo)
	if err != nil || string(r.Result) != echoed || r.Rounds != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	wantOrder(t, r)
	if took := r.Timing.End - r.Timing.Start; took != 50*time.Millisecond {
		t.Errorf("took %v", took)
	}
	gets, posts := p.Received("GET"), p.Received("tools/call")
	if len(gets) != 1 || len(posts) != 1 {
		t.Fatalf("methods %v", p.Methods())
	}
	got := map[string]string{}
	for _, name := range []string{"Accept", "Last-Event-Id", "Mcp-Session-Id", "Mcp-Protocol-Version", "Content-Type"} {
		got[name] = gets[0].Header.Get(name)
	}
	want := map[string]string{
		"Accept": stream, "Last-Event-Id": "e0", "Mcp-Session-Id": "s", "Mcp-Protocol-Version": "2025-11-25", "Content-Type": "",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("header (-want +got)\n%s", d)
	}
	wantAnomalies(t, &a, map[mcp.Anomaly]int{mcp.AnomalyResumed: 1})
}

// Wire tests 11 and 13: which versions take up a broken stream, and that none does
// without an event id, however the stream ended.
func TestResumeByVersion(t *testing.T) {
	event := mcptest.Frame{ID: "e1", JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`}
	tests := []struct {
		name    string
		answer  mcptest.Answer
		resumes bool // where the version does
		fault   bool // protocol error otherwise, or transport error
	}{
		{"closed after an id", mcptest.Answer{Frames: []mcptest.Frame{event}}, true, true},
		{"cut after an id", mcptest.Answer{Frames: []mcptest.Frame{event}, Cut: true}, true, false},
		{"closed without id", mcptest.Answer{Frames: []mcptest.Frame{{JSON: event.JSON}}}, false, true},
		{"cut without id", mcptest.Answer{Frames: []mcptest.Frame{{JSON: event.JSON}}, Cut: true}, false, false},
		{"empty (go-sdk, deviation 6)", mcptest.Answer{Type: stream, Status: 200}, false, true},
		{"id taken back", mcptest.Answer{Type: stream, Raw: "id: e1\ndata:\n\nid\ndata:\n\n"}, false, true},
		{"id that no header can carry", mcptest.Answer{Type: stream, Raw: "id: e\x01\ndata:\n\n"}, false, true},
	}
	for _, tt := range tests {
		for _, v := range mcp.Versions() {
			t.Run(tt.name+" "+string(v), func(t *testing.T) {
				overHTTP(t, func(h onHTTP) { testResumeByVersion(h, v, tt.answer, tt.resumes && v.Features().GetStream, tt.fault) })
			})
		}
	}
}

func testResumeByVersion(h onHTTP, v mcp.Version, answer mcptest.Answer, want, fault bool) {
	t, engine := h.T, h.engine
	p := (&mcptest.Peer{}).On("tools/call", answer).On("GET", answers("2"))
	s := connect(t, serveHTTP(t, p, engine), mcp.Options{Version: v})
	r, err := s.Call(t.Context(), echo)
	if got := len(p.Received("GET")); (got == 1) != want || got > 1 {
		t.Errorf("%d GETs, want it: %v", got, want)
	}
	if len(p.Received("tools/call")) != 1 {
		t.Error("the request was sent again")
	}
	if want {
		if err != nil || r.Timing.End-r.Timing.Start != time.Second {
			t.Errorf("got %+v, %v", r, err)
		}
		return
	}
	_, transport := errors.AsType[*mcp.TransportError](err)
	if isNoAnswer(err) != fault || transport == fault {
		t.Errorf("error %v", err)
	}
}

// Wire test 12: two streams that broke are each taken up where they were, however
// the answers cross, and an answer to the other's request is nobody's.
func TestResumeTwo(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		const call = `{"jsonrpc":"2.0","id":$LAST,"result":{"content":[],"mine":$LAST}}`
		p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Type: stream, Raw: "id: $ID\ndata:\n\n"})
		p.On("GET",
			mcptest.Answer{Delay: 3 * time.Second, SSE: true, JSON: call},
			mcptest.Answer{SSE: true, Frames: []mcptest.Frame{
				{JSON: `{"jsonrpc":"2.0","id":2000,"result":{}}`},
				{JSON: `{"jsonrpc":"2.0","id":"$LAST","result":{}}`},
			}, JSON: call})
		var a mcptest.Anomalies
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{OnAnomaly: a.Tell})
		var calls sync.WaitGroup
		var mu sync.Mutex
		var results, times []string
		for range 2 {
			calls.Go(func() {
				r, err := s.Call(t.Context(), echo)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				results = append(results, string(r.Result))
				times = append(times, (r.Timing.End - r.Timing.Start).String())
			})
		}
		calls.Wait()
		slices.Sort(results)
		slices.Sort(times)
		if want := []string{`{"content":[],"mine":2}`, `{"content":[],"mine":3}`}; !slices.Equal(results, want) {
			t.Errorf("results %q", results)
		}
		if want := []string{"1s", "4s"}; !slices.Equal(times, want) {
			t.Errorf("times %q", times)
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{mcp.AnomalyResumed: 2, mcp.AnomalyUnknownID: 2})
	})
}

// A stream may break again and again; each time the latest id and the latest wish
// count, and what it brings meanwhile belongs to the request.
func TestResumeRepeatedly(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		progress := func(n string) string {
			return `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":` + n + `}}`
		}
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Type: stream, Raw: "id: e1\nretry: 50\ndata:\n\n"})
		p.On("GET",
			mcptest.Answer{Type: stream, Raw: "id: e2\nretry: 3000\n" + progress("1") + "\n\n"}, // +50ms
			mcptest.Answer{Type: stream, Raw: "id: e3\n" + progress("2") + "\n\n"},              // +3s
			mcptest.Answer{Status: 503},                                 // +3s
			mcptest.Answer{SSE: true, Cut: true},                        // +6s
			mcptest.Answer{Type: stream, Raw: ":\n\n"},                  // +12s
			mcptest.Answer{Type: stream, Raw: "retry: 0\n\nid: e4\n\n"}, // +24s
			answers("2"), // +0
		)
		var a mcptest.Anomalies
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{OnAnomaly: a.Tell})
		r, err := s.Call(t.Context(), mcp.Request{Method: "tools/call", Params: []byte(`{"name":"echo","_meta":{"progressToken":1}}`)})
		if err != nil || r.Notifications != 2 || r.Progress != 2 {
			t.Errorf("got %+v, %v", r, err)
		}
		var lastIDs []string
		for _, g := range p.Received("GET") {
			lastIDs = append(lastIDs, g.Header.Get("Last-Event-Id"))
		}
		if want := []string{"e1", "e2", "e3", "e3", "e3", "e3", "e4"}; !slices.Equal(lastIDs, want) {
			t.Errorf("last ids %q", lastIDs)
		}
		if took := (r.Timing.End - r.Timing.Start).Truncate(time.Millisecond); took != 48*time.Second+50*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if first := r.Timing.FirstByte - r.Timing.Start; first != 50*time.Millisecond {
			t.Errorf("first byte after %v", first)
		}
		if got := a.Counts()[mcp.AnomalyResumed]; got != 6 || len(a.Texts()) != 6 {
			t.Errorf("anomalies %v", a.Texts())
		}
	})
}

// A server that does not resume: the request fails with what happened first, and
// neither the session nor the next request suffers.
func TestResumeRefused(t *testing.T) {
	const bad = `{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no"}}`
	tests := []struct {
		name   string
		answer mcptest.Answer
		word   string
	}{
		{"405", mcptest.Answer{Status: 405}, "HTTP status 405"},
		{"404", mcptest.Answer{Status: 404, Raw: "who?"}, "who?"},
		{"400 with an error", mcptest.Answer{Status: 400, Raw: bad}, "HTTP status 400"},
		{"200 with JSON", mcptest.Answer{Status: 200, Raw: `{"jsonrpc":"2.0","id":2,"result":{}}`}, "HTTP status 200"},
		{"202", mcptest.Answer{Status: 202}, "HTTP status 202"},
		{"coded", mcptest.Answer{SSE: true, Header: map[string]string{"Content-Encoding": "gzip"}}, "HTTP status 200"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{SessionID: "s"}).On("tools/call",
					mcptest.Answer{Type: stream, Raw: "id: e1\ndata:\n\n"}, mcptest.Answer{Result: echoed})
				p.On("GET", tt.answer)
				var a mcptest.Anomalies
				s := connect(t, serveHTTP(t, p, engine), mcp.Options{OnAnomaly: a.Tell})
				_, err := s.Call(t.Context(), echo)
				wantFault(t, err, mcp.FaultNoAnswer)
				contains(t, err, tt.word, "the stream ended without the answer")
				if _, ok := errors.AsType[*mcp.HTTPError](err); ok || mcp.SessionLost(err) {
					t.Errorf("counted as the refusal: %v", err)
				}
				if n := len(p.Received("GET")); n != 1 || len(a.Texts()) != 0 {
					t.Errorf("%d GETs, anomalies %v", n, a.Texts())
				}
				if _, err := s.Call(t.Context(), echo); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}

// What the answer on a resumed stream amounts to is judged like any other.
func TestResumeAnswers(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Type: stream, Raw: "id: e1\ndata:\n\n"})
		p.On("GET",
			mcptest.Answer{SSE: true, JSON: `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no"}}`},
			mcptest.Answer{SSE: true, JSON: `{"jsonrpc":"2.0","id":3}`},
			mcptest.Answer{SSE: true, JSON: `nonsense`},
			mcptest.Answer{SSE: true, JSON: `{"jsonrpc":"2.0","id":5,"result":{"pad":"` + strings.Repeat("x", 1000) + `"}}`},
		)
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{Limits: mcp.Limits{MessageBytes: 900}})
		_, err := s.Call(t.Context(), echo)
		if e, ok := errors.AsType[*mcp.RPCError](err); !ok || e.Code != -32603 {
			t.Errorf("error %v", err)
		}
		_, err = s.Call(t.Context(), echo)
		wantFault(t, err, mcp.FaultNoResultNoError)
		_, err = s.Call(t.Context(), echo)
		wantFault(t, err, mcp.FaultBadJSON)
		_, err = s.Call(t.Context(), echo)
		if e, ok := errors.AsType[*mcp.LimitError](err); !ok || e.Limit != mcp.LimitMessage {
			t.Errorf("error %v", err)
		}
	})
}

// Faults B20 and B21: resuming ends with the attempts and with the limits of the
// request, even when the server has something new each time, and never goes on after.
func TestResumeIsBounded(t *testing.T) {
	empty := mcptest.Answer{Type: stream, Raw: ":\n\n"}
	cause := errors.New("the run is over")
	tests := []struct {
		name    string
		get     mcptest.Answer
		retry   string
		timeout time.Duration // of the request
		gives   time.Duration // of the context
		gets    int
		took    time.Duration
		want    func(err error) bool
	}{
		{"empty for ever", empty, "", 0, 0, 8, 121 * time.Second, isNoAnswer},
		{"empty for ever, at once", empty, "retry: 10\n", 0, 0, 8, 2550 * time.Millisecond, isNoAnswer},
		{"a new id each time", mcptest.Answer{Type: stream, Raw: "id: $LAST+\n\n"}, "retry: 10\n", 0, 0, 1000, 10 * time.Second, isNoAnswer},
		{"cut at once", mcptest.Answer{SSE: true, Cut: true}, "", 0, 0, 8, 121 * time.Second, isNoAnswer},
		{"limit within a pause", empty, "", 5 * time.Second, 0, 2, 5 * time.Second, isTimeout},
		{"limit before the first pause is over", empty, "retry: 3600000\n", 5 * time.Second, 0, 0, 5 * time.Second, isTimeout},
		{"limit while the server is silent", mcptest.Answer{Silent: true}, "", 5 * time.Second, 0, 1, 5 * time.Second, isTimeout},
		{"limit within a stream", mcptest.Answer{SSE: true, Hold: true}, "", 5 * time.Second, 0, 1, 5 * time.Second, isTimeout},
		{"context within a pause", empty, "", 0, 5 * time.Second, 2, 5 * time.Second, func(err error) bool { return errors.Is(err, cause) }},
		{"context within a stream", mcptest.Answer{SSE: true, Hold: true}, "", 0, 5 * time.Second, 1, 5 * time.Second, func(err error) bool { return errors.Is(err, cause) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Type: stream, Raw: tt.retry + "id: e1\ndata:\n\n"})
				p.On("GET", tt.get)
				s := connect(t, serveHTTP(t, p, engine), mcp.Options{})
				req, ctx := echo, t.Context()
				req.Timeout = tt.timeout
				if tt.gives > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeoutCause(ctx, tt.gives, cause)
					defer cancel()
				}
				r, err := s.Call(ctx, req)
				if !tt.want(err) {
					t.Errorf("error %v", err)
				}
				wantOrder(t, r)
				if took := r.Timing.End - r.Timing.Start; took.Truncate(time.Millisecond) != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				time.Sleep(time.Hour) // virtual
				if n := len(p.Received("GET")); n != tt.gets {
					t.Errorf("%d GETs, want %d", n, tt.gets)
				}
				givenUp := tt.timeout > 0 || tt.gives > 0
				if n := len(p.Received("notifications/cancelled")); (n == 1) != givenUp {
					t.Errorf("%d cancellations", n)
				}
			})
		})
	}
}

func isNoAnswer(err error) bool {
	e, ok := errors.AsType[*mcp.ProtocolError](err)
	return ok && e.Kind == mcp.FaultNoAnswer
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[*mcp.TimeoutError](err)
	return ok && e.Limit == mcp.TimeoutTotal
}

// A session that closes does not leave a request waiting for its stream.
func TestCloseWhileResuming(t *testing.T) {
	for _, get := range []mcptest.Answer{{SSE: true, Hold: true}, {Type: stream, Raw: ":\n\n"}} {
		overHTTP(t, func(h onHTTP) {
			t, engine := h.T, h.engine
			p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Type: stream, Raw: "id: e1\ndata:\n\n"})
			p.On("GET", get)
			s := connect(t, serveHTTP(t, p, engine), mcp.Options{})
			var call sync.WaitGroup
			start := time.Now()
			call.Go(func() {
				_, err := s.Call(t.Context(), echo)
				if e, ok := errors.AsType[*mcp.TransportError](err); !ok || e.Class() != mcp.ClassClosed {
					t.Errorf("error %v", err)
				}
			})
			time.Sleep(2 * time.Second) // virtual
			closeSession(t, s)
			call.Wait()
			if took := time.Since(start); took != 2*time.Second {
				t.Errorf("ended after %v", took)
			}
		})
	}
}

// initialize may be answered on a resumed stream too: the session is known by then,
// the version is not.
func TestResumeInitialize(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := &mcptest.Peer{SessionID: "s"}
		p.On("initialize", mcptest.Answer{Type: stream, Raw: "id: e1\ndata:\n\n"})
		p.On("GET", mcptest.Answer{SSE: true, JSON: fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":%s}`, p.InitializeResult("2025-11-25"))})
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{})
		gets := p.Received("GET")
		if len(gets) != 1 || gets[0].Header.Get("Mcp-Session-Id") != "s" || gets[0].Header.Get("Mcp-Protocol-Version") != "" {
			t.Errorf("GETs %v", gets)
		}
		if s.Info().Version != mcp.V20251125 {
			t.Errorf("version %v", s.Info().Version)
		}
	})
}
