package scenarios_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpbench/scenarios"
)

func TestCheck(t *testing.T) {
	const toolOK = `{"content":[{"type":"text","text":"hello"},{"type":"resource","resource":{"uri":"a:b","text":"inner"}}],"isError":false,"structuredContent":{"sum":3,"items":[{"id":"x"}]},"_meta":{"k":1}}`
	for _, tt := range []struct {
		name, op, checks, result string
		failed                   uint32
	}{
		{"all hold", "tools/call: {name: x}", "{a: not result.isError, b: 'result.content[0].text == \"hello\"', c: result.structuredContent.sum == 3, d: len(result.structuredContent.items) > 0}", toolOK, 0},
		{"bits in order", "tools/call: {name: x}", "{a: result.isError, b: true, c: len(result.content) == 1, d: 'result.content[1].resource.text == \"inner\"'}", toolOK, 0b101},
		{"elapsed", "tools/call: {name: x}", "{fast: 'elapsed < duration(\"250ms\")', slow: 'elapsed > duration(\"1s\")'}", toolOK, 0b10},
		{"variables", "tools/call: {name: x}", "{v: vars.page == 20, s: session.index == 3, i: iteration.index == 7, p: 'protocol == \"2025-11-25\"'}", toolOK, 0},
		{"meta", "tools/call: {name: x}", "{m: result._meta.k == 1}", toolOK, 0},
		{"left out members", "tools/call: {name: x}", "{a: not result.isError, b: 'result.structuredContent == nil', c: len(result.content) == 0}", `{}`, 0},
		{"wrong shape fails all", "tools/call: {name: x}", "{a: true, b: not result.isError}", `{"content":"text"}`, 0b11},
		{"not JSON fails all", "tools/call: {name: x}", "{a: true}", `{`, 1},
		{"read", "resources/read: {uri: a}", "{a: 'result.contents[0].text startsWith \"res\"', b: 'result.contents[0].mimeType == \"text/plain\"'}", `{"contents":[{"uri":"a","mimeType":"text/plain","text":"resource 1"}]}`, 0},
		{"prompt", "prompts/get: {name: a}", "{a: 'result.messages[0].content.text == \"hi\"', b: 'result.messages[0].role == \"user\"'}", `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`, 0},
		{"tools", "tools/list: {}", "{a: 'any(result.tools, .name == \"echo\")', b: 'result.nextCursor == \"\"', c: 'result.tools[0].inputSchema.type == \"object\"'}", `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`, 0},
		{"resources", "resources/list: {}", "{a: 'result.resources[0].uri == \"a\"'}", `{"resources":[{"uri":"a","name":"n","size":10}]}`, 0},
		{"templates", "resources/templates/list: {}", "{a: 'result.resourceTemplates[0].uriTemplate == \"a{b}\"'}", `{"resourceTemplates":[{"uriTemplate":"a{b}","name":"n"}]}`, 0},
		{"prompts", "prompts/list: {}", "{a: 'result.prompts[0].arguments[0].required'}", `{"prompts":[{"name":"p","arguments":[{"name":"a","required":true}]}]}`, 0},
		{"completion", "completion/complete: {ref: {type: ref/prompt, name: a}, argument: {name: b, value: c}}", "{a: 'result.completion.values == [\"Ada\", \"Alan\"]', b: result.completion.total == 2}", `{"completion":{"values":["Ada","Alan"],"total":2,"hasMore":false}}`, 0},
		{"discover", "server/discover: {}", "{a: '\"2026-07-28\" in result.supportedVersions'}", `{"supportedVersions":["2026-07-28"]}`, 0},
		{"ping", "ping: {}", "{a: result._meta == nil}", `{}`, 0},
		{"level", "logging/setLevel: {level: info}", "{a: true}", `{}`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			step := stepOf(t, tt.op+"\ncheck: "+tt.checks)
			env := &scenarios.Env{Session: 3, Iteration: 7, Protocol: "2025-11-25"}
			for range 2 { // the second time on the same Env must see nothing of the first
				failed, err := step.Check(env, scenarios.Response{Result: []byte(tt.result), Elapsed: 100 * time.Millisecond})
				if err != nil || failed != tt.failed {
					t.Errorf("failed %b, error %v; want %b", failed, err, tt.failed)
				}
			}
		})
	}
}

func TestCheckForgetsThePreviousAnswer(t *testing.T) {
	step := stepOf(t, "tools/call: {name: x}\ncheck: {none: len(result.content) == 0}")
	env := &scenarios.Env{}
	for _, tt := range []struct {
		result string
		failed uint32
	}{{`{"content":[{"type":"text"}]}`, 1}, {`{}`, 0}} {
		if failed, err := step.Check(env, scenarios.Response{Result: []byte(tt.result)}); err != nil || failed != tt.failed {
			t.Errorf("%s: failed %d, error %v; want %d", tt.result, failed, err, tt.failed)
		}
	}
}

func TestCheckFailsAtRunTime(t *testing.T) {
	for name, tt := range map[string]struct{ check, want string }{
		"field of nothing": {"result.structuredContent.items[0].id == 1", "result.structuredContent.items[0].id == 1"},
		"index":            {"result.content[5].text == \"\"", "index out of range"},
		"not a bool":       {"result.structuredContent", "bool"},
	} {
		step := stepOf(t, "tools/call: {name: x}\ncheck:\n  a: "+tt.check)
		result := `{}`
		if name == "not a bool" {
			result = `{"structuredContent":"yes"}`
		}
		_, err := step.Check(&scenarios.Env{}, scenarios.Response{Result: []byte(result)})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v; want one line with %q", name, err, tt.want)
		}
	}
}

// TestExpressionsAreBounded has each of them refused for what it is: the turns of
// loops, the elements of lists and the bytes of texts bound the work, whatever the
// machine makes of it in seconds. What it allocates until then is bounded too.
func TestExpressionsAreBounded(t *testing.T) {
	const (
		turns, elements, text = "loops more than 200,000 times", "more than 200,000 elements of lists", "a text of more than 16 MiB"

		mostBytes = 128 << 20 // eight of the largest text
	)
	for name, tt := range map[string]struct{ check, bound string }{
		"nested loops":       {"let r = 1..100000; all(r, all(r, true))", turns},
		"unique of many":     {"len(uniq(1..20000)) > 0", "uniq takes lists of at most 3000 elements"},
		"a long list":        {"len(map(1..100000000, #)) > 0", elements},
		"doubling text":      {"let a = repeat(\"x\", 100000); let b = a+a+a+a+a+a+a+a+a+a; let c = b+b+b+b+b+b+b+b+b+b; let d = c+c+c+c+c+c+c+c+c+c; len(d) > 0", text},
		"doubling in a loop": {"len(reduce(1..100, #acc + #acc, \"x\")) > 0", text},
		"replace":            {"let a = repeat(\"x\", 100000); let b = replace(a, \"x\", a); len(replace(b, \"x\", a)) > 0", text},
		"join":               {"let a = repeat(\"x\", 100000); len(join(map(1..20000, a))) > 0", text},
		"toJSON":             {"let a = repeat(\"x\", 100000); len(toJSON(map(1..20000, a))) > 0", text},
	} {
		t.Run(name, func(t *testing.T) {
			text := "version: 1\nservers: {a: {url: http://h/}}\nload: {groups: {main: }}\nflows: {f: {steps: [{tools/call: {name: x}, check: {a: '" + tt.check + "'}}]}}\n"
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			step := mustCompile(t, mustLoad(t, text)).Flows[0].Steps[0]
			_, err := step.Check(&scenarios.Env{}, scenarios.Response{Result: []byte(`{}`)})
			runtime.ReadMemStats(&after)
			// With the race detector the turns of loops may take longer than their second.
			slow := tt.bound == turns && err != nil && strings.Contains(err.Error(), "longer than a second")
			if err == nil || !slow && !strings.Contains(err.Error(), tt.bound) {
				t.Errorf("error %v; want %s", err, tt.bound)
			}
			made := after.TotalAlloc - before.TotalAlloc
			if t.Logf("%d bytes allocated", made); made > mostBytes {
				t.Errorf("allocated %d bytes, want at most %d", made, mostBytes)
			}
		})
	}
}

func TestStepWithoutChecksDecodesNothing(t *testing.T) {
	step := stepOf(t, "tools/call: {name: x}")
	env, answer := &scenarios.Env{}, []byte("not JSON")
	if n := testing.AllocsPerRun(100, func() {
		if failed, err := step.Check(env, scenarios.Response{Result: answer}); failed != 0 || err != nil {
			t.Fatal(failed, err)
		}
	}); n != 0 {
		t.Errorf("allocates %v times", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	result := []byte(`{"content":[{"type":"text","text":"hello"}],"isError":false,"structuredContent":{"sum":3}}`)
	for name, checks := range map[string]string{
		"decode only": "{a: true}",
		"one":         "{a: not result.isError}",
		"three":       "{a: not result.isError, b: 'result.content[0].text startsWith \"he\"', c: 'elapsed < duration(\"1s\")'}",
	} {
		b.Run(name, func(b *testing.B) {
			step, env := stepOf(b, "tools/call: {name: x}\ncheck: "+checks), &scenarios.Env{}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := step.Check(env, scenarios.Response{Result: result}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
