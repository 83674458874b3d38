package driver_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// fiveRows is a feeder with the values 0 to 4.
const fiveRows = "data: {d: {rows: [{v: 0}, {v: 1}, {v: 2}, {v: 3}, {v: 4}], pick: PICK}}\n"

const readsRow = `flows: {f: {steps: [{tools/call: {name: a, arguments: {v: "${{ data.d.v }}"}}}]}}`

func withPick(pick, rest string) string {
	return fiveRows[:len(fiveRows)-len("PICK}}\n")] + pick + "}}\n" + rest
}

// TestRowsGoToIterations by their index, whichever session takes them.
func TestRowsGoToIterations(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // sorted
		outcomes   map[string]int
	}{
		{
			"sequential goes round", withPick("sequential", "load: {groups: {g: {flow: f, sessions: 2, iterations: 7}}}\n"+readsRow),
			[]string{`a:{"v":0}`, `a:{"v":0}`, `a:{"v":1}`, `a:{"v":1}`, `a:{"v":2}`, `a:{"v":3}`, `a:{"v":4}`},
			map[string]int{"completed": 7},
		},
		{
			"unique ends a closed load", withPick("unique", "load: {groups: {g: {flow: f, sessions: 3, duration: 1h}}}\n"+readsRow),
			[]string{`a:{"v":0}`, `a:{"v":1}`, `a:{"v":2}`, `a:{"v":3}`, `a:{"v":4}`},
			map[string]int{"completed": 5},
		},
		{
			"two groups share unique rows", withPick("unique", "load: {groups: {g: {flow: f, duration: 1h}, h: {flow: f, duration: 1h}}}\n"+readsRow),
			[]string{`a:{"v":0}`, `a:{"v":1}`, `a:{"v":2}`, `a:{"v":3}`, `a:{"v":4}`},
			map[string]int{"completed": 5},
		},
		{
			"stop ends an open load", withPick("sequential, on_end: stop", "load: {groups: {g: {flow: f, arrivals: {rate: 10/s}, duration: 1h}}}\n"+readsRow),
			[]string{`a:{"v":0}`, `a:{"v":1}`, `a:{"v":2}`, `a:{"v":3}`, `a:{"v":4}`},
			map[string]int{"completed": 5, "interrupted": 1},
		},
		{
			"before has the row of the session's place", withPick("sequential", "load: {groups: {g: {flow: f, sessions: 2, iterations: 2}}}\n"+
				`flows: {f: {before: [{tools/call: {name: b, arguments: {v: "${{ data.d.v }}"}}}], steps: [{ping: {}}]}}`),
			[]string{`b:{"v":0}`, `b:{"v":1}`},
			map[string]int{"completed": 2},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := toolPeer()
				p.log = nil
				got := play(t.Context(), t, p, tt.text)
				if got.err != nil {
					t.Fatal(got.err)
				}
				calls := slices.DeleteFunc(p.tools(t), func(s string) bool { return s == ":" })
				slices.Sort(calls)
				if diff := cmp.Diff(tt.want, calls); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
				wantCounts(t, "iterations", got.iterations(), tt.outcomes)
			})
		})
	}
}

// TestARowThatIsBrokenIsAScriptError of its iteration alone.
func TestARowThatIsBrokenIsAScriptError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := play(t.Context(), t, toolPeer(), `data: {d: {rows: [{v: {w: 1}}, {v: 2}, {v: {w: 3}}]}}
load: {groups: {g: {flow: f, iterations: 3}}}
flows: {f: {steps: [{tools/call: {name: a, arguments: {v: "${{ data.d.v.w }}"}}}]}}`)
		wantCounts(t, "iterations", got.iterations(), map[string]int{"completed": 2, "script_error": 1})
	})
}
