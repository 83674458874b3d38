package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"mcpbench/mcp/sse"
)

const (
	// firstRetry is the pause before a GET stream that ended is opened again,
	// unless the server named another; it doubles up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// maxIdleStreams is after how many streams in a row that ended soon and
	// brought no event the GET stream is given up.
	maxIdleStreams = 8
	// streamPatience is how long after the GET the first request waits for the
	// stream's header whose answer may come with something on that stream.
	streamPatience = 100 * time.Millisecond
)

// getStream is the standalone stream of a legacy session (specification
// 2025-11-25, basic/transports, "Listening for messages from the server").
type getStream struct {
	conn   *httpConn
	lastID string        // of the last event that had one
	retry  time.Duration // the server's wish, 0 when it had none
	fed    bool          // the current stream brought an event

	answered func() // called once the server has answered, or failed to
}

// openStream starts the GET stream and waits until the request is on its way
// (not for the answer: some servers send no header before their first event), so
// that a request made after it finds a server that knows of the stream.
func (c *httpConn) openStream(ctx context.Context) {
	if !c.env.current().GetStream {
		return
	}
	sent := make(chan struct{})
	if !c.startStream(sent) {
		return
	}
	select {
	case <-sent:
		time.AfterFunc(streamPatience, c.knowStream)
	case <-ctx.Done():
	}
}

func (c *httpConn) startStream(sent chan<- struct{}) bool {
	c.taskMu.Lock()
	defer c.taskMu.Unlock()
	if c.closing.Load() {
		return false
	}
	ctx, cancel := context.WithCancelCause(c.life)
	c.endStream = cancel
	known := make(chan struct{})
	c.streamKnown, c.knowStream = known, sync.OnceFunc(func() { close(known) })
	c.tasks.Go(func() {
		defer cancel(nil)
		g := getStream{conn: c, answered: c.knowStream}
		g.run(ctx, sent)
	})
	return true
}

// awaitStream waits until the server has answered the GET, if there was one: what it
// tells or asks before nobody hears, and one SDK then fails the request that it is
// about. Some servers send no header before their first event, so that
// streamPatience after the GET it does not wait any more.
func (c *httpConn) awaitStream(ctx context.Context) {
	if c.streamKnown == nil {
		return
	}
	select {
	case <-c.streamKnown:
	case <-ctx.Done():
	}
}

// run keeps a stream open until ctx ends, the server refuses it, or it proves useless.
func (g *getStream) run(ctx context.Context, sent chan<- struct{}) {
	tell := sync.OnceFunc(func() { close(sent) })
	defer tell()
	wait, idle := firstRetry, 0
	for {
		g.fed = false
		began := g.conn.o.now()
		again, err := g.once(ctx, tell)
		tell()
		if !again || ctx.Err() != nil {
			return
		}
		if g.fed || g.conn.o.now()-began >= lastRetry {
			wait, idle = firstRetry, 0
		} else if idle++; idle >= maxIdleStreams {
			g.conn.o.OnAnomaly(AnomalyGetStreamLost, fmt.Sprintf("%d streams in a row without an event; last: %v", idle, err))
			return
		}
		pause := time.NewTimer(max(wait, g.retry))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
		wait = min(2*wait, lastRetry)
	}
}

// once opens one stream and reads it to its end. again tells whether another
// one may be opened; err is why this one ended.
func (g *getStream) once(ctx context.Context, onWrote func()) (again bool, err error) {
	c := g.conn
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	resp, first, err := g.conn.get(ctx, wayBeside, g.conn.env.current(), g.lastID, onWrote)
	g.answered()
	if err != nil {
		return true, err
	}
	defer closeBody(resp)
	kind := mediaType(resp.header("Content-Type"))
	if resp.status() == 200 && kind == "text/event-stream" {
		c.showAnswer(resp, first, ChannelGet, nil, nil)
		return g.read(resp)
	}
	said := c.said(resp, resp.status()/100 == 5)
	c.showAnswer(resp, first, ChannelGet, said, nil)
	switch {
	case resp.status()/100 == 5:
		return true, &HTTPError{Status: resp.status(), Body: excerpt(said)}
	case resp.status() == 409 || resp.status()/100 == 2:
		g.tell(AnomalyGetStreamRefused, fmt.Sprintf("status %d, %q", resp.status(), kind))
	}
	// 405 is the normal way to say that there is no such stream; servers use
	// other client errors for the same. 409 means that one is open already.
	return false, nil
}

// get asks for a stream, for one that begins after the event lastID unless that is
// empty. first is when the response began.
func (c *httpConn) get(ctx context.Context, by way, r *rules, lastID string, onWrote func()) (resp response, first time.Duration, err error) {
	header := c.appendState([]headerField{{"Accept", "text/event-stream"}}, r)
	if lastID != "" {
		header = append(header, headerField{"Last-Event-ID", lastID})
	}
	m, t := httpRequest{method: "GET", header: header, onWrote: onWrote, way: by}, noStamps()
	c.showSending(&m, ChannelGet)
	resp, err = c.engine.do(ctx, &m, &t)
	return resp, t.first, err
}

// resumable returns the id that ev gives the stream, if it gives one. An id that
// no header can carry is as good as none.
func resumable(ev *sse.Event) (id string, ok bool) {
	if strings.ContainsFunc(ev.ID, isControl) {
		return "", ev.HasID
	}
	return ev.ID, ev.HasID
}

func (g *getStream) read(resp response) (again bool, err error) {
	events := sse.NewReader(resp, int(g.conn.o.Limits.MessageBytes))
	for {
		ev, err := events.Next()
		if err != nil {
			return true, err
		}
		if id, ok := resumable(&ev); ok {
			g.lastID = id
		}
		g.conn.showEvent(&ev, -1, ChannelGet)
		if ev.Retry >= 0 {
			g.retry = min(ev.Retry, lastRetry)
		}
		if len(ev.Data) > 0 {
			g.fed = true
			g.event(&ev)
		}
	}
}

func (g *getStream) event(ev *sse.Event) {
	if ev.Name != "" && ev.Name != "message" {
		g.tell(AnomalyOddEvent, ev.Name+": "+excerpt(ev.Data))
	}
	if !isArray(ev.Data) {
		g.message(ev.Data)
		return
	}
	all, err := splitBatch(ev.Data)
	if err != nil || !g.conn.env.current().Batches {
		g.tell(AnomalyBatch, excerpt(ev.Data))
		return
	}
	for _, one := range all {
		g.message(one)
	}
}

func (g *getStream) message(data []byte) {
	m, err := decodeMessage(data)
	if err != nil {
		g.tell(AnomalyOddEvent, excerpt(data))
		return
	}
	switch m.kind() {
	case kindRequest:
		g.conn.inbox.request(&m)
	case kindNotification:
		if g.conn.inbox.notification(&m) {
			g.conn.tokens.take(&m, len(data), 0, g.conn.o.now())
		}
		g.conn.o.post.deliver(&m, data, nil)
	case kindResponse:
		// Answers come here only on a resumed stream, which we do not ask for.
		g.tell(g.conn.givenUp.unexpected(m.numericID()), excerpt(data))
	case kindOther:
		g.tell(AnomalyOddEvent, excerpt(data))
	}
}

func (g *getStream) tell(kind Anomaly, detail string) {
	g.conn.o.OnAnomaly(kind, "GET stream: "+detail)
}
