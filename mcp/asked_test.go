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

// answerer answers by a function and counts.
type answerer struct {
	f func(ctx context.Context, q mcp.Question) (json.RawMessage, error)

	mu        sync.Mutex
	now, most int // being answered, and at most
	asked     []mcp.Asked
}

func (a *answerer) Answer(ctx context.Context, q mcp.Question) (json.RawMessage, error) {
	a.mu.Lock()
	a.now++
	a.most = max(a.most, a.now)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.now--
	}()
	return a.f(ctx, q)
}

func (a *answerer) tell(asked mcp.Asked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, asked)
}

func (a *answerer) told() []mcp.Asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// instant answers everything at once with the method's name.
func instant(_ context.Context, q mcp.Question) (json.RawMessage, error) {
	return json.RawMessage(`{"for":"` + q.Method + `"}`), nil
}

// after answers after a virtual while, unless ctx ends before.
func after(d time.Duration) func(context.Context, mcp.Question) (json.RawMessage, error) {
	return func(ctx context.Context, q mcp.Question) (json.RawMessage, error) {
		select {
		case <-time.NewTimer(d).C:
			return instant(ctx, q)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// every declares whatever a client can be asked for.
var every = json.RawMessage(`{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`)

// ask is a frame with a request of the server.
func ask(id, method, params string) mcptest.Frame {
	if params != "" {
		params = `,"params":` + params
	}
	return mcptest.Frame{JSON: `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"` + params + `}`}
}

// askAndWait is ask for a server that goes on when it has the answer.
func askAndWait(id, method, params string) mcptest.Frame {
	f := ask(id, method, params)
	f.Await = id
	return f
}

// bodies returns the responses that the peer got, sorted.
func bodies(p *mcptest.Peer) []string {
	var all []string
	for _, m := range p.Received("") {
		all = append(all, m.Body)
	}
	slices.Sort(all)
	return all
}

const (
	notFound = `"error":{"code":-32601,"message":"Method not found"}`
	noMode   = `"error":{"code":-32602,"message":"Invalid params: this mode was not declared"}`
)

// Wire tests 9, 17, 51: what a server may ask in a version, and what the client
// declared of it, is answered by the Answerer; the rest is refused and counted.
func TestServerRequests(t *testing.T) {
	const (
		roots    = `{"roots":{}}`
		sampling = `{"sampling":{}}`
		form     = `{"elicitation":{}}`
		both     = `{"elicitation":{"form":{},"url":{}}}`
		url      = `{"elicitation":{"url":{}}}`
	)
	all := mcp.Versions()[1:]
	since := func(v mcp.Version) []mcp.Version { return all[:slices.Index(all, v)+1] }
	before := func(v mcp.Version) []mcp.Version { return all[slices.Index(all, v)+1:] }
	tests := []struct {
		name, capabilities, method, params string
		versions                           []mcp.Version
		refusal                            string // "": answered
	}{
		{"roots", roots, "roots/list", "", all, ""},
		{"roots with params null", roots, "roots/list", "null", all, ""},
		{"roots with params", roots, "roots/list", `{"_meta":{}}`, all, ""},
		{"roots with an array", roots, "roots/list", `[]`, all, `"error":{"code":-32602,"message":"Invalid params: not an object"}`},
		{"roots undeclared", sampling, "roots/list", "", all, notFound},
		{"roots declared by no object", `{"roots":true,"sampling":null}`, "roots/list", "", all, notFound},
		{"sampling", sampling, "sampling/createMessage", `{"maxTokens":1}`, all, ""},
		{"sampling undeclared", roots, "sampling/createMessage", `{"maxTokens":1}`, all, notFound},
		{"tools undeclared", sampling, "sampling/createMessage", `{"tools":[]}`, since(mcp.V20251125), `"error":{"code":-32602,"message":"Invalid params: tools were not declared"}`},
		{"tools before there were any", sampling, "sampling/createMessage", `{"tools":[]}`, before(mcp.V20251125), ""},
		{"tools", `{"sampling":{"tools":{}}}`, "sampling/createMessage", `{"tools":[]}`, all, ""},
		{"task metadata is ignored", sampling, "sampling/createMessage", `{"task":{"ttl":1}}`, all, ""},
		{"form", form, "elicitation/create", `{"message":"?"}`, since(mcp.V20250618), ""},
		{"form by name", form, "elicitation/create", `{"mode":"form"}`, since(mcp.V20250618), ""},
		{"form before there was any", both, "elicitation/create", `{"message":"?"}`, before(mcp.V20250618), notFound},
		{"form where only url is", url, "elicitation/create", `{"message":"?"}`, since(mcp.V20251125), noMode},
		{"elicitation undeclared", roots, "elicitation/create", `{"message":"?"}`, all, notFound},
		{"url", both, "elicitation/create", `{"mode":"url","url":"https://a/"}`, since(mcp.V20251125), ""},
		{"url undeclared", form, "elicitation/create", `{"mode":"url","url":"https://a/"}`, since(mcp.V20251125), noMode},
		{"url before there was any", both, "elicitation/create", `{"mode":"url"}`, []mcp.Version{mcp.V20250618}, noMode},
		{"unknown mode", both, "elicitation/create", `{"mode":"voice"}`, since(mcp.V20251125), noMode},
		{"mode is a number", both, "elicitation/create", `{"mode":1}`, since(mcp.V20251125), noMode},
		{"unknown method", string(every), "no/such", "", all, notFound},
		{"a method of the client", string(every), "tools/list", "", all, notFound},
		{"tasks are not declared", string(every), "tasks/get", `{"taskId":"t"}`, all, notFound},
	}
	for _, tt := range tests {
		for _, v := range tt.versions {
			t.Run(tt.name+" "+string(v), func(t *testing.T) {
				peer := func() *mcptest.Peer {
					return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{askAndWait("$ID", tt.method, tt.params)}, Result: echoed})
				}
				overBoth(t, peer, func(o over) { testServerRequest(o, v, tt.capabilities, tt.method, tt.refusal) })
			})
		}
	}
}

func testServerRequest(o over, v mcp.Version, capabilities, method, refusal string) {
	o.Helper()
	a, odd := &answerer{f: instant}, &mcptest.Anomalies{}
	s := connect(o.T, o.transport, mcp.Options{
		Version: v, Capabilities: json.RawMessage(capabilities), Answers: a, OnAsked: a.tell, OnAnomaly: odd.Tell,
	})
	if r, err := s.Call(o.Context(), echo); err != nil || string(r.Result) != echoed {
		o.Fatalf("got %s, %v", r.Result, err)
	}
	told := a.told() // by now
	want, counts := `"result":{"for":"`+method+`"}`, map[mcp.Anomaly]int{}
	if refusal != "" {
		want, counts[mcp.AnomalyServerRequestRefused] = refusal, 1
	}
	if d := cmp.Diff([]string{`{"jsonrpc":"2.0","id":2,` + want + `}`}, bodies(o.peer)); d != "" {
		o.Errorf("answers to the server (-want +got)\n%s", d)
	}
	if d := cmp.Diff(counts, odd.Counts()); d != "" {
		o.Errorf("anomalies (-want +got)\n%s", d)
	}
	if len(told) != 1 || told[0].Method != method || told[0].Refused != (refusal != "") || told[0].Cancelled || (told[0].Err != nil) != told[0].Refused {
		o.Errorf("told %+v", told)
	}
}

// Without an Answerer every question is refused, whatever was declared.
func TestNoAnswerer(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{askAndWait("1", "roots/list", "")}, Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		s := connect(o.T, o.transport, mcp.Options{Capabilities: every})
		if _, err := s.Call(o.Context(), echo); err != nil {
			o.Error(err)
		}
		if d := cmp.Diff([]string{`{"jsonrpc":"2.0","id":1,` + notFound + `}`}, bodies(o.peer)); d != "" {
			o.Errorf("answers to the server (-want +got)\n%s", d)
		}
	})
}

// Wire tests 9 and 51: an id is the server's own and comes back byte for byte,
// though it may equal one of ours; answers go by POST with the session's header.
func TestServerRequestIDs(t *testing.T) {
	ids := []string{
		`0`, `2`, `-1`, `7.0`, `1e3`, `9007199254740993`, `123456789012345678901234567890`, `"2"`, `""`, `"a b"`, `"é \"\u00e9\\"`,
		`null`, `true`, `[1, "x"]`, `{"a": {"id":1}}`,
	}
	for _, method := range []string{"ping", "roots/list", "no/such"} {
		var frames []mcptest.Frame
		var want []string
		result := map[string]string{"ping": `"result":{}`, "roots/list": `"result":{"for":"roots/list"}`, "no/such": notFound}[method]
		for _, id := range ids {
			frames = append(frames, askAndWait(id, method, ""))
			want = append(want, `{"jsonrpc":"2.0","id":`+id+`,`+result+`}`)
		}
		slices.Sort(want)
		peer := func() *mcptest.Peer {
			return (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Frames: frames, Result: echoed})
		}
		overBoth(t, peer, func(o over) {
			s := connect(o.T, o.transport, mcp.Options{Capabilities: every, Answers: &answerer{f: instant}})
			for range 2 { // and again with other ids of ours
				if r, err := s.Call(o.Context(), echo); err != nil || string(r.Result) != echoed {
					o.Fatalf("%s: got %s, %v", method, r.Result, err)
				}
			}
			got := slices.Compact(bodies(o.peer))
			if d := cmp.Diff(want, got); d != "" {
				o.Errorf("%s: answers (-want +got)\n%s", method, d)
			}
			for _, m := range o.peer.Received("") {
				if h := m.Header; h != nil && (m.HTTPMethod != "POST" || h.Get("Mcp-Session-Id") != "s" || h.Get("Mcp-Protocol-Version") != "2025-11-25") {
					o.Errorf("%s: answered by %s with %v", method, m.HTTPMethod, h)
				}
			}
		})
	}
}

// Requests that are none, by their form, are refused as such.
func TestMalformedServerRequests(t *testing.T) {
	frames := []mcptest.Frame{
		{JSON: `{"jsonrpc":"1.0","id":1,"method":"ping"}`, Await: "1"},
		{JSON: `{"jsonrpc":"2.0","id":2,"method":7}`, Await: "2"},
		{JSON: `{"jsonrpc":"2.0","id":3,"method":null}`, Await: "3"},
	}
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: frames, Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		var odd mcptest.Anomalies
		s := connect(o.T, o.transport, mcp.Options{Capabilities: every, Answers: &answerer{f: instant}, OnAnomaly: odd.Tell})
		if _, err := s.Call(o.Context(), echo); err != nil {
			o.Error(err)
		}
		var want []string
		for i := range frames {
			want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32600,"message":"Invalid Request"}}`, i+1))
		}
		if d := cmp.Diff(want, bodies(o.peer)); d != "" {
			o.Errorf("answers (-want +got)\n%s", d)
		}
		if odd.Counts()[mcp.AnomalyServerRequestRefused] != 3 {
			o.Errorf("anomalies %v", odd.Texts())
		}
	})
}

// What an Answerer may say, and what is made of it.
func TestWhatTheAnswererSays(t *testing.T) {
	tests := []struct {
		name   string
		result string
		err    error
		want   string
	}{
		{"an object", `{"roots":[]}`, nil, `"result":{"roots":[]}`},
		{"pretty-printed", "{\r\n \"roots\": []\n}\n", nil, ""}, // see below
		{"its own error", "", &mcp.RPCError{Code: -1, Message: "User rejected \"it\"", Data: json.RawMessage(`{"a":1}`)}, `"error":{"code":-1,"message":"User rejected \"it\"","data":{"a":1}}`},
		{"its own error, wrapped, junk as data", "", fmt.Errorf("x: %w", &mcp.RPCError{Code: -2, Message: "no", Data: json.RawMessage(`{`)}), `"error":{"code":-2,"message":"no"}`},
		{"another error", "", errors.New("secret"), `"error":{"code":-32603,"message":"Internal error"}`},
		{"nothing", "", nil, `"error":{"code":-32603,"message":"Internal error"}`},
		{"no object", `[1]`, nil, `"error":{"code":-32603,"message":"Internal error"}`},
		{"no JSON", `{"a":}`, nil, `"error":{"code":-32603,"message":"Internal error"}`},
	}
	for _, tt := range tests {
		peer := func() *mcptest.Peer {
			return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{askAndWait(`"q"`, "roots/list", "")}, Result: echoed})
		}
		t.Run(tt.name, func(t *testing.T) {
			overBoth(t, peer, func(o over) {
				a := &answerer{f: func(context.Context, mcp.Question) (json.RawMessage, error) {
					return json.RawMessage(tt.result), tt.err
				}}
				s := connect(o.T, o.transport, mcp.Options{Capabilities: every, Answers: a, OnAsked: a.tell})
				if _, err := s.Call(o.Context(), echo); err != nil {
					o.Fatal(err)
				}
				synctest.Wait()
				got, want := bodies(o.peer)[0], `{"jsonrpc":"2.0","id":"q",`+tt.want+`}`
				if tt.want == "" { // one line on stdio, the same JSON everywhere
					var m struct{ Result map[string][]string }
					if err := json.Unmarshal([]byte(got), &m); err != nil || m.Result["roots"] == nil {
						o.Errorf("answered %s: %v", got, err)
					}
				} else if got != want {
					o.Errorf("answered %s, want %s", got, want)
				}
				if told := a.told(); len(told) != 1 || told[0].Refused != strings.Contains(tt.want, "error") {
					o.Errorf("told %+v", told)
				}
			})
		})
	}
}

// The time an answer takes is counted from the arrival of its question to the hand-over,
// and holds up neither the call nor other answers.
func TestAnswersTakeTheirTime(t *testing.T) {
	frames := []mcptest.Frame{ask(`1`, "sampling/createMessage", "{}"), ask(`2`, "roots/list", ""), ask(`3`, "ping", "")}
	frames[0].Delay = 100 * time.Millisecond
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: frames, Result: echoed})
	}
	overBoth(t, peer, func(o over) {
		waits := map[string]time.Duration{"sampling/createMessage": 3 * time.Second, "roots/list": time.Second}
		a := &answerer{f: func(ctx context.Context, q mcp.Question) (json.RawMessage, error) {
			return after(waits[q.Method])(ctx, q)
		}}
		base := time.Now()
		s := connect(o.T, o.transport, mcp.Options{Base: base, Capabilities: every, Answers: a, OnAsked: a.tell})
		r, err := s.Call(o.Context(), echo)
		if took := r.Timing.End - r.Timing.Start; err != nil || took != 100*time.Millisecond {
			o.Errorf("the call took %v, %v", took, err)
		}
		time.Sleep(10 * time.Second) // virtual
		at := r.Timing.End
		want := []mcp.Asked{
			{Method: "ping", At: at},
			{Method: "roots/list", At: at, Took: time.Second},
			{Method: "sampling/createMessage", At: at, Took: 3 * time.Second},
		}
		if d := cmp.Diff(want, a.told()); d != "" {
			o.Errorf("told (-want +got)\n%s", d)
		}
		var arrived []time.Duration
		for _, m := range o.peer.Received("") {
			arrived = append(arrived, m.At.Sub(base)-at)
		}
		if d := cmp.Diff([]time.Duration{0, time.Second, 3 * time.Second}, arrived); d != "" {
			o.Errorf("answers arrived (-want +got)\n%s", d)
		}
	})
}
