package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// taskLimit bounds one message of our own making (a cancellation, an answer to
	// the server) and the DELETE that ends a session.
	taskLimit = 5 * time.Second
	// maxTasks bounds how many of them may be under way on one Conn: more than any
	// load has requests in flight on one session, less than memory can hold.
	maxTasks = 4096
)

// httpConn is the protocol side of Streamable HTTP: headers, server session,
// answers as JSON or SSE, cancellation, the GET stream. HTTP+SSE posts by it.
type httpConn struct {
	ending
	o      Options
	env    *envelope
	engine engine
	inbox  inbox

	legacy      bool // HTTP+SSE: a POST brings no answer, its URL is the server session
	engineName  Engine
	session     atomic.Pointer[string] // Mcp-Session-Id, nil when there is none
	state       atomic.Pointer[stateFields]
	lost        atomic.Bool // the server does not know the session any more
	closing     atomic.Bool
	drainMisses atomic.Int32 // streams in a row that stayed open after the answer
	tokens      tokens
	givenUp     givenUp

	// life ends when Close has done its part; it is the context of what the Conn
	// does by itself and that no caller's context governs.
	life      context.Context //nolint:containedctx // the Conn's own lifetime, ended by Close
	endLife   context.CancelCauseFunc
	endStream context.CancelCauseFunc // of the GET stream
	// streamKnown is closed, by knowStream, once the GET was answered; nil without one.
	streamKnown chan struct{}
	knowStream  func()
	tasks       sync.WaitGroup
	taskMu      sync.Mutex // guards tasks.Add against Close
	taskSlots   chan struct{}
	closeOnce   sync.Once
	closeError  error
}

func newHTTPConn(ctx context.Context, e engine, name Engine, o Options) *httpConn {
	c := &httpConn{o: o, env: newEnvelope(&o), engine: e, engineName: name, taskSlots: make(chan struct{}, maxTasks)}
	c.life, c.endLife = context.WithCancelCause(context.WithoutCancel(ctx))
	c.endStream = func(error) {}
	c.inbox = newInbox(&c.o, c.env, c.replyToServer, c.answerServer)
	c.tokens.o, c.tokens.env = &c.o, c.env
	return c
}

func (c *httpConn) isOver() bool { return c.lost.Load() }

// lose notes that the server does not know the session any more.
func (c *httpConn) lose(err error) {
	c.lost.Store(true)
	c.o.post.end(err)
}

// SetVersion implements Conn.
func (c *httpConn) SetVersion(v Version) { c.env.setVersion(v) }

func (c *httpConn) describe(i *Info) {
	i.TCP, i.TLS = c.engine.phases()
	i.Engine = c.engineName
	if id := c.session.Load(); id != nil {
		i.ServerSession = *id
	}
}

// RoundTrip implements Conn. The answer is read by the calling goroutine.
func (c *httpConn) RoundTrip(ctx context.Context, req Request) (Reply, error) {
	x := newExchange(c, &req)
	defer x.release()
	if ctx.Err() != nil {
		return x.finish(gaveUp(ctx))
	}
	if c.closing.Load() {
		return x.finish(closedError())
	}
	if c.streamKnown != nil && (req.Wants != nil || c.o.Answers != nil) {
		c.awaitStream(ctx)
	}
	err := x.prepare()
	if err == nil {
		if l := x.req.listening(); l != nil {
			l.started(x.id, true, x.soFar)
		}
		err = x.run(ctx)
	}
	if err != nil && x.broken {
		err = x.resume(ctx, err)
	}
	switch {
	case x.track != nil:
		err = x.conclude(ctx, err)
	case err != nil:
		x.stampEnd()
		err = x.explain(ctx, err)
	}
	return x.finish(err)
}

// stateFields is the header of messages in one state of the negotiation.
type stateFields struct {
	rules   *rules
	session *string
	fields  []headerField
}

// postHeader returns the header that each POST has in the current state.
func (c *httpConn) postHeader(r *rules) []headerField {
	session := c.session.Load()
	if s := c.state.Load(); s != nil && s.rules == r && s.session == session {
		return s.fields
	}
	s := &stateFields{rules: r, session: session}
	s.fields = []headerField{{"Content-Type", "application/json"}}
	if !c.legacy {
		s.fields = append(s.fields, headerField{"Accept", "application/json, text/event-stream"})
	}
	s.fields = c.appendState(s.fields, r)
	c.state.Store(s)
	return s.fields
}

// appendState adds the headers that carry the negotiated state: the server
// session and the version. Before the handshake there is neither.
func (c *httpConn) appendState(h []headerField, r *rules) []headerField {
	if id := c.session.Load(); id != nil && r.ServerSession {
		h = append(h, headerField{"Mcp-Session-Id", *id})
	}
	if r.VersionHeader && r.version != "" {
		h = append(h, headerField{"Mcp-Protocol-Version", string(r.version)})
	}
	return h
}

// keepSession remembers the session id that an initialize response brought.
func (c *httpConn) keepSession(x *exchange, resp response) {
	if x.req.Method != "initialize" || !x.rules.ServerSession {
		return
	}
	if id := resp.header("Mcp-Session-Id"); id != "" {
		c.session.Store(&id)
	}
}

// Notify implements Conn. Any 2xx is acceptance.
func (c *httpConn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if c.closing.Load() {
		return closedError()
	}
	if err := c.notify(ctx, wayPooled, method, params); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

func (c *httpConn) notify(ctx context.Context, by way, method string, params json.RawMessage) error {
	r := c.env.current()
	if err := r.checkMethod(method); err != nil {
		return err
	}
	var extra []headerField
	if r.MethodHeaders {
		extra = []headerField{{methodField, method}}
	}
	return c.deliver(ctx, by, r, appendNotification(nil, method, params), extra, method)
}

// deliver posts a message that gets no JSON-RPC answer: a notification or an
// answer to a server request.
func (c *httpConn) deliver(ctx context.Context, by way, r *rules, body []byte, extra []headerField, what string) error {
	var t stamps
	session := c.legacy || c.session.Load() != nil && r.ServerSession
	m := httpRequest{method: "POST", header: c.postHeader(r), extra: extra, body: body, way: by}
	c.showSending(&m, ChannelPost)
	resp, err := c.engine.do(ctx, &m, &t)
	if err != nil {
		return err
	}
	defer closeBody(resp)
	if resp.status()/100 != 2 {
		_, err := c.refusal(resp, session, 0)
		return err
	}
	if resp.status() != 202 && !c.legacy {
		c.o.OnAnomaly(AnomalyOddStatus, fmt.Sprintf("%s answered with status %d", what, resp.status()))
	}
	c.showAnswer(resp, t.first, ChannelPost, discard(resp), nil)
	return nil
}

// spawn runs f beside the callers, at most maxTasks at once. It reports whether
// f was started; Close waits for it.
func (c *httpConn) spawn(f func(ctx context.Context)) bool {
	select {
	case c.taskSlots <- struct{}{}:
	default:
		return false
	}
	c.taskMu.Lock()
	defer c.taskMu.Unlock()
	if c.closing.Load() {
		<-c.taskSlots
		return false
	}
	c.tasks.Go(func() {
		defer func() { <-c.taskSlots }()
		ctx, cancel := context.WithTimeout(c.life, taskLimit)
		defer cancel()
		f(ctx)
	})
	return true
}

// answerServer delivers an answer to a server request, within taskLimit.
func (c *httpConn) answerServer(payload []byte) error {
	ctx, cancel := context.WithTimeout(c.life, taskLimit)
	defer cancel()
	return c.deliver(ctx, wayUrgent, c.env.current(), payload, nil, "answer to a server request")
}

func (c *httpConn) replyToServer(payload []byte) {
	started := c.spawn(func(context.Context) {
		if err := c.answerServer(payload); err != nil {
			c.o.OnAnomaly(AnomalyReplyDropped, err.Error())
		}
	})
	if !started {
		c.o.OnAnomaly(AnomalyReplyDropped, "too many answers to the server under way")
	}
}

// cancelRequest tells the server that the request is given up. It returns at once.
func (c *httpConn) cancelRequest(id int64, reason string) {
	started := c.spawn(func(ctx context.Context) {
		if err := c.notify(ctx, wayUrgent, "notifications/cancelled", cancelParams(id, reason)); err != nil {
			c.o.OnAnomaly(AnomalyCancelFailed, err.Error())
		}
	})
	if !started {
		c.o.OnAnomaly(AnomalyCancelFailed, "too many cancellations under way")
	}
}

func cancelParams(id int64, reason string) json.RawMessage {
	p := append([]byte(`{"requestId":`), strconv.AppendInt(nil, id, 10)...)
	p = append(p, `,"reason":`...)
	return append(appendString(p, reason), '}')
}

// Close implements Conn: it lets what is under way finish, ends the GET stream
// and the server session (DELETE), and closes every connection, so that
// requests still in flight fail.
func (c *httpConn) Close(ctx context.Context) error {
	c.closeOnce.Do(func() { c.closeError = c.close(ctx) })
	return c.closeError
}

func (c *httpConn) close(ctx context.Context) error {
	if c.how() == EndDrop {
		c.endLife(errClosed)
		c.engine.reset()
	}
	c.taskMu.Lock()
	c.closing.Store(true)
	c.endStream(errClosed)
	c.taskMu.Unlock()
	abandon := context.AfterFunc(ctx, func() { c.endLife(context.Cause(ctx)) })
	defer abandon()
	c.inbox.desk.stop(errClosed)
	c.inbox.desk.wait()
	c.tasks.Wait()
	err := c.deleteSession(ctx)
	c.endLife(errClosed)
	c.engine.close()
	return err
}

// deleteSession ends the server session. Whatever the server answers, it has
// been told; 404 and 405 are as good as 200, other refusals are anomalies.
func (c *httpConn) deleteSession(ctx context.Context) error {
	r := c.env.current()
	if c.session.Load() == nil || !r.ServerSession || c.lost.Load() || c.how() != EndOrderly {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, taskLimit)
	defer cancel()
	t := noStamps()
	m := httpRequest{method: "DELETE", header: c.appendState(nil, r)}
	c.showSending(&m, ChannelDelete)
	resp, err := c.engine.do(ctx, &m, &t)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = cause
		}
		return fmt.Errorf("ending the server session: %w", err)
	}
	defer closeBody(resp)
	c.showAnswer(resp, t.first, ChannelDelete, c.said(resp, false), nil)
	switch resp.status() {
	case 200, 202, 204, 404, 405, 501:
	default:
		c.o.OnAnomaly(AnomalyCloseFailed, fmt.Sprintf("DELETE answered with status %d", resp.status()))
	}
	return nil
}

// drain reads what is left of a stream after the answer, so that the connection
// can be used again. Servers that leave their streams open make it close instead.
func (x *exchange) drain(resp response) {
	c := x.conn
	if c.drainMisses.Load() >= maxDrainMisses {
		return
	}
	if resp.drain(drainLimit) {
		c.drainMisses.Store(0)
		return
	}
	c.drainMisses.Add(1)
}
