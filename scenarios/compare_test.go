package scenarios_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbench/scenarios"
)

// offerOf is a server with a few things. It declares all but what is in without.
func offerOf(without ...string) *scenarios.Offer {
	has := func(method string) bool { return method != "ping" }
	return &scenarios.Offer{
		Version: "2026-07-28", Has: has,
		Declares: func(method string) bool { return has(method) && !slices.Contains(without, method) },
		Tools: map[string][]byte{
			"search": []byte(`{"type":"object","required":["q"],"properties":{"q":{"type":"string","minLength":2},"limit":{"type":"integer","maximum":10},
				"in":{"type":"array","maxItems":2,"items":{"enum":["a","b"]}},"at":{"type":"object","required":["x"],"properties":{"x":{"type":"number"}}}},"additionalProperties":false}`),
			"open":   []byte(`{"type":"object","properties":{"message":{"type":"string"}}}`),
			"one":    []byte(`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"c":{"type":"string"}}}`),
			"when":   []byte(`{"type":"object","if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}}`),
			"broken": []byte(`{"type":5}`),
			"never":  []byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer","format":"int32"}}}`),
		},
		Outputs: map[string][]byte{
			"one":   []byte(`{"type":5}`),
			"never": []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		},
		Prompts:   map[string][]scenarios.PromptArgument{"greet": {{Name: "name", Required: true}, {Name: "tone"}}},
		Resources: []string{"docs://a"},
		Templates: []string{"item://{id}", "page://{book}/p/{n}.md"},
	}
}

// compareSteps compares the steps of a flow, written in flow style, and returns the
// messages with their columns: steps are on line 1.
func compareSteps(t *testing.T, steps string, o *scenarios.Offer) (faults, warnings []string) {
	t.Helper()
	text := `x-s: {}
version: 1
servers: {it: {url: "http://h/"}, other: {url: "http://h/"}}
vars: {v: 1}
load: {groups: {g: {server: it, flow: f}, h: {server: other, flow: o}, twice: {server: it, flow: f}}}
flows:
  o: {steps: [{tools/call: {name: of-another-server}}]}
  called: {steps: [{tools/call: {name: in-called}}]}
  f:
    steps:
` + steps + "\n"
	s, err := scenarios.Load("s.yaml", []byte(text), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := mustCompile(t, s)
	fs, ws := s.Compare(p, "it", o)
	line := func(ps scenarios.Problems) (out []string) {
		for _, p := range ps {
			if p.Line == 0 || !strings.Contains(p.Excerpt, "^") {
				t.Errorf("%q has no place", p.Message)
			}
			out = append(out, strings.TrimPrefix(p.Place(), "s.yaml:")+" "+p.Message)
		}
		return out
	}
	return line(fs), line(ws)
}

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name, steps      string
		without          []string
		faults, warnings []string
	}{
		{name: "all is well", steps: `
      - tools/call: {name: search, arguments: {q: tea, limit: 3, in: [a], at: {x: 1.5}}}
      - prompts/get: {name: greet, arguments: {name: x}}
      - resources/read: {uri: "docs://a"}
      - resources/read: {uri: "item://5"}
      - resources/read: {uri: "page://b/p/5.md"}
      - completion/complete: {ref: {type: ref/prompt, name: greet}, argument: {name: tone, value: ""}}
      - completion/complete: {ref: {type: ref/resource, uri: "item://{id}"}, argument: {name: id, value: ""}}
      - tools/list: {}
      - subscribe: {uris: ["docs://a"], tools: true}`},
		{name: "unknown tool", steps: `
      - tools/call: {name: serach}
      - tools/call: {name: zzzzzzzz}`, faults: []string{
			`12:28 server "it" has no tool "serach" (did you mean "search"?)`,
			`13:28 server "it" has no tool "zzzzzzzz"; it has broken, never, one, open, search, when`,
		}},
		{name: "missing argument", steps: `
      - tools/call: {name: search}
      - tools/call: {name: search, arguments: {}}
      - tools/call: {name: search, arguments: {q: tea, at: {}}}`, faults: []string{
			`12:28 tool "search": missing property 'q'`,
			`13:36 tool "search": missing property 'q'`,
			`14:60 tool "search": at '/at': missing property 'x'`,
		}},
		{name: "mistyped arguments", steps: `
      - tools/call: {name: search, arguments: {q: 5, limit: "7", in: [a, c]}}
      - tools/call: {name: search, arguments: {q: t, limit: 11, in: [a, b, a], at: x}}`, faults: []string{
			`12:51 tool "search": at '/q': got number, want string`,
			`12:61 tool "search": at '/limit': got string, want integer`,
			`12:74 tool "search": at '/in/1': value must be one of 'a', 'b'`,
			`13:51 tool "search": at '/q': minLength: got 1, want 2`,
			`13:61 tool "search": at '/limit': maximum: got 11, want 10`,
			`13:69 tool "search": at '/in': maxItems: got 3, want 2`,
			`13:84 tool "search": at '/at': got string, want object`,
		}},
		{
			name: "unknown argument", steps: `
      - tools/call: {name: search, arguments: {q: tea, limti: 3}}
      - tools/call: {name: open, arguments: {mesage: x}}
      - tools/call: {name: open, arguments: {other: x}}`,
			faults:   []string{`12:56 tool "search": additional properties 'limti' not allowed (did you mean "limit"?)`},
			warnings: []string{`13:46 tool "open" has no argument "mesage" (did you mean "message"?)`},
		},
		{name: "expressions are not judged, what is beside them is", steps: `
      - tools/call: {name: search, arguments: {q: "${{ vars.v }}", limit: "${{ vars.v }}", in: ["${{ vars.v }}"], at: {x: "${{ vars.v }}"}}}
      - tools/call: {name: search, arguments: {limit: "x ${{ vars.v }}", in: ["${{ vars.v }}", a, b], zz: "${{ vars.v }}"}}
      - tools/call: {name: one, arguments: {c: "${{ vars.v }}"}}
      - tools/call: {name: when, arguments: {a: "${{ vars.v }}"}}
      - tools/call: {name: "${{ 'x' + string(vars.v) }}", arguments: {a: 1}}
      - resources/read: {uri: "docs://${{ vars.v }}"}`, faults: []string{
			`13:36 tool "search": missing property 'q'`,
			`13:78 tool "search": at '/in': maxItems: got 3, want 2`,
			`13:103 tool "search": additional properties 'zz' not allowed; it has at, in, limit, q`,
		}},
		{name: "a text that only looks like an expression is judged", steps: `
      - tools/call: {name: search, arguments: {q: tea, limit: "$${{ 1 }}"}}`, faults: []string{
			`12:63 tool "search": at '/limit': got string, want integer`,
		}},
		{name: "alternatives", steps: `
      - tools/call: {name: one, arguments: {c: x}}
      - tools/call: {name: when, arguments: {a: 1}}
      - tools/call: {name: broken, arguments: {a: 1}}
      - tools/call: {name: never, arguments: {a: x}}`, faults: []string{
			`12:33 tool "one": missing property 'a'; missing property 'b'`,
			`13:34 tool "when": missing property 'b'`,
			`15:50 tool "never": at '/a': got string, want integer`,
		}},
		{name: "prompts", steps: `
      - prompts/get: {name: gret}
      - prompts/get: {name: greet}
      - prompts/get: {name: greet, arguments: {name: x, ton: y}}
      - completion/complete: {ref: {type: ref/prompt, name: gret}, argument: {name: a, value: ""}}
      - completion/complete: {ref: {type: ref/prompt, name: greet}, argument: {name: a, value: ""}}`, faults: []string{
			`12:29 server "it" has no prompt "gret" (did you mean "greet"?)`,
			`13:29 prompt "greet" wants an argument "name"`,
			`15:61 server "it" has no prompt "gret" (did you mean "greet"?)`,
			`16:86 prompt "greet" has no argument "a"`,
		}, warnings: []string{`14:57 prompt "greet" has no argument "ton" (did you mean "tone"?)`}},
		{name: "resources that are not listed are no fault", steps: `
      - resources/read: {uri: "docs://b"}
      - resources/read: {uri: "page://b/p/5.txt"}
      - completion/complete: {ref: {type: ref/resource, uri: "itm://{id}"}, argument: {name: id, value: ""}}`, warnings: []string{
			`12:31 server "it" lists no resource "docs://b" (did you mean "docs://a"?)`,
			`13:31 server "it" lists no resource "page://b/p/5.txt"`,
			`14:62 server "it" lists no resource template "itm://{id}" (did you mean "item://{id}"?)`,
		}},
		{
			name: "not declared", without: []string{"prompts/get", "completion/complete", "notifications/resources/updated", "notifications/x"}, steps: `
      - prompts/get: {name: nobody}
      - completion/complete: {ref: {type: ref/prompt, name: nobody}, argument: {name: a, value: ""}}
      - subscribe: {uris: ["docs://a"], tools: true}
      - wait_for: {notification: x}`, faults: []string{
				`12:9 server "it" (2026-07-28) does not declare in its capabilities what prompts/get needs`,
				`13:9 server "it" (2026-07-28) does not declare in its capabilities what completion/complete needs`,
				`14:21 server "it" (2026-07-28) does not declare that it sends notifications/resources/updated`,
			}, warnings: []string{`15:34 server "it" (2026-07-28) does not declare that it sends notifications/x`},
		},
		{name: "absent from the version", steps: `
      - ping: {}
      - ping: {}
        when: protocol < "2026-07-28"`, warnings: []string{
			`12:9 ping does not exist in 2026-07-28, which server "it" speaks: the step is skipped`,
		}},
		{name: "valid_output of a tool without an outputSchema", steps: `
      - tools/call: {name: open}
        check: {shape: valid_output, other: "true"}
      - tools/call: {name: one}
        check: {shape: valid_output}
      - generate: {tool: open}
        check: {shape: valid_output}
      - tools/call: {name: never}
        check: {shape: valid_output}
      - generate: {tool: any}
        check: {shape: valid_output}`, faults: []string{
			`13:24 tool "open" of server "it" has no outputSchema, so valid_output has nothing to hold its results against; check them with expect: {schema: …} or with expressions`,
			`14:28 tool "one": missing property 'a'; missing property 'b'`,
			`15:24 valid_output: the outputSchema of tool "one" of server "it" cannot be used: schema: it is broken: at '/type': value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'; at '/type': got number, want array`,
			`17:24 tool "open" of server "it" has no outputSchema, so valid_output has nothing to hold its results against; check them with expect: {schema: …} or with expressions`,
		}},
		{name: "what may not be performed is warned of", steps: `
      - tools/call: {name: x1}
        when: protocol < "2026-07-28"
      - repeat: {while: iteration.index > 1, steps: [{tools/call: {name: x2}}]}`, warnings: []string{
			`12:28 server "it" has no tool "x1"; it has broken, never, one, open, search, when`,
			`14:74 server "it" has no tool "x2"; it has broken, never, one, open, search, when`,
		}},
		{name: "within control steps and called flows", steps: `
      - repeat: {count: 2, steps: [{random: [{steps: [{parallel: [{tools/call: {name: deep}}]}]}]}]}
      - flow: called`, faults: []string{
			`8:40 server "it" has no tool "in-called"; it has broken, never, one, open, search, when`,
			`12:87 server "it" has no tool "deep"; it has broken, never, one, open, search, when`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faults, warnings := compareSteps(t, tt.steps, offerOf(tt.without...))
			if diff := cmp.Diff(tt.faults, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPinnedVersionIsToldOnce: that a pinned version skips a step is told when the
// scenario is compiled, and not again by the comparison with the server.
func TestPinnedVersionIsToldOnce(t *testing.T) {
	s, err := scenarios.Load("s.yaml", []byte(`version: 1
servers: {it: {url: "http://h/", protocol: "2026-07-28"}}
load: {groups: {g: {}}}
flows: {f: {steps: [{ping: {}}, {tools/list: {}}]}}
`), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := mustCompile(t, s)
	faults, warnings := s.Compare(p, "it", offerOf())
	if len(p.Warnings) != 1 || len(faults)+len(warnings) != 0 {
		t.Errorf("compiled: %q; compared: %q, %q", p.Warnings, faults, warnings)
	}
}

// A list that could not be had says nothing of what is in it.
func TestCompareWithoutLists(t *testing.T) {
	o := offerOf()
	o.Tools, o.Prompts, o.Resources, o.Templates = nil, nil, nil, nil
	faults, warnings := compareSteps(t, `
      - tools/call: {name: x}
      - prompts/get: {name: x}
      - resources/read: {uri: "x:x"}
      - completion/complete: {ref: {type: ref/prompt, name: x}, argument: {name: a, value: ""}}`, o)
	if len(faults)+len(warnings) > 0 {
		t.Errorf("%q, %q", faults, warnings)
	}
}

func TestUpgrade(t *testing.T) {
	for _, tt := range []struct {
		text, err string
	}{
		{text: "# kept\nversion: 1\nanything: goes\n"},
		{text: "name: x\n", err: "s.yaml:1:1: the file names no version of the language: it starts with version: 1"},
		{text: "version: x\n", err: "s.yaml:1:10: the file names no version of the language: it starts with version: 1"},
		{text: "version: 0\n", err: "s.yaml:1:10: the file names no version of the language: it starts with version: 1"},
		{text: "version: 2\n", err: "s.yaml:1:10: version 2 is newer than this mcpbench, which reads version: 1; install a newer mcpbench"},
		{text: "- x\n", err: "s.yaml:1:1: the file names no version of the language: it starts with version: 1"},
		{text: "{", err: "s.yaml:1:1: not YAML"},
	} {
		out, from, err := scenarios.Upgrade("s.yaml", []byte(tt.text))
		if tt.err == "" {
			if err != nil || from != 1 || string(out) != tt.text {
				t.Errorf("%q: %q from %d, %v", tt.text, out, from, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("%q: %v, want %q", tt.text, err, tt.err)
		}
	}
}
