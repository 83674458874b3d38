package scenarios_test

import (
	"strings"
	"testing"
	"time"

	"mcpbench/scenarios"
)

// now() used to be evaluated once, when the file was loaded, and no warning said
// that a seed does not repeat it.
func TestNowIsTheTimeOfTheStep(t *testing.T) {
	p := mustCompile(t, mustLoad(t, `version: 1
servers: {a: {url: http://h/}}
load: {groups: {main: {iterations: 5}}}
flows: {f: {steps: [{tools/call: {name: x, arguments: {at: "${{ now().UnixNano() }}"}}}]}}
`))
	var before string
	for range 2 {
		params, err := p.Flows[0].Steps[0].Render(nil, &scenarios.Env{})
		if err != nil {
			t.Fatal(err)
		}
		if string(params) == before {
			t.Errorf("the same time twice: %s", params)
		}
		before = string(params)
		for start := time.Now(); time.Since(start) == 0; { // a clock may be coarse
		}
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0].Message, "now()") {
		t.Errorf("warnings %v", p.Warnings)
	}
}
