package mcp

import (
	"bytes"
	"context"
	"slices"
)

// read is the reading goroutine.
func (c *pipeConn) read() {
	defer close(c.ended)
	lines := newLineReader(c.r, c.o.Limits.MessageBytes, c.o.now)
	mark := []byte("\xEF\xBB\xBF") // some servers begin their output with a byte order mark
	for {
		t, err := lines.next()
		if err != nil {
			c.outputEnded(err)
			return
		}
		t.text, _ = bytes.CutPrefix(t.text, mark)
		mark = nil
		c.showLine(&t)
		switch {
		case t.oversized:
			c.oversized(&t)
		case len(bytes.TrimSpace(t.text)) > 0:
			c.line(&t)
		}
	}
}

// outputEnded ends the connection when nothing more can come from the server.
func (c *pipeConn) outputEnded(err error) {
	at := c.o.now() // the wait for the reason is not the server's time
	if c.proc != nil {
		if exit := c.proc.exitError(lastWords / 4); exit != nil {
			c.failAt(at, exit)
			return
		}
	}
	c.failAt(at, &TransportError{Op: "read", Err: err, lost: true})
}

func (c *router) line(t *textLine) {
	if !isArray(t.text) {
		c.message(t, t.text, nil)
		return
	}
	all, err := splitBatch(t.text)
	if err != nil {
		c.o.OnAnomaly(c.noise, excerpt(t.text))
		return
	}
	var fault error
	if !c.env.current().Batches {
		fault = &ProtocolError{Kind: FaultBatch, Detail: excerpt(t.text)}
		c.o.OnAnomaly(AnomalyBatch, excerpt(t.text))
	}
	t.inArray = true
	for _, one := range all {
		c.message(t, one, fault)
	}
}

// message handles one message. A fault makes it the failure of the request it
// answers, and nothing else.
func (c *router) message(t *textLine, data []byte, fault error) {
	m, err := decodeMessage(data)
	if err != nil {
		c.broken(t, err)
		return
	}
	kind := m.kind()
	switch {
	case kind == kindOther:
		c.o.OnAnomaly(c.noise, excerpt(data))
	case kind == kindResponse:
		c.response(t, &m, data, fault)
	case fault != nil:
	case kind == kindRequest:
		c.inbox.request(&m)
	case kind == kindNotification:
		// Nothing but a token ties a notification to a request here.
		if c.inbox.notification(&m) {
			c.tokens.take(&m, len(data), c.stream, t.end)
		}
		c.o.post.deliver(&m, data, nil)
	}
}

// broken handles a line that is no JSON: noise, unless it was meant as the
// answer to a request of ours, which then need not wait any longer.
func (c *router) broken(t *textLine, err error) {
	if bytes.Contains(t.text, []byte(`"jsonrpc"`)) {
		if id, ok := idInFragment(t.text, t.text); ok {
			fault := &ProtocolError{Kind: FaultBadJSON, Detail: excerpt(t.text), Err: err}
			if c.settle(id, t, len(t.text), nil, fault) {
				return
			}
		}
	}
	c.o.OnAnomaly(c.noise, excerpt(t.text))
}

func (c *router) oversized(t *textLine) {
	over := &LimitError{Limit: LimitMessage, Max: c.o.Limits.MessageBytes}
	if id, ok := idInFragment(t.text, t.tail); ok && c.settle(id, t, len(t.text), nil, over) {
		return
	}
	c.o.OnAnomaly(AnomalyOversized, excerpt(t.text))
}

func (c *router) response(t *textLine, m *message, data []byte, fault error) {
	id, ok := m.numericID()
	if !ok {
		if !c.refuseBatch(t, m, len(data)) {
			c.o.OnAnomaly(AnomalyUnknownID, excerpt(data))
		}
		return
	}
	if fault == nil {
		fault = m.answer(data, c.status())
	}
	if c.settle(id, t, len(data), m, fault) {
		return
	}
	switch {
	case c.o.post.tolerates(id):
	case c.givenUp.take(id):
		c.o.OnAnomaly(AnomalyLateAnswer, excerpt(data))
	case c.asked(id):
		c.o.OnAnomaly(AnomalyDuplicateAnswer, excerpt(data))
	default:
		c.o.OnAnomaly(AnomalyUnknownID, excerpt(data))
	}
}

// asked reports whether a request with that id was among those whose answers come here.
func (c *router) asked(id int64) bool {
	if c.own != nil {
		return slices.Contains(c.own.ids, id)
	}
	return id >= 1 && id <= c.env.lastID.Load()
}

// status is that of the HTTP response in which answers come, 0 when they do not.
func (c *router) status() int {
	if c.own != nil {
		return c.own.status
	}
	return 0
}

// replyToServer has an answer to a server request written, without waiting for it.
func (c *pipeConn) replyToServer(payload []byte) {
	c.detach(oneLine(payload), func() { c.o.OnAnomaly(AnomalyReplyDropped, excerpt(payload)) })
}

// answerServer writes an answer to a server request and waits until it is written.
// A server that does not read holds it up until the end of the connection.
func (c *pipeConn) answerServer(payload []byte) error {
	return c.put(context.Background(), "answer to a server request", payload)
}
