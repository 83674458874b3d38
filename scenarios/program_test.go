package scenarios_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpbench/internal/curve"
	"mcpbench/scenarios"
)

const bigScenario = `
version: 1
name: big
description: everything delivered
tags: {team: search, build: 7, ok: true}
servers:
  web:
    url: https://example.com/mcp
    headers: {X-Tenant: "t-${{ session.index % 8 }}", X-Plain: 5}
    protocol: "2025-11-25"
  pipe:
    command: ./server
    args: [--stdio, 5]
    env: {LOG: warn, PORT: 80}
    inherit_env: [PATH, NOT_SET]
    cwd: work
  demo:
    embedded: stdio
vars: {page: 20}
limits: {request_timeout: 5s, connect_timeout: 2s}
load:
  warmup: {duration: 10s}
  grace: 3s
  groups:
    zeta:
      server: web
      flow: one
      sessions: {count: 4}
      think: {constant: 50ms}
      in_flight: 2
      iterations: 100
    alpha:
      server: pipe
      flow: two
      arrivals: {process: poisson, rate: 120/m}
      max_sessions: 9
      on_saturation: drop
      duration: 1m
    queue:
      server: demo
      flow: two
      arrivals: {rate: 0.5/s}
      queue_limit: 7
    plain: {server: web, flow: one}
flows:
  one:
    steps:
      - tools/call: {name: search, arguments: {q: x}}
        timeout: 2s
        check: {ok: not result.isError, fast: elapsed < duration("1s")}
      - tools/call: {name: search}
      - {id: "tools/call search#3", ping: {}}
      - tools/call: {name: search}
      - resources/read: {uri: "item://${{ iteration.index }}"}
  two:
    steps:
      - tools/list: {all_pages: true}
      - ping:
thresholds: [p99(latency) < 250ms]
output: {dir: out}
`

func TestCompile(t *testing.T) {
	s, err := scenarios.Load("bench.yaml", []byte(bigScenario), scenarios.LoadOptions{
		Env: environment(map[string]string{"PATH": "/bin", "HOME": "/root"}), Dir: "/base",
	})
	if err != nil {
		t.Fatal(err)
	}
	got := mustCompile(t, s)
	want := &scenarios.Program{
		Name: "big", Description: "everything delivered",
		Tags: map[string]string{"team": "search", "build": "7", "ok": "true"},
		Servers: []scenarios.Server{
			{
				Name: "web", Transport: "http", AnyHTTP: true, URL: "https://example.com/mcp", Protocol: "2025-11-25",
				Headers: []scenarios.Header{{Name: "X-Tenant"}, {Name: "X-Plain"}},
			},
			{
				Name: "pipe", Transport: "stdio", Command: "./server", Args: []string{"--stdio", "5"},
				Env: []string{"LOG=warn", "PATH=/bin", "PORT=80"}, Dir: "/base/work",
			},
			{Name: "demo", Transport: "stdio", Embedded: true, Env: []string{"HOME=/root", "PATH=/bin"}},
		},
		Groups: []scenarios.Group{
			{Name: "zeta", Server: 0, Flow: 0, Sessions: 4, Level: curve.Constant(4), WarmLevel: 4, Think: scenarios.Constant(50 * time.Millisecond), InFlight: 2, Iterations: 100},
			{Name: "alpha", Server: 1, Flow: 1, Open: true, Sessions: 9, Process: "poisson", Level: curve.Constant(2), WarmLevel: 2, DropWhenFull: true, Duration: time.Minute, InFlight: 1},
			{Name: "queue", Server: 2, Flow: 1, Open: true, Sessions: 1, Process: "constant", Level: curve.Constant(0.5), WarmLevel: 0.5, QueueLimit: 7, Duration: 10 * time.Second, InFlight: 1},
			{Name: "plain", Server: 0, Flow: 0, Sessions: 1, Level: curve.Constant(1), WarmLevel: 1, Duration: 10 * time.Second, InFlight: 1},
		},
		Flows: []scenarios.Flow{
			{Name: "one", Steps: []*scenarios.Step{
				{ID: "tools/call search", Method: "tools/call", Name: "search", RequestName: "search", Timeout: 2 * time.Second, Checks: []string{"ok", "fast"}},
				{ID: "tools/call search#2", Method: "tools/call", Name: "search", RequestName: "search"},
				{ID: "tools/call search#3", Method: "ping"},
				{ID: "tools/call search#4", Method: "tools/call", Name: "search", RequestName: "search"},
				{ID: "resources/read", Method: "resources/read", Name: "item://{iteration.index}"},
			}},
			{Name: "two", Steps: []*scenarios.Step{
				{ID: "tools/list", Method: "tools/list", AllPages: true},
				{ID: "ping", Method: "ping"},
			}},
		},
		Warmup: 10 * time.Second, Grace: 3 * time.Second,
		Limits:    limitsWith(5*time.Second, 2*time.Second),
		OutputDir: "out",
	}
	opts := cmp.Options{
		cmpopts.IgnoreUnexported(scenarios.Step{}, scenarios.Client{}), cmpopts.IgnoreFields(scenarios.Header{}, "Value"),
		cmpopts.IgnoreFields(scenarios.Program{}, "Thresholds"), cmpopts.IgnoreFields(scenarios.Flow{}, "Do", "DoBefore", "DoAfter"), cmpopts.IgnoreFields(scenarios.Group{}, "OnError"), cmpopts.EquateEmpty(),
	}
	if diff := cmp.Diff(want, got, opts); diff != "" {
		t.Errorf("program (-want +got):\n%s", diff)
	}
	if len(got.Thresholds) != 1 || got.Thresholds[0].Expr != "p99(latency) < 250ms" {
		t.Errorf("thresholds %v", got.Thresholds)
	}
}

func TestDefaults(t *testing.T) {
	p := mustCompile(t, mustLoad(t, "version: 1\nservers: {a: {url: http://h/}}\nload: {groups: {main: }}\nflows: {f: {steps: [{ping: }]}}\n"))
	got := []time.Duration{p.Grace, p.Limits.RequestTimeout, p.Limits.ConnectTimeout, p.Warmup, p.Groups[0].Duration}
	want := []time.Duration{5 * time.Second, 30 * time.Second, 10 * time.Second, 0, 10 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if p.Name != "bench" {
		t.Errorf("name %q, want that of the file", p.Name)
	}
}

func TestIterationsTakeAwayTheDefaultDuration(t *testing.T) {
	p := mustCompile(t, mustLoad(t, "version: 1\nservers: {a: {url: http://h/}}\nload: {groups: {main: {iterations: 5}}}\nflows: {f: {steps: [{ping: }]}}\n"))
	if g := p.Groups[0]; g.Duration != 0 || g.Iterations != 5 {
		t.Errorf("duration %v, iterations %d; want none and 5", g.Duration, g.Iterations)
	}
}

func TestVarOverride(t *testing.T) {
	const text = "version: 1\nvars: {page: 20, who: ada}\nservers: {a: {url: http://h/}}\nload: {groups: {main: }}\n" +
		"flows: {f: {steps: [{tools/call: {name: x, arguments: {page: \"${{ vars.page }}\", who: \"${{ vars.who }}\"}}}]}}\n"
	load := func(vars map[string]string) (*scenarios.Scenario, error) {
		return scenarios.Load("b.yaml", []byte(text), scenarios.LoadOptions{Vars: vars})
	}
	s, err := load(map[string]string{"page": "50"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := mustCompile(t, s).Flows[0].Steps[0].Render(nil, &scenarios.Env{})
	if want := `{"name":"x","arguments":{"page":50,"who":"ada"}}`; err != nil || string(got) != want {
		t.Errorf("params %s, %v; want %s", got, err, want)
	}
	_, err = load(map[string]string{"pgae": "50"})
	if ps := problemsOf(t, err); ps[0].String() != `--var: the scenario has no variable "pgae" (did you mean "page"?)` {
		t.Errorf("unknown variable: %v", ps)
	}
}
