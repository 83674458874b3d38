package scenarios_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/scenarios"
)

const plainFlow = "servers: {a: {url: http://h/}}\nload: {groups: {main: {}}}\nflows: {f: {steps: [{tools/call: {name: x}}]}}\n"

func answersFrom(t *testing.T, client string, session int) scenarios.Answers {
	t.Helper()
	p := mustCompile(t, mustLoad(t, "version: 1\nvars: {city: Oslo}\n"+client+"\n"+plainFlow))
	a, err := p.Client.Answers(&scenarios.Env{Seed: 5, Session: session})
	if err != nil {
		t.Fatal(err)
	}
	a.ElicitationDelay, a.SamplingDelay = scenarios.Spread{}, scenarios.Spread{}
	return a
}

func TestAnswers(t *testing.T) {
	const all = "client: {capabilities: {elicitation: true, sampling: true, roots: true}, answers: "
	defaults := scenarios.Answers{Action: "accept", Text: "stub answer", Model: "mcpbench", StopReason: "endTurn", Roots: []string{}}
	with := func(change func(a *scenarios.Answers)) scenarios.Answers {
		a := defaults
		change(&a)
		return a
	}
	for name, tt := range map[string]struct {
		client string
		want   scenarios.Answers
	}{
		"none":     {"", defaults},
		"defaults": {all + "{}}", defaults},
		"declined": {all + "{elicitation: {action: decline}}}", with(func(a *scenarios.Answers) { a.Action = "decline" })},
		"content": {
			all + "{elicitation: {content: {yes: true, n: 5, city: \"${{ vars.city }}\", list: [a, \"s${{ session.index }}\"]}}}}",
			with(func(a *scenarios.Answers) { a.Content = []byte(`{"yes":true,"n":5,"city":"Oslo","list":["a","s3"]}`) }),
		},
		"empty content": {all + "{elicitation: {content: {}}}}", with(func(a *scenarios.Answers) { a.Content = []byte(`{}`) })},
		"sampling": {
			all + "{sampling: {text: \"a \\\"quoted\\\"\\n${{ session.index + 1 }}\", model: 5, stop_reason: maxTokens}}}",
			with(func(a *scenarios.Answers) {
				a.Text, a.Model, a.StopReason = "a \"quoted\"\n4", "5", "maxTokens"
			}),
		},
		"roots": {
			all + "{roots: [\"file:///a\", \"file:///b/${{ session.index }}\"]}}",
			with(func(a *scenarios.Answers) { a.Roots = []string{"file:///a", "file:///b/3"} }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, answersFrom(t, tt.client, 3), cmp.AllowUnexported(scenarios.Spread{})); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// Random values of answers differ from session to session, and not from run to run.
func TestAnswersDrawForEachSession(t *testing.T) {
	const client = "client: {capabilities: {sampling: true}, answers: {sampling: {text: \"${{ uuid() }}\"}}}"
	texts := map[string]bool{}
	for session := range 20 {
		texts[answersFrom(t, client, session).Text] = true
	}
	if again := answersFrom(t, client, 7).Text; len(texts) != 20 || !texts[again] {
		t.Errorf("%d texts of 20 sessions", len(texts))
	}
}

func TestAnswersFailAtRunTime(t *testing.T) {
	p := mustCompile(t, mustLoad(t, "version: 1\nvars: {list: [1]}\nclient: {capabilities: {roots: true}, answers: {roots: [\"file:///${{ vars.list[session.index] }}\"]}}\n"+plainFlow))
	if _, err := p.Client.Answers(&scenarios.Env{Session: 1}); err == nil || !strings.HasPrefix(err.Error(), "client.answers.roots: ") {
		t.Errorf("error %v", err)
	}
}

// The draws of each distribution have its mean, within five standard errors, and
// its ends.
func TestSpreadsDraw(t *testing.T) {
	const n = 20_000
	for text, want := range map[string]struct{ low, high, mean, deviation float64 }{
		"20ms":                           {20, 20, 20, 0},
		"{constant: 20ms}":               {20, 20, 20, 0},
		"{uniform: [20ms, 80ms]}":        {20, 80, 50, 60 / math.Sqrt(12)},
		"{exponential: 50ms}":            {0, math.Inf(1), 50, 50},
		"{exponential: 50ms, max: 50ms}": {0, 50, 50 * (1 - 1/math.E), 50},
	} {
		p := mustCompile(t, mustLoad(t, "version: 1\nclient: {capabilities: {sampling: true}, answers: {sampling: {delay: "+text+"}}}\n"+plainFlow))
		a, err := p.Client.Answers(&scenarios.Env{})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		sum, low, high := 0.0, math.Inf(1), math.Inf(-1)
		for range n {
			v := float64(a.SamplingDelay.Draw(rng)) / float64(time.Millisecond)
			sum, low, high = sum+v, min(low, v), max(high, v)
		}
		if mean := sum / n; math.Abs(mean-want.mean) > 5*want.deviation/math.Sqrt(n) || low < want.low || high > want.high {
			t.Errorf("%s: from %v to %v, mean %v; want %+v", text, low, high, mean, want)
		}
		if a.SamplingDelay.IsZero() {
			t.Errorf("%s counts as zero", text)
		}
	}
}

// TestCompileBeyondPlainCalls holds the compiled form of the steps that are no
// plain requests.
func TestCompileBeyondPlainCalls(t *testing.T) {
	p := mustCompile(t, mustLoad(t, `
version: 1
servers: {a: {url: http://h/, protocol: "2026-07-28"}}
load: {groups: {main: {}}}
flows:
  f:
    before:
      - connect: {}
      - {subscribe: {uris: ["a:1", "b:${{ session.index }}"], tools: true}, as: news, timeout: 2s}
    steps:
      - {tools/call: {name: x}, progress: true, idle_timeout: 3s, timeout: 9s, log_level: warning}
      - {tools/call: {name: x}, cancel: {after: 5ms}}
      - {wait_for: {notification: resources/updated, from: news, timeout: 4s}, check: {a: result.uri == ""}}
      - {wait_for: {notification: notifications/message}}
      - {request: {method: x/y, params: {a: 1}}}
      - {request: {method: x/y}}
      - {notify: {method: x/z, params: {b: "${{ iteration.index }}"}}}
    after:
      - {unsubscribe: {handle: news}}
`))
	type step struct {
		kind                             scenarios.StepKind
		id, method, name, handle, notice string
		params                           string
		timeout, idle                    time.Duration
		progress, cancels                bool
		level                            string
	}
	of := func(list []*scenarios.Step) []step {
		var out []step
		for _, s := range list {
			out = append(out, step{
				s.Kind, s.ID, s.Method, s.Name, s.Handle, s.Notification, s.Params(), s.Timeout, s.IdleTimeout, s.Progress, s.Cancels(), s.LogLevel,
			})
		}
		return out
	}
	f := p.Flows[0]
	got := map[string][]step{"before": of(f.Before), "steps": of(f.Steps), "after": of(f.After)}
	want := map[string][]step{
		"before": {{
			kind: scenarios.StepSubscribe, id: "subscribe", method: "resources/subscribe", name: "a:1, b:{session.index}, tools", handle: "news",
			params: `{"uris":["a:1","b:${{ session.index }}"],"tools":true}`, timeout: 2 * time.Second,
		}},
		"steps": {
			{id: "tools/call x", method: "tools/call", name: "x", params: `{"name":"x","arguments":{}}`, timeout: 9 * time.Second, idle: 3 * time.Second, progress: true, level: "warning"},
			{id: "tools/call x#2", method: "tools/call", name: "x", params: `{"name":"x","arguments":{}}`, cancels: true},
			{kind: scenarios.StepWait, id: "wait_for resources/updated", method: "wait_for", name: "resources/updated", handle: "news", notice: "notifications/resources/updated", params: "{}", timeout: 4 * time.Second},
			{kind: scenarios.StepWait, id: "wait_for message", method: "wait_for", name: "message", notice: "notifications/message", params: "{}"},
			{id: "x/y", method: "x/y", params: `{"a":1}`},
			{id: "x/y#2", method: "x/y", params: "{}"},
			{kind: scenarios.StepNotify, id: "x/z", method: "x/z", params: `{"b":${{ iteration.index }}}`},
		},
		"after": {{kind: scenarios.StepUnsubscribe, id: "unsubscribe news", method: "resources/unsubscribe", name: "news", handle: "news", params: "{}"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"notifications/message"}, f.Watched()); diff != "" {
		t.Errorf("watched (-want +got):\n%s", diff)
	}
	var methods, parts []string
	for _, s := range p.Catalog().Steps {
		methods, parts = append(methods, s.Method), append(parts, s.Part)
	}
	if methods[0] != "subscriptions/listen" || methods[8] != "subscriptions/listen" || parts[0] != "before" || parts[1] != "" || parts[8] != "after" {
		t.Errorf("catalog: methods %v, parts %v", methods, parts)
	}
}

// TestNeedsStream names what asks for the GET stream: nothing in plain calls does.
func TestNeedsStream(t *testing.T) {
	for text, want := range map[string]bool{
		"steps: [{tools/call: {name: x}}, {tools/list: {}}, {ping: {}}]":                   false,
		"steps: [{tools/call: {name: x}, cancel: {after: 1s}}, {notify: {method: x/y}}]":   false,
		"steps: [{request: {method: x/y}}]":                                                false,
		"steps: [{tools/call: {name: x}, progress: true}]":                                 true,
		"steps: [{logging/setLevel: {level: info}}]":                                       true,
		"steps: [{wait_for: {notification: message}}]":                                     true,
		"before: [{subscribe: {uris: [\"a:b\"]}, as: s}], steps: [{ping: {}}]":             true,
		"steps: [{ping: {}}], after: [{tools/call: {name: x}, progress: true}]":            true,
		"steps: [{ping: {}}]}}\nclient: {capabilities: {roots: false}}\nx-rest: {a: {b: 1": false,
		"steps: [{ping: {}}]}}\nclient: {capabilities: {roots: true}}\nx-rest: {a: {b: 1":  true,
	} {
		p := mustCompile(t, mustLoad(t, "version: 1\nservers: {a: {url: http://h/}}\nload: {groups: {main: {}}}\nflows: {f: {"+text+"}}\n"))
		if got := p.NeedsStream(0); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// The defaults that the plan shows are those that are used.
func TestSettingsShowTheDefaultsOfAnswers(t *testing.T) {
	s := mustLoad(t, "version: 1\nclient: {capabilities: {sampling: true, elicitation: true}, answers: {sampling: {text: hi}}}\n"+plainFlow)
	var got []string
	for _, v := range s.Settings() {
		if strings.HasPrefix(v.Path, "client.") && v.Origin == "default" {
			got = append(got, strings.TrimPrefix(v.Path, "client.answers.")+"="+v.Value)
		}
	}
	slices.Sort(got)
	want := []string{"elicitation.action=accept", "elicitation.delay=0s", "sampling.delay=0s", "sampling.model=mcpbench", "sampling.stop_reason=endTurn"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	a := answersFrom(t, "", 0)
	if a.Action != "accept" || a.Model != "mcpbench" || a.StopReason != "endTurn" || a.Text != "stub answer" {
		t.Errorf("in use: %+v", a)
	}
}
