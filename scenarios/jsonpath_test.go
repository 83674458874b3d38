package scenarios_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/theory/jsonpath"

	"mcpbench/scenarios"
)

// TestPathsIntoLargeResultsAreBounded: what a path looks at is counted, so that a
// server's result cannot make a short path take minutes or gigabytes.
func TestPathsIntoLargeResultsAreBounded(t *testing.T) {
	const depth = 9000 // JSON of 10,000 levels is refused
	deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	wide := "[" + strings.Repeat("1,", 1<<20) + "1]"
	var rows strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&rows, `{"id":%d,"text":"%s","list":[{"a":1},{"a":2}]},`, i, strings.Repeat("x", 4000))
	}
	table := "[" + strings.TrimSuffix(rows.String(), ",") + "]"
	const visits, found = "jsonpath looks at more than 1,000,000 values", "jsonpath finds more than 200,000 values"
	for _, tt := range []struct{ name, result, check, fault string }{
		{"each value of a deep list with all within", deep, `len(jsonpath(result.a, "$..*..*")) > 0`, found},
		{"three times", deep, `len(jsonpath(result.a, "$..*..*..*")) > 0`, found},
		{"once is well", deep, fmt.Sprintf(`len(jsonpath(result.a, "$..*")) == %d`, depth-1), ""},
		{"a filter that looks into each", deep, `len(jsonpath(result.a, "$..[?@..*]")) > 0`, visits},
		{"a filter from the root", table, `len(jsonpath(result.a, "$[?$..id]")) > 0`, visits},
		{"texts from the root", table, `len(jsonpath(result.a, "$[?search($[0].text, 'y')]")) > 0`, visits},
		{"all of a wide list", wide, `len(jsonpath(result.a, "$[*]")) > 0`, visits},
		{"the same many times", table, `len(jsonpath(result.a, "$[*,*,*,*,*][*,*,*,*,*]..[*,*]")) > 0`, found},
		{"in a loop", table, `all(result.a, len(jsonpath(result.a, "$..id")) > 0)`, visits},
		{"a common filter", table, `len(jsonpath(result.a, "$[?@.id < 10 && @.list[?@.a == 1]]")) == 10`, ""},
		{"texts of each", table, `len(jsonpath(result.a, "$[?match(@.text, 'x*')]")) == 2000`, ""},
		{"of each its own", table, `all(result.a, len(jsonpath(#, "$..a")) == 2)`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			step := stepOf(t, "request: {method: x}\ncheck:\n  a: '"+strings.ReplaceAll(tt.check, "'", "''")+"'")
			failed, err := step.Check(&scenarios.Env{}, scenarios.Response{Result: []byte(`{"a":` + tt.result + `}`)})
			switch {
			case tt.fault == "" && (err != nil || failed != 0):
				t.Errorf("failed %d, error %v", failed, err)
			case tt.fault != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.fault)):
				t.Errorf("error %v; want %s", err, tt.fault)
			}
		})
	}
}

// TestPathsFindWhatTheLibraryFinds holds the bounded walk against the library's own.
func TestPathsFindWhatTheLibraryFinds(t *testing.T) {
	const text = `{"a":[{"b":1,"c":{"d":[1,2,3,{"b":4}]}},{"b":"x"},[],null],"e":"f:g"}`
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"$", "$.a", "$.a[*].b", "$..b", "$.a[0]..d[1:3]", "$.a[-2,0].b", "$.a[?@.b]", "$.a[?@.b == 1].c.d[?@ > 1]",
		"$..[?@.b == 4].b", "$.nope", "$.a[0].c.d[::2]", "$[?@ == 'f:g']", "$.a[?length(@.b) == 1].b", "$.a[?$.e].b", "$..d..b",
	} {
		step := stepOf(t, "request: {method: x}\nsave: {found: 'jsonpath(result, \""+strings.ReplaceAll(path, "'", "''")+"\")'}")
		env := &scenarios.Env{}
		if _, err := step.Check(env, scenarios.Response{OK: true, Result: []byte(text)}); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if diff := cmp.Diff([]any(jsonpath.MustParse(path).Select(value)), env.Saved()["found"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}
