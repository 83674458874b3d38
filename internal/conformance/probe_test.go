package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

type decision struct {
	transport, version, era string
	attempts                []string
}

// decisions are what each server is to be found to speak when nothing is pinned,
// and by which attempts.
var decisions = map[string]decision{
	"go-sdk stateful http":    {"http", "2025-11-25", "legacy", []string{"http server/discover", "http initialize"}},
	"go-sdk json http":        {"http", "2025-11-25", "legacy", []string{"http server/discover", "http initialize"}},
	"go-sdk stateless http":   {"http", modern, "modern", []string{"http server/discover"}},
	"go-sdk stdio":            {"stdio", modern, "modern", []string{"stdio server/discover"}},
	"mcp-go http":             {"http", modern, "modern", []string{"http server/discover"}},
	"mcp-go stdio":            {"stdio", modern, "modern", []string{"stdio server/discover"}},
	"server-everything http":  {"http", "2025-11-25", "legacy", []string{"http server/discover", "http initialize"}},
	"server-everything stdio": {"stdio", "2025-11-25", "legacy", []string{"stdio server/discover", "stdio initialize"}},
	"go-sdk sse":              {"sse", "2025-11-25", "legacy", []string{"http server/discover", "http initialize", "sse initialize"}},
	"mcp-go sse":              {"sse", "2025-11-25", "legacy", []string{"http server/discover", "http initialize", "sse initialize"}},
	"server-everything sse":   {"sse", "2025-11-25", "legacy", []string{"http server/discover", "http initialize", "sse initialize"}},
}

// TestProbing runs each server of the matrix without a word on version and transport.
func TestProbing(t *testing.T) {
	for _, s := range servers {
		name := s.name + " " + s.transport
		want, ok := decisions[name]
		if !ok {
			t.Errorf("no decision is known for %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) { s.probe(t, want) })
	}
}

func (s server) probe(t *testing.T, want decision) {
	t.Helper()
	mark := fmt.Sprintf("conformance-%d", time.Now().UnixNano())
	args := []string{"-t", "echo", "-a", args, "-c", "2", "-n", "20", "--connect-timeout", "30s"}
	var tail []string
	if s.command != nil {
		tail = append([]string{"--"}, s.command(t, mark)...)
	} else {
		args = append(args, "--url", s.url(t))
	}
	r := bench(t, args, tail...)
	if left := processesWith(t, mark); left > 0 {
		t.Errorf("%d processes of the server are left", left)
	}
	if r.exit != 0 || r.summary == nil || len(r.summary.Targets) != 1 {
		t.Fatalf("exit code %d", r.exit)
	}
	r.checkCounts(t)
	target := r.summary.Targets[0]
	got := decision{transport: target.Transport, version: target.ProtocolVersion, era: target.Era}
	for _, line := range target.Probe {
		got.attempts = append(got.attempts, strings.Join(strings.Fields(line)[:2], " "))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("decided %v, want %v", got, want)
	}
	for i, row := range r.requests {
		if row.ProtocolVersion != want.version || row.Transport != want.transport {
			t.Errorf("row %d has version %q and transport %q", i, row.ProtocolVersion, row.Transport)
		}
	}
	if len(r.summary.Anomalies) > 0 {
		t.Errorf("anomalies %v", r.summary.Anomalies)
	}
	t.Logf("%s, %s: %s", target.Transport, target.ProtocolVersion, strings.Join(target.Probe, "; "))
}
