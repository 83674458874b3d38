package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

var listing = mcp.Request{Method: "tools/list"}

// batch sends requests in one message in 2025-03-26 and returns a line for each
// answer: its text and when it came, in milliseconds after the send.
func batch(o over, s *mcp.Session, reqs ...mcp.Request) []string {
	o.Helper()
	replies, err := s.Batch(o.Context(), reqs)
	if err != nil || len(replies) != len(reqs) {
		o.Fatalf("%d replies, %v", len(replies), err)
	}
	var out []string
	for _, r := range replies {
		wantOrder(o.T, r.Reply)
		if r.Reply.Timing.Start != replies[0].Reply.Timing.Start || r.Reply.BytesOut == 0 || r.Reply.Rounds != 1 {
			o.Errorf("reply %+v", r.Reply)
		}
		out = append(out, fmt.Sprintf("%s at %d", outcomeOf(r), (r.Reply.Timing.End-r.Reply.Timing.Start).Milliseconds()))
	}
	return out
}

// outcomeOf names what came of one request.
func outcomeOf(r mcp.BatchReply) string {
	var fault *mcp.ProtocolError
	var refused *mcp.RPCError
	var status *mcp.HTTPError
	var lost *mcp.TransportError
	var late *mcp.TimeoutError
	switch {
	case r.Err == nil && r.Reply.ToolError:
		return "tool error"
	case r.Err == nil:
		return string(r.Reply.Result)
	case errors.As(r.Err, &fault):
		return fault.Kind.String()
	case errors.As(r.Err, &refused):
		return fmt.Sprintf("error %d", refused.Code)
	case errors.As(r.Err, &status):
		return fmt.Sprintf("status %d", status.Status)
	case errors.As(r.Err, &late):
		return "timeout"
	case errors.As(r.Err, &lost):
		return "lost"
	case errors.Is(r.Err, context.Canceled):
		return "given up"
	}
	return r.Err.Error()
}

func wantLines(o over, got []string, want ...string) {
	o.Helper()
	if d := cmp.Diff(want, got); d != "" {
		o.Errorf("(-want +got)\n%s", d)
	}
}

// timed is req with a limit.
func timed(req mcp.Request, d time.Duration) mcp.Request {
	req.Timeout = d
	return req
}

var b2503 = mcp.Options{Version: mcp.V20250326}

// Wire test 45: a batch is one message; its answers, in another order, are matched,
// each with an outcome of its own.
func TestBatch(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call",
			mcptest.Answer{Result: `{"isError":true,"content":[]}`}, mcptest.Answer{Result: echoed})
	}
	status := map[string]int{"stdio": 0, "http": 200, "sse": 202}
	overAll(t, peer, func(o over) {
		var a mcptest.Anomalies
		options := b2503
		options.OnAnomaly = a.Tell
		s := connect(o.T, o.transport, options)
		for range 2 { // calls are used again
			o.peer.On("tools/call", mcptest.Answer{Result: `{"isError":true,"content":[]}`}, mcptest.Answer{Result: echoed})
			replies, err := s.Batch(o.Context(), []mcp.Request{echo, {Method: "ping"}, {Method: "no/such"}, {Method: "tools/call", Params: []byte("[]")}, timed(echo, time.Hour)})
			if err != nil {
				o.Fatal(err)
			}
			var got []string
			for i, r := range replies {
				got = append(got, outcomeOf(r))
				if i != 3 && (r.Reply.HTTPStatus != status[o.transport.Kind()] || r.Reply.BytesIn == 0) {
					o.Errorf("reply %+v", r.Reply)
				}
			}
			wantLines(o, got, echoed, "{}", "error -32601", "tools/call: params are not a JSON object", "tool error")
		}
		// The request that could not be sent has a number too.
		ids := idsIn(o.peer.Received("batch"))
		wantLines(o, ids[:4], "tools/call 2", "ping 3", "no/such 4", "tools/call 6")
		if len(ids) != 8 || len(o.peer.Received("tools/call")) != 0 {
			o.Errorf("sent %q", ids)
		}
		if _, err := s.Call(o.Context(), echo); err != nil {
			o.Errorf("the next call: %v", err)
		}
		if len(a.Texts()) != 0 {
			o.Errorf("anomalies %q", a.Texts())
		}
	})
}

// idsIn lists the requests in batches.
func idsIn(batches []mcptest.Received) (ids []string) {
	for _, b := range batches {
		for _, one := range b.Batch {
			ids = append(ids, one.Method+" "+one.ID)
		}
	}
	return ids
}

// Wire test 45: answers one by one and in arrays, among notifications and requests
// of the server, each with a timing of its own.
func TestBatchAnsweredInParts(t *testing.T) {
	const ms = time.Millisecond
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("batch", mcptest.Answer{Frames: []mcptest.Frame{
			{JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`},
			{Delay: 10 * ms, JSON: `{"jsonrpc":"2.0","id":$2,"result":{"n":2}}`},
			{JSON: `{"jsonrpc":"2.0","id":"p","method":"ping"}`},
			{Delay: 20 * ms, JSON: `[{"jsonrpc":"2.0","id":$4,"result":{"n":4}},{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}},` +
				`{"jsonrpc":"2.0","id":$1,"error":{"code":-32602,"message":"no"}}]`},
			{Delay: 30 * ms, JSON: `[{"jsonrpc":"2.0","id":$3,"result":{"n":3}}]`},
		}})
	}
	overAll(t, peer, func(o over) {
		var a mcptest.Anomalies
		options := b2503
		options.OnAnomaly = a.Tell
		s := connect(o.T, o.transport, options)
		call := mcp.Request{Method: "tools/call", Params: []byte(`{"name":"echo","_meta":{"progressToken":"x"}}`)}
		replies, err := s.Batch(o.Context(), []mcp.Request{listing, listing, call, listing})
		if err != nil {
			o.Fatal(err)
		}
		var got []string
		for _, r := range replies {
			wantOrder(o.T, r.Reply)
			got = append(got, fmt.Sprintf("%s at %v, progress %d", outcomeOf(r), r.Reply.Timing.FirstByte-replies[0].Reply.Timing.Start, r.Reply.Progress))
		}
		wantLines(o, got, "error -32602 at 30ms, progress 0", `{"n":2} at 10ms, progress 0`, `{"n":3} at 60ms, progress 1`, `{"n":4} at 30ms, progress 0`)
		synctest.Wait()
		if replied := o.peer.Received(""); len(replied) != 1 || replied[0].ID != `"p"` {
			o.Errorf("the server's ping got %+v", replied)
		}
		if len(a.Texts()) != 0 {
			o.Errorf("anomalies %q", a.Texts())
		}
	})
}

// What becomes of a batch that is answered otherwise than by an array of its answers.
func TestBatchAnsweredWrong(t *testing.T) {
	const one, two = `{"jsonrpc":"2.0","id":$1,"result":{}}`, `{"jsonrpc":"2.0","id":$2,"result":{}}`
	const refused = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no batches"}}`
	tests := []struct {
		name             string
		answer           mcptest.Answer
		http, sse, stdio string // outcomes of the two; "" is that of sse
		anomaly          mcp.Anomaly
	}{
		{"refused as a whole (mcp-go)", mcptest.Answer{JSON: refused}, "error -32700,error -32700", "error -32700,error -32700", "", 0},
		{"refused by status", mcptest.Answer{Status: 400, JSON: refused}, "error -32700,error -32700", "error -32700,error -32700", "-", 0},
		{"refused by status alone", mcptest.Answer{Status: 500}, "status 500,status 500", "status 500,status 500", "-", 0},
		{"one is missing", mcptest.Answer{JSON: "[" + one + "]"}, "{},no_answer", "{},timeout", "", 0},
		{"one is missing, in a stream", mcptest.Answer{SSE: true, JSON: one}, "{},no_answer", "{},timeout", "", 0},
		{"an error without an id in place of one", mcptest.Answer{JSON: "[" + refused + "," + two + "]"}, "error -32700,{}", "timeout,{}", "", 0},
		{"nothing at all", mcptest.Answer{JSON: "[]"}, "no_answer,no_answer", "timeout,timeout", "", 0},
		{"202", mcptest.Answer{Status: 202}, "no_answer,no_answer", "timeout,timeout", "-", 0},
		{"no JSON", mcptest.Answer{Raw: "[nonsense\n", Type: "application/json"}, "bad_json,bad_json", "timeout,timeout", "-", 0},
		{"one twice", mcptest.Answer{JSON: "[" + one + "," + one + "," + two + "]"}, "{},{}", "{},{}", "", mcp.AnomalyDuplicateAnswer},
		{"a foreign id", mcptest.Answer{JSON: `[{"jsonrpc":"2.0","id":9999,"result":{}},` + one + "," + two + "]"}, "{},{}", "{},{}", "", mcp.AnomalyUnknownID},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			peer := func() *mcptest.Peer { return (&mcptest.Peer{}).On("batch", tt.answer) }
			overAll(t, peer, func(o over) {
				want := map[string]string{"http": tt.http, "sse": tt.sse, "stdio": tt.stdio}[o.transport.Kind()]
				switch want {
				case "-":
					o.Skip("HTTP only")
				case "":
					want = tt.sse
				}
				answeredWrong(o, want, tt.anomaly)
			})
		})
	}
}

// answeredWrong sends a batch of two and compares what comes of it.
func answeredWrong(o over, want string, anomaly mcp.Anomaly) {
	o.Helper()
	var a mcptest.Anomalies
	options := b2503
	options.OnAnomaly = a.Tell
	s := connect(o.T, o.transport, options)
	replies, err := s.Batch(o.Context(), []mcp.Request{timed(listing, time.Second), timed(echo, time.Second)})
	if err != nil {
		o.Fatal(err)
	}
	for _, r := range replies {
		wantOrder(o.T, r.Reply)
	}
	if got := outcomeOf(replies[0]) + "," + outcomeOf(replies[1]); got != want {
		o.Errorf("got %s, want %s", got, want)
	}
	if n := a.Counts()[anomaly]; anomaly != 0 && (n != 1 || len(a.Texts()) != 1) {
		o.Errorf("anomalies %q", a.Texts())
	}
	synctest.Wait()
	if cancelled, late := len(o.peer.Received("notifications/cancelled")), strings.Count(want, "timeout"); cancelled != late {
		o.Errorf("%d cancelled, %d late", cancelled, late)
	}
	if _, err := s.Call(o.Context(), echo); err != nil {
		o.Errorf("the next call: %v", err)
	}
}

// One request of a batch has its own limit, and alone is cancelled; an answer that it
// gets afterwards is late.
func TestBatchOfWhichOneTimesOut(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("batch", mcptest.Answer{Frames: []mcptest.Frame{
			{Delay: 100 * time.Millisecond, JSON: `{"jsonrpc":"2.0","id":$1,"result":{}}`},
			{Delay: 500 * time.Millisecond, JSON: `{"jsonrpc":"2.0","id":$2,"result":{}}`},
			{Delay: 500 * time.Millisecond, JSON: `{"jsonrpc":"2.0","id":$3,"result":{}}`},
		}})
	}
	overAll(t, peer, func(o over) {
		var a mcptest.Anomalies
		options := b2503
		options.OnAnomaly = a.Tell
		s := connect(o.T, o.transport, options)
		got := batch(o, s, timed(echo, 200*time.Millisecond), timed(echo, 300*time.Millisecond), echo)
		wantLines(o, got, "{} at 100", "timeout at 300", "{} at 1100")
		synctest.Wait()
		cancelled := o.peer.Received("notifications/cancelled")
		if len(cancelled) != 1 || string(cancelled[0].Params) != `{"requestId":3,"reason":"timeout"}` {
			o.Errorf("cancelled %+v", cancelled)
		}
		if a.Counts()[mcp.AnomalyLateAnswer] != 1 || len(a.Texts()) != 1 {
			o.Errorf("anomalies %q", a.Texts())
		}
	})
}

// When nobody waits any more, a batch is over: the caller gave up, or all limits ran
// out. Each request is cancelled.
func TestBatchGivenUp(t *testing.T) {
	for name, limit := range map[string]time.Duration{"by the caller": 0, "by the limits": time.Second} {
		t.Run(name, func(t *testing.T) {
			peer := func() *mcptest.Peer { return (&mcptest.Peer{}).On("batch", mcptest.Answer{Silent: true}) }
			overAll(t, peer, func(o over) {
				s := connect(o.T, o.transport, b2503)
				ctx, want := o.Context(), "timeout"
				if limit == 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithCancel(ctx)
					time.AfterFunc(time.Second, cancel)
					want = "given up"
				}
				start := time.Now()
				replies, err := s.Batch(ctx, []mcp.Request{timed(echo, limit), timed(listing, limit)})
				if err != nil || outcomeOf(replies[0]) != want || outcomeOf(replies[1]) != want || time.Since(start) != time.Second {
					o.Errorf("got %+v, %v after %v", replies, err, time.Since(start))
				}
				synctest.Wait()
				if n := len(o.peer.Received("notifications/cancelled")); n != 2 {
					o.Errorf("%d cancelled", n)
				}
				if _, err := s.Call(o.Context(), echo); err != nil {
					o.Errorf("the next call: %v", err)
				}
			})
		})
	}
}

// A connection that is lost in the middle loses what was not answered.
func TestBatchConnectionLost(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("batch", mcptest.Answer{
			Cut: true, Frames: []mcptest.Frame{
				{Delay: 100 * time.Millisecond, JSON: `{"jsonrpc":"2.0","id":$2,"result":{}}`},
				{Delay: 100 * time.Millisecond, Raw: "\n"},
			},
		})
	}
	overAll(t, peer, func(o over) {
		s := connect(o.T, o.transport, b2503)
		wantLines(o, batch(o, s, echo, echo, echo), "lost at 200", "{} at 100", "lost at 200")
		if lost := o.transport.Kind() != "http"; s.Ended() != lost {
			o.Errorf("ended %v", s.Ended())
		}
	})
}

// A server that cannot be reached any more fails each request of a batch.
func TestBatchWithoutAConnection(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Cut: true})
		tr := serveHTTP(h.T, p, h.engine)
		dial, gone := tr.DialContext, false
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if gone {
				return nil, errors.New("gone")
			}
			return dial(ctx, network, addr)
		}
		s := connect(h.T, tr, b2503)
		if _, err := s.Call(h.Context(), echo); err == nil {
			h.Fatal("the connection was not cut")
		}
		gone = true
		wantLines(over{T: h.T}, batch(over{T: h.T}, s, echo, listing), "lost at 0", "lost at 0")
	})
}

// Nothing is sent of what cannot go out in a batch.
func TestBatchNotSent(t *testing.T) {
	for _, v := range mcp.Versions() {
		t.Run(string(v), func(t *testing.T) {
			overAll(t, plainPeer, func(o over) {
				if !carries(o.transport, v) {
					o.Skip("not over HTTP+SSE")
				}
				s := connect(o.T, o.transport, mcp.Options{Version: v})
				sent := func() int { return len(o.peer.Received("tools/call")) + len(o.peer.Received("initialize")) }
				before := sent()
				if v != mcp.V20250326 {
					_, err := s.Batch(o.Context(), []mcp.Request{echo})
					contains(o.T, err, string(v), "2025-03-26")
				} else {
					_, err := s.Batch(o.Context(), nil)
					contains(o.T, err, "none")
					_, err = s.Batch(o.Context(), []mcp.Request{echo, {Method: "initialize"}})
					contains(o.T, err, "initialize")
				}
				if n := sent(); n != before {
					o.Errorf("%d messages sent", n-before)
				}
			})
		})
	}
}
