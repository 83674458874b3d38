package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// cancelled is a frame in which the server takes a request of its own back.
func cancelled(id string, d time.Duration) mcptest.Frame {
	return mcptest.Frame{Delay: d, JSON: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"r"}}`}
}

// A question that the server takes back ends at once and gets no answer; ids that
// are unknown, of another type or of a request of ours change nothing.
func TestServerCancelsItsRequest(t *testing.T) {
	frames := []mcptest.Frame{
		ask("7", "roots/list", ""), ask(`"7"`, "roots/list", ""), ask(`"\u0061"`, "roots/list", ""),
		cancelled(`7.0`, time.Second),           // the first
		cancelled(`"a"`, time.Second),           // the third
		cancelled(`7`, 0), cancelled(`null`, 0), // nobody's
		cancelled(`$ID`, 0), // ours: not the server's to cancel
		{JSON: `{"jsonrpc":"2.0","method":"notifications/cancelled"}`},
		{Delay: 5 * time.Second, JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`},
		cancelled(`"7"`, 0), // too late
	}
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: frames, Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		a, odd := &answerer{f: after(4 * time.Second)}, &mcptest.Anomalies{}
		s := connect(o.T, o.transport, mcp.Options{Capabilities: every, Answers: a, OnAsked: a.tell, OnAnomaly: odd.Tell})
		r, err := s.Call(o.Context(), echo)
		if err != nil || string(r.Result) != echoed {
			o.Errorf("got %s, %v", r.Result, err)
		}
		synctest.Wait()
		if d := cmp.Diff([]string{`{"jsonrpc":"2.0","id":"7","result":{"for":"roots/list"}}`}, bodies(o.peer)); d != "" {
			o.Errorf("answers (-want +got)\n%s", d)
		}
		told := a.told()
		if len(told) != 3 {
			o.Fatalf("told %+v", told)
		}
		for i, took := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			if got := told[i]; got.Took != took || got.Cancelled != (i < 2) || got.Refused || (got.Err != nil) != (i < 2) {
				o.Errorf("told %+v, want %v", got, took)
			}
		}
		if len(odd.Texts()) != 0 {
			o.Errorf("anomalies %v", odd.Texts())
		}
	})
}

// Two requests with one id, at the same time: both are answered, the breach is
// counted, and a cancellation means both.
func TestServerRequestTwice(t *testing.T) {
	frames := []mcptest.Frame{
		ask("0", "roots/list", ""), ask("0", "sampling/createMessage", "{}"),
		ask(`"b"`, "roots/list", ""), ask(`"b"`, "roots/list", ""), cancelled(`"b"`, 0),
		{Delay: 2 * time.Second, JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`},
	}
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: frames, Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		var odd mcptest.Anomalies
		s := connect(o.T, o.transport, mcp.Options{Capabilities: every, Answers: &answerer{f: after(time.Second)}, OnAnomaly: odd.Tell})
		if _, err := s.Call(o.Context(), echo); err != nil {
			o.Error(err)
		}
		want := []string{
			`{"jsonrpc":"2.0","id":0,"result":{"for":"roots/list"}}`,
			`{"jsonrpc":"2.0","id":0,"result":{"for":"sampling/createMessage"}}`,
		}
		if d := cmp.Diff(want, bodies(o.peer)); d != "" {
			o.Errorf("answers (-want +got)\n%s", d)
		}
		if d := cmp.Diff(map[mcp.Anomaly]int{mcp.AnomalyServerRequestTwice: 2}, odd.Counts()); d != "" {
			o.Errorf("anomalies (-want +got)\n%s", d)
		}
	})
}

// A flood of requests that take long neither stops the reading nor the pings, and
// what is beyond the bound is refused and counted.
func TestFloodOfServerRequests(t *testing.T) {
	const bound, flood = 1024, 1200
	var frames []mcptest.Frame
	var together strings.Builder
	for i := range flood {
		// As one piece: not one of them waits for the answer to another.
		fmt.Fprintf(&together, `data: {"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage"}`+"\n\n", i)
	}
	frames = append(frames, mcptest.Frame{Raw: together.String()}, askAndWait(`"ping"`, "ping", ""))
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: frames, Result: echoed}, mcptest.Answer{Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		if o.transport.Kind() == "stdio" {
			lines := strings.NewReplacer("data: ", "", "\n\n", "\n").Replace(together.String())
			o.peer.On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{{Raw: lines}, frames[1]}, Result: echoed}, mcptest.Answer{Result: echoed})
		}
		a, odd := &answerer{f: after(time.Minute)}, &mcptest.Anomalies{}
		s := connect(o.T, o.transport, mcp.Options{Capabilities: every, Answers: a, OnAsked: a.tell, OnAnomaly: odd.Tell})
		r, err := s.Call(o.Context(), echo)
		if err != nil || r.Timing.End != r.Timing.Start {
			o.Errorf("the call took %v, %v", r.Timing.End-r.Timing.Start, err)
		}
		time.Sleep(2 * time.Minute) // virtual
		if a.most != bound {
			o.Errorf("%d at once, want %d", a.most, bound)
		}
		if d := cmp.Diff(map[mcp.Anomaly]int{mcp.AnomalyServerRequestFlood: flood - bound}, odd.Counts()); d != "" {
			o.Errorf("anomalies (-want +got)\n%s", d)
		}
		ok, refused := 0, 0
		for _, b := range bodies(o.peer) {
			if strings.Contains(b, `"result":{"for"`) {
				ok++
			}
			if strings.HasSuffix(b, `"error":{"code":-32603,"message":"too many requests of the server at once"}}`) {
				refused++
			}
		}
		if ok != bound || refused != flood-bound || len(a.told()) != flood+1 {
			o.Errorf("%d answered, %d refused, %d told of", ok, refused, len(a.told()))
		}
		if _, err := s.Call(o.Context(), echo); err != nil {
			o.Error(err)
		}
	})
}

// Close ends what is being answered and waits for it.
func TestCloseDuringAQuestion(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{ask("1", "roots/list", "")}, Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		a := &answerer{f: after(time.Hour)}
		s, err := mcp.Connect(o.Context(), o.transport, mcp.Options{Capabilities: every, Answers: a, OnAsked: a.tell})
		if err != nil {
			o.Fatal(err)
		}
		if _, err := s.Call(o.Context(), echo); err != nil {
			o.Error(err)
		}
		start := time.Now()
		closeSession(o.T, s)
		if took := time.Since(start); took != 0 {
			o.Errorf("close took %v", took)
		}
		told := a.told()
		if a.now != 0 || len(told) != 1 || !told[0].Cancelled || told[0].Err == nil || len(bodies(o.peer)) != 0 {
			o.Errorf("%d being answered, told %+v, answers %v", a.now, told, bodies(o.peer))
		}
	})
}

// When the server is gone nobody goes on answering it.
func TestPipeEndsDuringAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{ask("1", "roots/list", "")}, Delay: time.Second, Cut: true, Result: echoed})
		a := &answerer{f: after(time.Hour)}
		s := connect(t, p.Stdio(t), mcp.Options{Capabilities: every, Answers: a, OnAsked: a.tell})
		if _, err := s.Call(t.Context(), echo); err != nil && !mcp.SessionLost(err) {
			t.Error(err)
		}
		time.Sleep(time.Second) // virtual
		if told := a.told(); len(told) != 1 || !told[0].Cancelled || !mcp.SessionLost(told[0].Err) {
			t.Errorf("told %+v", told)
		}
	})
}

// A server that does not read its input holds up neither the reading nor Close.
func TestAnswersToAServerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &stuckServer{done: make(chan struct{}), says: `{"jsonrpc":"2.0","id":1,"method":"roots/list"}` + "\n" +
			strings.Repeat(`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n", 3000)}
		a, odd := &answerer{f: instant}, &mcptest.Anomalies{}
		s, err := mcp.Connect(t.Context(), server, mcp.Options{Capabilities: every, Answers: a, OnAsked: a.tell, OnAnomaly: odd.Tell})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // virtual
		if got := odd.Counts()[mcp.AnomalyReplyDropped]; got == 0 || got >= 3000-1000 {
			t.Errorf("%d answers dropped", got)
		}
		close(server.done)
		closeSession(t, s)
		if told := a.told(); len(told) != 3001 {
			t.Errorf("told of %d", len(told))
		}
	})
}

// Answers that the server refuses or never takes are counted and harm nobody.
func TestAnswersRefused(t *testing.T) {
	for name, answer := range map[string]mcptest.Answer{"400": {Status: 400}, "404": {Status: 404}, "never": {Silent: true}, "200 with JSON": {Status: 200, Raw: `{}`}} {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{ask("$ID", "roots/list", "")}, Result: echoed})
				p.On("", answer)
				a, odd := &answerer{f: instant}, &mcptest.Anomalies{}
				s := connect(h.T, serveHTTP(h.T, p, h.engine), mcp.Options{Capabilities: every, Answers: a, OnAsked: a.tell, OnAnomaly: odd.Tell})
				for range 3 {
					if _, err := s.Call(h.Context(), echo); err != nil {
						h.Error(err)
					}
				}
				time.Sleep(10 * time.Second) // virtual
				want := map[mcp.Anomaly]int{mcp.AnomalyReplyDropped: 3}
				if answer.Status == 200 {
					want = map[mcp.Anomaly]int{mcp.AnomalyOddStatus: 3}
				}
				if d := cmp.Diff(want, odd.Counts()); d != "" {
					h.Errorf("anomalies (-want +got)\n%s", d)
				}
				if told := a.told(); len(told) != 3 || told[0].Refused || told[0].Cancelled {
					h.Errorf("told %+v", told)
				}
			})
		})
	}
}

// Wire test 17: questions on the GET stream are answered too, and one with an id
// of ours leaves our request alone.
func TestQuestionsOnTheGetStream(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Delay: 2 * time.Second, Result: echoed})
		frames := []mcptest.Frame{ask("2", "elicitation/create", `{"message":"?"}`), ask("0", "roots/list", ""), cancelled("0", 100*time.Millisecond), ask("3", "ping", "")}
		frames[0].Delay = 500 * time.Millisecond
		p.On("GET", mcptest.Answer{Hold: true, Frames: frames})
		a, odd := &answerer{f: after(time.Second)}, &mcptest.Anomalies{}
		s := connect(h.T, serveHTTP(h.T, p, h.engine), mcp.Options{GetStream: true, Capabilities: every, Answers: a, OnAnomaly: odd.Tell})
		if r, err := s.Call(h.Context(), echo); err != nil || string(r.Result) != echoed {
			h.Errorf("got %s, %v", r.Result, err)
		}
		want := []string{`{"jsonrpc":"2.0","id":2,"result":{"for":"elicitation/create"}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`}
		if d := cmp.Diff(want, bodies(p)); d != "" || len(odd.Texts()) != 0 {
			h.Errorf("answers (-want +got)\n%s%v", d, odd.Texts())
		}
	})
}

// Many calls at once on one session, each with a question: every one finds its
// way, and no question waits for another.
func TestManyQuestionsAtOnce(t *testing.T) {
	const calls = 300
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{askAndWait("$ID", "sampling/createMessage", `{"n":$ID}`)}, Result: `{"n":$ID}`})
	}
	overBoth(t, peer, func(o over) {
		a := &answerer{f: func(ctx context.Context, q mcp.Question) (json.RawMessage, error) {
			_, err := after(time.Second)(ctx, q)
			return q.Params, err
		}}
		s := connect(o.T, o.transport, mcp.Options{Capabilities: every, Answers: a})
		results, start := make(chan string, calls), time.Now()
		for range calls {
			go func() {
				r, err := s.Call(o.Context(), echo)
				if err != nil {
					o.Error(err)
				}
				results <- string(r.Result)
			}()
		}
		var got []string
		for range calls {
			got = append(got, <-results)
		}
		if took := time.Since(start); took != time.Second {
			o.Errorf("took %v", took)
		}
		for _, m := range o.peer.Received("") {
			if want := `{"jsonrpc":"2.0","id":` + m.ID + `,"result":{"n":` + m.ID + `}}`; m.Body != want {
				o.Errorf("answer %s, want %s", m.Body, want)
			}
		}
		if slices.Sort(got); len(slices.Compact(got)) != calls {
			o.Error("two calls got the same result")
		}
	})
}

// Requests may come in an array where the version has arrays; each is answered by
// itself. An array where there must be none is a fault, and nothing in it counts.
func TestServerRequestsInABatch(t *testing.T) {
	const batch = `[{"jsonrpc":"2.0","id":1,"method":"roots/list"},{"jsonrpc":"2.0","id":"p","method":"ping"},{"jsonrpc":"2.0","id":$ID,"result":` + echoed + `}]`
	for _, v := range mcp.Versions()[1:] {
		for _, stream := range []bool{false, true} {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{JSON: batch, SSE: stream})
			}
			overBoth(t, peer, func(o over) {
				s := connect(o.T, o.transport, mcp.Options{Version: v, Capabilities: every, Answers: &answerer{f: instant}})
				r, err := s.Call(o.Context(), echo)
				time.Sleep(time.Second) // virtual
				var want []string
				if v == mcp.V20250326 {
					want = []string{`{"jsonrpc":"2.0","id":"p","result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{"for":"roots/list"}}`}
					if err != nil || string(r.Result) != echoed {
						o.Errorf("got %s, %v", r.Result, err)
					}
				} else {
					wantFault(o.T, err, mcp.FaultBatch)
				}
				if d := cmp.Diff(want, bodies(o.peer)); d != "" {
					o.Errorf("%s: answers (-want +got)\n%s", v, d)
				}
			})
		}
	}
}

// Wire test 51: in 2026-07-28 nothing that a server requests is answered, whoever
// could answer it.
func TestModernServerRequestsAreNotAnswered(t *testing.T) {
	frames := []mcptest.Frame{ask("1", "ping", ""), ask("2", "roots/list", ""), ask("3", "elicitation/create", "{}"), cancelled("2", 0), ask("4", "no/such", "")}
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: frames, Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		a, odd := &answerer{f: func(context.Context, mcp.Question) (json.RawMessage, error) {
			return nil, errors.New("must not be asked")
		}}, &mcptest.Anomalies{}
		s := connect(o.T, o.transport, mcp.Options{Version: mcp.V20260728, Capabilities: every, Answers: a, OnAsked: a.tell, OnAnomaly: odd.Tell})
		if _, err := s.Call(o.Context(), echo); err != nil {
			o.Error(err)
		}
		time.Sleep(time.Second) // virtual
		if d := cmp.Diff(map[mcp.Anomaly]int{mcp.AnomalyServerRequestForbidden: 4, mcp.AnomalyUnaskedNotification: 1}, odd.Counts()); d != "" {
			o.Errorf("anomalies (-want +got)\n%s", d)
		}
		if a.most != 0 || len(a.told()) != 0 || len(o.peer.Received("")) != 0 {
			o.Errorf("told %v, answers %v", a.told(), o.peer.Received(""))
		}
	})
}
