package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// overStuck runs f with a session whose server has stopped reading: one line
// is stuck in the pipe, so that the next ones are never written.
func overStuck(t *testing.T, f func(t *testing.T, s *mcp.Session)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := &stuckServer{done: make(chan struct{})}
		t.Cleanup(func() { close(server.done) })
		s := connect(t, server, mcp.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := s.Notify(ctx, "notifications/progress", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("notify: %v", err)
		}
		f(t, s)
	})
}

// purposely is a call that is cancelled after a second.
func purposely(total time.Duration) mcp.Request {
	req := echo
	req.Timeout, req.Wants = total, &mcp.Wants{CancelAfter: sec}
	return req
}

// Wire tests 23 and 25: a request that is cancelled on purpose. Whatever the server
// makes of it, the outcome is the same.
func TestCancelledOnPurpose(t *testing.T) {
	const late = `{"content":[{"type":"text","text":"context canceled"}],"isError":true}`
	note := mcptest.Frame{Delay: 500 * ms, JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`}
	tests := []struct {
		name    string
		answer  mcptest.Answer
		total   time.Duration
		stopped time.Duration // after the send of the request, 0: no sign
		end     time.Duration // of our wait
	}{
		{"late result (go-sdk)", mcptest.Answer{Delay: 1100 * ms, Result: late}, 0, 1100 * ms, 1100 * ms},
		{"late result, SSE", mcptest.Answer{Frames: []mcptest.Frame{note, note, note}, Result: late}, 0, 1500 * ms, 1500 * ms},
		{"late error (mcp-go)", mcptest.Answer{Delay: 1200 * ms, Error: `{"code":-32603,"message":"context canceled"}`}, 0, 1200 * ms, 1200 * ms},
		{"silence (TypeScript)", mcptest.Answer{Silent: true}, 0, 0, 3 * sec},
		{"an open stream", mcptest.Answer{Frames: []mcptest.Frame{note}, Hold: true}, 0, 0, 3 * sec},
		{"silence, whole limit", mcptest.Answer{Silent: true}, 2 * sec, 0, 2 * sec},
		{"answer after the wait", mcptest.Answer{Delay: 3500 * ms, Result: late}, 0, 0, 3 * sec},
	}
	for _, tt := range tests {
		for _, v := range mcp.Versions() {
			t.Run(tt.name+" "+string(v), func(t *testing.T) {
				peer := func() *mcptest.Peer {
					return (&mcptest.Peer{SessionID: "s"}).On("tools/call", tt.answer, mcptest.Answer{Result: echoed})
				}
				overBoth(t, peer, func(o over) {
					stopped, end := tt.stopped, tt.end
					if closesToCancel(o, v) {
						stopped, end = 0, sec
					}
					var a mcptest.Anomalies
					s := connect(o.T, o.transport, mcp.Options{Version: v, OnAnomaly: a.Tell})
					start := time.Now()
					r, err := s.Call(o.Context(), purposely(tt.total))
					wantCancelled(o.T, r, err, sec, stopped, end)
					if took := time.Since(start); took != end {
						o.Errorf("the caller waited %v, want %v", took, end)
					}
					wantAlive(o, s, cancelsSent(o, v))
					wantRightIDs(o, start.Add(sec))
					want := map[mcp.Anomaly]int{}
					if o.transport.Kind() == "stdio" && tt.name == "answer after the wait" {
						want[mcp.AnomalyLateAnswer] = 1
					}
					if d := cmp.Diff(want, a.Counts()); d != "" {
						o.Errorf("anomalies (-want +got)\n%s", d)
					}
				})
			})
		}
	}
}

// wantRightIDs fails unless what was cancelled at that time is the first call.
func wantRightIDs(o over, at time.Time) {
	o.Helper()
	for _, c := range o.peer.Received("notifications/cancelled") {
		if !c.At.Equal(at) || requestID(o.T, c) != o.peer.Received("tools/call")[0].ID {
			o.Errorf("cancelled by %+v", c)
		}
	}
}

// wantCancelled fails unless a call was cancelled, told at these times after its start.
func wantCancelled(t *testing.T, r mcp.Reply, err error, sent, stopped, end time.Duration) {
	t.Helper()
	e, ok := errors.AsType[*mcp.CancelledError](err)
	if !ok {
		t.Fatalf("error %v", err)
	}
	got := []time.Duration{e.Sent - r.Timing.Start, 0, r.Timing.End - r.Timing.Start}
	if e.Stopped != 0 {
		got[1] = e.Stopped - r.Timing.Start
	}
	if d := cmp.Diff([]time.Duration{sent, stopped, end}, got); d != "" {
		t.Errorf("sent, stopped, end (-want +got)\n%s", d)
	}
	if r.Result != nil || r.ToolError || mcp.SessionLost(err) {
		t.Errorf("reply %+v", r)
	}
	wantOrder(t, r)
}

// requestID returns the id that a cancellation is about, as JSON text: wire test 23,
// a number stays a number.
func requestID(t *testing.T, r mcptest.Received) string {
	t.Helper()
	var params struct {
		ID     json.RawMessage `json:"requestId"`
		Reason string          `json:"reason"`
	}
	if err := json.Unmarshal(r.Params, &params); err != nil || params.Reason == "" {
		t.Errorf("cancelled with %s, %v", r.Params, err)
	}
	return string(params.ID)
}

// Wire test 25: the connection goes with the stream.
func TestCancellationClosesTheConnection(t *testing.T) {
	tests := map[string]mcptest.Answer{
		"before the header": {Silent: true},
		"in the stream":     {SSE: true, Hold: true},
		"in a JSON body":    {Raw: `{"jsonrpc":"2.0",`, Hold: true},
		"in a refusal":      {Status: 400, Raw: `{"jsonrpc":"2.0",`, Hold: true},
	}
	for name, answer := range tests {
		for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
			t.Run(name+" "+string(v), func(t *testing.T) {
				overHTTP(t, func(h onHTTP) {
					t, engine := h.T, h.engine
					p := (&mcptest.Peer{}).On("tools/call", answer, mcptest.Answer{Result: echoed})
					tr := serveHTTP(t, p, engine)
					conns := watchConns(tr)
					s := connect(t, tr, mcp.Options{Version: v})
					r, err := s.Call(t.Context(), purposely(0))
					end := sec
					if !v.Features().CancelByClose {
						end = 3 * sec
					}
					wantCancelled(t, r, err, sec, 0, end)
					synctest.Wait()
					if got := conns.closed(); got != 1 {
						t.Errorf("%d connections closed, want 1", got)
					}
					if _, err := s.Call(t.Context(), echo); err != nil {
						t.Errorf("the next call: %v", err)
					}
				})
			})
		}
	}
}

// Other signs that the server stopped than an answer.
func TestSignsOfAStop(t *testing.T) {
	broken := mcptest.Frame{Delay: 1500 * ms, Raw: "data: {broken\n\n"}
	tests := map[string]mcptest.Answer{
		"end of the stream": {Frames: []mcptest.Frame{{Delay: 1500 * ms, Raw: ":\n\n"}}},
		"cut connection":    {Delay: 1500 * ms, Cut: true},
		"HTTP status":       {Delay: 1500 * ms, Status: 500},
		"refusal":           {Delay: 1500 * ms, Status: 400, Error: `{"code":-32600,"message":"?"}`},
		"no JSON":           {Frames: []mcptest.Frame{broken}, Hold: true},
		"no content":        {Delay: 1500 * ms, Status: 202},
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{}).On("tools/call", answer, mcptest.Answer{Result: echoed})
				s := connect(t, serveHTTP(t, p, engine), mcp.Options{})
				time.Sleep(sec) // virtual: a connection that was idle might be stale
				r, err := s.Call(t.Context(), purposely(10*sec))
				wantCancelled(t, r, err, sec, 1500*ms, 1500*ms)
				if _, err := s.Call(t.Context(), echo); err != nil {
					t.Errorf("the next call: %v", err)
				}
				if n := len(p.Received("tools/call")); n != 2 {
					t.Errorf("%d calls: a cancelled one was sent again", n)
				}
			})
		})
	}
}

// An answer that comes before the cancellation is due is an answer.
func TestAnswerBeforeTheCancellation(t *testing.T) {
	for _, v := range mcp.Versions() {
		for _, answer := range []mcptest.Answer{{Delay: sec - 1, Result: echoed}, {Delay: sec - 1, Result: echoed, SSE: true}, {Result: echoed, SSE: true, Hold: true}} {
			peer := func() *mcptest.Peer { return (&mcptest.Peer{SessionID: "s"}).On("tools/call", answer) }
			overBoth(t, peer, func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				s := connect(t, tr, mcp.Options{Version: v})
				r, err := s.Call(t.Context(), purposely(0))
				if err != nil || string(r.Result) != echoed {
					t.Errorf("got %+v, %v", r, err)
				}
				time.Sleep(5 * sec) // virtual
				if n := len(p.Received("notifications/cancelled")); n != 0 {
					t.Errorf("%d cancellations", n)
				}
			})
		}
	}
}

// Wire test 24: initialize is not cancelled, neither on purpose nor when it times out.
func TestInitializeIsNotCancelled(t *testing.T) {
	peer := func() *mcptest.Peer { return &mcptest.Peer{} }
	overBoth(t, peer, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		s := connect(t, tr, mcp.Options{})
		p.On("initialize", mcptest.Answer{Delay: 2 * sec, Result: p.InitializeResult("2025-11-25")}, mcptest.Answer{Silent: true})
		req := mcp.Request{Method: "initialize", Params: []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`)}
		req.Wants = &mcp.Wants{CancelAfter: sec}
		if _, err := s.Call(t.Context(), req); err != nil {
			t.Errorf("it should just be answered: %v", err)
		}
		req.Timeout = 4 * sec
		r, err := s.Call(t.Context(), req)
		wantTimeout(t, r, err, mcp.TimeoutTotal, 4*sec)
		req.Wants = &mcp.Wants{CancelAfter: sec, IdleTimeout: 3 * sec}
		r, err = s.Call(t.Context(), req)
		wantTimeout(t, r, err, mcp.TimeoutIdle, 3*sec)
		time.Sleep(sec) // virtual
		if n := len(p.Received("notifications/cancelled")); n != 0 {
			t.Errorf("%d cancellations", n)
		}
	})
}

// Limits that run out before the cancellation is due, and at the same moment.
func TestLimitsBeforeTheCancellation(t *testing.T) {
	tests := []struct {
		name  string
		wants mcp.Wants
		total time.Duration
		kind  mcp.TimeoutKind
		took  time.Duration
	}{
		{"whole", mcp.Wants{CancelAfter: 3 * sec}, 2 * sec, mcp.TimeoutTotal, 2 * sec},
		{"whole at once", mcp.Wants{CancelAfter: 2 * sec}, 2 * sec, mcp.TimeoutTotal, 2 * sec},
		{"idle", mcp.Wants{CancelAfter: 3 * sec, IdleTimeout: sec}, 4 * sec, mcp.TimeoutIdle, sec},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			peer := func() *mcptest.Peer { return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Silent: true}) }
			overBoth(t, peer, func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				s := connect(t, tr, mcp.Options{})
				req := echo
				req.Timeout, req.Wants = tt.total, &tt.wants
				r, err := s.Call(t.Context(), req)
				wantTimeout(t, r, err, tt.kind, tt.took)
				time.Sleep(5 * sec) // virtual
				if n := len(p.Received("notifications/cancelled")); n != 1 {
					t.Errorf("%d cancellations", n)
				}
			})
		})
	}
}

// The end of the run while we wait for a sign ends the wait, not the cancellation;
// before it, it is the caller who gave up.
func TestContextEndsAroundTheCancellation(t *testing.T) {
	cause := errors.New("the run is over")
	for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
		for _, after := range []time.Duration{500 * ms, 1500 * ms} {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Silent: true}, mcptest.Answer{Result: echoed})
			}
			overBoth(t, peer, func(o over) {
				s := connect(o.T, o.transport, mcp.Options{Version: v})
				ctx, cancel := context.WithTimeoutCause(o.Context(), after, cause)
				defer cancel()
				r, err := s.Call(ctx, purposely(0))
				switch {
				case after < sec:
					if !errors.Is(err, cause) || r.Timing.End-r.Timing.Start != after {
						o.Errorf("got %+v, %v", r, err)
					}
				case closesToCancel(o, v):
					wantCancelled(o.T, r, err, sec, 0, sec)
				default:
					wantCancelled(o.T, r, err, sec, 0, after)
				}
				wantAlive(o, s, cancelsSent(o, v))
			})
		}
	}
}
