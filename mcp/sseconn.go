package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"

	"mcpbench/mcp/sse"
)

// sseConn is a session over HTTP+SSE. One goroutine reads the stream; each caller
// posts its own request and then waits for the answer to come over the stream.
// The end of the stream is the end of the session.
type sseConn struct {
	router
	posts   *httpConn     // never has a server session
	opening time.Duration // how long the stream took, up to the endpoint event
	reading sync.WaitGroup
}

// posting is what a call needs to be posted, kept from one call to the next.
type posting struct {
	request httpRequest
	stamps  stamps
	spent   time.Duration // from the send to the response
	status  int           // of the response, 0 when there was none
	size    int           // of the JSON-RPC error in the response

	answered mark   // by the stream
	bounds   bounds // of the POST; an engine may look at them a little longer
}

// newPosting returns a posting whose answer is noted in answered, or, if that is nil,
// in its own mark.
func newPosting(answered *mark) *posting {
	p := new(posting)
	if p.bounds.answered = answered; answered == nil {
		p.bounds.answered = &p.answered
	}
	return p
}

// prepare makes p ready for another message.
func (p *posting) prepare(header []headerField, body []byte, limit, now time.Duration) {
	p.stamps, p.spent, p.status, p.size = noStamps(), 0, 0, 0
	p.answered.clear()
	p.bounds.reset(limit, now)
	p.request = httpRequest{method: "POST", header: header, body: body, limit: limit, bounds: &p.bounds}
}

func newSSEConn(ctx context.Context, e engine, name Engine, o Options) *sseConn {
	posts := newHTTPConn(ctx, e, name, o)
	posts.legacy = true
	c := &sseConn{router: newRouter(&o, posts.env, AnomalyOddEvent), posts: posts}
	c.carrier, c.inbox = c, &posts.inbox
	return c
}

// open opens the stream to u and reads up to the endpoint event, within ctx. The
// stream outlives ctx: it is read in the Conn's own context.
func (c *sseConn) open(ctx context.Context, u *url.URL) error {
	began := c.o.now()
	late := &ProtocolError{Kind: FaultEndpoint, Detail: fmt.Sprintf("no endpoint event within %v", endpointLimit)}
	bounded, cancel := context.WithTimeoutCause(ctx, endpointLimit, late)
	defer cancel()
	stop := context.AfterFunc(bounded, func() { c.posts.endLife(context.Cause(bounded)) })
	resp, err := c.openStream(u)
	inTime := stop()
	switch {
	case err == nil && inTime:
	case ctx.Err() != nil:
		return fmt.Errorf("no endpoint event: %w", gaveUp(ctx))
	case !inTime:
		return late
	default:
		return err
	}
	c.opening = c.o.now() - began
	c.reading.Go(func() { c.read(resp) })
	return nil
}

// eventStream is the stream with what reads it.
type eventStream struct {
	response
	events *sse.Reader
}

func (c *sseConn) openStream(u *url.URL) (*eventStream, error) {
	t := noStamps()
	get := &httpRequest{method: "GET", header: []headerField{{"Accept", "text/event-stream"}}, way: wayBeside}
	c.posts.showSending(get, ChannelGet)
	resp, err := c.posts.engine.do(c.posts.life, get, &t)
	if err != nil {
		return nil, err
	}
	if resp.status()/100 == 2 {
		c.posts.showAnswer(resp, t.first, ChannelGet, nil, nil)
	}
	endpoint, events, err := c.firstEvents(resp, u)
	if err != nil {
		closeBody(resp)
		return nil, err
	}
	c.posts.engine.retarget(endpoint)
	return &eventStream{resp, events}, nil
}

// firstEvents judges the response to the GET and reads up to the endpoint event.
func (c *sseConn) firstEvents(resp response, u *url.URL) (*url.URL, *sse.Reader, error) {
	if resp.status()/100 != 2 {
		_, err := c.posts.refusal(resp, false, 0)
		return nil, nil, err
	}
	if coding := resp.header("Content-Encoding"); !isIdentity(coding) {
		return nil, nil, &ProtocolError{Kind: FaultContentEncoding, Detail: coding}
	}
	if got := resp.header("Content-Type"); mediaType(got) != "text/event-stream" {
		return nil, nil, &ProtocolError{Kind: FaultContentType, Detail: fmt.Sprintf("%q: %s", got, beginning(resp))}
	}
	events := sse.NewReader(resp, int(c.o.Limits.MessageBytes))
	events.Clock = c.o.now
	endpoint, err := c.awaitEndpoint(events, resp, u)
	return endpoint, events, err
}

func (c *sseConn) describe(i *Info) {
	c.posts.describe(i)
	i.Handshake += c.opening
}

func (c *sseConn) isOver() bool { return c.router.isOver() || c.posts.isOver() }

// send implements carrier: it posts the request. An answer outside 2xx means that
// none will come over the stream.
func (c *sseConn) send(ctx context.Context, k *call, limit time.Duration) error {
	if c.router.isOver() {
		return c.dead
	}
	if k.posting == nil {
		k.posting = newPosting(nil)
	}
	p := k.posting
	p.prepare(c.posts.postHeader(c.env.current()), k.line, limit, c.o.now())
	if k.track != nil && k.track.bounds != nil {
		p.request.bounds = k.track.bounds // they hold also while the POST is not answered
		k.track.bounds.answered = &p.answered
	}
	c.posts.showSending(&p.request, ChannelPost)
	c.setSent(k, c.o.now()) // the answer may come before the response
	err := c.post(ctx, p, k.id)
	answered := c.posted(k)
	switch {
	case err == nil:
		return nil
	case answered:
		c.overtaken(err)
		return nil
	case c.router.isOver():
		return c.dead // which closed all connections
	}
	_, failed := errors.AsType[*TransportError](err)
	_, late := errors.AsType[*TimeoutError](err)
	if ctx.Err() != nil && (failed || late) {
		return gaveUp(ctx)
	}
	return err
}

// post sends a message, for which an id of 0 stands when it is a batch.
func (c *sseConn) post(ctx context.Context, p *posting, id int64) error {
	resp, err := c.posts.engine.do(ctx, &p.request, &p.stamps)
	if err != nil {
		return err
	}
	return c.accepted(resp, p, id)
}

// overtaken tells how the POST failed of what was answered over the stream all the same.
func (c *sseConn) overtaken(err error) {
	c.o.OnAnomaly(AnomalyOddStatus, "the POST of a request that was answered: "+err.Error())
}

// accepted reads the response to a POST.
func (c *sseConn) accepted(resp response, p *posting, id int64) (err error) {
	defer closeBody(resp)
	p.status, p.spent = resp.status(), max(0, p.stamps.first-p.stamps.sent)
	if resp.status()/100 != 2 {
		p.size, err = c.posts.refusal(resp, true, id)
		return err
	}
	if resp.length() == 0 || mediaType(resp.header("Content-Type")) == "text/event-stream" {
		c.posts.showAnswer(resp, p.stamps.first, ChannelPost, nil, nil)
	} else {
		c.posts.showAnswer(resp, p.stamps.first, ChannelPost, c.posts.said(resp, false), nil)
		resp.drain(drainLimit)
	}
	resp.over(p.stamps.first)
	return nil
}

func (c *sseConn) setSent(k *call, at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.sent = at
}

// posted notes what the POST of k was like and reports whether the answer is there.
func (c *sseConn) posted(k *call) (answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := k.posting
	if k.sent = p.stamps.sent; k.sent >= 0 {
		k.track.begin(k.sent) // the connecting does not count
	}
	k.reply.HTTPStatus, k.reply.Timing.Connect = p.status, p.stamps.connect
	k.reply.BytesIn += p.size
	return c.calls.find(k.id) != k
}

// unsend implements carrier: what was posted cannot be taken back.
func (*sseConn) unsend(*call) bool { return false }

// cancel implements carrier.
func (c *sseConn) cancel(id int64, reason string) { c.posts.cancelRequest(id, reason) }

// Notify implements Conn. Any 2xx is acceptance.
func (c *sseConn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if c.router.isOver() {
		return fmt.Errorf("%s: %w", method, c.dead)
	}
	return c.posts.Notify(ctx, method, params)
}

// Close implements Conn: it lets what is under way finish, closes the stream,
// which ends the session, and every other connection. Requests in flight fail.
func (c *sseConn) Close(ctx context.Context) error {
	c.fail(closedError())
	err := c.posts.Close(ctx)
	c.reading.Wait()
	return err
}

// read is the reading goroutine.
func (c *sseConn) read(stream *eventStream) {
	defer closeBody(stream)
	for {
		ev, err := stream.events.Next()
		switch {
		case errors.Is(err, sse.ErrTooLong):
			now := c.o.now()
			head, tail, err := stream.events.Skip()
			if err != nil {
				c.streamEnded(stream.endFault(err))
				return
			}
			c.oversized(&textLine{text: head, tail: tail, first: now, end: c.o.now()})
			continue
		case err != nil:
			c.streamEnded(stream.endFault(err))
			return
		case len(ev.Data) > 0:
			c.posts.showEvent(&ev, ev.Last, ChannelGet)
			c.event(&ev)
		}
	}
}

func (c *sseConn) event(ev *sse.Event) {
	if ev.Name != "" && ev.Name != "message" {
		c.o.OnAnomaly(AnomalyOddEvent, ev.Name+": "+excerpt(ev.Data))
		// The first endpoint event counts; others may still carry a message.
		if _, err := decodeMessage(ev.Data); ev.Name == "endpoint" || err != nil && !isArray(ev.Data) {
			return
		}
	}
	c.line(&textLine{text: ev.Data, first: ev.First, end: ev.Last})
}

// endFault is why a stream has ended.
func (s *eventStream) endFault(err error) *TransportError {
	if errors.Is(err, io.EOF) {
		return &TransportError{Op: "read", Err: fmt.Errorf("the event stream ended: %w", io.EOF)}
	}
	err = s.fault(err)
	if e, ok := errors.AsType[*TransportError](err); ok {
		return e
	}
	return &TransportError{Op: "read", Err: err}
}

// streamEnded makes the end of the stream that of the session. Nothing that is
// still being posted can be answered any more.
func (c *sseConn) streamEnded(e *TransportError) {
	e.lost = true
	c.fail(e)
	c.posts.engine.close()
}
