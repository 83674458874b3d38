package main

import (
	"fmt"
	"strings"
	"testing"

	"mcpbench/internal/self"
	"mcpbench/scenarios"
)

// program compiles a scenario of these servers and groups, whose flow is pings and
// steps.
func feasibleProgram(t *testing.T, servers, groups, steps string) *scenarios.Program {
	t.Helper()
	text := fmt.Sprintf("version: 1\nservers: {%s}\nload: {groups: {%s}}\nflows: {f: {steps: [{ping: {}}%s]}}\n", servers, groups, steps)
	sc, err := scenarios.Load("s.yaml", []byte(text), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := sc.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestImpossibleLoadsAreTold(t *testing.T) {
	const (
		web    = `web: {url: "http://127.0.0.1:1/"}`
		pooled = `web: {url: "http://127.0.0.1:1/", connections: "shared:10"}`
		two    = `web: {url: "http://127.0.0.1:1/a"}, other: {url: "http://127.0.0.1:1/b"}`
		child  = `child: {command: server}`
		one    = `child: {command: server, per: shared}`
		demo   = `demo: {embedded: http}`
	)
	closed := func(n int) string { return fmt.Sprintf("g: {sessions: %d, duration: 1s}", n) }
	open := func(rate string, n int, more string) string {
		return fmt.Sprintf("g: {arrivals: {rate: %s}, max_sessions: %d, duration: 1s%s}", rate, n, more)
	}
	for _, tt := range []struct {
		name                   string
		servers, groups, steps string
		limits                 self.Limits
		sources                int
		want                   string // "" is possible
	}{
		{"nothing known", web, closed(100000), "", self.Limits{}, 0, ""},
		{"descriptors fit", web, closed(976), "", self.Limits{FDs: 1000}, 0, ""},
		{
			"one too many", web, closed(977), "",
			self.Limits{FDs: 1000},
			0,
			"977 sessions need 1001 file descriptors, and this process may have 1000: at most 976 sessions fit, or raise the hard limit to 1001 (ulimit -Hn)",
		},
		{"three each over stdio", child, closed(326), "", self.Limits{FDs: 1000}, 0, "326 sessions need 1002 file descriptors, and this process may have 1000: at most 325 sessions fit, "},
		{"three each over stdio fit", child, closed(325), "", self.Limits{FDs: 1000}, 0, ""},
		{"one process for all", one, closed(100000), "", self.Limits{FDs: 1000, Processes: 100}, 0, ""},
		{"a pool", pooled, closed(100000), "", self.Limits{FDs: 1000, Ports: 100}, 0, ""},
		{"both ends are here", demo, closed(489), "", self.Limits{FDs: 1000}, 0, "489 sessions need 1002 file descriptors, and this process may have 1000: at most 488 sessions fit, "},
		{"both ends are here and fit", demo, closed(488), "", self.Limits{FDs: 1000}, 0, ""},
		{"processes", child, closed(100), "", self.Limits{Processes: 100}, 0, "100 processes of servers are needed, one for each session, and this user may have 100 "},
		{"processes fit", child, closed(99), "", self.Limits{Processes: 100}, 0, ""},
		{"no process over HTTP", web, closed(99999), "", self.Limits{Processes: 100}, 0, ""},
		{"ports fit", web, closed(28232), "", self.Limits{Ports: 28232}, 0, ""},
		{
			"ports", web, closed(28233), "",
			self.Limits{Ports: 28232},
			0,
			"28233 connections to 127.0.0.1:1 need as many local ports, and this machine has 28232 for each source address (net.ipv4.ip_local_port_range): " +
				"at most 28232 sessions, or 2 source addresses (--source-ip)",
		},
		{"ports of two addresses", web, closed(56464), "", self.Limits{Ports: 28232}, 2, ""},
		{"ports of two addresses are too few", web, closed(56465), "", self.Limits{Ports: 28232}, 2, "at most 56464 sessions, or 3 source addresses (--source-ip)"},
		{
			"two servers at one address", two, "g: {server: web, sessions: 60, duration: 1s}, h: {server: other, sessions: 41, duration: 1s}", "",
			self.Limits{Ports: 100},
			0,
			"101 connections to 127.0.0.1:1 need",
		},
		{"open load counts too", web, open("1/s", 101, ""), "", self.Limits{Ports: 100}, 0, "101 connections"},
		{"pauses allow the rate", web, open("10/s", 20, ""), ", {think: 1500ms}, {think: 500ms}", self.Limits{}, 0, ""},
		{
			"pauses forbid the rate", web, open("10/s", 19, ""), ", {think: 1500ms}, {think: 500ms}",
			self.Limits{},
			0,
			"group g: 10 iterations/s cannot be made by 19 sessions: each iteration pauses for 2s, so that 9.5/s is the most; 10/s needs at least 20 sessions (max_sessions, -c)",
		},
		{"several in flight", web, open("10/s", 5, ", in_flight: 4"), ", {think: 2s}", self.Limits{}, 0, ""},
		{"several in flight forbid it", web, open("10/s", 4, ", in_flight: 4"), ", {think: 2s}", self.Limits{}, 0, "10/s needs at least 5 sessions"},
		{"arrivals may be dropped", web, open("10/s", 1, ", on_saturation: drop"), ", {think: 2s}", self.Limits{}, 0, ""},
		{"pauses that may be short", web, open("10/s", 1, ""), ", {think: {exponential: 2s}}", self.Limits{}, 0, ""},
		{"a closed load waits", web, closed(1), ", {think: 2s}", self.Limits{}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := impossible(feasibleProgram(t, tt.servers, tt.groups, tt.steps), tt.limits, tt.sources)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
