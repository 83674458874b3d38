package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/mcp"
	"mcpbench/scenarios"
)

func testWatch(t *testing.T) *callWatch {
	t.Helper()
	const text = `
version: 1
servers: {s: {url: "http://127.0.0.1:1/", headers: {X-Key: secret}}}
load: {groups: {g: {iterations: 1}}}
flows: {f: {steps: [{ping: {}}]}}
`
	s, err := scenarios.Load("a.yaml", []byte(text), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return newCallWatch(s.Masker())
}

// What nobody takes away is bounded, and counted; it is asked for again after it was taken.
func TestCallWatchIsBounded(t *testing.T) {
	w := testWatch(t)
	long := []byte(strings.Repeat("x", 1<<20))
	const n = 1000
	for range n {
		w.frame(mcp.Frame{Data: long})
	}
	seen, more := w.next()
	if got := len(seen) + w.left; got != n || !more || len(seen) > callBytes/callFrameText || len(seen) < callBytes/callFrameText-10 {
		t.Errorf("%d seen, %d left, more: %v", len(seen), w.left, more)
	}
	if f := seen[0].frame; len(f.Text) != callFrameText || f.Bytes != 1<<20 || f.Cut != 1<<20-callFrameText {
		t.Errorf("%d bytes, cut %d, text %d", f.Bytes, f.Cut, len(f.Text))
	}
	w.mute(true)
	w.frame(mcp.Frame{Data: long})
	w.anomaly(mcp.AnomalyBatch, "")
	w.mute(false)
	w.frame(mcp.Frame{Data: []byte("last")})
	for range 2 * callAnomalies {
		w.anomaly(mcp.AnomalyBatch, "a secret")
	}
	w.end()
	seen, more = w.next()
	if len(seen) != 1 || seen[0].frame.Text != "last" || more {
		t.Errorf("%d seen, more: %v", len(seen), more)
	}
	if len(w.anomalies) != callAnomalies || w.anomalies[0] != "batch: a ***" {
		t.Errorf("%d anomalies, %q", len(w.anomalies), w.anomalies[0])
	}
}

// Stderr comes in parts, and is shown in lines, without secrets.
func TestCallWatchOfStderr(t *testing.T) {
	w := testWatch(t)
	for _, part := range []string{"one\ntwo is a sec", "ret\r\n\n", strings.Repeat("y", 300_000), "z\nlast"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	w.Flush()
	w.end()
	seen, _ := w.next()
	var lines []string
	for _, s := range seen {
		lines = append(lines, s.line)
	}
	want := []string{"one", "two is a ***", strings.Repeat("y", callLine), "last"}
	if d := cmp.Diff(want, lines); d != "" {
		t.Errorf("(-want +got)\n%.400s", d)
	}
}

// The timing of the stream that answers the request is told from those of the
// handshake before it and of other messages.
func TestCallWatchTimesTheStream(t *testing.T) {
	const stream = "Content-Type: text/event-stream; charset=utf-8"
	w := testWatch(t)
	for _, f := range []mcp.Frame{
		{At: 1, Channel: mcp.ChannelPost, Status: 200, Header: []string{stream}},
		{At: 2, Channel: mcp.ChannelEvent, Data: []byte("{}")},
		{At: 5, Channel: mcp.ChannelGet, Status: 200, Header: []string{stream}},
		{At: 11, Channel: mcp.ChannelPost, Status: 202},
		{At: 12, Channel: mcp.ChannelPost, Status: 200, Header: []string{"Mcp-Session-Id: x", stream}},
		{At: 13, Channel: mcp.ChannelEvent},
		{At: 14, Channel: mcp.ChannelGet, Data: []byte("{}")},
		{At: 15, Channel: mcp.ChannelEvent, Data: []byte("{}")},
		{At: 16, Channel: mcp.ChannelEvent, Data: []byte("{}")},
	} {
		w.frame(f)
	}
	for _, tt := range [][3]time.Duration{{1, 1, 2}, {10, 12, 15}, {13, -1, -1}} {
		head, event := w.stream(tt[0])
		if got := []time.Duration{head, event}; !slices.Equal(got, tt[1:]) {
			t.Errorf("sent at %d: %v, want %v", tt[0], got, tt[1:])
		}
	}
}

// The session in the URL of an endpoint event is a secret like the one in a header.
func TestCallWatchHidesTheSession(t *testing.T) {
	w := testWatch(t)
	w.frame(mcp.Frame{Channel: mcp.ChannelGet, Event: "endpoint", Data: []byte("/message?sessionId=abcdef&tenant=1")})
	w.frame(mcp.Frame{Channel: mcp.ChannelPost, Header: []string{"Mcp-Session-Id: abcdefghijklmnop", "Location: http://u:p@h/?token=x"}})
	seen, _ := w.next()
	if text := seen[0].frame.Text; text != "/message?sessionId=***&tenant=1" {
		t.Error(text)
	}
	if d := cmp.Diff([]string{"Mcp-Session-Id: abcd***", "Location: http://u:***@h/?token=***"}, seen[1].frame.Header); d != "" {
		t.Error(d)
	}
}
