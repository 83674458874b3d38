package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// closings makes tr count the connections it closed.
func closings(tr *mcp.Streamable) *atomic.Int32 {
	n, dial := new(atomic.Int32), tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return &closeCounter{Conn: c, n: n}, err
	}
	return n
}

type closeCounter struct {
	net.Conn
	n    *atomic.Int32
	once sync.Once
}

func (c *closeCounter) Close() error {
	c.once.Do(func() { c.n.Add(1) })
	return c.Conn.Close()
}

// The client's end: over HTTP the stream is closed, over stdio the request is
// cancelled, and what the server still sends for it, the result of both Go SDKs
// among it, is no breach.
func TestListenClose(t *testing.T) {
	peer := func() *mcptest.Peer {
		late := change(toolsChanged, "$ID", "")
		late.Delay = 10 * time.Second
		p := listener(mcptest.Answer{Frames: []mcptest.Frame{acked, change(toolsChanged, "$ID", ""), late}, Hold: true})()
		return p.On("notifications/cancelled", mcptest.Answer{Delay: 20 * time.Second, Raw: `{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete"}}` + "\n"})
	}
	overBoth(t, peer, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		var a mcptest.Anomalies
		closed := new(atomic.Int32)
		if h, ok := tr.(*mcp.Streamable); ok {
			closed = closings(h)
		}
		s := connect(t, tr, modernSession(&a))
		u, _, err := s.Subscribe(t.Context(), toy)
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		go func() {
			_, err := kept(t, u)
			waiting <- err
		}()
		time.Sleep(time.Second) // virtual
		start := time.Now()
		r, err := u.Close(t.Context())
		if err != nil || r.Rounds != 0 || time.Since(start) != 0 {
			t.Errorf("close: %+v, %v", r, err)
		}
		if err := <-waiting; err == nil || mcp.SessionLost(err) || errors.Is(err, mcp.ErrSubscriptionEnded) {
			t.Errorf("the one who waited: %v", err)
		}
		if r, err := u.Close(t.Context()); err != nil || r.Rounds != 0 {
			t.Errorf("closed again: %+v, %v", r, err)
		}
		time.Sleep(time.Hour) // virtual
		wantListenCancelled(t, p, tr)
		if tr.Kind() == "http" && closed.Load() != 1 {
			t.Errorf("%d connections closed", closed.Load())
		}
		if _, err := s.Call(t.Context(), echo); err != nil || len(p.Received(listenMethod)) != 1 {
			t.Errorf("the next call: %v; messages %v", err, p.Methods())
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{})
	})
}

// Deviation 26: notifications without a subscriptionId, whether anybody subscribes
// or not, and those after the end of a subscription, are counted and go nowhere.
func TestListenBroadcasts(t *testing.T) {
	broadcast := []mcptest.Frame{change(updated, "", uri("toy://a")), change(toolsChanged, "", "")}
	peer := func() *mcptest.Peer {
		p := listener(mcptest.Answer{Frames: []mcptest.Frame{acked}, Result: listenResult})()
		after := append([]mcptest.Frame{change(toolsChanged, "3", "")}, broadcast...)
		return p.On("tools/call", mcptest.Answer{Frames: broadcast, Result: echoed}, mcptest.Answer{Frames: after, Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		t, tr := o.T, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, modernSession(&a, updated, toolsChanged))
		call := func() {
			if r, err := s.Call(t.Context(), echo); err != nil || string(r.Result) != echoed {
				t.Errorf("got %+v, %v", r, err)
			}
		}
		call()
		wantAnomalies(t, &a, map[mcp.Anomaly]int{mcp.AnomalyUnaskedNotification: 2})
		if _, err := s.Await(within(t, time.Second), updated); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("await: %v", err)
		}
		u, _, err := s.Subscribe(t.Context(), toy)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := kept(t, u); len(got) != 0 || !errors.Is(err, mcp.ErrSubscriptionEnded) {
			t.Errorf("got %q, %v", got, err)
		}
		call()
		wantAnomalies(t, &a, map[mcp.Anomaly]int{mcp.AnomalyUnaskedNotification: 5})
	})
}

// Several subscriptions of one session: each gets its own, whatever the other
// channel carries, and over HTTP only what comes on its own stream.
func TestListenSeveral(t *testing.T) {
	const n = 5
	peer := func() *mcptest.Peer {
		var answers []mcptest.Answer
		for i := range n {
			own := change(toolsChanged, "$ID", uri("own"))
			own.Delay = time.Second
			others := change(toolsChanged, strconv.Itoa(2+(i+1)%n), uri("others"))
			answers = append(answers, mcptest.Answer{Frames: []mcptest.Frame{acked, own, others}, Hold: true})
		}
		return listener(answers...)()
	}
	overBoth(t, peer, func(o over) {
		t, tr := o.T, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, modernSession(&a, toolsChanged))
		for i := range n {
			u, _, err := s.Subscribe(t.Context(), toy)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				want := []string{toolsChanged + " own"}
				if tr.Kind() == "stdio" {
					want = []string{toolsChanged + " others", want[0]} // the server says it is for us
				}
				got, _ := kept(t, u)
				if slices.Sort(got); cmp.Diff(want, got) != "" {
					t.Errorf("subscription %d got %q", i, got)
				}
			}()
		}
		time.Sleep(2 * time.Second) // virtual
		foreign := 0
		if tr.Kind() == "http" {
			foreign = n
		}
		if got := a.Counts()[mcp.AnomalyUnaskedNotification]; got != foreign || len(a.Texts()) != foreign {
			t.Errorf("anomalies %q", a.Texts())
		}
		for range 2*n - foreign {
			if _, err := s.Await(within(t, time.Second), toolsChanged); err != nil {
				t.Error(err)
			}
		}
	})
}

// A server that ends a subscription by notifications/cancelled has ended it; a
// result that follows is tolerated. It may cancel nothing else.
func TestListenCancelledByTheServer(t *testing.T) {
	cancelled := func(id string) mcptest.Frame {
		return mcptest.Frame{JSON: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`}
	}
	peer := listener(mcptest.Answer{
		Frames: []mcptest.Frame{acked, cancelled("77"), cancelled(`"$ID"`), change(toolsChanged, "$ID", ""), cancelled("$ID"), {Delay: time.Second, Raw: ""}},
		Result: listenResult,
	})
	overBoth(t, peer, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, modernSession(&a))
		u, _, err := s.Subscribe(t.Context(), toy)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := kept(t, u); cmp.Diff([]string{toolsChanged}, got) != "" || !errors.Is(err, mcp.ErrSubscriptionEnded) {
			t.Errorf("got %q, %v", got, err)
		}
		time.Sleep(time.Hour) // virtual
		if len(p.Received(listenMethod)) != 1 || len(p.Received("notifications/cancelled")) != 0 {
			t.Errorf("messages %v", p.Methods())
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{mcp.AnomalyUnaskedNotification: 2})
	})
}

// The end of the session ends the wait.
func TestListenSessionEnds(t *testing.T) {
	for _, how := range []string{"closed", "cut"} {
		answer := mcptest.Answer{Frames: []mcptest.Frame{acked, {Delay: time.Second, Raw: "\n"}}, Hold: true}
		if how == "cut" {
			answer.Hold, answer.Cut = false, true
		}
		t.Run(how, func(t *testing.T) {
			overBoth(t, listener(answer), func(o over) {
				t, tr := o.T, o.transport
				if how == "cut" && tr.Kind() == "http" {
					return // see TestListenReopens
				}
				var a mcptest.Anomalies
				s := connect(t, tr, modernSession(&a, toolsChanged))
				u, _, err := s.Subscribe(t.Context(), toy)
				if err != nil {
					t.Fatal(err)
				}
				var waiting sync.WaitGroup
				for _, wait := range []func(ctx context.Context) (mcp.Notification, error){
					u.Next, func(ctx context.Context) (mcp.Notification, error) { return s.Await(ctx, toolsChanged) },
				} {
					waiting.Go(func() {
						if _, err := wait(t.Context()); !mcp.SessionLost(err) {
							t.Errorf("error %v", err)
						}
					})
				}
				if how == "closed" {
					synctest.Wait()
					closeSession(t, s)
				}
				waiting.Wait()
				if _, err := u.Next(t.Context()); !mcp.SessionLost(err) {
					t.Errorf("later: %v", err)
				}
				if u, _, err := s.Subscribe(t.Context(), toy); u != nil || !mcp.SessionLost(err) {
					t.Errorf("subscribed: %v, %v", u, err)
				}
				if _, err := u.Close(t.Context()); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		})
	}
}

// Wire test 40: a stream that ends without a result is opened again, with a new id,
// after pauses that grow as long as nothing comes, and not for ever.
func TestListenReopens(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		live := mcptest.Answer{Frames: []mcptest.Frame{acked, change(toolsChanged, "$ID", "")}}
		long := mcptest.Answer{Frames: []mcptest.Frame{acked, {Delay: 30 * time.Second, Raw: ":\n\n"}}, SSE: true}
		short := mcptest.Answer{Frames: []mcptest.Frame{acked}}
		p := new(mcptest.Peer).On(listenMethod,
			live,
			mcptest.Answer{SSE: true, Cut: true},  // 1s later
			mcptest.Answer{Status: 503},           // 2s
			long,                                  // 4s
			mcptest.Answer{SSE: true, Hold: true}, // 30s + 1s; never acknowledged
			live,                                  // 30s + 2s
			mcptest.Answer{SSE: true, Raw: "data: nonsense\n\n"}, // 1s
			short, // 2s, and so on
		)
		var a mcptest.Anomalies
		s := connect(t, serveHTTP(t, p, engine), modernSession(&a))
		u, _, err := s.Subscribe(t.Context(), toy)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // virtual
		ids, pauses := map[string]bool{}, []string{}
		requests := p.Received(listenMethod)
		for i, r := range requests {
			ids[r.ID] = true
			if r.Header.Get("Last-Event-Id") != "" {
				t.Error("asked for a replay")
			}
			if i > 0 {
				pauses = append(pauses, r.At.Sub(requests[i-1].At).String())
			}
		}
		want := []string{"1s", "2s", "4s", "31s", "32s", "1s", "2s", "4s", "8s", "16s", "30s", "30s", "30s"}
		if d := cmp.Diff(want, pauses); d != "" || len(ids) != len(requests) {
			t.Errorf("pauses (-want +got)\n%s%d ids", d, len(ids))
		}
		got, err := kept(t, u)
		wantFault(t, err, mcp.FaultNoAnswer)
		if want := []string{toolsChanged, toolsChanged}; cmp.Diff(want, got) != "" {
			t.Errorf("got %q", got)
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{mcp.AnomalyListenReopened: len(requests) - 1, mcp.AnomalyListenLost: 1})
	})
}

// A server that refuses to open the stream again ends the subscription at once.
func TestListenReopenRefused(t *testing.T) {
	for i, refusal := range []mcptest.Answer{
		{Status: 404, Error: `{"code":-32601,"message":"no"}`},
		{Status: 403},
		{SSE: true, Error: `{"code":-32000,"message":"no"}`},
		{Result: listenResult},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := listener(mcptest.Answer{Frames: []mcptest.Frame{acked}}, refusal)()
				var a mcptest.Anomalies
				s := connect(t, serveHTTP(t, p, engine), modernSession(&a))
				u, _, err := s.Subscribe(t.Context(), toy)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_, err = u.Next(t.Context())
				_, rpc := errors.AsType[*mcp.RPCError](err)
				_, status := errors.AsType[*mcp.HTTPError](err)
				e, fault := errors.AsType[*mcp.ProtocolError](err)
				if !rpc && !status && (!fault || e.Kind != mcp.FaultNoAck) || refusal.Result == "" && time.Since(start) != time.Second {
					t.Errorf("error %v after %v", err, time.Since(start))
				}
			})
		})
	}
}

// Closing while a stream is about to be opened again is no wait.
func TestListenCloseWhileReopening(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := listener(mcptest.Answer{Frames: []mcptest.Frame{acked}})()
		var a mcptest.Anomalies
		s := connect(t, serveHTTP(t, p, engine), modernSession(&a))
		for _, end := range []func(u *mcp.Subscription){
			func(u *mcp.Subscription) {
				if _, err := u.Close(t.Context()); err != nil {
					t.Error(err)
				}
			},
			func(*mcp.Subscription) { closeSession(t, s) },
		} {
			u, _, err := s.Subscribe(t.Context(), toy)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond) // virtual
			start := time.Now()
			end(u)
			if took := time.Since(start); took != 0 {
				t.Errorf("took %v", took)
			}
		}
		time.Sleep(time.Hour) // virtual
		if n := len(p.Received(listenMethod)); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}
