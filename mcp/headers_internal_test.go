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
	return !outer && (!strings.HasPrefix(s, "=?base64?") || !strings.HasSuffix(s, "?="))
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
	f.Fuzz(func(t *testing.T, method, name, s string, n int64, b bool) {
		a := sentArguments{s: s, n: n, b: b}
		params := a.params(t)
		for _, req := range []Request{
			{Method: method, Params: params, Name: name}, {Method: "tools/call", Params: params}, {Method: "resources/read", Params: params},
		} {
			x := &exchange{req: req, conn: &httpConn{o: Options{ParamHeaders: knownHeaders()}}}
			x.rules = &rules{Features: V20260728.Features(), version: V20260728}
			if err := x.prepare(); err == nil {
				checkHeaders(t, x.methodHeaders(), a.headers(&req))
			} else if plainHeader(req.Method) {
				t.Errorf("%q: %v", req.Method, err)
			}
		}
	})
}

// knownHeaders knows the tool t, with a header for each argument.
func knownHeaders() *ParamHeaders {
	tools := map[string][]paramHeader{"t": {
		{"Mcp-Param-S", []string{"s"}, "string"},
		{"Mcp-Param-Deep", []string{"o", "s"}, "string"},
		{"Mcp-Param-N", []string{"n"}, "integer"},
		{"Mcp-Param-B", []string{"b"}, "boolean"},
	}}
	h := &ParamHeaders{}
	h.tools.Store(&tools)
	return h
}

// sentArguments are those of a call of the tool t.
type sentArguments struct {
	s string
	n int64
	b bool
}

// params returns the params of a call, in which s is also the URI. What in s is no
// UTF-8 is not there any more.
func (a *sentArguments) params(t *testing.T) []byte {
	t.Helper()
	a.s = strings.Map(func(r rune) rune { return r }, a.s)
	params, err := json.Marshal(map[string]any{
		"name": "t", "uri": a.s, "arguments": map[string]any{"s": a.s, "n": a.n, "b": a.b, "o": map[string]string{"s": a.s}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return params
}

// headers returns what the headers of a request say.
func (a *sentArguments) headers(req *Request) map[string]string {
	want := map[string]string{"Mcp-Method": req.Method}
	switch {
	case nameMembers[req.Method] == "":
	case req.Name != "":
		want["Mcp-Name"] = req.Name
	case req.Method == "resources/read":
		want["Mcp-Name"] = a.s
	case nameMembers[req.Method] == "name":
		want["Mcp-Name"] = "t"
	}
	if req.Method == "tools/call" && (req.Name == "" || req.Name == "t") {
		want["Mcp-Param-S"], want["Mcp-Param-Deep"], want["Mcp-Param-B"] = a.s, a.s, strconv.FormatBool(a.b)
		if -1<<53 < a.n && a.n < 1<<53 {
			want["Mcp-Param-N"] = strconv.FormatInt(a.n, 10)
		}
	}
	return want
}

func checkHeaders(t *testing.T, got []headerField, want map[string]string) {
	t.Helper()
	for _, h := range got {
		text, expected := want[h.name]
		if !expected {
			t.Errorf("%s is sent", h.name)
		}
		checkHeader(t, h.name, h.value, text)
	}
	if len(got) != len(want) {
		t.Errorf("headers %q, want %q", got, want)
	}
}
