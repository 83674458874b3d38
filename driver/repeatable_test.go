package driver_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// lawSteps makes random steps out of the whole grammar of steps whose requests do
// not depend on the session.
type lawSteps struct {
	*rand.Rand
	ids    int
	loops  int
	called bool // in a flow that is called
	beside bool // in parallel
}

func (l *lawSteps) of(choices ...string) string { return choices[l.IntN(len(choices))] }

// value is the text of an argument.
func (l *lawSteps) value() string {
	choices := []string{
		"randInt(1, 1000000)", "randFloat()", "uuid()", "pick(vars.list)", "iteration.index * 7", "data.rows.n", "data.more.n",
		"sha256(string(iteration.index))", "saved.got ?? 'none'",
	}
	if l.loops > 0 {
		choices = append(choices, "loop.index")
	}
	if l.called {
		choices = append(choices, "args.given")
	}
	return fmt.Sprintf(`"${{ %s }}"`, l.of(choices...))
}

// more is what stands beside the operation of a step.
func (l *lawSteps) more() string {
	return l.of("", "", `, when: iteration.index % 2 == 0`, ", sample: 0.5", ", when: saved.got == nil, sample: 0.7", ", on_error: continue")
}

// step is one step, in flow style.
func (l *lawSteps) step(depth int) string {
	l.ids++
	kind := l.IntN(12)
	if depth > 2 {
		kind %= 5
	}
	switch kind {
	default:
		save := l.of("", "", ", save: {got: result.structuredContent.v}")
		return fmt.Sprintf("{id: s%d, tools/call: {name: %s, arguments: {v: %s}}%s%s}", l.ids, l.of("a", "b", "slow", "fails"), l.value(), save, l.more())
	case 4:
		return fmt.Sprintf("{think: %s}", l.of("3ms", "{uniform: [1ms, 90ms]}"))
	case 5:
		return fmt.Sprintf("{random: [{weight: 3, steps: [%s]}, {steps: [%s]}]%s}", l.list(depth), l.list(depth), l.more())
	case 6, 7:
		was := l.beside
		l.beside = true
		defer func() { l.beside = was }()
		return fmt.Sprintf("{parallel: [%s]%s}", l.list(depth), l.more())
	case 8:
		head := l.of("count: 3", `count: "${{ randInt(0, 3) }}"`, "while: loop.index < iteration.index % 3")
		l.loops++
		defer func() { l.loops-- }()
		return fmt.Sprintf("{repeat: {%s, steps: [%s]}%s}", head, l.list(depth), l.more())
	case 9, 10:
		if l.called {
			return l.step(depth + 3)
		}
		return fmt.Sprintf("{flow: {name: sub, args: {given: %s}}%s}", l.value(), l.more())
	case 11:
		if l.called || l.beside {
			return l.step(depth + 3)
		}
		return l.of("{disconnect: {}, sample: 0.3}", "{connect: {}}")
	}
}

func (l *lawSteps) list(depth int) string {
	steps := make([]string, 1+l.IntN(3))
	for i := range steps {
		steps[i] = l.step(depth + 1)
	}
	return strings.Join(steps, ", ")
}

// flows are two flows, of which f is run and calls sub.
func (l *lawSteps) flows() string {
	main := l.list(0)
	l.called = true
	return fmt.Sprintf(`vars: {list: [1, two, 3.5]}
data:
  rows: {rows: [{n: 1}, {n: 2}, {n: 3}], pick: random}
  more: {rows: [{n: x}, {n: y}], pick: sequential}
flows:
  f: {steps: [{flow: {name: sub, args: {given: 0}}}, {id: always, tools/call: {name: a, arguments: {v: "${{ iteration.index }}"}}, when: iteration.index %% 3 == 0, save: {got: result.structuredContent.v}}, %s]}
  sub: {steps: [{id: first, tools/call: {name: b, arguments: {v: "${{ args.given }}"}}}, %s]}
`, main, l.list(1))
}

// TestSameSeedSameRequests is the law that a seed stands for: whatever the steps,
// one session and sixteen, a closed load and an open one send the same requests for
// as many iterations, if not in the same order.
func TestSameSeedSameRequests(t *testing.T) {
	const loads = "load: {groups: {g: {flow: f, iterations: 12, on_error: %s, %s}}}\n"
	sent := 0
	for seed := range uint64(25) {
		l := &lawSteps{Rand: rand.New(rand.NewPCG(seed, 9))}
		flows, onError := l.flows(), l.of("next_iteration", "continue", "end_session")
		var want []string
		for _, load := range []string{"sessions: 1", "sessions: 16", "arrivals: {process: poisson, rate: 200/s}, max_sessions: 16"} {
			var got []string
			synctest.Test(t, func(t *testing.T) {
				p := toolPeer()
				played := play(t.Context(), t, p, fmt.Sprintf(loads, onError, load)+flows)
				if played.err != nil {
					t.Fatalf("seed %d, %s: %v\n%s", seed, load, played.err, flows)
				}
				for outcome, n := range played.iterations() {
					if outcome != "completed" && outcome != "failed" && n > 0 {
						t.Errorf("seed %d, %s: %d iterations %s", seed, load, n, outcome)
					}
				}
				got = slices.Sorted(slices.Values(p.log))
			})
			if want == nil {
				want = got
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: requests of %q are not those of one session (-one +this):\n%s\n%s", seed, load, diff, flows)
			}
		}
		sent += len(want)
	}
	if sent < 25*12*2 {
		t.Errorf("%d requests in all: the steps do hardly anything", sent)
	}
	t.Logf("%d requests, three times", sent)
}
