package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"mcpbench/mcp/sse"
)

// LegacySSE reaches a server over HTTP+SSE, the HTTP transport of 2024-11-05
// (specification 2024-11-05, basic/transports): one event stream brings whatever
// the server says, and names the endpoint to which each message is posted. Its
// fields are those of Streamable; URL is that of the stream. Any version up to
// 2025-11-25 may be spoken over it.
type LegacySSE Streamable

// endpointLimit bounds the wait for the endpoint event when no context does.
const endpointLimit = 30 * time.Second

// Kind returns sse.
func (*LegacySSE) Kind() string { return "sse" }

// Dial opens the stream and waits for the endpoint event, within ctx.
func (s *LegacySSE) Dial(ctx context.Context, o Options) (Conn, error) {
	if ctx.Err() != nil {
		return nil, gaveUp(ctx)
	}
	if o.Version != "" && !o.Version.Features().Handshake {
		return nil, fmt.Errorf("HTTP+SSE carries protocol versions up to %s, not %s: use Streamable HTTP", newestLegacy, o.Version)
	}
	o = o.withDefaults()
	e, name, u, err := (*Streamable)(s).newEngine(&o)
	if err != nil {
		return nil, err
	}
	c := newSSEConn(ctx, e, name, o)
	if err := c.open(ctx, u); err != nil {
		c.posts.endLife(errClosed)
		e.close()
		return nil, err
	}
	return c, nil
}

// awaitEndpoint reads up to the endpoint event, which must come before any
// message, and returns where messages go.
func (c *sseConn) awaitEndpoint(events *sse.Reader, resp response, base *url.URL) (*url.URL, error) {
	for {
		ev, err := events.Next()
		if err == nil {
			c.posts.showEvent(&ev, ev.Last, ChannelGet)
		}
		switch {
		case errors.Is(err, sse.ErrTooLong):
			return nil, &LimitError{Limit: LimitMessage, Max: c.o.Limits.MessageBytes}
		case errors.Is(err, io.EOF):
			return nil, &ProtocolError{Kind: FaultEndpoint, Detail: "the stream ended before the endpoint event"}
		case err != nil:
			return nil, resp.fault(err)
		case ev.Name == "endpoint":
			return resolveEndpoint(base, string(ev.Data))
		case len(ev.Data) == 0:
		case ev.Name == "" || ev.Name == "message":
			return nil, &ProtocolError{Kind: FaultEndpoint, Detail: "a message before the endpoint event: " + excerpt(ev.Data)}
		default:
			c.o.OnAnomaly(AnomalyOddEvent, ev.Name+": "+excerpt(ev.Data))
		}
	}
}

// resolveEndpoint returns the URI that an endpoint event names, relative to that
// of the stream (RFC 3986, section 5). It must have the same origin: whatever goes
// with the messages, such as a token, is meant for no other server.
func resolveEndpoint(base *url.URL, text string) (*url.URL, error) {
	refuse := func(why string) (*url.URL, error) {
		return nil, &ProtocolError{Kind: FaultEndpoint, Detail: fmt.Sprintf("%s: %s", excerpt([]byte(text)), why)}
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return refuse("the endpoint event is empty")
	}
	ref, err := url.Parse(text)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return refuse("no URI: " + err.Error())
	}
	u := base.ResolveReference(ref)
	if u.Scheme != base.Scheme || u.Opaque != "" || !strings.EqualFold(u.Hostname(), base.Hostname()) || port(u) != port(base) {
		return refuse("another origin than " + base.Scheme + "://" + base.Host)
	}
	u.Host, u.User, u.Fragment, u.RawFragment = base.Host, nil, "", ""
	u.RawQuery = escapeQuery(u.RawQuery)
	return u, nil
}

// escapeQuery makes what package url leaves as it is in a query fit a request line.
func escapeQuery(query string) string {
	plain := func(c byte) bool { return c > ' ' && c <= '~' }
	var b strings.Builder
	for i := range len(query) {
		if c := query[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
