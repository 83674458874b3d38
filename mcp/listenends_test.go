package mcp_test

import (
	"context"
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
				if how == "closed" || o.transport.Kind() == "stdio" { // else see TestListenReopens
					testListenSessionEnds(o, how)
				}
			})
		})
	}
}

func testListenSessionEnds(o over, how string) {
	t, tr := o.T, o.transport
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
