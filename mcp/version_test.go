package mcp_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestFeatures(t *testing.T) {
	legacy := mcp.Features{Handshake: true, ServerSession: true, ServerRequests: true}
	b, c := legacy, legacy
	b.GetStream, b.Batches = true, true
	c.GetStream, c.VersionHeader = true, true
	want := map[mcp.Version]mcp.Features{
		mcp.V20241105: legacy,
		mcp.V20250326: b,
		mcp.V20250618: c,
		mcp.V20251125: c,
		mcp.V20260728: {
			VersionHeader: true, MethodHeaders: true, RequestMeta: true, RequestLogLevel: true, CacheHints: true,
			CancelByClose: true, ResultType: true, EmptyCursor: true,
		},
		"2030-01-01": {},
	}
	for v, f := range want {
		if d := cmp.Diff(f, v.Features(), cmpopts.IgnoreUnexported(mcp.Features{})); d != "" {
			t.Errorf("%s: (-want +got)\n%s", v, d)
		}
	}
}

func TestFeaturesHas(t *testing.T) {
	all := "ABCDE"
	tests := map[string]string{
		"initialize": "ABCD", "ping": "ABCD", "logging/setLevel": "ABCD", "resources/subscribe": "ABCD",
		"server/discover": "E", "subscriptions/listen": "E", "tools/list": all, "tools/call": all,
		"resources/templates/list": all, "completion/complete": all, "tasks/get": "DE", "tasks/result": "D",
		"tasks/update": "E", "notifications/roots/list_changed": "ABCD", "acme/custom": all,
	}
	versions := mcp.Versions() // newest first
	for method, want := range tests {
		got := ""
		for i, letter := range all {
			if versions[len(versions)-1-i].Features().Has(method) {
				got += string(letter)
			}
		}
		if got != want {
			t.Errorf("%s exists in %s, want %s", method, got, want)
		}
	}
}

func TestParseVersion(t *testing.T) {
	for _, v := range mcp.Versions() {
		if got, err := mcp.ParseVersion(string(v)); err != nil || got != v {
			t.Errorf("ParseVersion(%q) = %q, %v", v, got, err)
		}
	}
	for _, s := range []string{"", "2030-01-01", "2025-11-25 ", "draft"} {
		_, err := mcp.ParseVersion(s)
		contains(t, err, "2026-07-28", "2024-11-05")
		if mcp.Version(s).Known() {
			t.Errorf("%q is known", s)
		}
	}
}

func TestEnumsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range mcp.Anomalies() {
		if s := a.String(); s == "invalid" || s == "" || seen[s] {
			t.Errorf("anomaly %d has the name %q", a, s)
		} else {
			seen[s] = true
		}
	}
	for got, want := range map[string]string{
		mcp.AnomalyStdoutNoise.String(): "stdout_noise", mcp.AnomalyKilled.String(): "killed",
		mcp.FaultBadJSON.String(): "bad_json", mcp.FaultCursor.String(): "cursor",
		mcp.LimitMessage.String(): "message_bytes", mcp.LimitPages.String(): "pages",
		mcp.ClassRefused.String(): "refused", mcp.ClassMemory.String(): "memory", mcp.ClassEnded.String(): "ended",
		mcp.Anomaly(0).String(): "invalid", mcp.TransportClass(99).String(): "invalid",
	} {
		if got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{&mcp.RPCError{Code: -32602, Message: "no"}, "JSON-RPC error -32602: no"},
		{&mcp.RPCError{Code: -32020, Message: "no", HTTPStatus: 400}, "JSON-RPC error -32020 (HTTP 400): no"},
		{&mcp.HTTPError{Status: 429, Header: "Retry-After: 3", Body: "slow"}, "HTTP status 429, Retry-After: 3: slow"},
		{&mcp.ExitError{Code: 3}, "the server process exited with code 3"},
		{&mcp.ExitError{Code: -1, Signal: 9, Stderr: "a\n\nb\n"}, "signal 9 (killed); stderr ends: a | b"},
		{&mcp.LimitError{Limit: mcp.LimitMessage, Max: 5}, "limit exceeded: message_bytes over 5"},
		{&mcp.VersionError{Asked: mcp.V20251125, Answer: "2030-01-01"}, `asked for protocol version 2025-11-25, the server answered "2030-01-01"`},
		{&mcp.VersionError{Asked: mcp.V20260728, Offered: []string{"2025-11-25"}}, "it offers 2025-11-25"},
		{&mcp.TransportError{Op: "read", Err: io.ErrUnexpectedEOF}, "read: unexpected EOF"},
		{&mcp.ProtocolError{Kind: mcp.FaultBatch, Detail: "[1]", Err: io.EOF}, "protocol error batch: [1]: EOF"},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); !strings.Contains(got, tt.want) {
			t.Errorf("text %q, want %q", got, tt.want)
		}
	}
	for _, err := range []error{
		&mcp.TransportError{Op: "read", Err: io.EOF}, &mcp.ProtocolError{Err: io.EOF},
	} {
		if !errors.Is(err, io.EOF) {
			t.Errorf("%v does not wrap its cause", err)
		}
	}
}

func TestSessionLost(t *testing.T) {
	tests := []struct {
		err  error
		want bool
	}{
		{&mcp.HTTPError{Status: 404, Lost: true}, true},
		{&mcp.HTTPError{Status: 404}, false},
		{&mcp.ExitError{Code: 1}, true},
		{&mcp.RPCError{Code: -32000}, false},
		{&mcp.TransportError{Op: "read", Err: io.EOF}, false},
		{nil, false},
	}
	for _, tt := range tests {
		if got := mcp.SessionLost(tt.err); got != tt.want {
			t.Errorf("SessionLost(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}
