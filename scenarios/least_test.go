package scenarios_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpbench/scenarios"
)

func TestLeastThinkOfAFlow(t *testing.T) {
	for _, tt := range []struct {
		name, steps string
		want        time.Duration
	}{
		{"none", "- ping: {}", 0},
		{"constant", "- think: 2s\n- ping: {}\n- think: 500ms", 2500 * time.Millisecond},
		{"from its lower end", "- ping: {}\n- think: {uniform: [1s, 3s]}", time.Second},
		{"by chance as little as it may be", "- ping: {}\n- think: {exponential: 1s}", 0},
		{"with a condition", "- ping: {}\n- {think: 1s, when: false}", 0},
		{"of some iterations", "- ping: {}\n- {think: 1s, sample: 0.5}", 0},
		{"the shortest branch", "- random:\n  - {weight: 1, steps: [{ping: {}}, {think: 3s}]}\n  - {weight: 9, steps: [{ping: {}}, {think: 1s}]}", time.Second},
		{"the longest of what is done together", "- parallel:\n  - think: 3s\n  - think: 1s\n  - ping: {}", 3 * time.Second},
		{"every turn", "- repeat: {count: 3, steps: [{ping: {}}, {think: 1s}]}", 3 * time.Second},
		{"turns while something holds", "- repeat: {while: loop.index < 2, max: 5, steps: [{ping: {}}, {think: 1s}]}", 0},
		{"of a flow that is called", "- flow: other\n- think: 1s", 8 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := fmt.Sprintf("version: 1\nservers: {s: {url: \"http://127.0.0.1:1/\"}}\nload: {groups: {g: {flow: f, sessions: 1, duration: 1s}}}\n"+
				"flows:\n  other:\n    steps: [{think: 7s}, {ping: {}}]\n  f:\n    steps:\n%s\n", "      "+strings.ReplaceAll(tt.steps, "\n", "\n      "))
			sc, err := scenarios.Load("s.yaml", []byte(text), scenarios.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := sc.Compile()
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Flows[p.Groups[0].Flow].LeastThink(); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
