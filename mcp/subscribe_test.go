package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// legacyVersions are those with resources/subscribe.
var legacyVersions = []mcp.Version{mcp.V20241105, mcp.V20250326, mcp.V20250618, mcp.V20251125}

// subscribable is a peer that agrees to subscriptions and tells these over stdio at
// the first one, over HTTP on its GET stream.
func subscribable(frames ...mcptest.Frame) *mcptest.Peer {
	p := &mcptest.Peer{SessionID: "s"}
	p.On("resources/subscribe", mcptest.Answer{Result: `{}`})
	p.On("resources/unsubscribe", mcptest.Answer{Result: `{}`})
	if len(frames) > 0 {
		p.On("GET", mcptest.Answer{Frames: frames, Hold: true})
		p.On("logging/setLevel", mcptest.Answer{Result: `{}`, Frames: frames})
	}
	return p
}

// tellLegacy makes a peer over stdio send its frames.
func tellLegacy(t *testing.T, s *mcp.Session) {
	t.Helper()
	if s.Info().Transport == "stdio" {
		if _, err := s.Call(t.Context(), mcp.Request{Method: "logging/setLevel"}); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(2 * time.Second) // virtual: for the GET stream
}

// sent returns the requests about subscriptions, as verb and URI.
func sent(p *mcptest.Peer) []string {
	var all []string
	for _, r := range p.Received("resources/subscribe", "resources/unsubscribe") {
		var params struct {
			URI string `json:"uri"`
		}
		if json.Unmarshal(r.Params, &params) != nil {
			params.URI = string(r.Params)
		}
		all = append(all, strings.TrimPrefix(r.Method, "resources/")+" "+params.URI)
	}
	return all
}

func subscribe(t *testing.T, s *mcp.Session, f mcp.Filter) *mcp.Subscription {
	t.Helper()
	u, _, err := s.Subscribe(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func resources(uris ...string) mcp.Filter { return mcp.Filter{Resources: uris} }

// Up to 2025-11-25: a request for each resource, and updates reach the
// subscriptions that have it, sub-resources included; list changes come unasked, and
// reach those that want them.
func TestSubscribe(t *testing.T) {
	frames := []mcptest.Frame{
		{Delay: time.Second, JSON: change(updated, "", uri("toy://a")).JSON},
		change(updated, "", uri("toy://b/1")),
		change(updated, "", uri("toy://b2")), // of nobody
		change(updated, "", ""),
		change(toolsChanged, "", ""),
		change("notifications/prompts/list_changed", "", ""),
		change("notifications/resources/list_changed", "", ""),
		{JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`},
	}
	for _, v := range legacyVersions {
		t.Run(string(v), func(t *testing.T) {
			overBoth(t, func() *mcptest.Peer { return subscribable(frames...) }, func(o over) {
				t, p, tr := o.T, o.peer, o.transport
				if tr.Kind() == "http" && !v.Features().GetStream {
					return
				}
				var a mcptest.Anomalies
				s := connect(t, tr, mcp.Options{Version: v, GetStream: true, OnAnomaly: a.Tell})
				both, r, err := s.Subscribe(t.Context(), mcp.Filter{Resources: []string{"toy://b", "toy://a", "toy://b"}, ToolsListChanged: true})
				if err != nil || string(r.Result) != `{}` || r.Rounds != 1 {
					t.Fatalf("got %+v, %v", r, err)
				}
				wantOrder(t, r)
				lists, r, err := s.Subscribe(t.Context(), mcp.Filter{PromptsListChanged: true, ResourcesListChanged: true})
				if err != nil || r.Rounds != 0 || r.Result != nil {
					t.Fatalf("got %+v, %v", r, err)
				}
				tellLegacy(t, s)
				got, err := kept(t, both)
				if want := []string{updated + " toy://a", updated + " toy://b/1", toolsChanged}; cmp.Diff(want, got) != "" || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %q, %v", got, err)
				}
				got, _ = kept(t, lists)
				if want := []string{"notifications/prompts/list_changed", "notifications/resources/list_changed"}; cmp.Diff(want, got) != "" {
					t.Errorf("got %q", got)
				}
				r, err = both.Close(t.Context())
				if err != nil || string(r.Result) != `{}` || r.Rounds != 1 {
					t.Errorf("close: %+v, %v", r, err)
				}
				if r, err := lists.Close(t.Context()); err != nil || r.Rounds != 0 {
					t.Errorf("close: %+v, %v", r, err)
				}
				if want := []string{"subscribe toy://a", "subscribe toy://b", "unsubscribe toy://a", "unsubscribe toy://b"}; cmp.Diff(want, sent(p)) != "" {
					t.Errorf("sent %q", sent(p))
				}
				if r, err := both.Close(t.Context()); err != nil || r.Rounds != 0 || len(sent(p)) != 4 {
					t.Errorf("closed again: %+v, %v", r, err)
				}
				if _, err := both.Next(t.Context()); err == nil || errors.Is(err, mcp.ErrSubscriptionEnded) {
					t.Errorf("after the end: %v", err)
				}
				wantAnomalies(t, &a, map[mcp.Anomaly]int{mcp.AnomalyUnaskedNotification: 2})
			})
		})
	}
}

// Over HTTP an update may come on the stream of any request, its own subscription
// included, where it overtakes the answer.
func TestSubscribeOnPostStreams(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := subscribable()
		p.On("resources/subscribe", mcptest.Answer{Result: `{}`, Frames: []mcptest.Frame{change(updated, "", uri("toy://a"))}})
		p.On("tools/call", mcptest.Answer{Result: echoed, Frames: []mcptest.Frame{change(updated, "", uri("toy://a/x")), change(toolsChanged, "", "")}})
		var a mcptest.Anomalies
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{OnAnomaly: a.Tell})
		u := subscribe(t, s, mcp.Filter{Resources: []string{"toy://a"}, ToolsListChanged: true})
		r, err := s.Call(t.Context(), echo)
		if err != nil || r.Notifications != 2 {
			t.Errorf("got %+v, %v", r, err)
		}
		got, _ := kept(t, u)
		if want := []string{updated + " toy://a", updated + " toy://a/x", toolsChanged}; cmp.Diff(want, got) != "" {
			t.Errorf("got %q", got)
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{})
	})
}

// Two subscriptions to one resource are one to the server, however they overlap,
// and each is told.
func TestSubscriptionsShare(t *testing.T) {
	overBoth(t, func() *mcptest.Peer {
		return subscribable(mcptest.Frame{Delay: time.Second, JSON: change(updated, "", uri("toy://a")).JSON})
	}, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		p.On("resources/subscribe", mcptest.Answer{Delay: time.Second, Result: `{}`})
		p.On("resources/unsubscribe", mcptest.Answer{Delay: time.Second, Result: `{}`})
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
		// Two at once: one asks, the other waits for the answer.
		start := time.Now()
		var us [2]*mcp.Subscription
		var all sync.WaitGroup
		for i := range us {
			all.Go(func() { us[i] = subscribe(t, s, resources("toy://a")) })
		}
		all.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("subscribed after %v", took)
		}
		if _, err := us[0].Close(t.Context()); err != nil || len(sent(p)) != 1 {
			t.Errorf("sent %q, %v", sent(p), err)
		}
		// The last goes while a new one comes.
		all.Go(func() {
			if _, err := us[1].Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		third := subscribe(t, s, resources("toy://a", "toy://c"))
		all.Wait()
		want := []string{"subscribe toy://a", "unsubscribe toy://a", "subscribe toy://a", "subscribe toy://c"}
		if cmp.Diff(want, sent(p)) != "" {
			t.Errorf("sent %q", sent(p))
		}
		fourth := subscribe(t, s, resources("toy://a"))
		if tr.Kind() == "stdio" {
			tellLegacy(t, s)
			for _, u := range []*mcp.Subscription{third, fourth} {
				if got, _ := kept(t, u); cmp.Diff([]string{updated + " toy://a"}, got) != "" {
					t.Errorf("got %q", got)
				}
			}
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{})
	})
}

// When one of several resources is refused, the others are let go again, and one
// that another subscription has is not.
func TestSubscribeRefused(t *testing.T) {
	overBoth(t, func() *mcptest.Peer { return subscribable() }, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
		subscribe(t, s, resources("toy://a"))
		p.On("resources/subscribe",
			mcptest.Answer{Result: `{}`}, mcptest.Answer{Error: `{"code":-32002,"message":"gone"}`}, mcptest.Answer{Result: `{}`})
		u, r, err := s.Subscribe(t.Context(), resources("toy://a", "toy://b", "toy://c", "toy://d"))
		if e, ok := errors.AsType[*mcp.RPCError](err); !ok || e.Code != -32002 || u != nil || r.Rounds != 1 {
			t.Errorf("got %v, %+v, %v", u, r, err)
		}
		contains(t, err, "resources/subscribe toy://c")
		want := []string{"subscribe toy://a", "subscribe toy://b", "subscribe toy://c", "unsubscribe toy://b"}
		if cmp.Diff(want, sent(p)) != "" {
			t.Errorf("sent %q", sent(p))
		}
		// Refused once is not refused for ever.
		p.On("resources/unsubscribe", mcptest.Answer{Error: `{"code":-32603,"message":"oops"}`}, mcptest.Answer{Result: `{}`})
		u = subscribe(t, s, resources("toy://c", "toy://d"))
		r, err = u.Close(t.Context())
		if e, ok := errors.AsType[*mcp.RPCError](err); !ok || e.Code != -32603 {
			t.Errorf("got %+v, %v", r, err)
		}
		contains(t, err, "resources/unsubscribe toy://c")
		want = append(want, "subscribe toy://c", "subscribe toy://d", "unsubscribe toy://c", "unsubscribe toy://d")
		if cmp.Diff(want, sent(p)) != "" {
			t.Errorf("sent %q", sent(p))
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{})
	})
}

// A server that does not answer holds the caller as long as its context, and another
// one who waits for the same resource as long as its own.
func TestSubscribeObeysTheContext(t *testing.T) {
	overBoth(t, func() *mcptest.Peer { return subscribable() }, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		p.On("resources/subscribe", mcptest.Answer{Silent: true}, mcptest.Answer{Result: `{}`})
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
		start := time.Now()
		var first sync.WaitGroup
		first.Go(func() {
			u, _, err := s.Subscribe(within(t, 5*time.Second), resources("toy://a"))
			if u != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
				t.Errorf("the first: %v, %v after %v", u, err, time.Since(start))
			}
		})
		synctest.Wait()
		u, _, err := s.Subscribe(within(t, 2*time.Second), resources("toy://a"))
		if u != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("the second: %v, %v after %v", u, err, time.Since(start))
		}
		third := subscribe(t, s, resources("toy://a")) // has its turn when the first gives up
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("the third: after %v", took)
		}
		first.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := third.Close(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("close: %v", err)
		}
		if _, _, err := s.Subscribe(ended, resources("toy://a")); !errors.Is(err, context.Canceled) {
			t.Errorf("subscribe: %v", err)
		}
		// The server was not told of the end, and so need not be told again.
		subscribe(t, s, resources("toy://a"))
		if want := []string{"subscribe toy://a", "subscribe toy://a"}; cmp.Diff(want, sent(p)) != "" {
			t.Errorf("sent %q", sent(p))
		}
	})
}

// An update that comes after the end is late, not a breach; and memory of old
// resources is bounded.
func TestLateUpdates(t *testing.T) {
	overBoth(t, func() *mcptest.Peer { return subscribable() }, func(o over) {
		t, p, tr := o.T, o.peer, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
		const n = 1500
		for i := range n {
			u := subscribe(t, s, resources(fmt.Sprintf("toy://%d", i)))
			if _, err := u.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var frames []mcptest.Frame
		for i := range n {
			frames = append(frames, change(updated, "", uri(fmt.Sprintf("toy://%d", i))))
		}
		p.On("tools/call", mcptest.Answer{Result: echoed, Frames: frames})
		if _, err := s.Call(t.Context(), echo); err != nil {
			t.Error(err)
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{mcp.AnomalyUnaskedNotification: n - 1024})
	})
}

// Await takes what the session watches, from before and from then on, in order.
func TestAwait(t *testing.T) {
	const log = "notifications/message"
	frames := []mcptest.Frame{
		{JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}`},
		{JSON: `{"jsonrpc":"2.0","method":"notifications/strange","params":{"data":2}}`},
		change(updated, "", uri("toy://a")),
		{Delay: time.Second, JSON: `{"jsonrpc":"2.0","method":"notifications\/message","params":{"data":3}}`},
		{JSON: `{"jsonrpc":"2.0","method":"notifications/message"}`},
	}
	overBoth(t, func() *mcptest.Peer {
		return new(mcptest.Peer).On("tools/call", mcptest.Answer{Result: echoed, Frames: frames})
	}, func(o over) {
		t, tr := o.T, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell, Watch: []string{log, "notifications/strange", updated}})
		if _, err := s.Await(t.Context(), toolsChanged); err == nil {
			t.Error("awaited what is not watched")
		}
		var call sync.WaitGroup
		call.Go(func() {
			if _, err := s.Call(t.Context(), echo); err != nil {
				t.Error(err)
			}
		})
		start := time.Now()
		for _, want := range []struct {
			method, params string
			at             time.Duration
		}{
			{log, `{"data":1}`, 0},
			{log, `{"data":3}`, time.Second},
			{log, ``, time.Second},
			{"notifications/strange", `{"data":2}`, time.Second},
			{updated, `{"_meta":{"x":1},"uri":"toy://a"}`, time.Second},
		} {
			n, err := s.Await(t.Context(), want.method)
			if err != nil || n.Method != want.method || string(n.Params) != want.params || time.Since(start) != want.at {
				t.Errorf("got %+v, %v after %v", n, err, time.Since(start))
			}
		}
		call.Wait()
		if n, err := s.Await(within(t, time.Second), log); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %+v, %v", n, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if n, err := s.Await(ended, log); !errors.Is(err, context.Canceled) {
			t.Errorf("got %+v, %v", n, err)
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{mcp.AnomalyUnknownNotification: 1})
	})
}

// What nobody takes is kept up to a bound; the oldest goes first, and is counted.
func TestAwaitTooLate(t *testing.T) {
	var frames []mcptest.Frame
	for i := range 100 {
		frames = append(frames, mcptest.Frame{JSON: fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%d}}`, i)})
	}
	overBoth(t, func() *mcptest.Peer {
		return new(mcptest.Peer).On("tools/call", mcptest.Answer{Result: echoed, Frames: frames})
	}, func(o over) {
		t, tr := o.T, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell, Watch: []string{"notifications/message"}})
		if _, err := s.Call(t.Context(), echo); err != nil {
			t.Error(err)
		}
		for i := range 64 {
			n, err := s.Await(t.Context(), "notifications/message")
			if err != nil || string(n.Params) != fmt.Sprintf(`{"data":%d}`, 36+i) {
				t.Fatalf("%d: %+v, %v", i, n, err)
			}
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{mcp.AnomalyNotificationDropped: 36})
	})
}

// Several who wait are served in the order in which they came.
func TestAwaitInTurn(t *testing.T) {
	overBoth(t, func() *mcptest.Peer {
		return new(mcptest.Peer).On("tools/call", mcptest.Answer{Result: echoed, Frames: []mcptest.Frame{change(updated, "", uri("0")), change(updated, "", uri("1")), change(updated, "", uri("2"))}})
	}, func(o over) {
		t, tr := o.T, o.transport
		s := connect(t, tr, mcp.Options{Watch: []string{updated}})
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				ctx := t.Context()
				if i == 1 {
					ctx = within(t, time.Second) // gives up before
				}
				n, err := s.Await(ctx, updated)
				want := map[int]string{0: "0", 2: "1", 3: "2"}[i]
				if i != 1 && (err != nil || described(n) != updated+" "+want) || i == 1 && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%d: got %+v, %v", i, n, err)
				}
			})
			synctest.Wait()
		}
		time.Sleep(2 * time.Second) // virtual
		if _, err := s.Call(t.Context(), echo); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
}

// The end of the session ends the wait, with what it was; what was kept can be taken.
func TestAwaitSessionEnds(t *testing.T) {
	tests := []struct {
		name   string
		answer mcptest.Answer
		want   func(err error) bool
		stdio  bool // only there
	}{
		{"the server session is gone", mcptest.Answer{Status: 404}, func(err error) bool {
			e, ok := errors.AsType[*mcp.HTTPError](err)
			return ok && e.Lost
		}, false},
		{"400 No valid session ID", mcptest.Answer{Status: 400, Error: `{"code":-32000,"message":"Bad Request: No valid session ID provided"}`}, func(err error) bool {
			_, ok := errors.AsType[*mcp.RPCError](err)
			return ok
		}, false},
		{"the output ends", mcptest.Answer{Cut: true}, func(err error) bool {
			_, ok := errors.AsType[*mcp.TransportError](err)
			return ok
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overBoth(t, func() *mcptest.Peer {
				p := subscribable()
				return p.On("tools/call", mcptest.Answer{Result: echoed, Frames: []mcptest.Frame{change(updated, "", uri("toy://a"))}}, tt.answer)
			}, func(o over) {
				t, tr := o.T, o.transport
				if tt.stdio != (tr.Kind() == "stdio") {
					return
				}
				s := connect(t, tr, mcp.Options{Watch: []string{updated}})
				u := subscribe(t, s, resources("toy://a"))
				if _, err := s.Call(t.Context(), echo); err != nil {
					t.Error(err)
				}
				if _, err := u.Next(t.Context()); err != nil {
					t.Error(err)
				}
				waiting := make(chan error, 1)
				go func() {
					_, err := u.Next(t.Context())
					waiting <- err
				}()
				synctest.Wait()
				if _, err := s.Call(t.Context(), echo); !mcp.SessionLost(err) {
					t.Errorf("the call: %v", err)
				}
				if err := <-waiting; !mcp.SessionLost(err) || !tt.want(err) {
					t.Errorf("the one who waited: %v", err)
				}
				if n, err := s.Await(t.Context(), updated); err != nil || described(n) != updated+" toy://a" {
					t.Errorf("kept: %+v, %v", n, err)
				}
				if _, err := s.Await(t.Context(), updated); !mcp.SessionLost(err) {
					t.Errorf("then: %v", err)
				}
				if u, _, err := s.Subscribe(t.Context(), resources("toy://b")); u != nil || !mcp.SessionLost(err) {
					t.Errorf("subscribed: %v, %v", u, err)
				}
			})
		})
	}
}

// A session that nobody subscribes with or watches keeps nothing.
func TestNothingIsKeptUnasked(t *testing.T) {
	overBoth(t, func() *mcptest.Peer {
		return subscribable().On("tools/call", mcptest.Answer{Result: echoed, Frames: slices.Repeat([]mcptest.Frame{change(updated, "", uri("toy://a"))}, 200)})
	}, func(o over) {
		t, tr := o.T, o.transport
		var a mcptest.Anomalies
		s := connect(t, tr, mcp.Options{OnAnomaly: a.Tell})
		if _, err := s.Call(t.Context(), echo); err != nil {
			t.Error(err)
		}
		u := subscribe(t, s, resources("toy://a"))
		if n, err := u.Next(within(t, time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %+v, %v", n, err)
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{})
	})
}
