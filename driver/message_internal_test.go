package driver

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpbench/mcp"
)

func TestMask(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"plain text", "plain text"},
		{"timeout after 30s", "timeout after #s"},
		{"dial tcp 127.0.0.1:8080: connect: connection refused", "dial tcp #: connect: connection refused"},
		{"session 4f9c2e17-1111-4a3b-9f00-aabbccddeeff is gone", "session # is gone"},
		{"id deadbeef01", "id #"},
		{"deadbeef", "deadbeef"}, // a word without a digit
		{"item12 and item13", "item# and item#"},
		{"line 1:", "line #:"},
		{"asked for 2026-07-28, it offers 2025-11-25, 2025-06-18 and 2031-01-01", "asked for 2026-07-28, it offers 2025-11-25, 2025-06-18 and #"},
		{"2025-11-251", "#"},
		{"größe 5 €", "größe # €"},
		{"", ""},
		{"\xff\xfe", "�"},
	} {
		if got := mask(tc.in); got != tc.want {
			t.Errorf("mask(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add("a 1 b")
	f.Add(strings.Repeat("é", 300))
	f.Fuzz(func(t *testing.T, s string) {
		got := mask(s)
		if len(got) > maxMessage || !utf8.ValidString(got) || !strings.Contains(s, "-") && strings.ContainsAny(got, "0123456789") {
			t.Errorf("mask(%q) = %q", s, got)
		}
	})
}

func TestMessageIsWhatThePeerSaid(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&mcp.RPCError{Code: -32602, Message: "unknown tool 17"}, "unknown tool #"},
		{&mcp.HTTPError{Status: 503, Body: "busy"}, "busy"},
		{errors.New("read: reset"), "read: reset"},
	} {
		if got := message(tc.err); got != tc.want {
			t.Errorf("message(%v) = %q, want %q", tc.err, got, tc.want)
		}
	}
	if got := toolMessage(json.RawMessage(`{"isError":true,"content":[{"type":"image"},{"type":"text","text":"no file 7"}]}`)); got != "no file #" {
		t.Errorf("toolMessage = %q", got)
	}
	if got := toolMessage(json.RawMessage(`not json`)); got != "" {
		t.Errorf("toolMessage of rubbish = %q", got)
	}
}
