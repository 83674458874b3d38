package scenarios_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
	"mcpbench/scenarios"
)

const withAbort = `version: 1
servers: {s: {url: "http://127.0.0.1:9/mcp"}}
load: {groups: {g: {duration: 1m}}}
flows: {f: {steps: [{ping: {}}]}}
thresholds: [{expr: "p99(latency) < 250ms", abort: ABORT}]
`

func loadAbort(t *testing.T, abort string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Load("a.yaml", []byte(strings.Replace(withAbort, "ABORT", abort, 1)), scenarios.LoadOptions{
		Env: environment(map[string]string{"ON": "true", "WINDOW": "7s"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAbortOfAThreshold(t *testing.T) {
	schema := schemaOf(t)
	for abort, want := range map[string]*metrics.Abort{
		"true":                       {After: 10 * time.Second, Window: 10 * time.Second},
		`"${ON}"`:                    {After: 10 * time.Second, Window: 10 * time.Second},
		"false":                      nil,
		"{}":                         {After: 10 * time.Second, Window: 10 * time.Second},
		"{window: 3s}":               {After: 3 * time.Second, Window: 3 * time.Second},
		"{after: 0s}":                {Window: 10 * time.Second},
		"{after: 1500ms}":            {After: 1500 * time.Millisecond, Window: 10 * time.Second},
		"{after: 30s, window: 1s}":   {After: 30 * time.Second, Window: time.Second},
		`{window: "${WINDOW}"}`:      {After: 7 * time.Second, Window: 7 * time.Second},
		"{after: 5s, window: 1h}":    {After: 5 * time.Second, Window: time.Hour},
		"{after: 59s, x-note: late}": {After: 59 * time.Second, Window: 10 * time.Second},
	} {
		t.Run(abort, func(t *testing.T) {
			s := loadAbort(t, abort)
			p := mustCompile(t, s)
			if diff := cmp.Diff(want, p.Thresholds[0].Abort); diff != "" {
				t.Errorf("abort (-want +got):\n%s", diff)
			}
			if len(p.Warnings)+len(p.Unsupported) > 0 {
				t.Errorf("warnings %v, not supported %v", p.Warnings, p.Unsupported)
			}
			if err := validates(t, schema, []byte(strings.Replace(withAbort, "ABORT", abort, 1))); err != nil {
				t.Error(err)
			}
			if strings.Contains(abort, "ON") {
				return
			}
			again, err := scenarios.Load("b.yaml", s.Resolved(), scenarios.LoadOptions{})
			if err != nil {
				t.Fatalf("%v\n%s", err, s.Resolved())
			}
			if got := mustCompile(t, again).Thresholds; !got[0].Equal(p.Thresholds[0]) {
				t.Errorf("the resolved scenario has %+v, want %+v", got, p.Thresholds)
			}
		})
	}
}

func TestAbortThatComesAfterTheLoadIsWarnedOf(t *testing.T) {
	const want = "a.yaml:5:52: never ends the run: it is judged from 1m0s on, and the load lasts 1m0s"
	s := loadAbort(t, "{after: 1m}")
	p := mustCompile(t, s)
	if len(p.Warnings) != 1 || p.Warnings[0].Place()+": "+p.Warnings[0].Message != want {
		t.Errorf("warnings %v, want %s", p.Warnings, want)
	}
	if err := s.Override(scenarios.Overrides{Duration: 2 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	if p = mustCompile(t, s); len(p.Warnings) > 0 {
		t.Errorf("with a longer load: %v", p.Warnings)
	}
}
