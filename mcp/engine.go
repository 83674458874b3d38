package mcp

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Engine names an implementation of HTTP that a Streamable can use.
type Engine string

// Engines.
const (
	// EngineAuto is EngineFast unless something needs EngineStd: HTTP/2 asked for
	// by "h2" in TLS.NextProtos, a host name beyond ASCII or with a zone, or header
	// fields that govern the connection, such as Connection or Expect.
	EngineAuto Engine = "auto"
	// EngineFast is our own HTTP/1.1: exact stamps, few allocations, little memory.
	EngineFast Engine = "fast"
	// EngineStd is net/http.
	EngineStd Engine = "std"
)

// ParseEngine returns the engine of that name; "" is EngineAuto.
func ParseEngine(text string) (Engine, error) {
	switch e := Engine(text); e {
	case "":
		return EngineAuto, nil
	case EngineAuto, EngineFast, EngineStd:
		return e, nil
	}
	return "", fmt.Errorf("unknown HTTP engine %q: it is auto, fast or std", text)
}

// engine moves HTTP messages for one Conn and knows nothing of MCP: the rules
// of the protocol are in httpConn, whatever engine it has.
type engine interface {
	// do sends r and returns the response once its header is there. It fills t,
	// also when it fails. Errors are of this package's types; those that the end
	// of ctx caused are *TransportError. The end of ctx and that of r.limit also
	// end the reading of the body.
	do(ctx context.Context, r *httpRequest, t *stamps) (response, error)
	// retarget sends further messages to u, which has the origin of the first URL. It
	// is called before any of them.
	retarget(u *url.URL)
	// phases returns how long TCP and TLS of the first connection took.
	phases() (tcp, tls time.Duration)
	// close closes every connection, also those in use.
	close()
	// reset is close with connections that are reset, but those of a pool.
	reset()
}

type httpRequest struct {
	method string
	// header is beside what the engine adds to every request. An engine may keep
	// what it made of it, for as long as the slice is the same one.
	header []headerField
	extra  []headerField // of this message only
	body   []byte        // not used after do returned
	// limit bounds opening a connection, and again the exchange from the send to
	// the end of the body; 0 is none.
	limit time.Duration
	// bounds, unless nil, are more limits of the exchange; limit is among them, and
	// what they end ends as a limit does.
	bounds  *bounds
	way     way    // to a connection, where there is a pool
	onWrote func() // called in the course of do, unless nil
	// onSent, unless nil, is called each time that the message is about to be
	// written, by the goroutine that called do, with the moment of stamps.sent.
	onSent func(at time.Duration)
}

type headerField struct{ name, value string }

// response is what an engine's do returned. Not safe for concurrent use.
type response interface {
	io.ReadCloser // the body; Close gives the connection back or closes it
	status() int
	length() int64 // of the body, -1 when unknown
	// header returns the first value of one of keptHeaders, "" when there is none.
	header(name string) string
	// fault turns an error of Read into one of this package's.
	fault(err error) error
	// atOnce reports whether all that Read returned had come with the first byte.
	atOnce() bool
	// over says when the exchange was, if the caller knows; Close then need not look.
	over(at time.Duration)
	// hurry bounds what is left to read, instead of what did so before.
	hurry(most time.Duration) error
	// distrust has Close close the connection: what it carries is not what was asked for.
	distrust()
	// drain reads the rest of the body for a while and reports whether it was
	// read to its end, so that the connection can be used again.
	drain(most time.Duration) bool
}

// keptHeaders are the response fields that an engine must have at hand.
var keptHeaders = [...]string{
	"Content-Type", "Content-Encoding", "Mcp-Session-Id", "Location", "Retry-After", "WWW-Authenticate",
}

// stamps are the moments of one HTTP exchange, offsets since Options.Base. A
// moment that did not come is negative.
type stamps struct {
	began   time.Duration // do was called
	sent    time.Duration // the connection is there, the first byte is about to be written
	first   time.Duration // first byte of the response
	connect time.Duration // opening the connection took so long; 0 when it was reused
}

func noStamps() stamps { return stamps{began: -1, sent: -1, first: -1} }

// or returns the moment at, or other if it has not come.
func or(at, other time.Duration) time.Duration {
	if at >= 0 {
		return at
	}
	return other
}

// governing are request fields that say how the connection is to be used, which
// the fast engine decides by itself.
var governing = []string{
	"Connection", "Expect", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// chooseEngine returns the engine for the requests to u that carry header, or
// why the one asked for cannot make them.
func (s *Streamable) chooseEngine(u *url.URL, header http.Header) (Engine, error) {
	asked, err := ParseEngine(string(s.Engine))
	if err != nil || asked == EngineStd {
		return asked, err
	}
	reason := s.needsStd(u, header)
	switch {
	case reason == "":
		return EngineFast, nil
	case asked == EngineAuto:
		return EngineStd, nil
	}
	return "", fmt.Errorf("HTTP engine fast: %s needs engine std", reason)
}

func (s *Streamable) needsStd(u *url.URL, header http.Header) string {
	for _, name := range governing {
		if _, ok := header[name]; ok {
			return "the header " + name
		}
	}
	if s.TLS != nil && u.Scheme == "https" && slices.Contains(s.TLS.NextProtos, "h2") {
		return "HTTP/2"
	}
	if strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' || r == '%' }) {
		return "the host name " + u.Host
	}
	return ""
}

// tlsConfig returns the configuration for connections to u. Each Conn resumes
// only TLS sessions of its own, as separate clients do.
func (s *Streamable) tlsConfig(u *url.URL) *tls.Config {
	config := s.TLS
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName = u.Hostname()
	}
	if config.ClientSessionCache == nil {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(2)
	}
	return config
}
