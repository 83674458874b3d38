package scenarios_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// stepOf compiles one step given as block YAML, indented by nothing.
func stepOf(tb testing.TB, step string) *scenarios.Step {
	tb.Helper()
	text := "version: 1\nvars: {page: 20, who: ada, rate: 2.5, on: true, none: null, list: [1, two], map: {a: 1}, odd: \"q\\\"\\n\"}\n" +
		"servers: {a: {url: http://h/}}\nload: {groups: {main: }}\nflows:\n  f:\n    steps:\n      -" +
		strings.ReplaceAll("\n"+step, "\n", "\n        ") + "\n"
	s, err := scenarios.Load("bench.yaml", []byte(text), scenarios.LoadOptions{Env: environment(map[string]string{"QUOTE": `a"b`, "N": "7"})})
	if err != nil {
		tb.Fatalf("load: %v\n%s", err, text)
	}
	p, err := s.Compile()
	if err != nil {
		tb.Fatal(err)
	}
	return p.Flows[0].Steps[0]
}

func TestRender(t *testing.T) {
	for _, tt := range []struct{ name, step, want string }{
		{"ping", "ping: {}", `{}`},
		{"ping without value", "ping:", `{}`},
		{"list", "tools/list: {}", `{}`},
		{"list with cursor", "resources/list: {cursor: p2}", `{"cursor":"p2"}`},
		{"all pages is ours", "prompts/list: {all_pages: true}", `{}`},
		{"call without arguments", "tools/call: {name: x}", `{"name":"x","arguments":{}}`},
		{
			"all JSON types", "tools/call:\n  name: x\n  arguments: {s: text, i: 5, f: 2.50, b: true, n: null, l: [1, {a: b}], e: {}, q: \"5\"}",
			`{"name":"x","arguments":{"s":"text","i":5,"f":2.50,"b":true,"n":null,"l":[1,{"a":"b"}],"e":{},"q":"5"}}`,
		},
		{"numbers that JSON writes otherwise", "tools/call: {name: x, arguments: [0x1f]}", ""},
		{
			"YAML numbers", "tools/call:\n  name: x\n  arguments: {a: 0x1f, b: 0o17, c: +5, d: .5, e: 5., f: 1e3, g: -7, h: 007, i: 123456789012345678901234567890}",
			`{"name":"x","arguments":{"a":31,"b":15,"c":5,"d":0.5,"e":5,"f":1e3,"g":-7,"h":7,"i":123456789012345678901234567890}}`,
		},
		{
			"whole expressions keep their type", "tools/call:\n  name: x\n  arguments: {a: \"${{ vars.page }}\", b: \"${{ vars.rate }}\", c: \"${{ vars.on }}\", d: \"${{ vars.none }}\", e: \"${{ vars.list }}\", f: \"${{ vars.map }}\", g: \"${{ session.index }}\", h: \"${{ iteration.index * 2 }}\"}",
			`{"name":"x","arguments":{"a":20,"b":2.5,"c":true,"d":null,"e":[1,"two"],"f":{"a":1},"g":3,"h":14}}`,
		},
		{
			"text inside", "tools/call:\n  name: x\n  arguments: {a: \"<${{ vars.who }}>\", b: \"${{ session.index }}${{ iteration.index }}\", c: \"${{ protocol }} x\"}",
			`{"name":"x","arguments":{"a":"<ada>","b":"37","c":"2025-11-25 x"}}`,
		},
		{
			"escaping", "tools/call:\n  name: x\n  arguments: {a: \"in ${{ vars.odd }} out\", b: \"${{ vars.odd + string(session.index) }}\", c: \"é\\\\\\t${{ session.index }}\"}",
			`{"name":"x","arguments":{"a":"in q\"\n out","b":"q\"\n3","c":"é\\\t3"}}`,
		},
		{
			"environment", "tools/call:\n  name: x\n  arguments:\n    a: ${QUOTE}\n    b: ${N}\n    c: \"${N}\"\n    d: x${NONE:-y}z\n    e: $${N}\n    f: $${{ vars.page }}\n    g: ${NONE:-}\n",
			`{"name":"x","arguments":{"a":"a\"b","b":7,"c":"7","d":"xyz","e":"${N}","f":"${{ vars.page }}","g":null}}`,
		},
		{
			"braces in an expression", "tools/call:\n  name: x\n  arguments: {a: '${{ {\"k\": {\"l\": 1}} }}', b: '${{ \"}}\" }}'}",
			`{"name":"x","arguments":{"a":{"k":{"l":1}},"b":"}}"}}`,
		},
		{"expression as name", "tools/call: {name: \"tool_${{ iteration.index }}\"}", `{"name":"tool_7","arguments":{}}`},
		{"read", "resources/read: {uri: \"demo://text/${{ iteration.index % 5 + 1 }}\"}", `{"uri":"demo://text/3"}`},
		{
			"prompt arguments are text", "prompts/get: {name: p, arguments: {a: 5, b: \"${{ vars.page }}\", c: true}}",
			`{"name":"p","arguments":{"a":"5","b":"20","c":"true"}}`,
		},
		{
			"completion", "completion/complete: {ref: {type: ref/prompt, name: greet}, argument: {name: name, value: A}, context: {arguments: {lang: en}}}",
			`{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"A"},"context":{"arguments":{"lang":"en"}}}`,
		},
		{
			"completion of a template", "completion/complete: {ref: {type: ref/resource, uri: \"demo://item/{id}\"}, argument: {name: id, value: 1}}",
			`{"ref":{"type":"ref/resource","uri":"demo://item/{id}"},"argument":{"name":"id","value":"1"}}`,
		},
		{"level", "logging/setLevel: {level: warning}", `{"level":"warning"}`},
		{"discover", "server/discover: {}", `{}`},
		{
			"block text", "tools/call:\n  name: x\n  arguments:\n    a: |\n      one\n      two ${{ session.index }}\n    b: >-\n      folded\n      text",
			`{"name":"x","arguments":{"a":"one\ntwo 3\n","b":"folded text"}}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				return
			}
			env := &scenarios.Env{Session: 3, Iteration: 7, Protocol: "2025-11-25"}
			got, err := stepOf(t, tt.step).Render([]byte("prefix"), env)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != "prefix"+tt.want {
				t.Errorf("params\n got %s\nwant %s", got, tt.want)
			}
			if !json.Valid(got[len("prefix"):]) {
				t.Error("not valid JSON")
			}
		})
	}
}

func TestRenderDrawsBySeedGroupIterationOnly(t *testing.T) {
	step := stepOf(t, "tools/call:\n  name: x\n  arguments: {a: \"${{ randInt(1, 1000000) }}\", b: \"${{ uuid() }}\", c: \"${{ pick(vars.list) }}\", d: \"${{ randFloat() }}\"}")
	render := func(env *scenarios.Env) string {
		got, err := step.Render(nil, env)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	first := render(&scenarios.Env{Seed: 1, Iteration: 5})
	worker := &scenarios.Env{Seed: 1, Iteration: 4, Session: 9}
	render(worker)
	worker.Iteration = 5
	if got := render(worker); got != first {
		t.Errorf("another worker and session made %s, want %s", got, first)
	}
	seen := map[string]bool{first: true}
	for _, env := range []*scenarios.Env{{Seed: 2, Iteration: 5}, {Seed: 1, Iteration: 6}, {Seed: 1, Iteration: 5, Group: 1}, {Seed: 1}} {
		got := render(env)
		if seen[got] {
			t.Errorf("%+v repeats %s", env, got)
		}
		seen[got] = true
	}
	const want = `{"name":"x","arguments":{"a":`
	if !strings.HasPrefix(first, want) {
		t.Errorf("params %s, want prefix %s", first, want)
	}
}

func TestRandIntStaysInItsBounds(t *testing.T) {
	step := stepOf(t, "tools/call: {name: x, arguments: {a: \"${{ randInt(3, 5) }}\"}}")
	seen := map[string]int{}
	for i := range 300 {
		got, err := step.Render(nil, &scenarios.Env{Iteration: uint64(i)})
		if err != nil {
			t.Fatal(err)
		}
		seen[string(got)]++
	}
	for n := 3; n <= 5; n++ {
		if key := fmt.Sprintf(`{"name":"x","arguments":{"a":%d}}`, n); seen[key] < 50 {
			t.Errorf("%s came %d times of 300", key, seen[key])
		}
	}
	if len(seen) != 3 {
		t.Errorf("values %v, want three", seen)
	}
}

func TestRenderFailureLeavesTheBuffer(t *testing.T) {
	step := stepOf(t, "tools/call: {name: x, arguments: {a: \"${{ vars.list[iteration.index] + 1 }}\"}}")
	got, err := step.Render([]byte("abc"), &scenarios.Env{Iteration: 9})
	if err == nil || string(got) != "abc" {
		t.Errorf("rendered %q, error %v; want abc and an error", got, err)
	}
	if !strings.Contains(err.Error(), "vars.list[iteration.index] + 1") {
		t.Errorf("error %q does not name the expression", err)
	}
}

func TestStaticStepDoesNotAllocate(t *testing.T) {
	for _, step := range []*scenarios.Step{
		stepOf(t, "tools/call: {name: x, arguments: {a: 1, b: [x, y]}}"),
		stepOf(t, "tools/call: {name: x, arguments: {a: \"${{ vars.page }} is constant\"}}"),
		stepOf(t, "ping: {}"),
	} {
		if !step.Static() {
			t.Errorf("%s is not static", step.Params())
		}
		env := &scenarios.Env{}
		dst := make([]byte, 0, 1024)
		if n := testing.AllocsPerRun(100, func() {
			if _, err := step.Render(dst, env); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s allocates %v times", step.Params(), n)
		}
	}
}

func TestHeaderTemplate(t *testing.T) {
	p := mustCompile(t, mustLoad(t, "version: 1\nvars: {a: b}\nservers: {a: {url: http://h/, headers: {T: \"t-${{ session.index % 4 }}-${{ vars.a }}\", P: plain}}}\nload: {groups: {main: }}\nflows: {f: {steps: [{ping: }]}}\n"))
	for i, want := range []string{"t-2-b", "plain"} {
		got, err := p.Servers[0].Headers[i].Value.Render(&scenarios.Env{Session: 6})
		if err != nil || got != want {
			t.Errorf("header %d is %q, %v; want %q", i, got, err, want)
		}
	}
	if got, err := scenarios.Text("x").Render(&scenarios.Env{}); got != "x" || err != nil {
		t.Errorf("Text: %q, %v", got, err)
	}
}

func BenchmarkRender(b *testing.B) {
	for name, step := range map[string]string{
		"static": "tools/call: {name: x, arguments: {a: 1}}",
		"one":    "tools/call: {name: x, arguments: {a: \"${{ iteration.index }}\"}}",
		"three":  "tools/call: {name: x, arguments: {a: \"${{ iteration.index }}\", b: \"x ${{ session.index }}\", c: \"${{ randInt(1, 9) }}\"}}",
	} {
		b.Run(name, func(b *testing.B) {
			s, env, dst := stepOf(b, step), &scenarios.Env{}, make([]byte, 0, 1024)
			b.ReportAllocs()
			for b.Loop() {
				env.Iteration++
				if _, err := s.Render(dst, env); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStep is what the scenario costs a step, in the table of docs/measurement.md.
func BenchmarkStep(b *testing.B) {
	expressions := func(n int) string {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf("a%d: \"${{ iteration.index + %d }}\"", i, i))
		}
		return "tools/call: {name: x, arguments: {" + strings.Join(parts, ", ") + "}}"
	}
	answer := []byte(`{"content":[{"type":"text","text":"hello"}],"isError":false,"structuredContent":{"sum":3}}`)
	tools, err := scenarios.NewTools([]json.RawMessage{[]byte(`{"tools":[{"name":"x","inputSchema":{"type":"object"},` +
		`"outputSchema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}}]}`)}, false)
	if err != nil {
		b.Fatal(err)
	}
	for _, tt := range []struct{ name, step string }{
		{"no expression", "tools/call: {name: x, arguments: {a: 1}}"},
		{"1 expression", expressions(1)},
		{"3 expressions", expressions(3)},
		{"10 expressions", expressions(10)},
		{"check that only decodes", "tools/call: {name: x}\ncheck: {a: true}"},
		{"1 check", "tools/call: {name: x}\ncheck: {a: not result.isError}"},
		{"1 save", "tools/call: {name: x}\nsave: {a: result.structuredContent.sum}"},
		{"valid_output", "tools/call: {name: x}\ncheck: {a: valid_output}"},
		{"schema", "tools/call: {name: x}\nexpect: {schema: {type: object, required: [content]}}"},
	} {
		b.Run(tt.name, func(b *testing.B) {
			s, env, dst := stepOf(b, tt.step), &scenarios.Env{Tools: tools}, make([]byte, 0, 1024)
			b.ReportAllocs()
			for b.Loop() {
				env.Iteration++
				perform(b, s, env, dst, answer)
			}
		})
	}
}

// perform does what a step does beside its request.
func perform(b *testing.B, s *scenarios.Step, env *scenarios.Env, dst, answer []byte) {
	b.Helper()
	env.Begin(nil)
	if _, err := s.Render(dst, env); err != nil {
		b.Fatal(err)
	}
	if s.Expects() {
		if o, why, err := s.Expect(env, metrics.OK, 0, answer); o != metrics.OK || err != nil {
			b.Fatal(o, why, err)
		}
	}
	if failed, err := s.Check(env, scenarios.Response{Result: answer, OK: true}); failed != 0 || err != nil {
		b.Fatal(failed, err)
	}
}
