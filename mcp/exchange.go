package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpbench/mcp/sse"
)

const (
	// drainLimit is how long we wait for the end of a stream after its answer, so
	// that the connection can be used again.
	drainLimit = 50 * time.Millisecond
	// drainBytes is how much we read for the same end.
	drainBytes = 64 << 10
	// maxDrainMisses is after how many vain waits in a row we close at once.
	maxDrainMisses = 3
	// refusalBytes bounds what is read of an answer outside 2xx.
	refusalBytes = 256 << 10
)

// exchange is one request over HTTP with all that comes of it.
type exchange struct {
	conn    *httpConn
	rules   *rules
	req     Request
	id      int64
	session bool          // the request carried a server session
	foreign bool          // an answer to another id came, and not ours
	broken  bool          // the stream ended before the answer
	lastID  string        // of the last event of the stream that had one
	retry   time.Duration // how long the server wishes us to wait then, 0 when it has no wish
	first   time.Duration // first event with data, negative before
	end     time.Duration // negative before
	stamps  stamps
	track   *tracker // nil for a plain request
	router  *router  // of a batch, nil for a single request
	reply   Reply

	// Kept from one exchange to the next.
	request httpRequest
	extra   [2]headerField
	out     []byte // the message sent
	in      []byte // the body received
}

// keepBody is how large the buffers of an exchange may stay.
const keepBody = 4 << 20

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func newExchange(c *httpConn, req *Request) *exchange {
	x, ok := exchanges.Get().(*exchange)
	if !ok {
		x = new(exchange)
	}
	x.conn, x.rules, x.req, x.id = c, c.env.current(), *req, c.env.nextID()
	x.first, x.end, x.stamps = -1, -1, noStamps()
	x.reply.Rounds = 1
	return x
}

// release gives the exchange back; nothing of it is in use any more.
func (x *exchange) release() {
	out, in := x.out, x.in
	if cap(out) > keepBody {
		out = nil
	}
	if cap(in) > keepBody {
		in = nil
	}
	*x = exchange{out: out, in: in}
	exchanges.Put(x)
}

// finish fills the timing and returns the outcome.
func (x *exchange) finish(err error) (Reply, error) {
	t := &x.reply.Timing
	x.stampEnd()
	t.Start = or(x.stamps.sent, or(x.stamps.began, x.end))
	t.Connect = x.stamps.connect
	t.End = max(x.end, t.Start)
	first := or(x.first, or(x.stamps.first, t.End))
	t.FirstByte = min(max(first, t.Start), t.End)
	return x.reply, err
}

func (x *exchange) stampEnd() {
	if x.end < 0 {
		x.end = x.conn.o.now()
	}
}

// explain tells failures that the end of the context caused from those of the
// connection, and cancels the request as the version demands. Over HTTP in
// 2026-07-28 the end of the response stream is the cancellation, and by the time
// we are here it has been closed.
func (x *exchange) explain(ctx context.Context, err error) error {
	_, failed := errors.AsType[*TransportError](err)
	_, late := errors.AsType[*TimeoutError](err)
	reason := "timeout"
	switch {
	case ctx.Err() != nil && (failed || late):
		err = gaveUp(ctx)
		reason = "the client gave up"
	case !late:
		return err // an answer of some sort had arrived, or the connection failed
	}
	// initialize must not be cancelled (specification, basic/utilities/cancellation).
	if x.stamps.sent >= 0 && x.req.Method != "initialize" {
		x.conn.givenUp.add(x.id)
		if !x.rules.CancelByClose {
			x.conn.cancelRequest(x.id, reason)
		}
	}
	return err
}

// run sends the request and reads up to its answer (wire rules: Streamable
// HTTP, "Sending messages to the server").
func (x *exchange) run(ctx context.Context) error {
	c := x.conn
	x.session = x.rules.ServerSession && c.session.Load() != nil
	x.request = httpRequest{
		method: "POST", header: c.postHeader(x.rules), extra: x.methodHeaders(), body: x.out, limit: x.req.Timeout,
	}
	if x.track != nil {
		x.request.bounds = x.track.bounds
		if x.req.listening() != nil {
			x.request.way = wayBeside
		}
	}
	c.showSending(&x.request, ChannelPost)
	if x.router != nil {
		x.router.whenSent(x.router.own, &x.request)
	}
	resp, err := c.engine.do(ctx, &x.request, &x.stamps)
	if err != nil {
		return err
	}
	defer x.leave(resp)
	x.reply.HTTPStatus = resp.status()
	if resp.status()/100 != 2 {
		x.reply.BytesIn, err = c.refusal(resp, x.session, x.id)
		if refused, ok := errors.AsType[*HTTPError](err); ok && !refused.Lost && ctx.Err() != nil {
			err = &TransportError{Op: "read", Err: ctx.Err()} // there was no time for the whole answer
		}
		return err
	}
	c.keepSession(x, resp)
	if coding := resp.header("Content-Encoding"); !isIdentity(coding) {
		c.showAnswer(resp, x.stamps.first, ChannelPost, nil, nil)
		return &ProtocolError{Kind: FaultContentEncoding, Detail: coding}
	}
	switch mediaType(resp.header("Content-Type")) {
	case "application/json":
		return x.readJSON(resp)
	case "text/event-stream":
		c.showAnswer(resp, x.stamps.first, ChannelPost, nil, nil)
		return x.readStream(resp, ChannelEvent)
	}
	if resp.status() == 202 || resp.status() == 204 {
		c.showAnswer(resp, x.stamps.first, ChannelPost, nil, nil)
		return &ProtocolError{Kind: FaultNoAnswer, Detail: fmt.Sprintf("status %d to a request", resp.status())}
	}
	said := beginning(resp)
	c.showAnswer(resp, c.o.now(), ChannelPost, []byte(said), nil)
	return &ProtocolError{
		Kind:   FaultContentType,
		Detail: fmt.Sprintf("%q: %s", resp.header("Content-Type"), said),
	}
}

func (x *exchange) methodHeaders() []headerField {
	if !x.rules.MethodHeaders {
		return nil
	}
	h := append(x.extra[:0], headerField{methodField, x.req.Method})
	if name, ok := nameHeader(&x.req); ok {
		h = append(h, headerField{nameField, name})
	}
	if params := x.conn.o.ParamHeaders; params != nil && x.req.Method == "tools/call" {
		h = params.appendTo(h, x.req.Name, x.req.Params)
	}
	return h
}

// isIdentity reports whether a Content-Encoding leaves the body as it is.
func isIdentity(coding string) bool { return coding == "" || strings.EqualFold(coding, "identity") }

// mediaType returns the type of a Content-Type value without its parameters.
func mediaType(value string) string {
	if value == "application/json" || value == "text/event-stream" {
		return value
	}
	value, _, _ = strings.Cut(value, ";")
	return strings.ToLower(strings.TrimSpace(value))
}

// readJSON reads a body that is the answer. What it holds is copied out.
func (x *exchange) readJSON(resp response) error {
	err := x.readBody(resp)
	x.reply.BytesIn = len(x.in)
	if err != nil {
		x.stampEnd()
		x.conn.showAnswer(resp, x.end, ChannelPost, x.in, err)
		return err
	}
	if x.end = x.stamps.first; x.end < 0 || !resp.atOnce() {
		x.end = x.conn.o.now()
	}
	resp.over(x.end)
	x.conn.showAnswer(resp, x.end, ChannelPost, x.in, nil)
	done, err := x.take(x.in)
	if err != nil || done {
		return err
	}
	kind := FaultNoAnswer
	if x.foreign {
		kind = FaultForeignID
	}
	return &ProtocolError{Kind: kind, Detail: excerpt(x.in)}
}

// readBody reads a whole body of bounded length.
func (x *exchange) readBody(resp response) error {
	limit := x.conn.o.Limits.MessageBytes
	x.in = x.in[:0]
	if resp.length() > limit {
		return &LimitError{Limit: LimitMessage, Max: limit}
	}
	// One byte more than expected, to be told the end without growing again.
	x.in = slices.Grow(x.in, int(min(max(resp.length(), 511), keepBody-1))+1)
	for {
		n, err := resp.Read(x.in[len(x.in):cap(x.in)])
		x.in = x.in[:len(x.in)+n]
		switch {
		case int64(len(x.in)) > limit:
			return &LimitError{Limit: LimitMessage, Max: limit}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return resp.fault(err)
		case len(x.in) == cap(x.in):
			x.in = slices.Grow(x.in, len(x.in))
		}
	}
}

var eventReaders = sync.Pool{New: func() any { return sse.NewReader(nil, 0) }}

// readStream reads events, which are shown as coming by that channel, until one
// holds the answer.
func (x *exchange) readStream(resp response, channel Channel) error {
	limits := &x.conn.o.Limits
	events, ok := eventReaders.Get().(*sse.Reader)
	if !ok {
		events = sse.NewReader(nil, 0)
	}
	events.Reset(resp, int(limits.MessageBytes))
	defer func() {
		events.Reset(nil, 0)
		eventReaders.Put(events)
	}()
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, sse.ErrTooLong):
			return &LimitError{Limit: LimitMessage, Max: limits.MessageBytes}
		case errors.Is(err, io.EOF):
			x.broken = true
			return &ProtocolError{Kind: FaultNoAnswer, Detail: "the stream ended without the answer"}
		case err != nil:
			err = resp.fault(err)
			_, x.broken = errors.AsType[*TransportError](err)
			return err
		}
		if ev.HasID || ev.Retry >= 0 {
			x.cursor(&ev)
		}
		if len(ev.Data) == 0 {
			x.conn.showEvent(&ev, -1, channel)
			continue // priming, close and the like
		}
		now := x.conn.o.now()
		x.conn.showEvent(&ev, now, channel)
		if x.first < 0 {
			x.first = now
		}
		x.reply.BytesIn += len(ev.Data)
		done, err := x.event(&ev)
		if done {
			x.end = now
			if x.mindsTheRest() {
				x.afterwards(resp, events)
			}
			x.drain(resp)
		}
		if done || err != nil {
			return err
		}
	}
}

// event handles one event with data. Data that is no JSON is an oddity under
// another event name, but under the usual ones it is what should have been our answer.
func (x *exchange) event(ev *sse.Event) (done bool, err error) {
	usual := ev.Name == "" || ev.Name == "message"
	done, err = x.take(ev.Data)
	if fault, ok := errors.AsType[*ProtocolError](err); ok && fault.Kind == FaultBadJSON && !usual {
		err = nil
	}
	if !usual {
		x.conn.o.OnAnomaly(AnomalyOddEvent, ev.Name+": "+excerpt(ev.Data))
	}
	return done, err
}

// take handles a message or, where the version has them, a batch of messages.
// done tells that the answer was among them.
func (x *exchange) take(data []byte) (done bool, err error) {
	if x.router != nil {
		return x.takeBatch(data)
	}
	if !isArray(data) {
		return x.message(data)
	}
	all, err := splitBatch(data)
	if err != nil {
		return false, &ProtocolError{Kind: FaultBadJSON, Detail: excerpt(data), Err: err}
	}
	if !x.rules.Batches {
		return false, &ProtocolError{Kind: FaultBatch, Detail: excerpt(data)}
	}
	for _, one := range all {
		ours, e := x.message(one)
		done = done || ours
		if e != nil && err == nil {
			err = e
		}
	}
	return done, err
}

// message handles one message of the exchange's body or stream.
func (x *exchange) message(data []byte) (done bool, err error) {
	c := x.conn
	m, err := decodeMessage(data)
	if err != nil {
		return false, &ProtocolError{Kind: FaultBadJSON, Detail: excerpt(data), Err: err}
	}
	switch m.kind() {
	case kindRequest:
		c.inbox.request(&m)
		return false, nil
	case kindNotification:
		if c.inbox.notification(&m) {
			x.progress(&m, len(data))
		} else {
			x.reply.Notifications++
		}
		c.o.post.deliver(&m, data, x.req.listening())
		return false, nil
	case kindOther:
		c.o.OnAnomaly(AnomalyOddEvent, excerpt(data))
		return false, nil
	case kindResponse:
	}
	// An error without an id on our own stream can only be about our request.
	if id, ok := m.numericID(); (!ok || id != x.id) && (!m.anonymous() || m.err == nil) {
		c.o.OnAnomaly(c.givenUp.unexpected(id, ok), excerpt(data))
		x.foreign = true
		return false, nil
	}
	x.foreign = false
	if x.track != nil {
		c.tokens.end(x.track)
	}
	if err = m.answer(data, x.reply.HTTPStatus); err == nil {
		x.reply.take(&m, x.req.ResultBuf)
	}
	return true, err
}
