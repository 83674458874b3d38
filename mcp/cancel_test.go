package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// How the slow answer comes that is given up after a second.
var slowAnswers = map[string]mcptest.Answer{
	"late result":          {Delay: 3 * time.Second, Result: echoed},
	"late error (mcp-go)":  {Delay: 3 * time.Second, Error: `{"code":-32603,"message":"context canceled"}`},
	"silence (TypeScript)": {Silent: true},
	"stream that goes on":  {Frames: []mcptest.Frame{{Delay: 100 * time.Millisecond, JSON: `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`}, {Delay: 9 * time.Second, JSON: `{}`}}},
}

// Wire tests 23 and 25: a request that is given up is cancelled as version and
// transport demand, once, and whatever comes later makes no second outcome.
func TestCancellation(t *testing.T) {
	cause := errors.New("the run is over")
	for name, answer := range slowAnswers {
		for _, v := range mcp.Versions() {
			for _, byContext := range []bool{false, true} {
				peer := func() *mcptest.Peer {
					return (&mcptest.Peer{SessionID: "s"}).On("tools/call", answer, mcptest.Answer{Result: echoed})
				}
				t.Run(name+" "+string(v), func(t *testing.T) {
					overAll(t, peer, func(o over) {
						t, p, tr := o.T, o.peer, o.transport
						if !carries(tr, v) {
							return
						}
						testCancellation(t, p, tr, v, byContext, cause)
						if tr.Kind() != "http" {
							time.Sleep(5 * time.Second) // virtual: for the late answer
						}
					})
				})
			}
		}
	}
}

func testCancellation(t *testing.T, p *mcptest.Peer, tr mcp.Transport, v mcp.Version, byContext bool, cause error) {
	t.Helper()
	s := connect(t, tr, mcp.Options{Version: v})
	req := echo
	ctx := t.Context()
	if byContext {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Second, cause)
		defer cancel()
	} else {
		req.Timeout = time.Second
	}
	start := time.Now()
	r, err := s.Call(ctx, req)
	if took := time.Since(start); took != time.Second {
		t.Errorf("the caller waited %v", took)
	}
	wantOrder(t, r)
	if got := r.Timing.End - r.Timing.Start; got != time.Second {
		t.Errorf("timed %v", got)
	}
	e, isTimeout := errors.AsType[*mcp.TimeoutError](err)
	if isTimeout == byContext || isTimeout && e.Limit != mcp.TimeoutTotal || byContext && !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	if mcp.SessionLost(err) {
		t.Error("the session counts as lost")
	}
	if _, err := s.Call(t.Context(), echo); err != nil {
		t.Errorf("the next call: %v", err)
	}
	time.Sleep(time.Millisecond) // virtual: the notification is on its way
	cancels := p.Received("notifications/cancelled")
	want := 1
	if v.Features().CancelByClose && tr.Kind() == "http" {
		want = 0
	}
	if len(cancels) != want {
		t.Fatalf("%d cancellations, want %d", len(cancels), want)
	}
	if want == 1 {
		var params struct {
			RequestID json.RawMessage `json:"requestId"`
			Reason    string          `json:"reason"`
		}
		if err := json.Unmarshal(cancels[0].Params, &params); err != nil {
			t.Fatal(err)
		}
		if got, want := string(params.RequestID), p.Received("tools/call")[0].ID; got != want || params.Reason == "" {
			t.Errorf("cancelled %s (%q), want %s", got, params.Reason, want)
		}
	}
}

// Over stdio the late answer of a cancelled request is counted and dropped.
func TestLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := (&mcptest.Peer{}).On("tools/call",
			mcptest.Answer{Delay: 3 * time.Second, Result: echoed},
			mcptest.Answer{Raw: `{"jsonrpc":"2.0","id":$ID,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":$ID,"result":{}}` + "\n" +
				`{"jsonrpc":"2.0","id":999,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}` + "\n"},
		)
		var a mcptest.Anomalies
		s := connect(t, p.Stdio(t), mcp.Options{OnAnomaly: a.Tell})
		req := echo
		req.Timeout = time.Second
		if _, err := s.Call(t.Context(), req); err == nil {
			t.Error("no timeout")
		}
		if r, err := s.Call(t.Context(), req); err != nil || string(r.Result) != `{}` {
			t.Errorf("got %+v, %v", r, err)
		}
		time.Sleep(5 * time.Second) // virtual
		for kind, want := range map[mcp.Anomaly]int{mcp.AnomalyLateAnswer: 1, mcp.AnomalyDuplicateAnswer: 1, mcp.AnomalyUnknownID: 2} {
			if got := a.Counts()[kind]; got != want {
				t.Errorf("%v: %d, want %d in %v", kind, got, want, a.Texts())
			}
		}
	})
}

// A cancellation that the server refuses or never answers harms nobody (fault B40),
// and Close awaits it for a bounded time.
func TestCancellationThatFails(t *testing.T) {
	for name, answer := range map[string]mcptest.Answer{"refused": {Status: 400}, "never answered": {Silent: true}} {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Silent: true}, mcptest.Answer{Result: echoed})
				p.On("notifications/cancelled", answer)
				var a mcptest.Anomalies
				s, err := mcp.Connect(t.Context(), serveHTTP(t, p, engine), mcp.Options{OnAnomaly: a.Tell})
				if err != nil {
					t.Fatal(err)
				}
				req := echo
				req.Timeout = time.Second
				if _, err := s.Call(t.Context(), req); err == nil {
					t.Error("no timeout")
				}
				if _, err := s.Call(t.Context(), req); err != nil {
					t.Errorf("the next call: %v", err)
				}
				start := time.Now()
				closeSession(t, s)
				if took := time.Since(start); took > 6*time.Second {
					t.Errorf("close took %v", took)
				}
				if a.Counts()[mcp.AnomalyCancelFailed] != 1 {
					t.Errorf("anomalies %v", a.Texts())
				}
			})
		})
	}
}

// A server that does not read its stdin holds up no call past its limit, and what
// was never written needs no cancellation.
func TestServerThatStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &stuckServer{done: make(chan struct{})}
		t.Cleanup(func() { close(server.done) })
		s := connect(t, server, mcp.Options{})
		for range 3 {
			req := echo
			req.Timeout = time.Second
			start := time.Now()
			r, err := s.Call(t.Context(), req)
			if _, ok := errors.AsType[*mcp.TimeoutError](err); !ok || time.Since(start) != time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
			wantOrder(t, r)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Notify(ctx, "notifications/progress", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("notify: %v", err)
		}
	})
}

func TestCallAfterTheContextEnded(t *testing.T) {
	cause := errors.New("stopped")
	overAll(t, func() *mcptest.Peer { return &mcptest.Peer{} }, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		s := connect(t, tr, mcp.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		r, err := s.Call(ctx, echo)
		if !errors.Is(err, cause) || len(p.Received("tools/call")) != 0 {
			t.Errorf("error %v", err)
		}
		wantOrder(t, r)
	})
}

func TestCallAfterClose(t *testing.T) {
	overAll(t, func() *mcptest.Peer { return &mcptest.Peer{SessionID: "s"} }, func(o over) {
		t, tr := o.T, o.transport
		s := connect(t, tr, mcp.Options{})
		closeSession(t, s)
		closeSession(t, s) // twice does no harm
		_, err := s.Call(t.Context(), echo)
		e, ok := errors.AsType[*mcp.TransportError](err)
		if !ok || e.Class() != mcp.ClassClosed || !mcp.SessionLost(err) {
			t.Errorf("call: %v", err)
		}
		if err := s.Notify(t.Context(), "notifications/progress", nil); !mcp.SessionLost(err) {
			t.Errorf("notify: %v", err)
		}
	})
}

// Close ends what is in flight.
func TestCloseDuringACall(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Silent: true})
	}
	overAll(t, peer, func(o over) {
		t, tr := o.T, o.transport
		s, err := mcp.Connect(t.Context(), tr, mcp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := s.Call(t.Context(), echo)
			failed <- err
		}()
		time.Sleep(time.Second) // virtual
		closeSession(t, s)
		if _, ok := errors.AsType[*mcp.TransportError](<-failed); !ok {
			t.Error("the call in flight did not fail as a transport error")
		}
	})
}

// Close ends a call whose connection is still being opened, too.
func TestCloseWhileDialling(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Silent: true})
		tr := serveHTTP(h.T, p, h.engine)
		dial, dials := tr.DialContext, 0
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials++; dials > 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial(ctx, network, addr)
		}
		s, err := mcp.Connect(h.Context(), tr, mcp.Options{})
		if err != nil {
			h.Fatal(err)
		}
		failed := make(chan error, 2)
		for range cap(failed) {
			go func() {
				_, err := s.Call(h.Context(), echo)
				failed <- err
			}()
			synctest.Wait()
		}
		closeSession(h.T, s)
		for range cap(failed) {
			e, ok := errors.AsType[*mcp.TransportError](<-failed)
			if !ok || e.Class() != mcp.ClassClosed && e.Class() != mcp.ClassPipe {
				h.Errorf("got %v", e)
			}
		}
	})
}
