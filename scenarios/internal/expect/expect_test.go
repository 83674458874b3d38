package expect_test

import (
	"errors"
	"strings"
	"testing"

	"mcpbench/metrics"
	"mcpbench/scenarios/internal/expect"
)

const toolResult = `{"content":[{"type":"text","text":"Köln: 21 °C\n\"sunny\""},{"type":"resource","resource":{"uri":"a://b","text":"second"},"annotations":{"text":"no"}},{"type":"image","data":"AA=="}],"structuredContent":{"city":"Köln","degrees":21.0,"hours":[{"at":1,"id":"x1"},{"at":2,"id":"x2"}]},"isError":false,"_meta":{"t":5}}`

func TestTest(t *testing.T) {
	golden := func(file string, ignore ...string) func() (*expect.Expectation, error) {
		return func() (*expect.Expectation, error) { return expect.CompileGolden([]byte(file), ignore) }
	}
	with := func(f func([]byte) (*expect.Expectation, error), text string) func() (*expect.Expectation, error) {
		return func() (*expect.Expectation, error) { return f([]byte(text)) }
	}
	text := func(f func(string) (*expect.Expectation, error), text string) func() (*expect.Expectation, error) {
		return func() (*expect.Expectation, error) { return f(text) }
	}
	for _, tt := range []struct {
		name    string
		compile func() (*expect.Expectation, error)
		result  string
		want    string // a part of the failure; "" holds
	}{
		{"golden itself", golden(toolResult), toolResult, ""},
		{"golden in another order and with other numbers", golden(`{"b": 1.50, "a": [1e2, 0, -0.0, 1E-1]}`), `{"a":[100,-0,0.0,0.1],"b":15e-1}`, ""},
		{"golden against big numbers", golden(`[12345678901234567890]`), `[12345678901234567891]`, "/0: want 12345678901234567890, got 12345678901234567891"},
		{"golden with a change", golden(`{"a":{"b/c":[1,"x"]}}`), `{"a":{"b/c":[1,"y"]}}`, `/a/b~1c/1: want "x", got "y"`},
		{"golden with another type", golden(`{"a":1}`), `{"a":"1"}`, `/a: want 1, got "1"`},
		{"golden with a member missing", golden(`{"a":1,"b":2}`), `{"a":1}`, `/b: want 2, got nothing`},
		{"golden with a member more", golden(`{"a":1}`), `{"a":1,"b":null}`, `/b: want nothing, got null`},
		{"golden with an item missing", golden(`[1,2]`), `[1]`, `/1: want 2, got nothing`},
		{"golden of another kind", golden(`{}`), `[]`, `result: want an object of 0: , got a list of 0`},
		{"golden, first differences", golden(`[1,1,1,1,1,1,1,1]`), `[2,2,2,2,2,2,2,2]`, `/4: want 1, got 2; 3 more`},
		{"golden, a late difference of long texts", golden(`["` + strings.Repeat("x", 500) + `a"]`), `["` + strings.Repeat("x", 500) + `b"]`, `/0: want "…xxxxxxxxxxxxxxxxxxxxa", got "…xxxxxxxxxxxxxxxxxxxxb"`},
		{"golden, ignored", golden(`{"a":1,"_meta":{"t":1}}`, "/_meta"), `{"a":1,"_meta":{"t":2,"u":3}}`, ""},
		{"golden, ignored and missing", golden(`{"a":1,"_meta":{}}`, "/_meta"), `{"a":1}`, ""},
		{"golden, ignored and more", golden(`{"a":1}`, "/_meta"), `{"a":1,"_meta":{}}`, ""},
		{"golden, ignored below lists", golden(`{"content":[{"id":1,"t":"a"},{"id":2,"t":"b"}]}`, "/content/*/id"), `{"content":[{"id":8,"t":"a"},{"t":"b"}]}`, ""},
		{"golden, not all ignored", golden(`{"content":[{"id":1,"t":"a"}]}`, "/content/*/id"), `{"content":[{"id":8,"t":"c"}]}`, `/content/0/t: want "a", got "c"`},
		{"golden, all items ignored", golden(`{"content":[]}`, "/content/*"), `{"content":[1,2]}`, ""},
		{"golden, a star and a name", golden(`{"a":{"x":1,"y":1},"b":{"x":1,"y":1}}`, "/*/x", "/a/y"), `{"a":{"x":2,"y":2},"b":{"x":2,"y":2}}`, `/b/y: want 1, got 2`},
		{"golden, escaped pointer", golden(`{"a/b":{"~":1}}`, "/a~1b/~0"), `{"a/b":{"~":2}}`, ""},
		{"golden, no JSON", golden(`{}`), `{`, "result: it is not JSON"},

		{"schema", with(expect.CompileSchema, `{"type":"object","required":["content"],"properties":{"content":{"type":"array","minItems":1}}}`), toolResult, ""},
		{"schema does not fit", with(expect.CompileSchema, `{"properties":{"content":{"items":{"required":["annotations"]}}}}`), toolResult, "result does not fit the schema: at '/content/0': missing property 'annotations'; at '/content/2'"},
		{"schema with formats", with(expect.CompileSchema, `{"properties":{"at":{"format":"date-time"}}}`), `{"at":"now"}`, "'now' is not valid date-time"},
		{"schema, a number the validator panics on", with(expect.CompileSchema, `{"properties":{"n":{"minimum":1}}}`), `{"n":1e999999999}`, "beyond what programs exchange"},
		{"output", with(expect.CompileOutput, `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`), toolResult, ""},
		{"output does not fit", with(expect.CompileOutput, `{"properties":{"city":{"type":"integer"}}}`), toolResult, "structuredContent does not fit the schema: at '/city': got string, want integer"},
		{"output missing", with(expect.CompileOutput, `{"type":"object"}`), `{"content":[]}`, "no structuredContent"},
		{"output of an error", with(expect.CompileOutput, `{"type":"object"}`), `{"content":[],"isError":true}`, ""},
		{"output null", with(expect.CompileOutput, `{"type":"object"}`), `{"structuredContent":null}`, "at '': got null, want object"},
		{"output, formats are annotations", with(expect.CompileOutput, `{"properties":{"at":{"format":"date-time"}}}`), `{"structuredContent":{"at":"now"}}`, ""},
		{"output of no object", with(expect.CompileOutput, `{}`), `[]`, "no JSON object"},

		{"text", text(expect.CompileText, "21 °C\n\"sunny\"\nsecond"), toolResult, ""},
		{"text of descriptions is not read", text(expect.CompileText, "no"), toolResult, `text of the result does not contain "no", but is "Köln: 21 °C\n\"sunny\"\nsecond"`},
		{"text of a resource", text(expect.CompileText, "a\tb"), `{"contents":[{"uri":"x://y","text":"a\tb"}]}`, ""},
		{"text of a prompt", text(expect.CompileText, "hello"), `{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}`, ""},
		{"text of another result", text(expect.CompileText, `"tools":[]`), `{"tools":[]}`, ""},
		{"text of no text", text(expect.CompileText, "x"), `{"content":null}`, `but is ""`},
		{"text of a text that is none", text(expect.CompileText, "x"), `{"content":[{"text":{"text":"x"}}]}`, `but is ""`},
		{"matches", text(expect.CompileMatches, `(?i)köln: \d+`), toolResult, ""},
		{"matches not", text(expect.CompileMatches, `^\d+$`), toolResult, `does not match "^\\d+$", but is`},

		{"contains", with(expect.CompileContains, `{"structuredContent":{"degrees":21,"hours":[{"at":2}]}}`), toolResult, ""},
		{"contains in any order", with(expect.CompileContains, `{"a":[2,1,1]}`), `{"a":[1,2,3]}`, ""},
		{"contains not", with(expect.CompileContains, `{"structuredContent":{"degrees":22,"hours":[{"at":3}]}}`), toolResult, "/structuredContent/degrees: want 22, got 21.0; /structuredContent/hours: want an item with an object of 1: at, got none in 2 items"},
		{"contains no such member", with(expect.CompileContains, `{"a":{"b":null}}`), `{"a":{}}`, "/a/b: want null, got nothing"},
		{"contains another kind", with(expect.CompileContains, `{"a":{}}`), `{"a":[]}`, "/a: want an object of 0: , got a list of 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := tt.compile()
			if err != nil {
				t.Fatal(err)
			}
			got := e.Test([]byte(tt.result))
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) || len(got) > 500 || strings.Contains(got, "\n") {
				t.Errorf("failure %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMistakesAreFound(t *testing.T) {
	golden := func(file string, ignore ...string) error {
		_, err := expect.CompileGolden([]byte(file), ignore)
		return err
	}
	outcomes := func(names ...string) error {
		_, err := expect.CompileOutcomes(names)
		return err
	}
	other := func(_ *expect.Expectation, err error) error { return err }
	for _, tt := range []struct {
		err  error
		want string
		part string
	}{
		{golden(`{"a":`), "golden: it is not JSON", "golden"},
		{golden(`{"a":1e1000}`), "golden: it has the number 1e1000", "golden"},
		{golden(`{}`, "/a", "b"), `ignore[1]: "b" is no JSON pointer: it must begin with /`, "ignore"},
		{golden(`{}`, ""), `ignore[0]: "" is no JSON pointer`, "ignore"},
		{golden(`{}`, "/a~2"), `ignore[0]: "/a~2" is no JSON pointer: ~ is written ~0`, "ignore"},
		{other(expect.CompileSchema([]byte(`{"type":"objekt"}`))), "schema: it is broken: at '/type'", "schema"},
		{other(expect.CompileSchema([]byte(`{"$ref":"https://example.com/s.json"}`))), "is another document", "schema"},
		{other(expect.CompileOutput([]byte(`{"type":5}`))), "schema: it is broken: at '/type'", "schema"},
		{other(expect.CompileText("")), "contains: an empty text", "contains"},
		{other(expect.CompileContains([]byte(`[1]`))), "contains: it is neither", "contains"},
		{other(expect.CompileContains([]byte(`{`))), "contains: it is not JSON", "contains"},
		{other(expect.CompileMatches("a(b")), "matches: error parsing regexp: missing closing ): `a(b`", "matches"},
		{outcomes(), "outcome[0]: it names none", "outcome"},
		{outcomes("ok", "tool_eror"), `outcome[1]: "tool_eror" is no outcome that can be expected (did you mean "tool_error"?)`, "outcome"},
		{outcomes("client_error"), `"client_error" is no outcome that can be expected`, "outcome"},
		{outcomes("tool_error:5"), "tool_error has no code", "outcome"},
		{outcomes("rpc_error:x"), `"x" is no JSON-RPC error code`, "outcome"},
		{outcomes("http_error:"), `"" is no HTTP status`, "outcome"},
		{outcomes("rpc_error:99999999999"), "is no JSON-RPC error code", "outcome"},
	} {
		var part *expect.PartError
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) || !errors.As(tt.err, &part) || part.Part != tt.part {
			t.Errorf("error %v, want %s", tt.err, tt.want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	o, err := expect.CompileOutcomes([]string{"tool_error", "rpc_error:-32602", "http_error:429"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		outcome metrics.Outcome
		code    int32
		want    bool
	}{
		{metrics.ToolError, 0, true},
		{metrics.RPCError, -32602, true},
		{metrics.RPCError, -32603, false},
		{metrics.HTTPError, 429, true},
		{metrics.HTTPError, 500, false},
		{metrics.OK, 0, false},
		{metrics.Outcome(250), 0, false},
	} {
		if got := o.Match(tt.outcome, tt.code); got != tt.want {
			t.Errorf("%v:%d expected: %v", tt.outcome, tt.code, got)
		}
	}
}

func TestTextsAreReadWithoutAllocating(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	text, err := expect.CompileText("second")
	if err != nil {
		t.Fatal(err)
	}
	matches, err := expect.CompileMatches("second$")
	if err != nil {
		t.Fatal(err)
	}
	golden, err := expect.CompileGolden([]byte(toolResult), nil)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := expect.CompileOutcomes([]string{"rpc_error:-32602"})
	if err != nil {
		t.Fatal(err)
	}
	result := []byte(toolResult)
	if n := testing.AllocsPerRun(200, func() {
		if text.Test(result) != "" || matches.Test(result) != "" || golden.Test(result) != "" || !outcomes.Match(metrics.RPCError, -32602) {
			t.Error("does not hold")
		}
	}); n >= 1 { // a collection may empty the pool
		t.Errorf("%v allocations", n)
	}
}
