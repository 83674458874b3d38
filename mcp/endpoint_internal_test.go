package mcp

import (
	"net/url"
	"strings"
	"testing"
)

// Wire test 36, fault B27: what an endpoint event may name.
func TestResolveEndpoint(t *testing.T) {
	tests := []struct {
		base, text, want string // want "" is a refusal
	}{
		{"http://h/sse", "/message?session=1", "http://h/message?session=1"},
		{"http://h/sse", "message?session=1", "http://h/message?session=1"},
		{"http://h/a/b/sse", "message", "http://h/a/b/message"},
		{"http://h/a/b/sse", "../message", "http://h/a/message"},
		{"http://h/sse?tenant=1", "?session=1", "http://h/sse?session=1"},
		{"http://h", "?session=1", "http://h?session=1"},
		{"http://h/sse", "http://h/message", "http://h/message"},
		{"http://h/sse", "http://h:80/message", "http://h/message"},
		{"http://h:80/sse", "http://h/message", "http://h:80/message"},
		{"https://h/sse", "https://h:443/message", "https://h/message"},
		{"http://h:8080/sse", "http://h:8080/m", "http://h:8080/m"},
		{"http://h/sse", "HTTP://H/message", "http://h/message"},
		{"http://h/sse", "//h/message", "http://h/message"},
		{"http://[::1]:8080/sse", "http://[::1]:8080/m", "http://[::1]:8080/m"},
		{"http://h/sse", "http://user:secret@h/message", "http://h/message"},
		{"http://h/sse", "/message?session=1#part", "http://h/message?session=1"},
		{"http://h/sse", " /message \n", "http://h/message"},
		{"http://h/sse", "/a b?c d\u00e9", "http://h/a%20b?c%20d%C3%A9"},
		{"http://h/sse", "", ""},
		{"http://h/sse", "http://other/message", ""},
		{"http://h/sse", "http://h:8080/message", ""},
		{"http://h:8080/sse", "http://h/message", ""},
		{"https://h/sse", "http://h/message", ""},
		{"http://h/sse", "https://h/message", ""},
		{"http://h/sse", "//other/message", ""},
		{"http://h/sse", "http:message", ""},
		{"http://h/sse", "javascript:alert(1)", ""},
		{"http://h/sse", "mailto:a@h", ""},
		{"http://h/sse", "http:///message", ""},
		{"http://h/sse", "http://h.evil/message", ""},
		{"http://h/sse", "http://h@evil/message", ""},
		{"http://h/sse", "/message\r\nHost: evil", ""},
		{"http://h/sse", "%zz", ""},
		{"http://h/sse", `{"uri":"/message"}`, ""},
	}
	for _, tt := range tests {
		base, err := url.Parse(tt.base)
		if err != nil {
			t.Fatal(err)
		}
		u, err := resolveEndpoint(base, tt.text)
		switch {
		case err != nil && tt.want != "":
			t.Errorf("%q at %s: %v", tt.text, tt.base, err)
		case err == nil && u.String() != tt.want:
			t.Errorf("%q at %s: %s, want %q", tt.text, tt.base, u, tt.want)
		}
	}
}

// FuzzEndpoint looks for a text of a server that leads elsewhere, or breaks the
// request line.
func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{
		"/message?session=1", "?a b", "http://h:8080/x", "//h:8080/../..//x", "http://h:8080@evil/", "\\\\evil\\x",
		"http://evil/", "/\x00", "http://[::1%25eth0]:8080/", "/%0d%0aHost:%20evil", "http://H:8080/?q#f", "../../x;y=1,2",
	} {
		f.Add(s)
	}
	base, err := url.Parse("http://h:8080/a/sse?x=1")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := resolveEndpoint(base, text)
		if err != nil {
			return
		}
		if u.Scheme != "http" || u.Host != "h:8080" || u.User != nil || u.Opaque != "" || u.Fragment != "" {
			t.Errorf("%q led to %s", text, u)
		}
		target := u.RequestURI()
		if !strings.HasPrefix(target, "/") || strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q gave the request target %q", text, target)
		}
	})
}
