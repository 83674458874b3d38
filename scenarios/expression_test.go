package scenarios_test

import (
	"strings"
	"testing"

	"mcpbench/scenarios"
)

// TestSumsOfUnknownTypes adds members of structuredContent, whose types are
// known only when the answer is there.
func TestSumsOfUnknownTypes(t *testing.T) {
	const answer = `{"structuredContent":{"n":2,"f":0.5,"s":"ab","l":[1],"z":null}}`
	for _, tt := range []struct{ check, fault string }{
		{"result.structuredContent.n + 1 == 3", ""},
		{"result.structuredContent.n + result.structuredContent.f == 2.5", ""},
		{"result.structuredContent.s + result.structuredContent.s == \"abab\"", ""},
		{"result.structuredContent.s + \"c\" == \"abc\"", ""},
		{"result.structuredContent.s + result.structuredContent.n == nil", "cannot add string and float64"},
		{"result.structuredContent.l + result.structuredContent.l == nil", "cannot add a list and a list"},
		{"result.structuredContent.z + result.structuredContent.n == nil", "cannot add nil and float64"},
		{"string(result.structuredContent.n) + \"x\" == \"2x\"", ""},
		{"elapsed + duration(\"1s\") > duration(\"999ms\")", ""},
		{"replace(result.structuredContent.s, \"a\", \"c\") == \"cb\"", ""},
		{"join(split(\"a,b\", \",\"), \"-\") == \"a-b\"", ""},
		{"toJSON(result.structuredContent.l) contains \"1\"", ""},
		{"toBase64(\"ab\") == \"YWI=\"", ""},
		{"sum(map(1..4, # + 1)) == 14", ""},
	} {
		step := stepOf(t, "tools/call: {name: x}\ncheck:\n  a: '"+tt.check+"'")
		failed, err := step.Check(&scenarios.Env{}, scenarios.Response{Result: []byte(answer)})
		switch {
		case tt.fault == "" && (err != nil || failed != 0):
			t.Errorf("%s: failed %d, error %v", tt.check, failed, err)
		case tt.fault != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.fault)):
			t.Errorf("%s: error %v; want %s", tt.check, err, tt.fault)
		}
	}
}

func TestValuesFailAtRunTime(t *testing.T) {
	for _, tt := range []struct{ value, want string }{
		{"${{ randInt(iteration.index, -5) }}", "randInt(0, -5): the second number must not be less than the first"},
		{"${{ pick(filter(vars.list, false)) }}", "pick of an empty list"},
		{"a ${{ vars.list[iteration.index + 5] }} b", "index out of range"},
		{"a ${{ filter(vars.list, false)[0] ?? nil }} b", "index out of range"},
		{"${{ 1 / iteration.index }}", "+Inf is no number that JSON has"},
		{"a ${{ get(vars.list, iteration.index + 9) }} b", "nothing (nil) cannot stand inside a text"},
		{"a ${{ iteration.index == 0 ? vars.list : 1 }} b", "a list cannot stand inside a text"},
	} {
		step := stepOf(t, "tools/call:\n  name: x\n  arguments: {a: \""+tt.value+"\"}")
		if _, err := step.Render(nil, &scenarios.Env{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v; want %s", tt.value, err, tt.want)
		}
	}
}

func TestHeaderOfTwoLinesIsRefused(t *testing.T) {
	p := mustCompile(t, mustLoad(t, "version: 1\nvars: {list: [\"a\\nb\", c]}\nservers: {a: {url: http://h/, headers: {T: \"${{ vars.list[session.index] }}\"}}}\nload: {groups: {main: }}\nflows: {f: {steps: [{ping: }]}}\n"))
	h := p.Servers[0].Headers[0].Value
	if _, err := h.Render(&scenarios.Env{}); err == nil || !strings.Contains(err.Error(), "a header has one line") {
		t.Errorf("error %v", err)
	}
	if got, err := h.Render(&scenarios.Env{Session: 1}); err != nil || got != "c" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestYAMLForms(t *testing.T) {
	step := stepOf(t, "tools/call:\n  name: !!str 5\n  ? arguments\n  : {a: !!str true, b: &x [1], c: *x}")
	got, err := step.Render(nil, &scenarios.Env{})
	if want := `{"name":"5","arguments":{"a":"true","b":[1],"c":[1]}}`; err != nil || string(got) != want {
		t.Errorf("params %s, %v; want %s", got, err, want)
	}
	for _, tt := range []struct{ line, want string }{
		{"x-a: !!int 5", "tag !!int: only !!str is known"},
		{"x-a: !!str [1]", "unexpected scalar value type"},
		{"x-a: !!str {a: 1}", "unexpected scalar value type"},
		{"[a]: b", "found an invalid key for this map"},
		{"<<: 5", "<< wants a map"},
	} {
		_, err := scenarios.Load("b.yaml", []byte("version: 1\nload: {groups: {main: }}\nflows: {f: {steps: [{ping: }]}}\n"+tt.line+"\n"), scenarios.LoadOptions{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v; want %s", tt.line, err, tt.want)
		}
	}
}

func TestUnknownBundledScenario(t *testing.T) {
	_, err := scenarios.LoadBundled("@quikstart", scenarios.LoadOptions{})
	const want = `there is no bundled scenario @quikstart (did you mean "quickstart"?); there are: @completion, @head-of-line, @logging, @ping, @prompts, @quickstart, @resources, @tools`
	if err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
}
