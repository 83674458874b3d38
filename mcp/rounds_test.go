package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// asksFor is a result that asks for input, with these members.
func asksFor(members string) mcptest.Answer {
	return mcptest.Answer{Result: `{"resultType":"input_required"` + members + `}`}
}

const (
	done     = `{"resultType":"complete","content":[]}`
	askRoots = `,"inputRequests":{"r":{"method":"roots/list"}}`
)

// modern connects in 2026-07-28 with everything declared.
func modern(o over, a *answerer, more mcp.Options) *mcp.Session {
	o.Helper()
	more.Version, more.Answers, more.OnAsked = mcp.V20260728, a, a.tell
	if more.Capabilities == nil {
		more.Capabilities = every
	}
	return connect(o.T, o.transport, more)
}

// params returns the members of the params of the n-th request.
func params(t *testing.T, p *mcptest.Peer, n int, method string) map[string]json.RawMessage {
	t.Helper()
	all := p.Received(method)
	if n >= len(all) {
		t.Fatalf("%d requests, want more than %d", len(all), n)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(all[n].Params, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Wire test 38: all that one result asks for is answered at the same time, and
// comes with the state in one retry that is otherwise the same request.
func TestInputRequired(t *testing.T) {
	const state = `"zQ1\u00e9\/ é=="`
	answer := asksFor(`,"content":null,"inputRequests":{"ok":{"method":"elicitation/create","params":{"mode":"form","message":"?"}},` +
		`"text":{"method":"sampling/createMessage","params":{"maxTokens":1}},"a\"b":{"method":"roots/list"}},"requestState":` + state)
	for _, call := range []mcp.Request{
		{Method: "tools/call", Params: []byte(`{"name":"deploy","arguments":{"env":"qa"},"_meta":{"progressToken":"p"}}`)},
		{Method: "prompts/get", Params: []byte(`{"name":"deploy"}`)},
		{Method: "resources/read", Params: []byte(`{"uri":"toy://a"}`)},
	} {
		peer := func() *mcptest.Peer {
			p := (&mcptest.Peer{}).On(call.Method, answer, mcptest.Answer{Delay: 100 * time.Millisecond, Result: done})
			return p
		}
		overBoth(t, peer, func(o over) { testInputRequired(o, call, state) })
	}
}

func testInputRequired(o over, call mcp.Request, state string) {
	o.Helper()
	t, p := o.T, o.peer
	a := &answerer{f: after(time.Second)}
	s := modern(o, a, mcp.Options{})
	r, err := s.Call(t.Context(), call)
	if err != nil || string(r.Result) != done || r.Rounds != 2 {
		t.Fatalf("got %+v, %v", r, err)
	}
	first, second := params(t, p, 0, call.Method), params(t, p, 1, call.Method)
	want := maps.Clone(first)
	want["inputResponses"] = json.RawMessage(`{"ok":{"for":"elicitation/create"},"text":{"for":"sampling/createMessage"},"a\"b":{"for":"roots/list"}}`)
	want["requestState"] = json.RawMessage(state)
	if d := cmp.Diff(want, second); d != "" {
		t.Errorf("the retry (-want +got)\n%s", d)
	}
	sent := p.Received(call.Method)
	if len(sent) != 2 || sent[0].ID == sent[1].ID || sent[0].Header.Get("Mcp-Name") != sent[1].Header.Get("Mcp-Name") {
		t.Errorf("sent %+v", sent)
	}
	if r.BytesOut != len(sent[0].Body)+len(sent[1].Body) || r.BytesIn == 0 {
		t.Errorf("%d bytes out, %d in", r.BytesOut, r.BytesIn)
	}
	wantTrips(t, r, 0, 100*time.Millisecond)
	if took := r.Timing.End - r.Timing.Start; took != 1100*time.Millisecond {
		t.Errorf("took %v", took)
	}
	told := a.told()
	if len(told) != 3 || a.most != 3 {
		t.Errorf("told %+v, %d at once", told, a.most)
	}
	for _, one := range told {
		if one.At != r.More.Trips[0].End || one.Took != time.Second || one.Refused || one.Cancelled {
			t.Errorf("told %+v", one)
		}
	}
}

// wantTrips checks that the trips took so long each and lie within the whole.
func wantTrips(t *testing.T, r mcp.Reply, took ...time.Duration) {
	t.Helper()
	wantOrder(t, r)
	if r.More == nil || len(r.More.Trips) != len(took) {
		t.Fatalf("more %+v", r.More)
	}
	for i, trip := range r.More.Trips {
		if got := trip.End - trip.Start; got != took[i] {
			t.Errorf("trip %d took %v, want %v", i, got, took[i])
		}
		if i > 0 && trip.Start < r.More.Trips[i-1].End {
			t.Errorf("trip %d began before the one before it ended", i)
		}
	}
	if first := r.More.Trips[0]; first.Start != r.Timing.Start || r.Timing.End < r.More.Trips[len(took)-1].End {
		t.Errorf("the whole %+v, trips %+v", r.Timing, r.More.Trips)
	}
}

// Wire test 38: what a result may look like that asks for input, and what the
// retry then says.
func TestFormsOfInputRequired(t *testing.T) {
	const given = `{"r":{"for":"roots/list"}}`
	tests := []struct {
		name, members, call, responses, state string // "": none
	}{
		{"one question", askRoots, ``, given, ""},
		{"only a state", `,"requestState":"s"`, ``, "", `"s"`},
		{"an empty state", `,"requestState":""`, ``, "", `""`},
		{"content null (go-sdk)", askRoots + `,"content":null`, ``, given, ""},
		{"content empty (mcp-go)", askRoots + `,"content":[]`, ``, given, ""},
		{"junk beside", askRoots + `,"content":7,"isError":"x","structuredContent":[],"ttlMs":-1,"_meta":{}`, ``, given, ""},
		{"null members", `,"inputRequests":null,"requestState":"s"`, ``, "", `"s"`},
		{"null state", askRoots + `,"requestState":null`, ``, given, ""},
		{"no question in it", `,"inputRequests":{}`, ``, `{}`, ""},
		{"no question in it, but a state", `,"inputRequests":{},"requestState":"s"`, ``, `{}`, `"s"`},
		{"an empty key", `,"inputRequests":{"":{"method":"roots/list","params":null}}`, ``, `{"":{"for":"roots/list"}}`, ""},
		{"one key twice", `,"inputRequests":{"r":{"method":"sampling/createMessage","params":{}},"\u0072":{"method":"roots/list"}}`, ``, `{"\u0072":{"for":"roots/list"}}`, ""},
		{"escaped names", `,"\u0069nputRequests":{"r":{"\u006dethod":"roots\/list"}}`, ``, given, ""},
		{"a call with such members", askRoots, `"requestState":"mine","a":1,"inputResponses":{"x":1},`, given, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", asksFor(tt.members), mcptest.Answer{Result: done})
			}
			overBoth(t, peer, func(o over) {
				s := modern(o, &answerer{f: instant}, mcp.Options{})
				r, err := s.Call(o.Context(), mcp.Request{Method: "tools/call", Params: []byte(`{` + tt.call + `"name":"t"}`)})
				if err != nil || string(r.Result) != done || r.Rounds != 2 || r.ToolError {
					o.Fatalf("got %+v, %v", r, err)
				}
				got := params(o.T, o.peer, 1, "tools/call")
				if string(got["inputResponses"]) != tt.responses || string(got["requestState"]) != tt.state || string(got["name"]) != `"t"` {
					o.Errorf("sent %s", got)
				}
			})
		})
	}
}

// Wire tests 38, 39: who must not ask, and what must not be asked.
func TestInputThatMustNotBeAsked(t *testing.T) {
	asks := func(entry string) string { return `,"inputRequests":{"k":` + entry + `}` }
	form := asks(`{"method":"elicitation/create","params":{"message":"?"}}`)
	tests := []struct {
		name, method, capabilities, members string
	}{
		{"tools/list", "tools/list", string(every), askRoots},
		{"only a state, to a list", "tools/list", string(every), `,"requestState":"s"`},
		{"server/discover", "server/discover", string(every), askRoots},
		{"a method of a vendor", "x/y", string(every), askRoots},
		{"nothing", "tools/call", string(every), ``},
		{"nothing but null", "tools/call", string(every), `,"inputRequests":null,"requestState":null`},
		{"an array", "tools/call", string(every), `,"inputRequests":[{"method":"roots/list"}]`},
		{"the state is a number", "tools/call", string(every), askRoots + `,"requestState":7`},
		{"an entry is a text", "tools/call", string(every), asks(`"roots/list"`)},
		{"an entry without a method", "tools/call", string(every), asks(`{"params":{}}`)},
		{"a method that is no text", "tools/call", string(every), asks(`{"method":{}}`)},
		{"params are an array", "tools/call", string(every), asks(`{"method":"roots/list","params":[]}`)},
		{"ping", "tools/call", string(every), asks(`{"method":"ping"}`)},
		{"an unknown method", "tools/call", string(every), asks(`{"method":"no/such"}`)},
		{"nothing was declared", "tools/call", `{}`, form},
		{"another thing was declared", "tools/call", `{"roots":{},"sampling":{}}`, form},
		{"one of two was declared", "tools/call", `{"roots":{}}`, `,"inputRequests":{"r":{"method":"roots/list"},"k":{"method":"sampling/createMessage","params":{}}}`},
		{"url was not declared", "tools/call", `{"elicitation":{}}`, asks(`{"method":"elicitation/create","params":{"mode":"url","url":"https://a/"}}`)},
		{"form was not declared", "tools/call", `{"elicitation":{"url":{}}}`, form},
		{"tools were not declared", "tools/call", `{"sampling":{}}`, asks(`{"method":"sampling/createMessage","params":{"tools":[]}}`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			peer := func() *mcptest.Peer {
				p := &mcptest.Peer{}
				if tt.method != "server/discover" {
					p.On(tt.method, asksFor(tt.members), mcptest.Answer{Result: done})
				}
				return p
			}
			overBoth(t, peer, func(o over) {
				a, odd := &answerer{f: instant}, &mcptest.Anomalies{}
				s := modern(o, a, mcp.Options{Capabilities: json.RawMessage(tt.capabilities), OnAnomaly: odd.Tell})
				if tt.method == "server/discover" {
					o.peer.On(tt.method, asksFor(tt.members))
				}
				before := len(o.peer.Received())
				r, err := s.Call(o.Context(), mcp.Request{Method: tt.method, Params: []byte(`{"name":"t"}`)})
				wantFault(o.T, err, mcp.FaultInputRequired)
				if r.Result == nil || r.Rounds != 1 || len(o.peer.Received()) != before+1 || len(a.told()) != 0 || len(odd.Texts()) != 0 {
					o.Errorf("got %+v; told %v, anomalies %v", r, a.told(), odd.Texts())
				}
				wantOrder(o.T, r)
			})
		})
	}
}

// What a caller declares for one request by itself counts for that request.
func TestCapabilitiesOfOneRequest(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", asksFor(askRoots), mcptest.Answer{Result: done})
	}
	overBoth(t, peer, func(o over) {
		s := modern(o, &answerer{f: instant}, mcp.Options{Capabilities: json.RawMessage(`{}`)})
		req := mcp.Request{Method: "tools/call", Params: []byte(`{"name":"t","_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}`)}
		if r, err := s.Call(o.Context(), req); err != nil || r.Rounds != 2 {
			o.Errorf("got %+v, %v", r, err)
		}
	})
}

// Wire test 38: two rounds, the state changing with each; and the cap on them.
func TestRounds(t *testing.T) {
	var asks []mcptest.Answer
	for i := range 12 {
		asks = append(asks, asksFor(fmt.Sprintf(`%s,"requestState":"s%d"`, askRoots, i)))
	}
	tests := []struct{ asked, most, wantExchanges int }{
		{1, 0, 2}, {2, 0, 3}, {9, 0, 10}, {10, 0, 10}, {12, 0, 10}, {1, 1, 1}, {1, 2, 2}, {2, 2, 2}, {12, 12, 12}, {12, 13, 13},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d of at most %d", tt.asked, tt.most), func(t *testing.T) {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", append(asks[:tt.asked:tt.asked], mcptest.Answer{Result: done})...)
			}
			overBoth(t, peer, func(o over) { testRounds(o, tt.asked, tt.most, tt.wantExchanges) })
		})
	}
}

func testRounds(o over, asked, most, exchanges int) {
	o.Helper()
	a := &answerer{f: after(time.Second)}
	s := modern(o, a, mcp.Options{MaxRounds: most})
	r, err := s.Call(o.Context(), mcp.Request{Method: "tools/call", Params: []byte(`{"name":"t"}`), ResultBuf: make([]byte, 0, 4096)})
	if asked < exchanges {
		if err != nil || string(r.Result) != done {
			o.Errorf("got %s, %v", r.Result, err)
		}
	} else if e, ok := errors.AsType[*mcp.LimitError](err); !ok || e.Limit != mcp.LimitRounds || e.Max != int64(exchanges) {
		o.Errorf("error %v", err)
	}
	if sent := len(o.peer.Received("tools/call")); sent != exchanges || r.Rounds != sent {
		o.Errorf("%d exchanges, %d rounds, want %d", sent, r.Rounds, exchanges)
	}
	wantTrips(o.T, r, make([]time.Duration, exchanges)...)
	for i := 1; i < exchanges; i++ {
		if got, want := string(params(o.T, o.peer, i, "tools/call")["requestState"]), fmt.Sprintf(`"s%d"`, i-1); got != want {
			o.Errorf("exchange %d has the state %s, want %s", i, got, want)
		}
	}
	if len(a.told()) != exchanges-1 {
		o.Errorf("%d questions answered", len(a.told()))
	}
}
