package mcp_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// toolsWith is a list of one tool with such properties in its input schema.
func toolsWith(properties string) string {
	return `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object","properties":{` + properties + `}}}]}`
}

// paramsOf are the Mcp-Param-* headers of what came last for tools/call.
func paramsOf(p *mcptest.Peer) []string {
	calls := p.Received("tools/call")
	var out []string
	for name, values := range calls[len(calls)-1].Header {
		if strings.HasPrefix(name, "Mcp-Param-") {
			out = append(out, name+"="+strings.Join(values, "|"))
		}
	}
	slices.Sort(out)
	return out
}

func withParams(t *testing.T, p *mcptest.Peer, engine mcp.Engine, a *mcptest.Anomalies) *mcp.Session {
	t.Helper()
	o := mcp.Options{Version: mcp.V20260728, ParamHeaders: &mcp.ParamHeaders{}}
	if a != nil {
		o.OnAnomaly = a.Tell
	}
	return connect(t, serveHTTP(t, p, engine), o)
}

// Wire test 27: arguments in headers, value by value.
func TestParamHeaderValues(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := (&mcptest.Peer{}).On("tools/list", mcptest.Answer{Result: toolsWith(
			`"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},"b":{"type":"boolean","x-mcp-header":"B"},` +
				`"o":{"type":"object","properties":{"deep":{"type":"string","x-mcp-header":"Deep"}}},"plain":{"type":"string"}`)})
		s := withParams(h.T, p, h.engine, nil)
		for arguments, want := range map[string][]string{
			`{"s":"eu","i":42,"b":true,"o":{"deep":"x"},"plain":"y"}`: {"Mcp-Param-B=true", "Mcp-Param-Deep=x", "Mcp-Param-I=42", "Mcp-Param-S=eu"},
			`{"s":"é"}`:                            {"Mcp-Param-S==?base64?w6k=?="},
			`{"s":"\u00e9"}`:                       {"Mcp-Param-S==?base64?w6k=?="},
			`{"s":" a"}`:                           {"Mcp-Param-S==?base64?IGE=?="},
			`{"s":"a\n"}`:                          {"Mcp-Param-S==?base64?YQo=?="},
			`{"s":"=?base64?x?="}`:                 {"Mcp-Param-S==?base64?PT9iYXNlNjQ/eD89?="},
			`{"s":""}`:                             {"Mcp-Param-S="},
			`{"i":-7}`:                             {"Mcp-Param-I=-7"},
			`{"i":7.0,"b":false}`:                  {"Mcp-Param-B=false", "Mcp-Param-I=7"},
			`{"i":9007199254740992}`:               nil, // beyond what a double holds
			`{"i":1.5,"b":"true","s":7}`:           nil, // of another kind
			`{"s":null,"i":null,"b":null,"o":[1]}`: nil,
			`{}`:                                   nil,
		} {
			if _, err := s.Call(h.Context(), mcp.Request{Method: "tools/call", Params: []byte(`{"name":"t","arguments":` + arguments + `}`)}); err != nil {
				h.Fatal(err)
			}
			if d := cmp.Diff(want, paramsOf(p)); d != "" {
				h.Errorf("%s (-want +got)\n%s", arguments, d)
			}
		}
	})
}

// Wire test 28: tools that break the rules get no headers, and are told of.
func TestParamHeaderRules(t *testing.T) {
	for properties, want := range map[string]string{
		`"a":{"type":"string","x-mcp-header":""}`:                                                                  "is no token",
		`"a":{"type":"string","x-mcp-header":"a b"}`:                                                               "is no token",
		`"a":{"type":"string","x-mcp-header":7}`:                                                                   "is no token",
		`"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}`:                        "is there twice",
		`"a":{"type":"number","x-mcp-header":"X"}`:                                                                 `on type "number"`,
		`"a":{"x-mcp-header":"X"}`:                                                                                 `on type ""`,
		`"a":{"type":"array","items":{"type":"string","x-mcp-header":"X"}}`:                                        `below "items"`,
		`"a":{"oneOf":[{"type":"string","x-mcp-header":"X"}]}`:                                                     `below "oneOf"`,
		`"a":{"not":{"properties":{"b":{"type":"string","x-mcp-header":"X"}}}}`:                                    `below "not"`,
		`"a":{"type":"object","properties":{"b":{"$defs":{"c":{"type":"string","x-mcp-header":"X"}}}}}`:            `below "$defs"`,
		`"a":{"type":"object","default":{"x-mcp-header":"X"},"properties":{"x-mcp-header":{"type":"string"}}}`:     "", // names and values are no schemas
		`"a":{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"string"}}}}},"b":true`: "",
	} {
		t.Run(properties, func(t *testing.T) {
			schema := `{"type":"object","properties":{` + properties + `}}`
			if err := mcp.HeaderRules([]byte(schema)); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("rules: %v, want %q", err, want)
			}
			synctest.Test(t, func(t *testing.T) {
				p := (&mcptest.Peer{}).On("tools/list", mcptest.Answer{Result: toolsWith(properties)})
				var a mcptest.Anomalies
				s := withParams(t, p, mcp.EngineFast, &a)
				if _, err := s.Call(t.Context(), mcp.Request{Method: "tools/call", Params: []byte(`{"name":"t","arguments":{"a":"v"}}`)}); err != nil {
					t.Fatal(err)
				}
				if got := paramsOf(p); got != nil {
					t.Errorf("headers %v", got)
				}
				if got := a.Counts()[mcp.AnomalyToolHeaders]; (got > 0) != (want != "") {
					t.Errorf("%d anomalies, want %q", got, want)
				}
			})
		})
	}
}

// Wire test 29: a call refused for its headers fails, the tools are listed once
// more, and later calls have the headers that fit.
func TestRelistAfterHeaderMismatch(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		refusal := mcptest.Answer{Status: 400, Error: `{"code":-32020,"message":"Mcp-Param-Region differs"}`}
		p := (&mcptest.Peer{}).On("tools/list",
			mcptest.Answer{Result: toolsWith(`"a":{"type":"string"}`)},
			mcptest.Answer{Result: toolsWith(`"a":{"type":"string","x-mcp-header":"Region"}`)}).
			On("tools/call", refusal, refusal, mcptest.Answer{Result: echoed})
		s := withParams(h.T, p, h.engine, nil)
		call := func() error {
			_, err := s.Call(h.Context(), mcp.Request{Method: "tools/call", Params: []byte(`{"name":"t","arguments":{"a":"eu"}}`)})
			return err
		}
		time.Sleep(2 * time.Second) // virtual: the list is not fresh any more
		wantCode(h.T, call(), -32020)
		wantCode(h.T, call(), -32020) // the list is on its way, or has just come
		synctest.Wait()
		if err := call(); err != nil {
			h.Error(err)
		}
		if got := paramsOf(p); !slices.Equal(got, []string{"Mcp-Param-Region=eu"}) {
			h.Errorf("headers %v", got)
		}
		if n := len(p.Received("tools/list")); n != 2 {
			h.Errorf("the tools were listed %d times", n)
		}
		if n := len(p.Received("tools/call")); n != 3 {
			h.Errorf("%d calls arrived, of 3 that were made", n)
		}
	})
}

func wantCode(t *testing.T, err error, code int64) {
	t.Helper()
	if want := fmt.Sprintf("JSON-RPC error %d", code); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The sessions of one server list its tools once; other versions, other
// transports and servers without tools not at all.
func TestToolsAreListedOnceForTheirHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &mcptest.Peer{}
		o := mcp.Options{Version: mcp.V20260728, ParamHeaders: &mcp.ParamHeaders{}}
		tr := p.HTTP(t)
		for range 3 {
			connect(t, tr, o)
		}
		if n := len(p.Received("tools/list")); n != 1 {
			t.Errorf("listed %d times", n)
		}
		legacy := &mcptest.Peer{}
		connect(t, legacy.HTTP(t), mcp.Options{Version: mcp.V20251125, ParamHeaders: &mcp.ParamHeaders{}})
		pipe := &mcptest.Peer{}
		connect(t, pipe.Stdio(t), o)
		if n := len(legacy.Received("tools/list")) + len(pipe.Received("tools/list")); n != 0 {
			t.Errorf("listed %d times where there are no such headers", n)
		}
	})
}

// Tools that cannot be listed are waited for once, by whoever opens a session
// meanwhile, and within the time that each has.
func TestToolsThatCannotBeListedHoldUpNoFurtherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := (&mcptest.Peer{}).On("tools/list", mcptest.Answer{Silent: true})
		o := mcp.Options{Version: mcp.V20260728, ParamHeaders: &mcp.ParamHeaders{}}
		tr := p.HTTP(t)
		began := time.Now()
		open := func(most, want time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			s, err := mcp.Connect(ctx, tr, o)
			if err != nil {
				t.Error(err)
				return
			}
			if took := time.Since(began); took != want {
				t.Errorf("opened after %v, want %v", took, want)
			}
			closeSession(t, s)
		}
		var opening sync.WaitGroup
		opening.Go(func() { open(time.Minute, 5*time.Second) })
		synctest.Wait()
		opening.Go(func() { open(time.Minute, 5*time.Second) })
		opening.Go(func() { open(time.Second, time.Second) })
		opening.Wait()
		open(time.Minute, 5*time.Second)
		if n := len(p.Received("tools/list")); n != 1 {
			t.Errorf("listed %d times", n)
		}
	})
}

// Wire test 31, and what a refused version says.
func TestHints(t *testing.T) {
	for answer, want := range map[string]string{
		`{"code":-32021,"message":"need","data":{"requiredCapabilities":{"sampling":{},"elicitation":{"form":{}}}}}`: "need; the client would have to declare elicitation, sampling",
		`{"code":-32022,"message":"no","data":{"supported":["2026-07-28","2025-11-25"],"requested":"2031-01-01"}}`:   "no; the server offers 2026-07-28, 2025-11-25",
		`{"code":-32021,"message":"need"}`: "need",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Status: 400, Error: answer})
			s := withParams(t, p, mcp.EngineFast, nil)
			_, err := s.Call(context.Background(), echo)
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if n := len(p.Received("tools/call")); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

// A line break in the name of a method used to end the header that carries it, so
// that what followed was a header of its own.
func TestMethodWithALineBreakAddsAHeader(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		p := &mcptest.Peer{}
		s := connect(h.T, serveHTTP(h.T, p, h.engine), mcp.Options{Version: mcp.V20260728})
		before := len(p.Received())
		const method = "x\r\nX-Evil: 1"
		_, err := s.Call(h.Context(), mcp.Request{Method: method})
		contains(h.T, err, "Mcp-Method", `x\r\n`)
		contains(h.T, s.Notify(h.Context(), method, nil), "Mcp-Method", `x\r\n`)
		if got := p.Received()[before:]; len(got) != 0 {
			h.Errorf("sent %+v", got)
		}
	})
}
