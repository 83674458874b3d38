package driver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/mcp"
	"mcpbench/metrics"
)

// toolPeer answers tools/call by the tool's name: "slow" takes 100 ms, "fails" is
// a tool error, any other gives back its arguments at once.
func toolPeer() *peer {
	return &peer{call: func(ctx context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error) {
		start := c.now()
		var p struct {
			Name      string
			Arguments json.RawMessage
		}
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return mcp.Reply{}, fmt.Errorf("params: %w", err)
		}
		if p.Name == "slow" {
			if err := c.sleep(ctx, 100*ms); err != nil {
				return mcp.Reply{}, err
			}
		}
		reply := c.reply(start)
		reply.Result = fmt.Appendf(nil, `{"content":[],"structuredContent":%s}`, p.Arguments)
		if p.Name == "fails" {
			reply.ToolError, reply.Result = true, []byte(`{"content":[],"isError":true}`)
		}
		return reply, nil
	}}
}

// tools returns what was asked of the tools, as name:arguments.
func (p *peer) tools(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, line := range p.log {
		_, params, _ := strings.Cut(line, " ")
		var call struct {
			Name      string
			Arguments json.RawMessage
		}
		if err := json.Unmarshal([]byte(params), &call); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, strings.TrimSuffix(call.Name+":"+string(call.Arguments), ":{}"))
	}
	return out
}

const once = "load: {groups: {g: {flow: f, iterations: 1}}}\n"

// TestControlSteps holds what each control step asks of the server, in order.
func TestControlSteps(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
		outcomes   map[string]int // of the iterations
	}{
		{
			name: "repeat a number of times",
			text: once + `flows: {f: {steps: [{repeat: {count: 3, steps: [{tools/call: {name: a, arguments: {i: "${{ loop.index }}"}}}]}}, {tools/call: {name: b}}]}}`,
			want: []string{`a:{"i":0}`, `a:{"i":1}`, `a:{"i":2}`, "b"},
		},
		{
			name: "repeat by an expression",
			text: once + `flows: {f: {steps: [{repeat: {count: "${{ iteration.index + 2 }}", steps: [{tools/call: {name: a}}]}}]}}`,
			want: []string{"a", "a"},
		},
		{
			name: "repeat while something saved is small",
			text: once + `flows: {f: {steps: [
  {tools/call: {name: a, arguments: {n: 0}}, save: {n: result.structuredContent.n}},
  {repeat: {while: saved.n < 3, steps: [{tools/call: {name: a, arguments: {n: "${{ saved.n + 1 }}"}}, save: {n: result.structuredContent.n}}]}}]}}`,
			want: []string{`a:{"n":0}`, `a:{"n":1}`, `a:{"n":2}`, `a:{"n":3}`},
		},
		{
			name: "repeat without end",
			text: once + `flows: {f: {steps: [{repeat: {while: "true", max: 2, steps: [{tools/call: {name: a}}]}}]}}`,
			want: []string{"a", "a"}, outcomes: map[string]int{"script_error": 1},
		},
		{
			name: "repeat in repeat",
			text: once + `flows: {f: {steps: [{repeat: {count: 2, steps: [{repeat: {count: 2, steps: [{tools/call: {name: a, arguments: {i: "${{ loop.index }}"}}}]}}, {tools/call: {name: b, arguments: {i: "${{ loop.index }}"}}}]}}]}}`,
			want: []string{`a:{"i":0}`, `a:{"i":1}`, `b:{"i":0}`, `a:{"i":0}`, `a:{"i":1}`, `b:{"i":1}`},
		},
		{
			name: "when",
			text: once + `flows: {f: {steps: [{tools/call: {name: a}, when: protocol < "2025-01-01"}, {tools/call: {name: b}, when: protocol >= "2025-11-25"}]}}`,
			want: []string{"b"},
		},
		{
			name: "save is gone in the next iteration",
			text: "load: {groups: {g: {flow: f, iterations: 2}}}\n" + `flows: {f: {steps: [
  {tools/call: {name: a, arguments: {known: "${{ saved.x != nil }}"}}},
  {tools/call: {name: b, arguments: {v: 7}}, save: {x: result.structuredContent.v}},
  {tools/call: {name: c, arguments: {x: "${{ saved.x }}"}}}]}}`,
			want:     []string{`a:{"known":false}`, `b:{"v":7}`, `c:{"x":7}`, `a:{"known":false}`, `b:{"v":7}`, `c:{"x":7}`},
			outcomes: map[string]int{"completed": 2},
		},
		{
			name: "save in before is there for every iteration",
			text: "load: {groups: {g: {flow: f, iterations: 2}}}\n" + `flows: {f: {before: [{connect: {}}, {tools/call: {name: login, arguments: {t: key}}, save: {token: result.structuredContent.t}}], steps: [{tools/call: {name: a, arguments: {t: "${{ saved.token }}"}}}]}}`,
			want: []string{`login:{"t":"key"}`, `a:{"t":"key"}`, `a:{"t":"key"}`}, outcomes: map[string]int{"completed": 2},
		},
		{
			name: "call with arguments",
			text: once + `flows: {f: {steps: [{flow: {name: sub, args: {who: ann, n: "${{ 1 + 1 }}"}}}, {flow: {name: sub, args: {who: bob, n: 3}}}]}, sub: {steps: [{tools/call: {name: a, arguments: {who: "${{ args.who }}", n: "${{ args.n }}"}}}]}}`,
			want: []string{`a:{"who":"ann","n":2}`, `a:{"who":"bob","n":3}`},
		},
		{
			name: "random takes a branch by weight",
			text: once + `flows: {f: {steps: [{repeat: {count: 3, steps: [{random: [{weight: 0, steps: [{tools/call: {name: never}}]}, {steps: [{tools/call: {name: a}}]}]}]}}]}}`,
			want: []string{"a", "a", "a"},
		},
		{
			name: "the next iteration after a failure",
			text: once + `flows: {f: {steps: [{tools/call: {name: fails}}, {tools/call: {name: b}}]}}`,
			want: []string{"fails"}, outcomes: map[string]int{"failed": 1},
		},
		{
			name: "on_error continue",
			text: once + `flows: {f: {steps: [{tools/call: {name: fails}, on_error: continue}, {tools/call: {name: b}}]}}`,
			want: []string{"fails", "b"}, outcomes: map[string]int{"failed": 1},
		},
		{
			name: "on_error of the group",
			text: "load: {groups: {g: {flow: f, iterations: 1, on_error: continue}}}\n" + `flows: {f: {steps: [{tools/call: {name: fails}}, {tools/call: {name: b}}]}}`,
			want: []string{"fails", "b"}, outcomes: map[string]int{"failed": 1},
		},
		{
			name: "on_error of the flow against that of the group",
			text: "load: {groups: {g: {flow: f, iterations: 1, on_error: continue}}}\n" + `flows: {f: {on_error: next_iteration, steps: [{tools/call: {name: fails}}, {tools/call: {name: b}}]}}`,
			want: []string{"fails"}, outcomes: map[string]int{"failed": 1},
		},
		{
			name: "on_error of a call reaches the called steps",
			text: once + `flows: {f: {steps: [{flow: sub, on_error: continue}, {flow: sub}, {tools/call: {name: never}}]}, sub: {steps: [{tools/call: {name: fails}}, {tools/call: {name: b}}]}}`,
			want: []string{"fails", "b", "fails"}, outcomes: map[string]int{"failed": 1},
		},
		{
			name: "on_error of a called step against that of the call",
			text: once + `flows: {f: {steps: [{flow: sub, on_error: continue}, {tools/call: {name: never}}]}, sub: {steps: [{tools/call: {name: fails}}, {tools/call: {name: fails}, on_error: next_iteration}]}}`,
			want: []string{"fails", "fails"}, outcomes: map[string]int{"failed": 1},
		},
		{
			name: "on_error of a call against that of the called flow",
			text: once + `flows: {f: {steps: [{flow: sub, on_error: continue}, {tools/call: {name: c}}, {flow: sub}, {tools/call: {name: never}}]}, sub: {on_error: next_iteration, steps: [{tools/call: {name: fails}}, {tools/call: {name: b}}]}}`,
			want: []string{"fails", "b", "c", "fails"}, outcomes: map[string]int{"failed": 1},
		},
		{
			name: "on_error around a call, through two calls",
			text: once + `flows: {f: {steps: [{on_error: continue, repeat: {count: 2, steps: [{flow: mid}]}}]}, mid: {on_error: end_session, steps: [{flow: sub}, {tools/call: {name: c}}]}, sub: {steps: [{tools/call: {name: fails}}, {tools/call: {name: b}}]}}`,
			want: []string{"fails", "b", "c", "fails", "b", "c"}, outcomes: map[string]int{"failed": 1},
		},
		{
			name: "a called flow does not follow the flow that calls it",
			text: once + `flows: {f: {on_error: continue, steps: [{flow: sub}, {tools/call: {name: never}}]}, sub: {steps: [{tools/call: {name: fails}}, {tools/call: {name: never}}]}}`,
			want: []string{"fails"}, outcomes: map[string]int{"failed": 1},
		},
		{
			name: "on_error of a call in parallel",
			text: once + `flows: {f: {steps: [{parallel: [{flow: sub, on_error: continue}]}, {tools/call: {name: c}}]}, sub: {steps: [{tools/call: {name: fails}}, {tools/call: {name: b}}]}}`,
			want: []string{"fails", "b", "c"}, outcomes: map[string]int{"failed": 1},
		},
		{
			name: "a parallel goes on after a step within a repeat that continues",
			text: once + `flows: {f: {steps: [{parallel: [{repeat: {count: 1, steps: [{tools/call: {name: fails}, on_error: continue}]}}]}, {tools/call: {name: c}}]}}`,
			want: []string{"fails", "c"}, outcomes: map[string]int{"failed": 1},
		},
		{
			name: "a save that fails",
			text: once + `flows: {f: {steps: [{tools/call: {name: a}, save: {x: "result.structuredContent.list[3].y"}}, {tools/call: {name: b}}]}}`,
			want: []string{"a"}, outcomes: map[string]int{"script_error": 1},
		},
		{
			name: "a condition that fails",
			text: once + `flows: {f: {steps: [{tools/call: {name: a}, save: {x: '"text"'}}, {tools/call: {name: b}, when: saved.x > 3}]}}`,
			want: []string{"a"}, outcomes: map[string]int{"script_error": 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := toolPeer()
				got := play(t.Context(), t, p, tt.text)
				if got.err != nil {
					t.Fatal(got.err)
				}
				if diff := cmp.Diff(tt.want, p.tools(t)); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
				if tt.outcomes == nil {
					tt.outcomes = map[string]int{"completed": 1}
				}
				wantCounts(t, "iterations", got.iterations(), tt.outcomes)
			})
		})
	}
}

func (p *played) iterations() map[string]int {
	out := map[string]int{}
	for _, s := range p.of(metrics.KindIteration) {
		out[s.IterOutcome().String()]++
	}
	return out
}

// TestThinkIsNoLatency: in an open load the step after a pause is intended for
// the pause's end, and a pause at the begin moves the first step.
func TestThinkIsNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolPeer()
		got := play(t.Context(), t, p, `load: {groups: {g: {flow: f, arrivals: {rate: 1/s}, duration: 2s, max_sessions: 1}}}
flows: {f: {steps: [{think: 30ms}, {id: one, tools/call: {name: slow}}, {think: {uniform: [200ms, 300ms]}}, {id: two, tools/call: {name: slow}}]}}`)
		for _, id := range []string{"one", "two"} {
			rows := got.step(id)
			if len(rows) != 2 {
				t.Fatalf("%d rows of %s, want 2", len(rows), id)
			}
			for _, s := range rows {
				if s.Latency() != 100*ms || s.Start != s.Intended {
					t.Errorf("%s: latency %v, start %v, intended %v", id, s.Latency(), s.Start, s.Intended)
				}
			}
		}
		first, second := got.step("one")[0], got.step("two")[0]
		if pause := second.Start - first.End; pause < 200*ms || pause > 300*ms {
			t.Errorf("paused %v", pause)
		}
		if first.Start%time.Second != 30*ms {
			t.Errorf("the first step began at %v", first.Start)
		}
	})
}

// TestParallelRunsAtOnce: the steps of a parallel overlap, what they save is there
// afterwards, and the next step waits for the last of them.
func TestParallelRunsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolPeer()
		got := play(t.Context(), t, p, once+`flows: {f: {steps: [
  {id: first, tools/call: {name: a}},
  {parallel: [
    {id: one, tools/call: {name: slow, arguments: {v: 1}}, save: {one: result.structuredContent.v}},
    {id: two, tools/call: {name: slow, arguments: {v: 2}}, save: {two: result.structuredContent.v}},
    {repeat: {count: 2, steps: [{id: three, tools/call: {name: slow}}]}}]},
  {id: last, tools/call: {name: b, arguments: {sum: "${{ saved.one + saved.two }}"}}}]}}`)
		wantCounts(t, "iterations", got.iterations(), map[string]int{"completed": 1})
		at := func(id string, i int) time.Duration { return got.step(id)[i].Start - got.step("first")[0].Start }
		for _, want := range []struct {
			id string
			i  int
			at time.Duration
		}{{"one", 0, 0}, {"two", 0, 0}, {"three", 0, 0}, {"three", 1, 100 * ms}, {"last", 0, 200 * ms}} {
			if at(want.id, want.i) != want.at {
				t.Errorf("%s %d began at %v, want %v", want.id, want.i, at(want.id, want.i), want.at)
			}
		}
		if calls := p.tools(t); !slices.Contains(calls, `b:{"sum":3}`) {
			t.Errorf("asked %v", calls)
		}
		var seq []uint16
		for _, s := range got.of(metrics.KindStep) {
			seq = append(seq, s.Seq)
		}
		if diff := cmp.Diff([]uint16{0, 1, 2, 3, 4, 5}, seq); diff != "" {
			t.Errorf("numbers of the requests (-want +got):\n%s", diff)
		}
	})
}

// TestParallelKeepsWhatOneStepSavedAnew: a value that was there before is not put
// back by the steps beside the one that saved it again.
func TestParallelKeepsWhatOneStepSavedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolPeer()
		play(t.Context(), t, p, once+`flows: {f: {steps: [
  {tools/call: {name: a, arguments: {v: 1}}, save: {x: result.structuredContent.v}},
  {parallel: [{tools/call: {name: slow, arguments: {v: 2}}, save: {x: result.structuredContent.v}}, {tools/call: {name: a}}]},
  {tools/call: {name: b, arguments: {x: "${{ saved.x }}"}}}]}}`)
		if calls := p.tools(t); calls[len(calls)-1] != `b:{"x":2}` {
			t.Errorf("asked %v", calls)
		}
	})
}

// TestParallelFailsWithItsFirstStep, after all have ended.
func TestParallelFailsWithItsFirstStep(t *testing.T) {
	for _, policy := range []string{"next_iteration", "continue"} {
		synctest.Test(t, func(t *testing.T) {
			got := play(t.Context(), t, toolPeer(), once+`flows: {f: {steps: [
  {on_error: `+policy+`, parallel: [{id: good, tools/call: {name: slow}}, {id: bad, tools/call: {name: fails}}]}, {id: last, tools/call: {name: b}}]}}`)
			wantCounts(t, "iterations", got.iterations(), map[string]int{"failed": 1})
			if n := len(got.step("good")); n != 1 {
				t.Errorf("%d rows of the good step", n)
			}
			if n, want := len(got.step("last")), map[string]int{"next_iteration": 0, "continue": 1}[policy]; n != want {
				t.Errorf("%s: %d rows of the last step, want %d", policy, n, want)
			}
			if s := got.of(metrics.KindIteration)[0]; got.plan.Catalog.Steps[s.Step].ID != "bad" {
				t.Errorf("failed step %s", got.plan.Catalog.Steps[s.Step].ID)
			}
		})
	}
}

// TestSessionsEndByStep: disconnect and on_error: end_session close the session in
// order, which is no loss, and the next step or iteration has a new one.
func TestSessionsEndByStep(t *testing.T) {
	tests := []struct {
		name, flow, reason string
		sessions           int
	}{
		{"disconnect last", `{tools/call: {name: a}}, {disconnect: {}}`, "disconnected", 3},
		{"disconnect between", `{tools/call: {name: a}}, {disconnect: {}}, {tools/call: {name: b}}`, "disconnected", 4},
		{"reconnect", `{tools/call: {name: a}}, {disconnect: {}}, {connect: {}}, {tools/call: {name: b}}, {disconnect: {}}`, "disconnected", 6},
		{"on_error", `{tools/call: {name: fails}, on_error: end_session}, {tools/call: {name: b}}`, "on_error", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := toolPeer()
				got := play(t.Context(), t, p, `load: {groups: {g: {flow: f, iterations: 3, think: 1ms}}}
flows: {f: {steps: [`+tt.flow+`]}}`)
				if len(p.sessions) != tt.sessions {
					t.Errorf("%d sessions, want %d", len(p.sessions), tt.sessions)
				}
				if n := got.runner.SessionStats().Reopened; n != 0 {
					t.Errorf("%d sessions count as lost", n)
				}
				for _, s := range got.of(metrics.KindSession) {
					if r := s.Extra.Session.EndReason; r != tt.reason && r != "run_end" {
						t.Errorf("a session ended because of %s, want %s", r, tt.reason)
					}
				}
			})
		})
	}
}

// TestSampleIsAShare: a step with sample: 0.1 is performed in about a tenth of the
// iterations, the same ones for the same seed.
func TestSampleIsAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = `load: {groups: {g: {flow: f, iterations: 2000}}}
flows: {f: {steps: [{id: all, tools/call: {name: a}}, {id: some, tools/call: {name: b}, sample: 0.1}]}}`
		var before []uint64
		for range 2 {
			var which []uint64
			for _, s := range play(t.Context(), t, toolPeer(), text).step("some") {
				which = append(which, s.Iteration)
			}
			if n := len(which); n < 150 || n > 250 { // 200 ± 3.7 standard deviations
				t.Errorf("performed in %d of 2000 iterations", n)
			}
			if diff := cmp.Diff(before, which); before != nil && diff != "" {
				t.Errorf("not the same iterations:\n%s", diff)
			}
			before = which
		}
	})
}

// TestRandomByWeight holds the shares of branches against their weights.
func TestRandomByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := play(t.Context(), t, toolPeer(), `load: {groups: {g: {flow: f, iterations: 2000}}}
flows: {f: {steps: [{random: [{weight: 8, steps: [{id: often, tools/call: {name: a}}]}, {weight: 2, steps: [{id: seldom, tools/call: {name: b}}]}]}]}}`)
		if n := len(got.step("seldom")); n < 334 || n > 466 || n+len(got.step("often")) != 2000 { // 400 ± 3.7 sd
			t.Errorf("%d and %d", len(got.step("often")), n)
		}
	})
}

// TestNothingToDoDoesNotSpin: iterations whose conditions leave out every step
// pause, instead of looking at them again and again.
func TestNothingToDoDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := play(t.Context(), t, toolPeer(), `load: {groups: {g: {flow: f, duration: 1s}}}
flows: {f: {steps: [{tools/call: {name: a}, when: iteration.index < 0}]}}`)
		if n := len(got.of(metrics.KindIteration)); n > 101 {
			t.Errorf("%d iterations in a second, want at most one each 10 ms", n)
		}
	})
}
