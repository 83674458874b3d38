package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// Wire test 37: a POST that is refused fails its request at once, since no answer
// will come, and nothing else.
func TestSSERefusedPOST(t *testing.T) {
	tests := []struct {
		name   string
		answer mcptest.Answer
		status int   // of an *HTTPError
		code   int64 // or of an *RPCError
		lost   bool
	}{
		{"400 text (go-sdk, unknown method)", mcptest.Answer{Status: 400, Type: "text/plain", Raw: `JSON RPC not handled`}, 400, 0, false},
		{"400 JSON-RPC", mcptest.Answer{Status: 400, Error: `{"code":-32600,"message":"no"}`}, 0, -32600, false},
		{"400 of mcp-go, session unknown", mcptest.Answer{Status: 400, JSON: `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"Invalid session ID"}}`}, 0, -32602, true},
		{"404, session unknown", mcptest.Answer{Status: 404, Type: "text/plain", Raw: "session not found"}, 404, 0, true},
		{"401", mcptest.Answer{Status: 401}, 401, 0, false},
		{"429", mcptest.Answer{Status: 429, Header: map[string]string{"Retry-After": "9"}}, 429, 0, false},
		{"500", mcptest.Answer{Status: 500}, 500, 0, false},
		{"307", mcptest.Answer{Status: 307, Header: map[string]string{"Location": "http://evil/"}}, 307, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Delay: time.Second, Result: echoed}, tt.answer, mcptest.Answer{Result: echoed})
			}
			overSSE(t, peer, func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				s := connect(t, tr, mcp.Options{})
				other := make(chan error, 1)
				go func() {
					_, err := s.Call(t.Context(), echo)
					other <- err
				}()
				synctest.Wait()
				r, err := callAtOnce(t, s)
				if status, code := refusalOf(err); status != tt.status || code != tt.code || (code != 0) != (r.BytesIn != 0) {
					t.Errorf("error %v", err)
				}
				if r.HTTPStatus != tt.answer.Status || mcp.SessionLost(err) != tt.lost || s.Ended() != tt.lost {
					t.Errorf("status %d, lost %v, ended %v", r.HTTPStatus, mcp.SessionLost(err), s.Ended())
				}
				if err := <-other; err != nil {
					t.Errorf("the other call: %v", err)
				}
				if _, err := s.Call(t.Context(), echo); err != nil {
					t.Errorf("the next call: %v", err)
				}
				if got := p.Received("notifications/cancelled"); len(got) != 0 {
					t.Error("the refused request was cancelled")
				}
			})
		})
	}
}

// refusalOf returns the status of an *HTTPError or the code of an *RPCError.
func refusalOf(err error) (status int, code int64) {
	if e, ok := errors.AsType[*mcp.HTTPError](err); ok {
		status = e.Status
	}
	if e, ok := errors.AsType[*mcp.RPCError](err); ok {
		code = e.Code
	}
	return status, code
}

// callAtOnce makes a call that must not take any time.
func callAtOnce(t *testing.T, s *mcp.Session) (mcp.Reply, error) {
	t.Helper()
	start := time.Now()
	req := echo
	req.Timeout = 10 * time.Second
	r, err := s.Call(t.Context(), req)
	if took := time.Since(start); took != 0 {
		t.Errorf("took %v", took)
	}
	wantOrder(t, r)
	return r, err
}

// Every 2xx is acceptance, of requests and notifications.
func TestSSEAcceptedPOST(t *testing.T) {
	for _, status := range []int{200, 202, 204} {
		peer := func() *mcptest.Peer {
			return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Status: status, Result: echoed}).
				On("notifications/initialized", mcptest.Answer{Status: status})
		}
		overSSE(t, peer, func(o over) {
			t, tr := o.T, o.transport
			var a mcptest.Anomalies
			s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
			if r, err := s.Call(t.Context(), echo); err != nil || r.HTTPStatus != status || len(a.Texts()) > 0 {
				t.Errorf("%d: got %+v, %v, %v", status, r, err, a.Texts())
			}
		})
	}
}

// Wire test 37: the limit of a request counts from its POST, whether that hangs,
// is slow, or is answered and nothing else comes.
func TestSSETimeout(t *testing.T) {
	answers := map[string]mcptest.Answer{
		"the POST hangs":            {Silent: true},
		"the POST is slow":          {Lag: 700 * time.Millisecond},
		"the answer does not come":  {},
		"the answer comes too late": {Delay: 2 * time.Second, Result: echoed, Lag: 900 * time.Millisecond},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", answer, mcptest.Answer{Result: echoed})
			}
			overSSE(t, peer, func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				var a mcptest.Anomalies
				s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
				req := echo
				req.Timeout = time.Second
				start := time.Now()
				r, err := s.Call(t.Context(), req)
				if took := time.Since(start); took != time.Second || r.Timing.End-r.Timing.Start != time.Second {
					t.Errorf("took %v, timed %+v", took, r.Timing)
				}
				if e, ok := errors.AsType[*mcp.TimeoutError](err); !ok || e.Limit != mcp.TimeoutTotal || mcp.SessionLost(err) {
					t.Errorf("error %v", err)
				}
				time.Sleep(5 * time.Second) // virtual: for what is late
				if got := p.Received("notifications/cancelled"); len(got) != 1 || !strings.Contains(string(got[0].Params), `"requestId":2,`) {
					t.Errorf("cancellations %v", got)
				}
				if late := a.Counts()[mcp.AnomalyLateAnswer]; len(a.Texts()) != late || (late == 1) != (answer.Result != "") {
					t.Errorf("anomalies %v", a.Texts())
				}
				if _, err := s.Call(t.Context(), echo); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}

// The answer may come before the response to its POST: its time is its own.
func TestSSEAnswerBeforeTheResponse(t *testing.T) {
	tests := []struct {
		name      string
		lag       time.Duration
		anomalies int
	}{
		{"a little later", 300 * time.Millisecond, 0},
		{"never", time.Hour, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Delay: 100 * time.Millisecond, Result: echoed, Lag: tt.lag})
			}
			overSSE(t, peer, func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				var a mcptest.Anomalies
				s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
				req := echo
				req.Timeout = time.Second
				r, err := s.Call(t.Context(), req)
				if err != nil || string(r.Result) != echoed || r.Timing.End-r.Timing.Start != 100*time.Millisecond {
					t.Errorf("got %+v, %v", r, err)
				}
				if a.Counts()[mcp.AnomalyOddStatus] != tt.anomalies || len(a.Texts()) != tt.anomalies {
					t.Errorf("anomalies %v", a.Texts())
				}
				time.Sleep(time.Second) // virtual
				if len(p.Received("notifications/cancelled")) != 0 {
					t.Error("a request that was answered was cancelled")
				}
			})
		})
	}
}

// Start is when the POST goes out, FirstByte and End are those of the event.
func TestSSETiming(t *testing.T) {
	big := `{"x":"` + strings.Repeat("x", 50_000) + `"}`
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{
			{Delay: 100 * time.Millisecond, JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`},
			{Delay: 100 * time.Millisecond, Raw: "event: message\nda"},
			{Delay: 50 * time.Millisecond, Raw: `ta: {"jsonrpc":"2.0","id":$ID,"result":` + big + "}\n"},
			{Delay: 50 * time.Millisecond, Raw: "\n"},
		}})
	}
	overHTTP(t, func(h onHTTP) {
		t := h.T
		tr := serveSSE(t, peer(), h.engine)
		http := mcp.Streamable(*tr)
		slowDials(&http, 20*time.Millisecond)
		*tr = mcp.LegacySSE(http)
		s := connect(t, tr, mcp.Options{})
		for range 2 {
			r, err := s.Call(t.Context(), echo)
			if err != nil || string(r.Result) != big {
				t.Fatalf("error %v", err)
			}
			first, end := r.Timing.FirstByte-r.Timing.Start, r.Timing.End-r.Timing.Start
			if first != 200*time.Millisecond || end != 300*time.Millisecond || r.Timing.Connect != 0 {
				t.Errorf("timing %+v", r.Timing)
			}
		}
		// One connection for the stream, and one for the POSTs.
		if i := s.Info(); i.TCP != 20*time.Millisecond || i.Handshake != 20*time.Millisecond || i.End-i.Start != 40*time.Millisecond {
			t.Errorf("info %+v", i)
		}
	})
}

// Wire test 37, fault B19: with the stream everything in flight is lost, at once,
// also what is still being posted.
func TestSSEStreamLost(t *testing.T) {
	for _, cut := range []bool{true, false} {
		t.Run(fmt.Sprintf("cut %v", cut), func(t *testing.T) {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{}, mcptest.Answer{Silent: true}, mcptest.Answer{Lag: time.Hour},
					mcptest.Answer{Delay: time.Second, Cut: cut, End: !cut})
			}
			overSSE(t, peer, func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				s := connect(t, tr, mcp.Options{})
				loseStream(t, s)
				if !s.Ended() {
					t.Error("the session does not count as ended")
				}
				before := len(p.Received())
				if _, err := s.Call(t.Context(), echo); !mcp.SessionLost(err) {
					t.Errorf("afterwards: %v", err)
				}
				if err := s.Notify(t.Context(), "notifications/roots/list_changed", nil); !mcp.SessionLost(err) {
					t.Errorf("notify: %v", err)
				}
				if len(p.Received()) != before {
					t.Error("something was sent after the stream had ended")
				}
			})
		})
	}
}

// loseStream makes four calls of which the last one makes the server end the stream.
func loseStream(t *testing.T, s *mcp.Session) {
	t.Helper()
	start := time.Now()
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			r, err := s.Call(t.Context(), echo)
			if took := r.Timing.End - r.Timing.Start; took > time.Second {
				t.Errorf("timed %v", took)
			}
			errs <- err
		}()
		synctest.Wait()
	}
	for range cap(errs) {
		err := <-errs
		if e, ok := errors.AsType[*mcp.TransportError](err); !ok || e.Class() != mcp.ClassEOF || !mcp.SessionLost(err) {
			t.Errorf("error %v", err)
		}
	}
	if took := time.Since(start); took != time.Second {
		t.Errorf("took %v", took)
	}
}

// The stream breaks HTTP: the session is lost, and says by what.
func TestSSEStreamBroken(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("initialize", mcptest.Answer{Cut: true})
	}
	overSSE(t, peer, func(o over) {
		_, err := mcp.Connect(o.Context(), o.transport, mcp.Options{})
		if !mcp.SessionLost(err) {
			o.Errorf("error %v", err)
		}
	})
}

// An event over the limit fails the request whose answer it is, if that can be
// told; the stream goes on.
func TestSSEOversizedEvent(t *testing.T) {
	big := strings.Repeat("x", 300_000)
	tests := []struct {
		name, raw string
		told      bool
	}{
		{"id first", `data: {"jsonrpc":"2.0","id":$ID,"result":{"x":"` + big + `"}}`, true},
		{"id last (TypeScript SDK)", `data: {"result":{"x":"` + big + `"},"jsonrpc":"2.0","id":$ID}`, true},
		{"named, id last", "event: message\ndata: " + `{"result":{"x":"` + big + `"},"jsonrpc":"2.0","id":$ID}`, true},
		{"id of something inside", `data: {"jsonrpc":"2.0","result":{"x":"` + big + `","id":$ID}}`, false},
		{"noise", "data: " + big, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Raw: tt.raw + "\n\n"}, mcptest.Answer{Result: echoed})
			}
			overSSE(t, peer, func(o over) {
				t, tr := o.T, o.transport
				var a mcptest.Anomalies
				s := connect(t, tr, mcp.Options{Limits: mcp.Limits{MessageBytes: 1000}, OnAnomaly: a.Tell})
				req := echo
				req.Timeout = time.Second
				_, err := s.Call(t.Context(), req)
				if tt.told {
					contains(t, err, "message_bytes over 1000")
				} else {
					contains(t, err, "ran out")
				}
				if got := a.Counts()[mcp.AnomalyOversized]; (got == 0) != tt.told {
					t.Errorf("anomalies %v", a.Texts())
				}
				if _, err := s.Call(t.Context(), req); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}

// Close is bounded when the server takes no POST, and by its context.
func TestSSECloseIsBounded(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{}).On("notifications/cancelled", mcptest.Answer{Silent: true})
	}
	for _, bound := range []time.Duration{time.Second, 20 * time.Second} {
		overSSE(t, peer, func(o over) {
			t, tr := o.T, o.transport
			s, err := mcp.Connect(t.Context(), tr, mcp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			req := echo
			req.Timeout = time.Millisecond
			if _, err := s.Call(t.Context(), req); err == nil {
				t.Error("no error")
			}
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			start := time.Now()
			_ = s.Close(ctx) // whether the cancellation arrived is not its business
			if took := time.Since(start); took > min(bound, 5*time.Second) {
				t.Errorf("took %v of %v", took, bound)
			}
		})
	}
}

// Answers to the server go by POST, like everything else.
func TestSSEAnswersToTheServer(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{
			{JSON: `{"jsonrpc":"2.0","id":0,"method":"ping"}`}, {JSON: `{"jsonrpc":"2.0","id":"r","method":"roots/list"}`},
		}, Delay: time.Second, Result: echoed})
	}
	overSSE(t, peer, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		s := connect(t, tr, mcp.Options{})
		if _, err := s.Call(t.Context(), echo); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		got := map[string]string{}
		for _, r := range p.Received("") {
			var m map[string]json.RawMessage
			if err := json.Unmarshal([]byte(r.Body), &m); err != nil || r.URL != "/message?session=1" {
				t.Errorf("%s to %s", r.Body, r.URL)
			}
			got[r.ID] = string(m["result"]) + string(m["error"])
		}
		want := map[string]string{"0": `{}`, `"r"`: `{"code":-32601,"message":"Method not found"}`}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("answers (-want +got)\n%s", d)
		}
	})
}
