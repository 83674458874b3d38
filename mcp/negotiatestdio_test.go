package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// Wire tests 30, 32, 33 and 34: what each answer over stdio means, and which of
// them leaves a process that can be sent initialize.
func TestProbeStdio(t *testing.T) {
	const discover, initialize, initialized = " server/discover", " initialize", " notifications/initialized"
	same := []string{"1" + discover, "1" + initialize, "1" + initialized}
	fresh := []string{"1" + discover, "2" + initialize, "2" + initialized}
	only := []string{"1" + discover}
	duplicate := rpcError(0, 0) // go-sdk: initialize after a server/discover that it answered
	initializeResult := mcptest.Answer{Result: new(mcptest.Peer).InitializeResult("2025-11-25")}
	tests := []struct {
		name       string
		discover   mcptest.Answer
		initialize []mcptest.Answer
		want       mcp.Version
		messages   []string
		took       time.Duration
		anomalies  map[mcp.Anomaly]int
		text       string
		tried      string // what the first attempt says
	}{
		{name: "modern", discover: mcptest.Answer{Result: `{"supportedVersions":["2026-07-28"],"capabilities":{}}`}, want: mcp.V20260728, messages: only},
		{name: "only legacy listed", discover: legacyList, want: mcp.V20251125, messages: fresh},
		{name: "-32022 with legacy ones", discover: unsupported(`"2025-06-18"`), want: mcp.V20250618, messages: same},
		{name: "-32022 with nothing in common", discover: unsupported(`"2031-01-01"`), messages: only, text: "offers 2031-01-01"},
		{name: "-32022 with what it refused", discover: unsupported(`"2026-07-28"`), messages: only, text: "no common protocol version"},
		{name: "-32020", discover: rpcError(0, -32020), messages: only, text: "a modern one"},
		{name: "-32021", discover: rpcError(0, -32021), messages: only, text: "a modern one"},
		{name: "-32601", discover: rpcError(0, -32601), want: mcp.V20251125, messages: same},
		{name: "-32602", discover: rpcError(0, -32602), want: mcp.V20251125, messages: same},
		{name: "-32000", discover: rpcError(0, -32000), want: mcp.V20251125, messages: same},
		{name: "code 0", discover: rpcError(0, 0), want: mcp.V20251125, messages: same},
		{name: "a positive code", discover: rpcError(0, 7), want: mcp.V20251125, messages: same},
		{name: "silence", discover: mcptest.Answer{Silent: true}, want: mcp.V20251125, messages: same, took: 5 * time.Second, tried: "gave up: no answer within 5s"},
		{
			name: "a late answer", discover: mcptest.Answer{Delay: 6 * time.Second, Error: `{"code":-32601,"message":"no"}`},
			initialize: []mcptest.Answer{{Delay: 2 * time.Second, Result: initializeResult.Result}},
			want:       mcp.V20251125, messages: same, took: 7 * time.Second, anomalies: map[mcp.Anomaly]int{mcp.AnomalyLateAnswer: 1},
		},
		{
			name:       "a late result, and initialize is a duplicate (go-sdk)",
			discover:   mcptest.Answer{Delay: 6 * time.Second, Result: `{"supportedVersions":["2026-07-28"],"capabilities":{}}`},
			initialize: []mcptest.Answer{{Delay: 2 * time.Second, Error: duplicate.Error}, initializeResult},
			want:       mcp.V20251125, messages: []string{"1" + discover, "1" + initialize, "2" + initialize, "2" + initialized},
			took: 7 * time.Second, anomalies: map[mcp.Anomaly]int{mcp.AnomalyLateAnswer: 1},
		},
		{name: "it dies", discover: mcptest.Answer{Cut: true}, want: mcp.V20251125, messages: fresh},
		{name: "a result of another kind", discover: mcptest.Answer{Result: `{}`}, want: mcp.V20251125, messages: fresh},
		{name: "an answer with neither", discover: mcptest.Answer{JSON: `{"jsonrpc":"2.0","id":$ID}`}, want: mcp.V20251125, messages: fresh},
		{
			name: "neither is understood", discover: rpcError(0, -32601), initialize: []mcptest.Answer{rpcError(0, -32603)},
			messages: []string{"1" + discover, "1" + initialize, "2" + initialize}, text: "initialize: JSON-RPC error -32603",
		},
		{
			name: "silence for ever", discover: mcptest.Answer{Silent: true}, initialize: []mcptest.Answer{{Silent: true}},
			messages: same[:2], took: 20 * time.Second, text: "probe limit",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := (&mcptest.Peer{}).On("server/discover", tt.discover)
				if tt.initialize != nil {
					p.On("initialize", tt.initialize...)
				}
				var a mcptest.Anomalies
				start := time.Now()
				tr := p.Stdio(t)
				d, err := negotiate(t, tr, nil, mcp.Options{OnAnomaly: a.Tell})
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if d.Version != tt.want || d.Transport != tr || (err == nil) != (tt.want != "") {
					t.Errorf("decided for %s, %v", d.Version, err)
				}
				if tt.text != "" {
					contains(t, err, tt.text)
				}
				if !strings.HasSuffix(d.Tried[0].String(), tt.tried) {
					t.Errorf("tried %s, want %s", d.Tried[0], tt.tried)
				}
				checkProbe(t, p, &a, tt.messages, tt.anomalies)
			})
		})
	}
}

// checkProbe compares what went to which process, and what was odd.
func checkProbe(t *testing.T, p *mcptest.Peer, a *mcptest.Anomalies, want []string, odd map[mcp.Anomaly]int) {
	t.Helper()
	synctest.Wait()
	var messages []string
	for _, r := range p.Received() {
		messages = append(messages, fmt.Sprintf("%d %s", r.Conn, r.Method))
		if r.Method != "server/discover" && strings.Contains(r.Body, "_meta") {
			t.Errorf("a legacy message describes itself as a modern one: %s", r.Body)
		}
	}
	if d := cmp.Diff(want, messages); d != "" {
		t.Errorf("messages (-want +got)\n%s", d)
	}
	if odd == nil {
		odd = map[mcp.Anomaly]int{}
	}
	if d := cmp.Diff(odd, a.Counts()); d != "" {
		t.Errorf("anomalies (-want +got)\n%s", d)
	}
}

// Wire test 33: a pinned version is not asked about.
func TestPinnedStdioIsNotProbed(t *testing.T) {
	for _, v := range mcp.Versions() {
		synctest.Test(t, func(t *testing.T) {
			p := &mcptest.Peer{}
			d, err := negotiate(t, p.Stdio(t), nil, mcp.Options{Version: v})
			if err != nil || d.Version != v || len(d.Tried) != 1 {
				t.Errorf("%s: %+v, %v", v, d, err)
			}
		})
	}
}

// The parts of a real process: the probe leaves none behind.
func TestProbeProcess(t *testing.T) {
	mcptest.NoLeaks(t)
	for mode, want := range map[string]mcp.Version{mcptest.Plain: mcp.V20260728, mcptest.Noisy: mcp.V20260728, mcptest.Dies: ""} {
		d, err := mcp.Probe(t.Context(), mcptest.Process(t, mode), nil, mcp.Options{})
		if d.Version != want || (err == nil) != (want != "") {
			t.Errorf("%s: decided for %s, %v", mode, d.Version, err)
		}
		if err != nil {
			contains(t, err, "exited with code 3", "cannot open the database")
		}
	}
	_, err := mcp.Probe(t.Context(), &mcp.Stdio{Command: "no-such-command-here"}, nil, mcp.Options{})
	contains(t, err, "no-such-command-here")
}

// A session that went on in an older version on the process that had refused
// server/discover keeps the rules of that version: changes of lists come unasked there.
func TestListChangesAfterARefusedDiscover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := (&mcptest.Peer{}).On("server/discover", rpcError(0, -32601)).
			On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{change(toolsChanged, "", "")}, Result: echoed})
		var a mcptest.Anomalies
		s, d, err := mcp.Negotiate(t.Context(), p.Stdio(t), nil, mcp.Options{OnAnomaly: a.Tell})
		if err != nil || d.Version != mcp.V20251125 {
			t.Fatalf("decided for %s, %v", d.Version, err)
		}
		defer func() { _ = s.Close(t.Context()) }()
		u, _, err := s.Subscribe(t.Context(), mcp.Filter{ToolsListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Call(t.Context(), echo); err != nil {
			t.Error(err)
		}
		if n, err := u.Next(within(t, time.Second)); err != nil || n.Method != toolsChanged {
			t.Errorf("got %q, %v", n.Method, err)
		}
		wantAnomalies(t, &a, map[mcp.Anomaly]int{})
	})
}
