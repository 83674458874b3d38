package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// countedDials counts the dials of a transport, which take a while and may be refused.
type countedDials struct {
	mcp.Transport
	n      atomic.Int64
	takes  time.Duration
	refuse error
}

func (c *countedDials) Dial(ctx context.Context, o mcp.Options) (mcp.Conn, error) {
	c.n.Add(1)
	select {
	case <-time.NewTimer(c.takes).C: // virtual
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c.refuse != nil {
		return nil, c.refuse
	}
	return c.Transport.Dial(ctx, o)
}

// join opens a session of h that is closed when the test ends.
func join(t *testing.T, h *mcp.Shared, o mcp.Options) *mcp.Session {
	t.Helper()
	s, err := h.Connect(t.Context(), o)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { closeSession(t, s) })
	return s
}

// joinAll opens n sessions side by side.
func joinAll(t *testing.T, h *mcp.Shared, o mcp.Options, n int) []*mcp.Session {
	t.Helper()
	all := make([]*mcp.Session, n)
	var dials sync.WaitGroup
	for i := range all {
		dials.Go(func() {
			var err error
			if all[i], err = h.Connect(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	dials.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// Many sessions have one pipe and one handshake, and each call gets its own answer.
func TestSessionsShareAPipe(t *testing.T) {
	for v, handshake := range map[mcp.Version][]string{
		mcp.V20260728: {"server/discover"}, mcp.V20251125: {"initialize", "notifications/initialized"},
	} {
		t.Run(string(v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testSharedPipe(t, v, handshake) })
		})
	}
}

func testSharedPipe(t *testing.T, v mcp.Version, handshake []string) {
	t.Helper()
	const sessions, calls = 20, 10
	p := new(mcptest.Peer).On("tools/call", mcptest.Answer{Delay: time.Second, Result: `{"content":[],"id":$ID}`})
	dials := &countedDials{Transport: p.Stdio(t), takes: 3 * time.Second}
	h := &mcp.Shared{Transport: dials}
	all := joinAll(t, h, mcp.Options{Version: v, Base: time.Now()}, sessions)
	began := time.Now()
	if n := distinctAnswers(t, all, calls); n != sessions*calls {
		t.Errorf("%d different answers", n)
	}
	if took := time.Since(began); took != calls*time.Second {
		t.Errorf("took %v: calls waited for each other", took)
	}
	if got := p.Methods()[:len(handshake)]; !slices.Equal(got, handshake) || len(p.Received(handshake...)) != len(handshake) {
		t.Errorf("handshakes: %v", p.Received(handshake...))
	}
	for _, s := range all { // all of them waited for the one dial
		if i := s.Info(); i.Version != v || i.Transport != "stdio" || i.Start != 0 || i.End != 3*time.Second {
			t.Errorf("info %+v", i)
		}
		closeSession(t, s)
	}
	if dials.n.Load() != 1 || h.Joined() != sessions-1 {
		t.Errorf("%d dials, %d joined", dials.n.Load(), h.Joined())
	}
	// The last one has closed the pipe: another session begins anew.
	join(t, h, mcp.Options{Version: v})
	if r := p.Received(handshake[0]); len(r) != 2 || r[1].Conn != 2 {
		t.Errorf("afterwards: %v", r)
	}
}

// distinctAnswers has each session make so many calls of 1 s and returns how many
// results there are.
func distinctAnswers(t *testing.T, all []*mcp.Session, calls int) int {
	t.Helper()
	var mu sync.Mutex
	answers := map[string]bool{}
	var work sync.WaitGroup
	for _, s := range all {
		work.Go(func() {
			for range calls {
				r, err := s.Call(t.Context(), echo)
				if err != nil || r.Timing.End-r.Timing.Start != time.Second {
					t.Errorf("%+v, %v", r.Timing, err)
				}
				mu.Lock()
				answers[string(r.Result)] = true
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return len(answers)
}

// The death of the process is that of all sessions, and one new process serves all.
func TestASharedPipeThatBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(mcptest.Peer).
			On("tools/call", mcptest.Answer{Delay: time.Second, Cut: true}, mcptest.Answer{Result: echoed}).
			On("prompts/list", mcptest.Answer{Silent: true})
		dials := &countedDials{Transport: p.Stdio(t)}
		h := &mcp.Shared{Transport: dials}
		o := mcp.Options{Version: mcp.V20260728, Base: time.Now(), Watch: []string{toolsChanged}}
		all := joinAll(t, h, o, 5)
		var work sync.WaitGroup
		loses := func(who string, err error) {
			if !mcp.SessionLost(err) || time.Since(o.Base) != time.Second {
				t.Errorf("%s: %v after %v", who, err, time.Since(o.Base))
			}
		}
		work.Go(func() {
			_, err := all[1].Await(t.Context(), toolsChanged)
			loses("a wait", err)
		})
		for i, s := range all {
			req := mcp.Request{Method: "prompts/list"}
			if i == 0 {
				req = echo
			}
			work.Go(func() {
				_, err := s.Call(t.Context(), req)
				loses(fmt.Sprint("session ", i), err)
			})
		}
		work.Wait()
		if slices.ContainsFunc(all, func(s *mcp.Session) bool { return !s.Ended() }) {
			t.Error("a session does not know")
		}
		again := joinAll(t, h, o, 5)
		if dials.n.Load() != 2 {
			t.Errorf("%d dials for two processes", dials.n.Load())
		}
		for _, s := range all { // old ones go after new ones came
			closeSession(t, s)
		}
		for _, s := range again {
			if _, err := s.Call(t.Context(), echo); err != nil {
				t.Error(err)
			}
			closeSession(t, s)
		}
	})
}

// A process that cannot be started is tried once for all who wait, and again for who
// comes later; that whoever tried gave up is no failure of the others.
func TestOpeningASharedPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("no such program")
		dials := &countedDials{Transport: new(mcptest.Peer).Stdio(t), takes: time.Second, refuse: refused}
		h := &mcp.Shared{Transport: dials}
		o := mcp.Options{Version: mcp.V20260728}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := h.Connect(t.Context(), o); !errors.Is(err, refused) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if dials.n.Load() != 1 {
			t.Errorf("%d dials", dials.n.Load())
		}
		dials.refuse = nil
		all.Go(func() {
			if _, err := h.Connect(within(t, time.Millisecond), o); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		synctest.Wait()
		for _, s := range joinAll(t, h, o, 3) {
			closeSession(t, s)
		}
		all.Wait()
		if dials.n.Load() != 3 {
			t.Errorf("%d dials", dials.n.Load())
		}
	})
}

// The end of one session cancels what it has in flight and leaves the others theirs.
func TestCloseOfOneOnASharedPipe(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20260728, mcp.V20251125} {
		for name, wants := range map[string]*mcp.Wants{"plain": nil, "with bounds": {IdleTimeout: time.Minute}} {
			t.Run(string(v)+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testCloseOfOne(t, v, wants) })
			})
		}
	}
}

func testCloseOfOne(t *testing.T, v mcp.Version, wants *mcp.Wants) {
	t.Helper()
	p := new(mcptest.Peer).On("tools/call", mcptest.Answer{Delay: 5 * time.Second, Result: echoed})
	h := &mcp.Shared{Transport: p.Stdio(t)}
	var a mcptest.Anomalies
	all := joinAll(t, h, mcp.Options{Version: v, OnAnomaly: a.Tell}, 2)
	var work sync.WaitGroup
	work.Go(func() {
		_, err := all[0].Call(t.Context(), mcp.Request{Method: echo.Method, Params: echo.Params, Wants: wants})
		contains(t, err, "session is closed")
	})
	synctest.Wait()
	work.Go(func() {
		if _, err := all[1].Call(t.Context(), echo); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	closeSession(t, all[0])
	synctest.Wait()
	id := p.Received("tools/call")[0].ID
	got := p.Received("notifications/cancelled")
	if len(got) != 1 || string(got[0].Params) != `{"requestId":`+id+`,"reason":"the session ended"}` {
		t.Errorf("cancelled: %v", got)
	}
	if _, err := all[0].Call(t.Context(), echo); err == nil || !all[0].Ended() {
		t.Errorf("a closed session: %v", err)
	}
	if err := all[0].Notify(t.Context(), "notifications/x", nil); err == nil {
		t.Error("a closed session notifies")
	}
	work.Wait()
	closeSession(t, all[1])
	wantAnomalies(t, &a, map[mcp.Anomaly]int{mcp.AnomalyLateAnswer: 1})
}

// Up to 2025-11-25 the sessions share the server's one subscription to a resource, and
// the end of one that has the last ends it.
func TestLegacySubscriptionsOnASharedPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := subscribable(change(updated, "", uri("toy://a")), change(toolsChanged, "", ""), change("notifications/message", "", ""))
		h := &mcp.Shared{Transport: p.Stdio(t)}
		var a mcptest.Anomalies
		all := joinAll(t, h, mcp.Options{Version: mcp.V20251125, OnAnomaly: a.Tell, Watch: []string{"notifications/message"}}, 3)
		keeper := join(t, h, mcp.Options{Version: mcp.V20251125, OnAnomaly: a.Tell})
		a1, a2 := subscribe(t, all[0], mcp.Filter{Resources: []string{"toy://a"}}), subscribe(t, all[1], toy)
		lists := subscribe(t, all[2], mcp.Filter{ToolsListChanged: true})
		tellLegacy(t, keeper)
		for i, want := range []struct {
			u    *mcp.Subscription
			kept []string
		}{
			{a1, []string{updated + " toy://a"}}, {a2, []string{updated + " toy://a", toolsChanged}}, {lists, []string{toolsChanged}},
		} {
			if got, _ := kept(t, want.u); cmp.Diff(want.kept, got) != "" {
				t.Errorf("subscription %d: %q", i, got)
			}
		}
		for i, s := range all { // a log message is everybody's who watches
			if _, err := s.Await(within(t, time.Second), "notifications/message"); err != nil {
				t.Errorf("session %d: %v", i, err)
			}
		}
		if _, err := a1.Close(t.Context()); err != nil {
			t.Error(err)
		}
		tellLegacy(t, keeper)
		if n, err := a2.Next(within(t, time.Second)); err != nil || n.Method != updated {
			t.Errorf("after the other one was closed: %v, %v", n, err)
		}
		closeSession(t, all[1])
		if _, err := a2.Next(t.Context()); err == nil {
			for err == nil { // what was kept before
				_, err = a2.Next(t.Context())
			}
			contains(t, err, "closed")
		}
		if want := []string{"subscribe toy://a", "unsubscribe toy://a"}; cmp.Diff(want, sent(p)) != "" {
			t.Errorf("sent %q", sent(p))
		}
		closeSession(t, all[0])
		closeSession(t, all[2])
		tellLegacy(t, keeper)
		wantAnomalies(t, &a, map[mcp.Anomaly]int{})
	})
}

// In 2026-07-28 a change goes to the subscription that it names.
func TestModernSubscriptionsOnASharedPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(mcptest.Peer).On(listenMethod, mcptest.Answer{Frames: []mcptest.Frame{acked, change(updated, "$ID", uri("toy://a"))}, Hold: true})
		h := &mcp.Shared{Transport: p.Stdio(t)}
		var a mcptest.Anomalies
		all := joinAll(t, h, modernSession(&a), 3)
		var subs []*mcp.Subscription
		for _, s := range all {
			subs = append(subs, subscribe(t, s, toy))
		}
		for i, u := range subs {
			if got, _ := kept(t, u); len(got) != 1 {
				t.Errorf("subscription %d has %q", i, got)
			}
		}
		closeSession(t, all[1])
		synctest.Wait()
		if _, err := subs[1].Next(t.Context()); err == nil {
			t.Error("it goes on after its session")
		}
		if got := p.Received("notifications/cancelled"); len(got) != 1 {
			t.Errorf("cancelled: %v", got)
		}
		if _, err := subs[2].Close(t.Context()); err != nil {
			t.Error(err)
		}
		closeSession(t, all[0])
		closeSession(t, all[2])
		wantAnomalies(t, &a, map[mcp.Anomaly]int{})
	})
}

// Progress is that of the request whose token it bears, whichever session made it.
func TestProgressOnASharedPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		p := new(mcptest.Peer).On("tools/call", mcptest.Answer{
			Frames: []mcptest.Frame{tick(ms, "$TOKEN", "1"), tick(ms, "$TOKEN", "2")}, Result: echoed,
		})
		h := &mcp.Shared{Transport: p.Stdio(t)}
		var a mcptest.Anomalies
		all := joinAll(t, h, mcp.Options{Version: mcp.V20251125, OnAnomaly: a.Tell}, 10)
		var work sync.WaitGroup
		for i, s := range all {
			work.Go(func() {
				r, err := s.Call(t.Context(), mcp.Request{Method: echo.Method, Params: echo.Params, Wants: &mcp.Wants{Progress: true}})
				if err != nil || r.Progress != 2 {
					t.Errorf("session %d: %+v, %v", i, r, err)
				}
			})
		}
		work.Wait()
		for _, s := range all {
			closeSession(t, s)
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{})
	})
}
