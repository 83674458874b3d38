package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// A server may send a notification behind the answer to whose request it belongs.
func TestAwaitWhatFollowsTheAnswer(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Type: "text/event-stream", Raw: "data: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{}}\n\n" +
			"data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n\n" +
			"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\"}}\n\n"})
		s := connect(h.T, serveHTTP(h.T, p, h.engine), mcp.Options{Watch: []string{"notifications/message"}})
		if _, err := s.Call(h.Context(), echo); err != nil {
			h.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(h.Context(), time.Second)
		defer cancel()
		if n, err := s.Await(ctx, "notifications/message"); err != nil || string(n.Params) != `{"level":"info"}` {
			h.Errorf("%s, %v", n.Params, err)
		}
		synctest.Wait()
		if got := p.Methods(); len(got) != 4 || got[3] != "" {
			h.Errorf("the ping was not answered: %v", got)
		}
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
	overAll(t, func() *mcptest.Peer {
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
	overAll(t, func() *mcptest.Peer {
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
	overAll(t, func() *mcptest.Peer {
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
		stdio  bool // there and over HTTP+SSE, otherwise over HTTP
	}{
		{"the server session is gone", mcptest.Answer{Status: 404}, func(err error) bool {
			e, ok := errors.AsType[*mcp.HTTPError](err)
			return ok && e.Lost
		}, false},
		{"400 No valid session ID", mcptest.Answer{Status: 400, Error: `{"code":-32000,"message":"Bad Request: No valid session ID provided"}`}, func(err error) bool {
			_, ok := errors.AsType[*mcp.RPCError](err)
			return ok
		}, false},
		{"the output ends, or the stream", mcptest.Answer{Cut: true}, func(err error) bool {
			_, ok := errors.AsType[*mcp.TransportError](err)
			return ok
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overAll(t, func() *mcptest.Peer {
				p := subscribable()
				return p.On("tools/call", mcptest.Answer{Result: echoed, Frames: []mcptest.Frame{change(updated, "", uri("toy://a"))}}, tt.answer)
			}, func(o over) {
				if tt.stdio == (o.transport.Kind() != "http") {
					testAwaitSessionEnds(o, tt.want)
				}
			})
		})
	}
}

func testAwaitSessionEnds(o over, want func(err error) bool) {
	t, tr := o.T, o.transport
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
	if err := <-waiting; !mcp.SessionLost(err) || !want(err) {
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
}

// A session that nobody subscribes with or watches keeps nothing.
func TestNothingIsKeptUnasked(t *testing.T) {
	overAll(t, func() *mcptest.Peer {
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
