package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	req     *Request
	id      int64
	session bool // the request carried a server session
	foreign bool // an answer to another id came
	began   time.Duration
	first   mark // first event with data
	end     mark
	limit   *limit
	marks   marks
	reply   Reply
}

// finish fills the timing and returns the outcome.
func (x *exchange) finish(err error) (Reply, error) {
	t := &x.reply.Timing
	t.Start = max(x.marks.sent.or(x.began), x.began)
	t.Connect = time.Duration(x.marks.connect.Load())
	x.stampEnd()
	t.End = max(x.end.or(t.Start), t.Start)
	first := x.first.or(x.marks.first.or(t.End))
	t.FirstByte = min(max(first, t.Start), t.End)
	return x.reply, err
}

func (x *exchange) stampEnd() {
	if !x.end.set.Load() {
		x.end.put(x.conn.o.now())
	}
}

// explain tells failures that the end of the context caused from those of the
// connection, and cancels the request as the version demands. Over HTTP in
// 2026-07-28 the end of the response stream is the cancellation, and by the time
// we are here it has been closed.
func (x *exchange) explain(ctx, limited context.Context, err error) error {
	if _, ok := errors.AsType[*TransportError](err); !ok {
		return err // an answer of some sort had arrived
	}
	reason := "the client gave up"
	switch {
	case ctx.Err() != nil:
		err = gaveUp(ctx)
	case errors.Is(context.Cause(limited), errTimeout):
		err = &TimeoutError{Limit: TimeoutTotal}
		reason = "timeout"
	default:
		return err
	}
	// initialize must not be cancelled (specification, basic/utilities/cancellation).
	if x.marks.sent.set.Load() && !x.rules.CancelByClose && x.req.Method != "initialize" {
		x.conn.cancelRequest(x.id, reason)
	}
	return err
}

// run sends the request and reads up to its answer (wire rules: Streamable
// HTTP, "Sending messages to the server").
func (x *exchange) run(ctx context.Context, body []byte) error {
	c := x.conn
	x.session = x.rules.ServerSession && c.session.Load() != nil
	x.marks.onSent = x.limit.restart
	resp, err := c.post(ctx, x.rules, body, x.methodHeaders(), &x.marks)
	if err != nil {
		return err
	}
	defer closeBody(resp)
	x.reply.HTTPStatus = resp.status
	if resp.status/100 != 2 {
		x.reply.BytesIn, err = c.refusal(resp, x.session, x.id)
		if refused, ok := errors.AsType[*HTTPError](err); ok && !refused.Lost && ctx.Err() != nil {
			err = &TransportError{Op: "read", Err: ctx.Err()} // there was no time for the whole answer
		}
		return err
	}
	c.keepSession(x, resp)
	if coding := resp.header("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return &ProtocolError{Kind: FaultContentEncoding, Detail: coding}
	}
	switch mediaType(resp.header("Content-Type")) {
	case "application/json":
		return x.readJSON(resp)
	case "text/event-stream":
		return x.readStream(resp)
	}
	if resp.status == 202 || resp.status == 204 {
		return &ProtocolError{Kind: FaultNoAnswer, Detail: fmt.Sprintf("status %d to a request", resp.status)}
	}
	return &ProtocolError{
		Kind:   FaultContentType,
		Detail: fmt.Sprintf("%q: %s", resp.header("Content-Type"), excerpt(readSome(resp, 512))),
	}
}

func (x *exchange) methodHeaders() []headerField {
	if !x.rules.MethodHeaders {
		return nil
	}
	h := []headerField{{"Mcp-Method", x.req.Method}}
	if name, ok := nameHeader(x.req); ok {
		h = append(h, headerField{"Mcp-Name", name})
	}
	return h
}

// mediaType returns the type of a Content-Type value without its parameters.
func mediaType(value string) string {
	value, _, _ = strings.Cut(value, ";")
	return strings.ToLower(strings.TrimSpace(value))
}

var bodyBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readJSON reads a body that is the answer. What it holds is copied out.
func (x *exchange) readJSON(resp *httpResponse) error {
	buf, ok := bodyBuffers.Get().(*bytes.Buffer)
	if !ok {
		buf = new(bytes.Buffer)
	}
	defer func() {
		if buf.Cap() <= 1<<20 {
			buf.Reset()
			bodyBuffers.Put(buf)
		}
	}()
	limit := x.conn.o.Limits.MessageBytes
	n, err := buf.ReadFrom(io.LimitReader(resp.body, limit+1))
	x.reply.BytesIn = int(n)
	x.stampEnd()
	switch {
	case n > limit:
		return &LimitError{Limit: LimitMessage, Max: limit}
	case err != nil:
		return x.conn.engine.bodyError(err)
	}
	done, err := x.take(buf.Bytes())
	if err != nil || done {
		return err
	}
	kind := FaultNoAnswer
	if x.foreign {
		kind = FaultForeignID
	}
	return &ProtocolError{Kind: kind, Detail: excerpt(buf.Bytes())}
}

// readStream reads events until one holds the answer.
func (x *exchange) readStream(resp *httpResponse) error {
	limits := &x.conn.o.Limits
	events := sse.NewReader(resp.body, int(limits.MessageBytes))
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, sse.ErrTooLong):
			return &LimitError{Limit: LimitMessage, Max: limits.MessageBytes}
		case errors.Is(err, io.EOF):
			return &ProtocolError{Kind: FaultNoAnswer, Detail: "the stream ended without the answer"}
		case err != nil:
			return x.conn.engine.bodyError(err)
		case len(ev.Data) == 0:
			continue // priming, close and the like
		}
		now := x.conn.o.now()
		if !x.first.set.Load() {
			x.first.put(now)
		}
		x.reply.BytesIn += len(ev.Data)
		done, err := x.event(&ev)
		if done {
			x.end.put(now)
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
		x.reply.Notifications++
		if c.inbox.notification(&m) {
			x.reply.Progress++
		}
		return false, nil
	case kindOther:
		c.o.OnAnomaly(AnomalyOddEvent, excerpt(data))
		return false, nil
	case kindResponse:
	}
	// An error without an id on our own stream can only be about our request.
	if id, ok := m.numericID(); (!ok || id != x.id) && (!m.anonymous() || m.err == nil) {
		c.o.OnAnomaly(AnomalyUnknownID, excerpt(data))
		x.foreign = true
		return false, nil
	}
	x.reply.Result, err = m.answer(data, x.reply.HTTPStatus)
	return true, err
}

// drain reads what is left of a stream after the answer, so that the connection
// can be used again. Servers that leave their streams open make it close instead.
func (x *exchange) drain(resp *httpResponse) {
	c := x.conn
	if c.drainMisses.Load() >= maxDrainMisses {
		return
	}
	timer := time.AfterFunc(drainLimit, func() { x.limit.stop(errClosed) })
	_, err := io.CopyN(io.Discard, resp.body, drainBytes)
	timer.Stop()
	if errors.Is(err, io.EOF) {
		c.drainMisses.Store(0)
		return
	}
	c.drainMisses.Add(1)
}
