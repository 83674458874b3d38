package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

const (
	toolsChanged = "notifications/tools/list_changed"
	updated      = "notifications/resources/updated"
	listenMethod = "subscriptions/listen"

	listenResult = `{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}`
)

// toy is a filter, and acked its acknowledgement in full.
var (
	toy   = mcp.Filter{Resources: []string{"toy://a"}, ToolsListChanged: true}
	acked = ack(`"toolsListChanged":true,"resourceSubscriptions":["toy://a"]`)
)

func ack(accepted string) mcptest.Frame {
	return mcptest.Frame{JSON: `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":` +
		`{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID},"notifications":{` + accepted + `}}}`}
}

// change is a notification with that subscriptionId, "" for none. More params begin
// with a comma.
func change(method, id, more string) mcptest.Frame {
	meta := `"x":1`
	if id != "" {
		meta = `"io.modelcontextprotocol/subscriptionId":` + id
	}
	return mcptest.Frame{JSON: `{"jsonrpc":"2.0","method":"` + method + `","params":{"_meta":{` + meta + `}` + more + `}}`}
}

func uri(u string) string { return `,"uri":"` + u + `"` }

// listener is a peer that answers subscriptions/listen so.
func listener(answers ...mcptest.Answer) func() *mcptest.Peer {
	return func() *mcptest.Peer { return new(mcptest.Peer).On(listenMethod, answers...) }
}

// modern is the options of a session in 2026-07-28.
func modernSession(a *mcptest.Anomalies, watch ...string) mcp.Options {
	return mcp.Options{Version: mcp.V20260728, OnAnomaly: a.Tell, Watch: watch}
}

// within is a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// kept returns what the subscription has, as method and URI, and how it ends
// within a minute.
func kept(t *testing.T, u *mcp.Subscription) (all []string, err error) {
	t.Helper()
	ctx := within(t, time.Minute)
	for {
		n, err := u.Next(ctx)
		if err != nil {
			return all, err
		}
		all = append(all, described(n))
	}
}

func described(n mcp.Notification) string {
	var params struct {
		URI string `json:"uri"`
	}
	if json.Unmarshal(n.Params, &params) != nil || params.URI == "" {
		return n.Method
	}
	return n.Method + " " + params.URI
}

func wantAnomalies(t *testing.T, a *mcptest.Anomalies, want map[mcp.Anomaly]int) {
	t.Helper()
	if d := cmp.Diff(want, a.Counts()); d != "" {
		t.Errorf("anomalies (-want +got)\n%s%q", d, a.Texts())
	}
}

// Wire test 40: what is delivered is what comes after the acknowledgement, with our
// id as a number, and was asked for. All else is counted.
func TestListen(t *testing.T) {
	answer := mcptest.Answer{
		Delay: 100 * time.Millisecond,
		Frames: []mcptest.Frame{
			change(toolsChanged, "$ID", ""), // before the acknowledgement
			acked,
			change(toolsChanged, "$ID", ""),
			change(toolsChanged, "999", ""),
			change(toolsChanged, `"$ID"`, ""),
			change(toolsChanged, "", ""),
			change("notifications/prompts/list_changed", "$ID", ""),
			change(updated, "$ID", uri("toy://a")),
			change(updated, "$ID", uri("toy://a/part")), // a sub-resource
			change(updated, "$ID", uri("toy://ab")),
			change(updated, "$ID", ""),
			acked,
			{Raw: ": keep alive\n\n"},
			change(updated, "$ID", uri("toy://a#2")),
		},
		Result: listenResult,
	}
	peer := listener(answer)
	overBoth(t, peer, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, modernSession(&a))
		u, r, err := s.Subscribe(t.Context(), toy)
		if err != nil {
			t.Fatal(err)
		}
		wantOrder(t, r)
		sent := p.Received(listenMethod)[0]
		if took := r.Timing.End - r.Timing.Start; took != 100*time.Millisecond || r.Rounds != 1 || r.BytesOut != len(sent.Body) || r.BytesIn == 0 {
			t.Errorf("reply %+v", r)
		}
		var accepted struct {
			Notifications json.RawMessage `json:"notifications"`
		}
		if err := json.Unmarshal(r.Result, &accepted); err != nil || string(accepted.Notifications) != `{"toolsListChanged":true,"resourceSubscriptions":["toy://a"]}` {
			t.Errorf("result %s, %v", r.Result, err)
		}
		if want := `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["toy://a"]},"_meta":{`; len(sent.Body) < len(want) || sent.Body[:len(want)] != want {
			t.Errorf("request %s", sent.Body)
		}
		if sent.Header != nil && (sent.Header.Get("Mcp-Method") != listenMethod || sent.Header["Mcp-Name"] != nil) {
			t.Errorf("header %v", sent.Header)
		}
		got, err := kept(t, u)
		if want := []string{toolsChanged, updated + " toy://a", updated + " toy://a/part", updated + " toy://a#2"}; cmp.Diff(want, got) != "" || !errors.Is(err, mcp.ErrSubscriptionEnded) {
			t.Errorf("got %q, %v", got, err)
		}
		want := map[mcp.Anomaly]int{mcp.AnomalyUnaskedNotification: 8}
		if tr.Kind() == "stdio" {
			want[mcp.AnomalyStdoutNoise] = 1 // the comment
		}
		wantAnomalies(t, &a, want)
		time.Sleep(time.Hour) // virtual
		if n := len(p.Received(listenMethod)); n != 1 {
			t.Errorf("%d requests", n)
		}
		if r, err := u.Close(t.Context()); err != nil || r.Rounds != 0 {
			t.Errorf("close: %+v, %v", r, err)
		}
	})
}

// When a notification came is when it is said to have come, and it waits to be taken.
func TestListenWhenItCame(t *testing.T) {
	later := change(toolsChanged, "$ID", "")
	later.Delay = 3 * time.Second
	peer := listener(mcptest.Answer{Frames: []mcptest.Frame{acked, change(toolsChanged, "$ID", ""), later}, Hold: true})
	overBoth(t, peer, func(o over) {
		t, tr := o.T, o.transport
		var a mcptest.Anomalies
		start := time.Now()
		options := modernSession(&a)
		options.Base = start
		s := connect(t, tr, options)
		u, _, err := s.Subscribe(within(t, time.Second), toy) // its end ends nothing
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // virtual
		for _, want := range []struct{ at, now time.Duration }{{0, time.Second}, {3 * time.Second, 3 * time.Second}} {
			n, err := u.Next(t.Context())
			if err != nil || n.At != want.at || time.Since(start) != want.now {
				t.Errorf("got %+v, %v at %v", n, err, time.Since(start))
			}
		}
		n, err := u.Next(within(t, time.Hour))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %+v, %v", n, err)
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{})
	})
}

// What the server does not agree to is reported, and the rest goes on.
func TestListenPartly(t *testing.T) {
	all := mcp.Filter{
		Resources: []string{"toy://b", "toy://a", "toy://b"}, ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true,
	}
	tests := []struct{ accepted, lacks string }{
		{`"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["toy://b","toy://a"]`, ""},
		{`"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["toy://b"]`, "promptsListChanged, resourcesListChanged, toy://a"},
		{``, "toolsListChanged, promptsListChanged, resourcesListChanged, toy://a, toy://b"},
		{`"toolsListChanged":1,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":"toy://a"`, "toolsListChanged, toy://a, toy://b"},
	}
	for _, tt := range tests {
		t.Run(tt.lacks, func(t *testing.T) {
			overBoth(t, listener(mcptest.Answer{Frames: []mcptest.Frame{ack(tt.accepted)}, Hold: true}), func(o over) {
				t, tr := o.T, o.transport
				var a mcptest.Anomalies
				s := connect(t, tr, modernSession(&a))
				if _, _, err := s.Subscribe(t.Context(), all); err != nil {
					t.Error(err)
				}
				var want []string
				if tt.lacks != "" {
					want = []string{"subscription_partly: not acknowledged: " + tt.lacks}
				}
				if d := cmp.Diff(want, a.Texts()); d != "" {
					t.Errorf("anomalies (-want +got)\n%s", d)
				}
			})
		})
	}
}

// Wire test 40: an empty filter is acknowledged and ends at once.
func TestListenToNothing(t *testing.T) {
	overBoth(t, listener(mcptest.Answer{Frames: []mcptest.Frame{ack("")}, Result: listenResult}), func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, modernSession(&a))
		u, _, err := s.Subscribe(t.Context(), mcp.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := kept(t, u); len(got) != 0 || !errors.Is(err, mcp.ErrSubscriptionEnded) {
			t.Errorf("got %q, %v", got, err)
		}
		time.Sleep(time.Hour) // virtual
		if n := len(p.Received(listenMethod)); n != 1 || len(a.Texts()) != 0 {
			t.Errorf("%d requests, anomalies %q", n, a.Texts())
		}
	})
}

// A subscription that the server refuses, or does not acknowledge, is no subscription.
func TestListenRefused(t *testing.T) {
	rpc := func(code int64) func(err error) bool {
		return func(err error) bool { e, ok := errors.AsType[*mcp.RPCError](err); return ok && e.Code == code }
	}
	fault := func(kind mcp.ProtocolFault) func(err error) bool {
		return func(err error) bool { e, ok := errors.AsType[*mcp.ProtocolError](err); return ok && e.Kind == kind }
	}
	status := func(code int) func(err error) bool {
		return func(err error) bool { e, ok := errors.AsType[*mcp.HTTPError](err); return ok && e.Status == code }
	}
	const unknown = `{"code":-32601,"message":"no"}`
	tests := []struct {
		name   string
		answer mcptest.Answer
		want   func(err error) bool
		stdio  bool // there too
	}{
		{"unknown method", mcptest.Answer{Error: unknown, Status: 404}, rpc(-32601), true},
		{"error on a stream", mcptest.Answer{Error: unknown, SSE: true}, rpc(-32601), true},
		{"bad params", mcptest.Answer{Error: `{"code":-32602,"message":"no"}`, Status: 400}, rpc(-32602), true},
		{"405", mcptest.Answer{Status: 405}, status(405), false},
		{"503", mcptest.Answer{Status: 503}, status(503), false},
		{"202", mcptest.Answer{Status: 202}, fault(mcp.FaultNoAnswer), false},
		{"a result alone", mcptest.Answer{Result: listenResult}, fault(mcp.FaultNoAck), true},
		{"a result alone on a stream", mcptest.Answer{Result: listenResult, SSE: true}, fault(mcp.FaultNoAck), true},
		{"the stream ends", mcptest.Answer{SSE: true}, fault(mcp.FaultNoAnswer), false},
		{"an event with an id, then the end", mcptest.Answer{Type: stream, Raw: "id: 1\ndata:\n\n"}, fault(mcp.FaultNoAnswer), false},
		{"nonsense", mcptest.Answer{SSE: true, Raw: "data: {\n\n"}, fault(mcp.FaultBadJSON), false},
		{"a task", mcptest.Answer{Result: `{"resultType":"task"}`}, fault(mcp.FaultTask), true},
		{"input wanted", mcptest.Answer{Result: `{"resultType":"input_required","requestState":"x"}`}, fault(mcp.FaultInputRequired), true},
		{"an odd result", mcptest.Answer{Result: `{"resultType":"odd"}`}, fault(mcp.FaultResultType), true},
		{
			"cancelled",
			mcptest.Answer{Frames: []mcptest.Frame{{JSON: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}`}}, Hold: true},
			func(err error) bool { return errors.Is(err, mcp.ErrSubscriptionEnded) }, true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overBoth(t, listener(tt.answer), func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				if tr.Kind() == "stdio" && !tt.stdio {
					return
				}
				var a mcptest.Anomalies
				s := connect(t, tr, modernSession(&a))
				u, r, err := s.Subscribe(within(t, time.Minute), toy)
				if u != nil || !tt.want(err) {
					t.Errorf("got %v, %v", u, err)
				}
				wantOrder(t, r)
				time.Sleep(time.Hour) // virtual
				if n := len(p.Received(listenMethod)); n != 1 || len(p.Received("GET", "notifications/cancelled")) != 0 || len(a.Texts()) != 0 {
					t.Errorf("messages %v, anomalies %q", p.Methods(), a.Texts())
				}
				if _, err := s.Call(t.Context(), echo); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}

// A server that never acknowledges holds the caller no longer than its context,
// and is told; a stream with keep-alive comments is as silent as any.
func TestListenNeverAcknowledged(t *testing.T) {
	cause := errors.New("the run is over")
	for name, answer := range map[string]mcptest.Answer{
		"silence":    {Silent: true},
		"a stream":   {SSE: true, Hold: true},
		"comments":   {Frames: []mcptest.Frame{{Raw: ":\n\n"}, {Delay: time.Second, Raw: ":\n\n"}}, Hold: true},
		"only early": {Frames: []mcptest.Frame{change(toolsChanged, "$ID", "")}, Hold: true},
	} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, listener(answer), func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				var a mcptest.Anomalies
				s := connect(t, tr, modernSession(&a))
				ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, cause)
				defer cancel()
				start := time.Now()
				u, r, err := s.Subscribe(ctx, toy)
				if took := time.Since(start); u != nil || !errors.Is(err, cause) || took != 5*time.Second || r.Timing.End-r.Timing.Start != took {
					t.Errorf("got %v, %+v, %v after %v", u, r, err, took)
				}
				time.Sleep(time.Hour) // virtual
				wantListenCancelled(t, p, tr)
				if n := len(p.Received(listenMethod)); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// wantCancelled fails unless the listen request was cancelled over stdio, and only there.
func wantListenCancelled(t *testing.T, p *mcptest.Peer, tr mcp.Transport) {
	t.Helper()
	cancels := p.Received("notifications/cancelled")
	if tr.Kind() == "http" {
		if len(cancels) != 0 {
			t.Errorf("cancellations %v", cancels)
		}
		return
	}
	if len(cancels) != 1 {
		t.Fatalf("%d cancellations", len(cancels))
	}
	var params struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if err := json.Unmarshal(cancels[0].Params, &params); err != nil || string(params.RequestID) != p.Received(listenMethod)[0].ID {
		t.Errorf("cancelled %s, %v", cancels[0].Params, err)
	}
}
