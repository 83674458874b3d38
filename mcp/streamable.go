package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Streamable reaches a server over Streamable HTTP. Each Conn has connections
// of its own, unless there is a pool. Proxies named in the environment are not used and redirects are
// not followed: both would be measured as the server.
type Streamable struct {
	URL string // http or https
	// Header goes with every HTTP request, for instance Authorization. What
	// the protocol itself sends overrides it.
	Header http.Header
	// TLS configures https; nil means the system's roots.
	TLS *tls.Config
	// Engine is the implementation of HTTP; "" is EngineAuto.
	Engine Engine
	// DialContext opens connections; nil means TCP. What passes the data of a socket
	// on as it is may have a method Socket() *net.TCPConn, by which the fast engine
	// then reads and writes with fewer system calls.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// Connections, unless nil, is the pool that all who name it share.
	Connections *Connections
}

// Kind returns http.
func (*Streamable) Kind() string { return "http" }

// Dial checks the configuration. The first connection is opened by the first request.
func (s *Streamable) Dial(ctx context.Context, o Options) (Conn, error) {
	o = o.withDefaults()
	e, name, _, err := s.newEngine(&o)
	if err != nil {
		return nil, err
	}
	return newHTTPConn(ctx, e, name, o), nil
}

// newEngine checks the configuration and returns an engine for messages to the URL.
func (s *Streamable) newEngine(o *Options) (engine, Engine, *url.URL, error) {
	u, err := parseURL(s.URL)
	if err != nil {
		return nil, "", nil, err
	}
	header, err := s.header(u, o)
	if err != nil {
		return nil, "", nil, err
	}
	name, err := s.chooseEngine(u, header)
	if err != nil {
		return nil, "", nil, err
	}
	if name == EngineStd {
		return newNetEngine(u, header, s, o), name, u, nil
	}
	return newFastEngine(u, header, s, o), name, u, nil
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		// The error of net/url repeats the text, which may hold a password.
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fmt.Errorf("server URL: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("server URL %q: the scheme must be http or https", u.Redacted())
	case u.Host == "":
		return nil, fmt.Errorf("server URL %q: no host", u.Redacted())
	}
	u.Fragment = ""
	return u, nil
}

// header returns what goes with every request: the user's fields, a
// User-Agent, and the credentials that the URL may hold.
func (s *Streamable) header(u *url.URL, o *Options) (http.Header, error) {
	header := make(http.Header, len(s.Header)+2)
	for name, values := range s.Header {
		if !isToken(name) {
			return nil, fmt.Errorf("HTTP header %q: the name has a character that is not allowed", name)
		}
		for _, v := range values {
			if strings.ContainsFunc(v, isControl) {
				return nil, fmt.Errorf("HTTP header %q: the value has a control character", name)
			}
		}
		key := http.CanonicalHeaderKey(name)
		header[key] = append(header[key], values...)
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", o.Client.Name+"/"+o.Client.Version)
	}
	if u.User != nil && header.Get("Authorization") == "" {
		password, _ := u.User.Password()
		r := http.Request{Header: header}
		r.SetBasicAuth(u.User.Username(), password)
	}
	return header, nil
}

// isControl reports whether r must not stand in a field value (RFC 9110, section 5.5).
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
