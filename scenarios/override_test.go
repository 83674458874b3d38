package scenarios_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpbench/internal/curve"
	"mcpbench/scenarios"
)

const twoGroups = `version: 1
servers:
  web: {url: "http://old/mcp", headers: {A: b}, transport: http}
load:
  grace: 1s
  groups:
    closed: {sessions: {count: 4}, think: 1s, duration: 30s}
    open: {arrivals: {process: poisson, rate: 5/s}, max_sessions: 3}
flows: {f: {steps: [{ping: {}}]}}
`

func overridden(t *testing.T, text string, o scenarios.Overrides) *scenarios.Program {
	t.Helper()
	s := mustLoad(t, text)
	if err := s.Override(o); err != nil {
		t.Fatal(err)
	}
	return mustCompile(t, s)
}

func TestOverrideLoad(t *testing.T) {
	second := time.Second
	for _, tt := range []struct {
		name         string
		o            scenarios.Overrides
		closed, open scenarios.Group
	}{
		{
			"nothing",
			scenarios.Overrides{},
			scenarios.Group{Level: curve.Constant(4), WarmLevel: 4, Sessions: 4, Think: scenarios.Constant(second), Duration: 30 * second},
			scenarios.Group{Open: true, Sessions: 3, Process: "poisson", Level: curve.Constant(5), WarmLevel: 5, Duration: 10 * second},
		},
		{
			"rate makes it open",
			scenarios.Overrides{Rate: "200"},
			scenarios.Group{Open: true, Sessions: 4, Process: "constant", Level: curve.Constant(200), WarmLevel: 200, Duration: 30 * second},
			scenarios.Group{Open: true, Sessions: 3, Process: "poisson", Level: curve.Constant(200), WarmLevel: 200, Duration: 10 * second},
		},
		{
			"rate by the minute, process, sessions",
			scenarios.Overrides{Rate: "120/m", Process: "poisson", Sessions: 7},
			scenarios.Group{Open: true, Sessions: 7, Process: "poisson", Level: curve.Constant(2), WarmLevel: 2, Duration: 30 * second},
			scenarios.Group{Open: true, Sessions: 7, Process: "poisson", Level: curve.Constant(2), WarmLevel: 2, Duration: 10 * second},
		},
		{
			"sessions",
			scenarios.Overrides{Sessions: 9},
			scenarios.Group{Level: curve.Constant(9), WarmLevel: 9, Sessions: 9, Think: scenarios.Constant(second), Duration: 30 * second},
			scenarios.Group{Open: true, Sessions: 9, Process: "poisson", Level: curve.Constant(5), WarmLevel: 5, Duration: 10 * second},
		},
		{
			"iterations take away the time limit",
			scenarios.Overrides{Iterations: 100},
			scenarios.Group{Level: curve.Constant(4), WarmLevel: 4, Sessions: 4, Think: scenarios.Constant(second), Iterations: 100},
			scenarios.Group{Open: true, Sessions: 3, Process: "poisson", Level: curve.Constant(5), WarmLevel: 5, Iterations: 100},
		},
		{
			"both limits",
			scenarios.Overrides{Iterations: 100, Duration: 2 * second},
			scenarios.Group{Level: curve.Constant(4), WarmLevel: 4, Sessions: 4, Think: scenarios.Constant(second), Iterations: 100, Duration: 2 * second},
			scenarios.Group{Open: true, Sessions: 3, Process: "poisson", Level: curve.Constant(5), WarmLevel: 5, Iterations: 100, Duration: 2 * second},
		},
		{
			"in flight",
			scenarios.Overrides{InFlight: 8},
			scenarios.Group{Level: curve.Constant(4), WarmLevel: 4, Sessions: 4, Think: scenarios.Constant(second), Duration: 30 * second, InFlight: 8},
			scenarios.Group{Open: true, Sessions: 3, Process: "poisson", Level: curve.Constant(5), WarmLevel: 5, Duration: 10 * second, InFlight: 8},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := overridden(t, twoGroups, tt.o)
			tt.closed.Name, tt.open.Name = "closed", "open"
			tt.closed.InFlight, tt.open.InFlight = max(tt.closed.InFlight, 1), max(tt.open.InFlight, 1)
			if diff := cmp.Diff([]scenarios.Group{tt.closed, tt.open}, p.Groups, cmpopts.IgnoreFields(scenarios.Group{}, "OnError")); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverrideRest(t *testing.T) {
	zero, minute := time.Duration(0), time.Minute
	p := overridden(t, twoGroups, scenarios.Overrides{
		Warmup: &minute, Grace: &zero, RequestTimeout: 2 * time.Second, ConnectTimeout: 3 * time.Second,
		Protocol: "2025-06-18", Headers: []scenarios.HeaderValue{{Name: "a", Value: "new"}, {Name: "B", Value: "x"}},
		Thresholds: []string{"p99(latency) < 1s"}, Tags: map[string]string{"k": "v"}, OutputDir: "there",
	})
	if p.Warmup != time.Minute || p.Grace != 0 || p.Limits != limitsWith(2*time.Second, 3*time.Second) {
		t.Errorf("warmup %v, grace %v, limits %v", p.Warmup, p.Grace, p.Limits)
	}
	if s := p.Servers[0]; s.Protocol != "2025-06-18" || len(s.Headers) != 2 || s.Headers[0].Name != "a" || s.Headers[1].Name != "B" {
		t.Errorf("server %+v", s)
	}
	if len(p.Thresholds) != 1 || p.Tags["k"] != "v" || p.OutputDir != "there" {
		t.Errorf("thresholds %v, tags %v, dir %q", p.Thresholds, p.Tags, p.OutputDir)
	}
}

func TestOwnProtocolWins(t *testing.T) {
	text := strings.Replace(twoGroups, "transport: http", "protocol: 2025-03-26", 1)
	if got := overridden(t, text, scenarios.Overrides{Protocol: "2025-06-18"}).Servers[0].Protocol; got != "2025-03-26" {
		t.Errorf("protocol %q, want the server's own", got)
	}
}

func TestOverrideTarget(t *testing.T) {
	p := overridden(t, twoGroups, scenarios.Overrides{URL: []string{"https://new/mcp?a=b"}})
	if s := p.Servers[0]; s.Name != "web" || s.URL != "https://new/mcp?a=b" || len(s.Headers) != 1 {
		t.Errorf("url: %+v", s)
	}
	p = overridden(t, twoGroups, scenarios.Overrides{Command: []string{"./server", "--stdio"}})
	if s := p.Servers[0]; s.Name != "web" || s.Transport != "stdio" || s.URL != "" || s.Command != "./server" || len(s.Args) != 1 || len(s.Headers) != 0 {
		t.Errorf("command: %+v", s)
	}
	bare := strings.Replace(twoGroups, "servers:\n  web: {url: \"http://old/mcp\", headers: {A: b}, transport: http}\n", "", 1)
	p = overridden(t, bare, scenarios.Overrides{URL: []string{"http://new/"}})
	if s := p.Servers[0]; s.Name != "server" || s.URL != "http://new/" {
		t.Errorf("scenario without servers: %+v", s)
	}
	two := strings.Replace(twoGroups, "servers:\n", "servers:\n  other: {command: x}\n", 1)
	two = strings.ReplaceAll(strings.ReplaceAll(two, "closed: {", "closed: {server: web, "), "open: {", "open: {server: other, ")
	p = overridden(t, two, scenarios.Overrides{URL: []string{"other=http://a/", "web=http://b/"}})
	if p.Servers[0].URL != "http://a/" || p.Servers[1].URL != "http://b/" {
		t.Errorf("named: %+v", p.Servers)
	}
	s := mustLoad(t, two)
	err := s.Override(scenarios.Overrides{URL: []string{"http://a/"}})
	if ps := problemsOf(t, err); ps[0].String() != "--url: the scenario has several servers (other, web); give --url NAME=URL" {
		t.Errorf("several servers: %v", ps)
	}
}

func TestOverrideTargetFromEditorFile(t *testing.T) {
	s, err := scenarios.Load("b.yaml", []byte(twoGroups), scenarios.LoadOptions{
		ReadFile: func(string) ([]byte, error) { return []byte(`{"mcpServers": {"fs": {"command": "npx"}}}`), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Override(scenarios.Overrides{ConfigFile: ".mcp.json", ConfigServer: "fs"}); err != nil {
		t.Fatal(err)
	}
	if got := mustCompile(t, s).Servers[0]; got.Name != "web" || got.Command != "npx" || got.Transport != "stdio" {
		t.Errorf("server %+v", got)
	}
}

func TestOverrideErrors(t *testing.T) {
	for _, tt := range []struct {
		o    scenarios.Overrides
		want string
	}{
		{scenarios.Overrides{URL: []string{"nope"}}, `--url: "nope" wants a URL that starts with http:// or https://`},
		{scenarios.Overrides{URL: []string{"wbe=http://h/"}}, `--url: the scenario has no server "wbe" (did you mean "web"?); it has: web`},
		{scenarios.Overrides{Rate: "fast"}, `--rate: "fast" is no rate; write a number with /s, /m or /h, e.g. 200/s`},
		{scenarios.Overrides{Rate: "-5"}, `--rate: a rate must be more than 0`},
		{scenarios.Overrides{Process: "poisson"}, `--arrivals: group "closed" has a closed load; give a rate too, e.g. -r 200/s`},
		{scenarios.Overrides{Sessions: -1}, `--sessions: must be at least 1`},
		{scenarios.Overrides{Iterations: -1}, `--iterations: must be at least 1`},
		{scenarios.Overrides{Duration: -time.Second}, `--duration: a duration must not be negative`},
		{scenarios.Overrides{Protocol: "2025-11-26"}, `--protocol: "2025-11-26" is not one of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28 (did you mean "2025-11-25"?)`},
		{scenarios.Overrides{Protocol: "2025-11-26", From: map[string]string{"protocol": "MCPBENCH_PROTOCOL"}}, `MCPBENCH_PROTOCOL: "2025-11-26" is not one of`},
		{scenarios.Overrides{Thresholds: []string{"p99(latncy) < 1s"}}, `--threshold: unknown metric "latncy"`},
		{scenarios.Overrides{Command: []string{"x"}, Headers: []scenarios.HeaderValue{{Name: "A", Value: "b"}}}, `--header: headers are for HTTP servers; server "web" is none`},
	} {
		err := mustLoad(t, twoGroups).Override(tt.o)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%+v:\n got %v\nwant %s", tt.o, err, tt.want)
		}
	}
}

func TestParseHeader(t *testing.T) {
	if h, err := scenarios.ParseHeader("X-A:  b: c "); err != nil || h.Name != "X-A" || h.Value != "b: c" {
		t.Errorf("%+v, %v", h, err)
	}
	for _, bad := range []string{"", "no colon", ": v", "a b: c"} {
		if _, err := scenarios.ParseHeader(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

func TestSettings(t *testing.T) {
	s := mustLoad(t, twoGroups)
	if err := s.Override(scenarios.Overrides{
		Rate: "9", URL: []string{"http://u:p@new/?token=x"}, Headers: []scenarios.HeaderValue{{Name: "Authorization", Value: "Bearer x"}},
		From: map[string]string{"rate": "MCPBENCH_RATE"},
	}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range s.Settings() {
		got = append(got, v.Path+" = "+v.Value+" ("+v.Origin+")")
	}
	want := []string{
		"version = 1 (bench.yaml:1)",
		"servers.web.headers.A = b (bench.yaml:3)",
		"servers.web.headers.Authorization = *** (--header)",
		"servers.web.url = http://u:***@new/?token=*** (--url)",
		"load.grace = 1s (bench.yaml:5)",
		"load.groups.closed.duration = 30s (bench.yaml:7)",
		"load.groups.closed.arrivals.rate = 9/s (MCPBENCH_RATE)",
		"load.groups.closed.max_sessions = 4 (bench.yaml:7)",
		"load.groups.open.arrivals.process = poisson (bench.yaml:8)",
		"load.groups.open.arrivals.rate = 9/s (MCPBENCH_RATE)",
		"load.groups.open.max_sessions = 3 (bench.yaml:8)",
		"limits.request_timeout = 30s (default)",
		"limits.connect_timeout = 10s (default)",
		"limits.response_bytes = 16MiB (default)",
		"limits.header_bytes = 1MiB (default)",
		"limits.stderr = keep-head:2MiB keep-tail:2MiB (default)",
		"load.warmup = 0s (default)",
		"load.groups.closed.idle_sessions = 0 (default)",
		"load.groups.closed.in_flight = 1 (default)",
		"load.groups.closed.on_saturation = queue (default)",
		"load.groups.closed.queue_limit = 0 (default)",
		"load.groups.closed.on_error = next_iteration (default)",
		"load.groups.closed.arrivals.process = constant (default)",
		"load.groups.closed.arrivals.on_late = catch_up (default)",
		"load.groups.open.idle_sessions = 0 (default)",
		"load.groups.open.in_flight = 1 (default)",
		"load.groups.open.on_saturation = queue (default)",
		"load.groups.open.queue_limit = 0 (default)",
		"load.groups.open.on_error = next_iteration (default)",
		"load.groups.open.duration = 10s (default)",
		"load.groups.open.arrivals.on_late = catch_up (default)",
		"output.dir = results (default)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}
