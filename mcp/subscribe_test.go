package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// subscribable is a peer that agrees to subscriptions and tells these when it is
// asked to: see tellLegacy.
func subscribable(frames ...mcptest.Frame) *mcptest.Peer {
	p := &mcptest.Peer{SessionID: "s"}
	p.On("resources/subscribe", mcptest.Answer{Result: `{}`})
	p.On("resources/unsubscribe", mcptest.Answer{Result: `{}`})
	return p.On("logging/setLevel", mcptest.Answer{Result: `{}`, Frames: frames})
}

// tellLegacy makes a subscribable peer send its frames.
func tellLegacy(t *testing.T, s *mcp.Session) {
	t.Helper()
	if _, err := s.Call(t.Context(), mcp.Request{Method: "logging/setLevel"}); err != nil {
		t.Error(err)
	}
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
		change(updated, "", uri("toy://a")),
		change(updated, "", uri("toy://b/1")),
		change(updated, "", uri("toy://b2")), // of nobody
		change(updated, "", ""),
		change(toolsChanged, "", ""),
		change("notifications/prompts/list_changed", "", ""),
		change("notifications/resources/list_changed", "", ""),
		{JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`},
	}
	for i := range frames {
		frames[i].OnGet = true // over HTTP
	}
	for _, v := range legacyVersions {
		t.Run(string(v), func(t *testing.T) {
			overAll(t, func() *mcptest.Peer { return subscribable(frames...) }, func(o over) {
				if o.transport.Kind() == "http" {
					o.peer.On("GET", mcptest.Answer{Feed: true})
				}
				if o.transport.Kind() != "http" || v.Features().GetStream {
					testSubscribe(o, v)
				}
			})
		})
	}
}

func testSubscribe(o over, v mcp.Version) {
	t, p, tr := o.T, o.peer, o.transport
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
	overAll(t, func() *mcptest.Peer {
		return subscribable(change(updated, "", uri("toy://a")))
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
		tellLegacy(t, s)
		for _, u := range []*mcp.Subscription{third, fourth} {
			if got, _ := kept(t, u); cmp.Diff([]string{updated + " toy://a"}, got) != "" {
				t.Errorf("got %q", got)
			}
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{})
	})
}

// When one of several resources is refused, the others are let go again, and one
// that another subscription has is not.
func TestSubscribeRefused(t *testing.T) {
	overAll(t, func() *mcptest.Peer { return subscribable() }, func(o over) {
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
	overAll(t, func() *mcptest.Peer { return subscribable() }, func(o over) {
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
	overAll(t, func() *mcptest.Peer { return subscribable() }, func(o over) {
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

// A server that drops what it has to tell while it knows of no GET stream (go-sdk)
// is asked only when it knows; one that answers the GET late (mcp-go) is not waited
// for, but once and shortly.
func TestSubscribeAfterTheStream(t *testing.T) {
	tests := []struct {
		name   string
		get    mcptest.Answer
		ask    bool // for a stream
		after  time.Duration
		second time.Duration // later, the second one
	}{
		{"answered late", mcptest.Answer{Delay: 30 * time.Millisecond, SSE: true, Hold: true}, true, 30 * time.Millisecond, 0},
		{"refused", mcptest.Answer{Delay: 30 * time.Millisecond, Status: 405}, true, 30 * time.Millisecond, 0},
		{"no header", mcptest.Answer{Silent: true}, true, 100 * time.Millisecond, 0},
		{"no stream", mcptest.Answer{Silent: true}, false, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				s := connect(t, serveHTTP(t, subscribable().On("GET", tt.get), engine), mcp.Options{GetStream: tt.ask})
				for _, want := range []time.Duration{tt.after, tt.second} {
					start := time.Now()
					_, r, err := s.Subscribe(t.Context(), resources("toy://"+want.String()))
					if took := time.Since(start); err != nil || took != want || r.Timing.Start != r.Timing.End {
						t.Errorf("got %+v, %v after %v, want %v", r, err, took, want)
					}
				}
			})
		})
	}
}
