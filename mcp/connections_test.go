package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// doors counts the connections of a transport: all, those open now, and the most at once.
type doors struct {
	all, open, most atomic.Int64
}

func watchDoors(tr *mcp.Streamable) *doors {
	d, dial := &doors{}, tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		d.all.Add(1)
		n := d.open.Add(1)
		for most := d.most.Load(); n > most && !d.most.CompareAndSwap(most, n); most = d.most.Load() {
		}
		return &door{Conn: c, of: d}, nil
	}
	return d
}

type door struct {
	net.Conn
	of   *doors
	once sync.Once
}

func (c *door) Close() error {
	c.once.Do(func() { c.of.open.Add(-1) })
	return c.Conn.Close()
}

// sharedHTTP is a transport to p whose sessions share that many connections.
func sharedHTTP(h onHTTP, p *mcptest.Peer, most int) (*mcp.Streamable, *doors) {
	tr := serveHTTP(h, p, h.engine)
	d := watchDoors(tr)
	tr.Connections = mcp.NewConnections(most)
	return tr, d
}

// Wire test: 50 sessions over shared:4 make the server see 4 connections, and the
// requests of each session are its own.
func TestSessionsShareConnections(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20260728, mcp.V20251125} {
		t.Run(string(v), func(t *testing.T) {
			overHTTP(t, func(h onHTTP) { testSharing(h, v) })
		})
	}
}

func testSharing(h onHTTP, v mcp.Version) {
	t := h.T
	const sessions, calls, most = 50, 20, 4
	p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Delay: time.Millisecond, Result: echoed})
	base, d := sharedHTTP(h, p, most)
	var all sync.WaitGroup
	began := time.Now()
	for i := range sessions {
		all.Go(func() {
			tr := *base
			tr.Header = http.Header{"X-Session": {fmt.Sprint(i)}}
			s, err := mcp.Connect(t.Context(), &tr, mcp.Options{Version: v, Base: began})
			if err != nil {
				t.Error(err)
				return
			}
			callTimes(t, s, calls)
			closeSession(t, s)
		})
	}
	all.Wait()
	// net/http has a queue of its own, so that the last ones need not come in turn.
	const least, slack = sessions * calls / most * time.Millisecond, 10 * time.Millisecond
	if took := time.Since(began); took < least || took > least+slack || h.engine == mcp.EngineFast && took != least {
		t.Errorf("took %v, want %v", took, least)
	}
	if d.all.Load() != most || d.most.Load() != most || d.open.Load() != 0 {
		t.Errorf("%d connections, %d at once, %d left open", d.all.Load(), d.most.Load(), d.open.Load())
	}
	of := map[string]int{}
	for _, r := range p.Received("tools/call") {
		of[r.Header.Get("X-Session")]++
	}
	for i := range sessions {
		if n := of[fmt.Sprint(i)]; n != calls {
			t.Errorf("session %d made %d calls", i, n)
		}
	}
}

// callTimes makes so many calls that are to succeed within a minute each.
func callTimes(t *testing.T, s *mcp.Session, n int) {
	t.Helper()
	for range n {
		if _, err := s.Call(within(t, time.Minute), echo); err != nil {
			t.Error(err)
		}
	}
}

// The wait for a connection is no part of the request, and is counted.
func TestWaitForAConnection(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t := h.T
		p := new(mcptest.Peer).On("tools/call", mcptest.Answer{Delay: time.Second, Result: echoed})
		tr, _ := sharedHTTP(h, p, 1)
		var a mcptest.Anomalies
		base := time.Now()
		o := mcp.Options{Version: mcp.V20260728, Base: base, OnAnomaly: a.Tell}
		sessions := []*mcp.Session{connect(t, tr, o), connect(t, tr, o)}
		var starts []time.Duration
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, s := range sessions {
			all.Go(func() {
				r, err := s.Call(t.Context(), echo)
				if err != nil || r.Timing.End-r.Timing.Start != time.Second || r.Timing.Connect != 0 {
					t.Errorf("%+v, %v", r.Timing, err)
				}
				mu.Lock()
				defer mu.Unlock()
				starts = append(starts, r.Timing.Start)
			})
		}
		all.Wait()
		slices.Sort(starts)
		if starts[0] != 0 || starts[1] != time.Second {
			t.Errorf("started at %v", starts)
		}
		if got := a.Texts(); !slices.Equal(got, []string{"connection_wait: all connections of the pool are in use"}) {
			t.Errorf("anomalies %q", got)
		}
	})
}

// Whatever ends a wait, its place is free for the next one.
func TestPlacesAreNotLost(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, tr *mcp.Streamable, o mcp.Options){
		"a wait that takes too long": waitTooLong, "a wait that is given up": giveUpWaiting, "a wait whose session is closed": closeWaiting,
	} {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t := h.T
				p := new(mcptest.Peer).On("tools/call", mcptest.Answer{Delay: 10 * time.Second, Result: echoed}, mcptest.Answer{Result: echoed})
				tr, d := sharedHTTP(h, p, 1)
				o := mcp.Options{Version: mcp.V20260728, Base: time.Now()}
				s := connect(t, tr, o)
				busy := make(chan error, 1)
				go func() {
					_, err := s.Call(t.Context(), echo)
					busy <- err
				}()
				synctest.Wait()
				spoil(t, tr, o)
				if err := <-busy; err != nil {
					t.Error(err)
				}
				callTimes(t, s, 3)
				if d.all.Load() != 1 {
					t.Errorf("%d connections", d.all.Load())
				}
			})
		})
	}
}

// dialled opens a connection that makes no request by itself.
func dialled(t *testing.T, tr *mcp.Streamable, o mcp.Options) mcp.Conn {
	t.Helper()
	c, err := tr.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func waitTooLong(t *testing.T, tr *mcp.Streamable, o mcp.Options) {
	t.Helper()
	r, err := dialled(t, tr, o).RoundTrip(t.Context(), mcp.Request{Method: echo.Method, Params: echo.Params, Timeout: time.Second})
	if _, ok := errors.AsType[*mcp.TimeoutError](err); !ok || r.Timing.End-r.Timing.Start != time.Second {
		t.Errorf("%v, %+v", err, r.Timing)
	}
}

func giveUpWaiting(t *testing.T, tr *mcp.Streamable, o mcp.Options) {
	t.Helper()
	if _, err := dialled(t, tr, o).RoundTrip(within(t, time.Second), echo); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func closeWaiting(t *testing.T, tr *mcp.Streamable, o mcp.Options) {
	t.Helper()
	c := dialled(t, tr, o)
	ended := make(chan error, 1)
	go func() {
		_, err := c.RoundTrip(t.Context(), echo)
		ended <- err
	}()
	synctest.Wait()
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a request of a closed session succeeded")
	}
}

// Exchanges that fail leave no connection in the pool and keep no place in it.
func TestPlacesOfFailedExchanges(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t := h.T
		p := new(mcptest.Peer).On("tools/call",
			mcptest.Answer{Cut: true}, mcptest.Answer{Raw: "{", Cut: true}, mcptest.Answer{Status: 500, Raw: "no"},
			mcptest.Answer{Silent: true}, mcptest.Answer{Raw: "no JSON"}, mcptest.Answer{Result: echoed})
		tr, d := sharedHTTP(h, p, 1)
		dial, refuse := tr.DialContext, false
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if refuse {
				return nil, errors.New("refused")
			}
			return dial(ctx, network, addr)
		}
		s := connect(t, tr, mcp.Options{Version: mcp.V20260728})
		fails := func() {
			t.Helper()
			if _, err := s.Call(t.Context(), mcp.Request{Method: echo.Method, Params: echo.Params, Timeout: time.Second}); err == nil {
				t.Error("no error")
			}
		}
		fails() // cut: nothing is left in the pool
		refuse = true
		fails()
		fails()
		refuse = false
		for range 4 {
			fails()
		}
		if _, err := s.Call(within(t, time.Second), echo); err != nil {
			t.Error(err)
		}
		if d.most.Load() != 1 {
			t.Errorf("%d connections at once", d.most.Load())
		}
	})
}

// One session's end cuts its own requests and leaves the others theirs.
func TestCloseOfOneThatShares(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t := h.T
		p := new(mcptest.Peer).On("tools/call", mcptest.Answer{Delay: time.Second, Result: echoed})
		tr, d := sharedHTTP(h, p, 2)
		o := mcp.Options{Version: mcp.V20260728, Base: time.Now()}
		stays := connect(t, tr, o)
		goes, err := mcp.Connect(t.Context(), tr, o)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := goes.Call(t.Context(), echo); err == nil {
				t.Error("a request of a closed session succeeded")
			}
		})
		all.Go(func() {
			if _, err := stays.Call(t.Context(), echo); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		closeSession(t, goes)
		all.Wait()
		if _, err := stays.Call(t.Context(), echo); err != nil || d.all.Load() != 2 || d.open.Load() != 1 {
			t.Errorf("%v; %d connections, %d open", err, d.all.Load(), d.open.Load())
		}
	})
}

// A pool of one cannot be blocked by what lasts, nor by what a request waits for.
func TestAPoolOfOneDoesNotLockUp(t *testing.T) {
	for name, f := range map[string]func(h onHTTP){
		"streams": streamsBesideAPool, "listen": listeningBesideAPool, "a question of the server": answeringBesideAPool,
		"a cancellation": cancellingBesideAPool,
	} {
		t.Run(name, func(t *testing.T) { overHTTP(t, f) })
	}
}

func streamsBesideAPool(h onHTTP) {
	p := (&mcptest.Peer{SessionID: "s"}).On("GET", mcptest.Answer{Feed: true})
	tr, d := sharedHTTP(h, p, 1)
	o := mcp.Options{Version: mcp.V20251125, GetStream: true, Base: time.Now()}
	for range 3 {
		callTimes(h.T, connect(h.T, tr, o), 1)
	}
	if d.all.Load() != 4 {
		h.Errorf("%d connections, want the pool's and 3 streams", d.all.Load())
	}
}

func listeningBesideAPool(h onHTTP) {
	t := h.T
	p := listener(mcptest.Answer{Frames: []mcptest.Frame{acked}, Hold: true})()
	tr, d := sharedHTTP(h, p, 1)
	var a mcptest.Anomalies
	for range 3 {
		s := connect(t, tr, modernSession(&a))
		if _, _, err := s.Subscribe(within(t, time.Second), toy); err != nil {
			t.Error(err)
		}
		callTimes(t, s, 1)
	}
	if d.open.Load() != 4 {
		t.Errorf("%d connections, want the pool's and 3 streams", d.open.Load())
	}
}

func answeringBesideAPool(h onHTTP) {
	p := new(mcptest.Peer).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{askAndWait("7", "roots/list", "")}, Result: echoed})
	tr, _ := sharedHTTP(h, p, 1)
	callTimes(h.T, connect(h.T, tr, mcp.Options{Version: mcp.V20251125, Capabilities: every, Answers: &answerer{f: instant}}), 2)
}

func cancellingBesideAPool(h onHTTP) {
	t := h.T
	p := new(mcptest.Peer).On("tools/call", mcptest.Answer{Silent: true}, mcptest.Answer{Result: echoed})
	tr, _ := sharedHTTP(h, p, 1)
	s := connect(t, tr, mcp.Options{Version: mcp.V20251125})
	_, err := s.Call(t.Context(), mcp.Request{Method: echo.Method, Params: echo.Params, Wants: &mcp.Wants{CancelAfter: time.Second}})
	if _, ok := errors.AsType[*mcp.CancelledError](err); !ok {
		t.Error(err)
	}
	got := p.Received("notifications/cancelled")
	if len(got) != 1 || got[0].At.Sub(p.Received("tools/call")[0].At) != time.Second {
		t.Errorf("cancelled: %v", got)
	}
	callTimes(t, s, 1)
}

// HTTP+SSE posts over the pool, its streams are beside it.
func TestHTTPSSESharesConnections(t *testing.T) {
	for _, engine := range engines {
		t.Run(string(engine), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := new(mcptest.Peer)
				tr := serveSSE(t, p, engine)
				d := watchDoors((*mcp.Streamable)(tr))
				tr.Connections = mcp.NewConnections(1)
				base := time.Now()
				var all sync.WaitGroup
				for range 5 {
					s := connect(t, tr, mcp.Options{Base: base})
					all.Go(func() {
						for range 5 {
							if _, err := s.Call(t.Context(), echo); err != nil {
								t.Error(err)
							}
						}
					})
				}
				all.Wait()
				if d.all.Load() != 6 {
					t.Errorf("%d connections, want the pool's and 5 streams", d.all.Load())
				}
			})
		})
	}
}
