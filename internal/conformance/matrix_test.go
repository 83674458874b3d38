package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	legacy = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}
	all    = append(slices.Clone(legacy), modern)
)

const modern = "2026-07-28"

// server is one server on one transport.
type server struct {
	name, transport string
	sessions        int
	speaks          []string
	url             func(t *testing.T) string                // HTTP
	command         func(t *testing.T, mark string) []string // stdio; mark appears in its arguments
	// offers: a refusal of a version lists what the server speaks.
	offers bool
	// oddities are the anomalies that this server is known to show.
	oddities []string
}

var servers = []server{
	{
		name: "go-sdk stateful", transport: "http", sessions: 50, speaks: legacy, offers: true,
		url: program(&bin.gosdkserver, "-mode", "stateful"),
	},
	{
		name: "go-sdk json", transport: "http", sessions: 50, speaks: legacy, offers: true,
		url: program(&bin.gosdkserver, "-mode", "json"),
	},
	{
		name: "go-sdk stateless", transport: "http", sessions: 50, speaks: all,
		url: program(&bin.gosdkserver, "-mode", "stateless"),
	},
	{
		name: "go-sdk", transport: "stdio", sessions: 50, speaks: all,
		command: func(_ *testing.T, mark string) []string {
			return []string{bin.gosdkserver, "-mode", "stdio", "-addr", mark}
		},
	},
	{
		name: "mcp-go", transport: "http", sessions: 50, speaks: all,
		url: program(&bin.mcpgoserver, "-mode", "http"),
	},
	{
		name: "mcp-go", transport: "stdio", sessions: 50, speaks: all,
		command: func(_ *testing.T, mark string) []string {
			return []string{bin.mcpgoserver, "-mode", "stdio", "-addr", mark}
		},
	},
	{
		name: "server-everything", transport: "http", sessions: 50, speaks: legacy,
		url: serveEverything,
	},
	{
		// Each session is a node process.
		name: "server-everything", transport: "stdio", sessions: 4, speaks: legacy,
		command: func(t *testing.T, mark string) []string {
			t.Helper()
			return script(t, "server-everything", "stdio", mark)
		},
	},
}

// program returns what starts an HTTP server; its path is known only after TestMain.
func program(path *string, args ...string) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		return serve(t, append([]string{*path}, args...)...)
	}
}

// engines are those of HTTP. The first is what auto takes; the other, which
// shares all but the wire with it, has half the time.
var engines = []string{"fast", "std"}

// TestMatrix runs one tool on each server, over each of its transports and with
// each engine of that, in each version.
func TestMatrix(t *testing.T) {
	for _, s := range servers {
		t.Run(s.name+" "+s.transport, func(t *testing.T) {
			var url string
			if s.url != nil {
				url = s.url(t)
			}
			for _, version := range all {
				if s.transport == "stdio" {
					t.Run(version, func(t *testing.T) { s.cell(t, url, "-", version) })
					continue
				}
				for _, engine := range engines {
					t.Run(version+" "+engine, func(t *testing.T) { s.cell(t, url, engine, version) })
				}
			}
		})
	}
}

// cell is one run of the matrix. engine is - over stdio.
func (s server) cell(t *testing.T, url, engine, version string) {
	t.Helper()
	duration := matrixDuration
	mark := fmt.Sprintf("conformance-%d", time.Now().UnixNano())
	args := []string{
		"-t", "echo", "-a", `{"message":"hi"}`, "--protocol", version,
		"-c", strconv.Itoa(s.sessions), "--connect-timeout", "30s", // node may take long to start on a busy machine
	}
	if engine == "std" {
		args, duration = append(args, "--http-engine", engine), duration/2
	}
	args = append(args, "-d", duration.String())
	var tail []string
	if s.command != nil {
		tail = append([]string{"--"}, s.command(t, mark)...)
	} else {
		args = append(args, "--url", url)
	}
	r := bench(t, args, tail...)
	if left := processesWith(t, mark); left > 0 {
		t.Errorf("%d processes of the server are left", left)
	}
	if slices.Contains(s.speaks, version) {
		s.checkRun(t, r, engine, version)
	} else {
		s.checkRefusal(t, r, version)
	}
	matrix.add(s, engine, version, r, t.Failed())
}

// checkRun demands a run without any fault.
func (s server) checkRun(t *testing.T, r *runResult, engine, version string) {
	t.Helper()
	if r.exit != 0 {
		t.Errorf("exit code %d, want 0", r.exit)
	}
	r.checkCounts(t)
	sum := r.summary
	for _, target := range sum.Targets {
		if s.transport == "http" && target.HTTPEngine != engine {
			t.Errorf("the engine was %q, want %q", target.HTTPEngine, engine)
		}
	}
	if sum.Requests.OK == 0 || sum.Requests.Failed != 0 || sum.Requests.Other != 0 {
		t.Errorf("requests: %d ok, %d failed, %d other, want only ok", sum.Requests.OK, sum.Requests.Failed, sum.Requests.Other)
	}
	for i, row := range r.requests {
		if row.ProtocolVersion != version || row.Transport != s.transport {
			t.Errorf("row %d has version %q and transport %q, want %q and %q", i, row.ProtocolVersion, row.Transport, version, s.transport)
			break
		}
	}
	n := int64(s.sessions)
	if c := sum.Sessions; c.Opened != n || c.Closed != n || c.Failed != 0 || c.Reopened != 0 {
		t.Errorf("sessions: %d opened, %d closed, %d failed, %d reopened, want %d, %d, 0, 0",
			c.Opened, c.Closed, c.Failed, c.Reopened, n, n)
	}
	if len(r.sessions) != s.sessions {
		t.Errorf("%d rows in sessions, want %d", len(r.sessions), s.sessions)
	}
	for i, row := range r.sessions {
		if row.Outcome != "ok" || row.Negotiated == nil || *row.Negotiated != version {
			t.Errorf("session row %d: %+v, want outcome ok and version %s", i, row, version)
			break
		}
	}
	for kind, count := range sum.Anomalies {
		if count > 0 && !slices.Contains(s.oddities, kind) {
			t.Errorf("anomaly %s ×%d is not among the expected ones %v", kind, count, s.oddities)
		}
	}
}

// checkRefusal demands that a version which the server does not speak ends the
// run with a message that names what it offers.
func (s server) checkRefusal(t *testing.T, r *runResult, version string) {
	t.Helper()
	if r.exit != 1 {
		t.Errorf("exit code %d, want 1", r.exit)
	}
	if r.summary != nil && r.summary.Requests.OK != 0 {
		t.Errorf("%d requests ok in a version that the server does not speak", r.summary.Requests.OK)
	}
	want := []string{version}
	if s.offers {
		want = append(want, s.speaks...)
	}
	for _, v := range want {
		if !strings.Contains(r.log, v) {
			t.Errorf("the message does not name %s", v)
		}
	}
}

// matrix collects the cells for the table at the end.
var matrix cells

type cells struct {
	mu   sync.Mutex
	rows []string
}

func (c *cells) add(s server, engine, version string, r *runResult, failed bool) {
	result := "ok"
	switch {
	case failed:
		result = "FAILED"
	case !slices.Contains(s.speaks, version):
		result = "refused, as it should be"
	}
	var count int64
	var rate, p50, p99 float64
	if sum := r.summary; sum != nil {
		count, rate = sum.Requests.Total, sum.Requests.RatePerS
		if len(sum.Steps) > 0 && sum.Steps[0].Service != nil {
			p50, p99 = sum.Steps[0].Service.P50, sum.Steps[0].Service.P99
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, fmt.Sprintf("%-18s %-6s %-6s %s %8d %9.0f %8.2f %8.2f  %s\n",
		s.name, s.transport, engine, version, count, rate, p50, p99, result))
}

func (c *cells) table() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.rows) == 0 {
		return ""
	}
	return fmt.Sprintf("%-18s %-6s %-6s %-10s %8s %9s %8s %8s  %s\n", "SERVER", "OVER", "ENGINE", "VERSION", "REQUESTS", "PER S", "P50 MS", "P99 MS", "RESULT") +
		strings.Join(c.rows, "")
}
