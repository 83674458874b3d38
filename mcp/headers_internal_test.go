package mcp

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// decodedHeader reads a header value as a server does (specification 2026-07-28,
// basic/transports, value encoding).
func decodedHeader(t *testing.T, value string) string {
	t.Helper()
	inner, begins := strings.CutPrefix(value, "=?base64?")
	inner, ends := strings.CutSuffix(inner, "?=")
	if !begins || !ends {
		return value
	}
	plain, err := base64.StdEncoding.Strict().DecodeString(inner)
	if err != nil {
		t.Fatalf("%q: %v", value, err)
	}
	return string(plain)
}

// plainHeader reports whether a text is to be sent as it is.
func plainHeader(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\t' && (c < 0x20 || c > 0x7e) {
			return false
		}
	}
	outer := s != "" && strings.ContainsAny(s[:1]+s[len(s)-1:], " \t")
	return !outer && !(strings.HasPrefix(s, "=?base64?") && strings.HasSuffix(s, "?="))
}

// checkHeader fails unless a header value carries the text: RFC 9110, section 5.5,
// allows it, it decodes to the text, and it is the text itself where that can be.
func checkHeader(t *testing.T, name, value, text string) {
	t.Helper()
	for i := range len(value) {
		c := value[i]
		visible := c > 0x20 && c < 0x7f
		inside := (c == ' ' || c == '\t') && i > 0 && i < len(value)-1
		if !visible && !inside {
			t.Errorf("%s: %q has %#x at %d", name, value, c, i)
		}
	}
	if got := decodedHeader(t, value); got != text {
		t.Errorf("%s: %q says %q, want %q", name, value, got, text)
	}
	if plainHeader(text) != (value == text) {
		t.Errorf("%s: %q is sent as %q", name, text, value)
	}
}

// FuzzHeaders: whatever a request names and whatever its arguments are, its
// headers can be sent and say the same as its body.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{
		"", "resize", "a b", "a\tb", " a", "a ", "\ta", "\t", " ", "größe", "日本", "a\r\nX-Evil: 1", "a\n", "\x00", "a\x7f", "\xff",
		"=?base64?x?=", "=?base64?=", "=?base64??=", "=?base64?", "?=", "=?BASE64?x?=", " =?base64?x?=", "toy://a?b=c d",
	} {
		f.Add("tools/call", s, s, int64(42), true)
		f.Add(s, "echo", s, int64(-7), false)
	}
	f.Add("resources/read", "toy://ü", "", int64(1<<53), false)
	tools := map[string][]paramHeader{"t": {
		{"Mcp-Param-S", []string{"s"}, "string"}, {"Mcp-Param-Deep", []string{"o", "s"}, "string"},
		{"Mcp-Param-N", []string{"n"}, "integer"}, {"Mcp-Param-B", []string{"b"}, "boolean"},
	}}
	known := &ParamHeaders{}
	known.tools.Store(&tools)
	f.Fuzz(func(t *testing.T, method, name, s string, n int64, b bool) {
		quoted, _ := json.Marshal(s) // what is no UTF-8 becomes U+FFFD
		if json.Unmarshal(quoted, &s) != nil {
			t.Fatal("no JSON")
		}
		arguments := map[string]any{"s": s, "n": n, "b": b, "o": map[string]string{"s": s}}
		params, err := json.Marshal(map[string]any{"name": "t", "uri": s, "arguments": arguments})
		if err != nil {
			t.Fatal(err)
		}
		for _, req := range []Request{{Method: method, Params: params, Name: name}, {Method: "tools/call", Params: params}, {Method: "resources/read", Params: params}} {
			x := &exchange{req: req, conn: &httpConn{o: Options{ParamHeaders: known}}}
			x.rules = &rules{Features: V20260728.Features(), version: V20260728}
			if err := x.prepare(); err != nil {
				if plainHeader(method) {
					t.Errorf("%q: %v", method, err)
				}
				continue
			}
			want := map[string]string{"Mcp-Method": req.Method}
			switch {
			case nameMembers[req.Method] == "":
			case req.Name != "":
				want["Mcp-Name"] = req.Name
			case req.Method == "resources/read":
				want["Mcp-Name"] = s
			case nameMembers[req.Method] == "name":
				want["Mcp-Name"] = "t"
			}
			if req.Method == "tools/call" && (req.Name == "" || req.Name == "t") {
				want["Mcp-Param-S"], want["Mcp-Param-Deep"] = s, s
				want["Mcp-Param-B"] = strconv.FormatBool(b)
				if -1<<53 < n && n < 1<<53 {
					want["Mcp-Param-N"] = strconv.FormatInt(n, 10)
				}
			}
			got := x.methodHeaders()
			for _, h := range got {
				text, expected := want[h.name]
				if !expected {
					t.Errorf("%s of %q", h.name, req.Method)
				}
				checkHeader(t, h.name, h.value, text)
			}
			if len(got) < len(want) {
				t.Errorf("%q has the headers %q, want %q", req.Method, got, want)
			}
		}
	})
}
