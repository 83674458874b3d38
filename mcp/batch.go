package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// BatchReply is what came of one request of a batch, as Session.Call returns it.
type BatchReply struct {
	Reply Reply
	Err   error
}

// Batch makes several requests by one message, a JSON array, and waits for the
// answers to all. Each has its own id, its own limits and its own outcome, in the
// order of reqs; Start is common to all. What becomes of the whole, such as an HTTP
// status, or an error that names no id, becomes of each request. A new connection
// that was opened for it is in the Timing of the first alone.
//
// The error is for what cannot be sent in a batch, of which nothing is then sent: no
// version but 2025-03-26 has batches (specification 2025-03-26, basic, batching),
// and initialize must not be in one (basic/lifecycle, initialization).
func (s *Session) Batch(ctx context.Context, reqs []Request) ([]BatchReply, error) {
	c, able := s.conn.(interface {
		roundTrips(ctx context.Context, reqs []Request) []BatchReply
	})
	switch {
	case !s.info.Version.Features().Batches:
		return nil, fmt.Errorf("a batch of requests: version %s has none, only %s does", s.info.Version, V20250326)
	case !able:
		return nil, errors.New("a batch of requests: this connection does not carry any")
	case len(reqs) == 0:
		return nil, errors.New("a batch of requests: there is none in it")
	}
	for i := range reqs {
		if reqs[i].Method == "initialize" {
			return nil, errors.New("a batch of requests: initialize must not be in one")
		}
	}
	replies := c.roundTrips(ctx, reqs)
	for i := range replies {
		if r := &replies[i]; r.Err == nil {
			r.Err = s.judge(reqs[i].Method, &r.Reply)
		}
	}
	return replies, nil
}

// batch is requests that go out together. Its calls are in the table of its router
// one by one.
type batch struct {
	ids  []int64
	line []byte // the message

	// Guarded by router.mu.
	left    int  // calls without an answer
	gaveUp  bool // the caller of one did not wait for its answer
	refusal error

	answered mark // the last answer came

	// What its sender found out.
	first   time.Duration // of the response to the POST, negative before
	status  int
	connect time.Duration
}

// batch makes requests by one message, which send hands over. An error of send is
// that of all requests without an answer.
func (c *router) batch(ctx context.Context, reqs []Request, send func(ctx context.Context, b *batch) error) []BatchReply {
	began := c.o.now()
	replies := make([]BatchReply, len(reqs))
	reqs = slices.Clone(reqs) // follow changes them
	b := &batch{first: -1, line: []byte{'['}}
	calls := make([]*call, len(reqs))
	for i := range reqs {
		k, err := c.enlist(ctx, b, &reqs[i])
		if err != nil {
			replies[i].Reply, replies[i].Err = c.outcome(ctx, k, &reqs[i], began, err)
			continue
		}
		calls[i] = k
	}
	if len(b.ids) == 0 {
		return replies
	}
	b.line = append(b.line, ']')
	c.track(b)
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	var sender, waiting sync.WaitGroup
	sender.Go(func() {
		// At the end of ctx each caller gives up by itself.
		if err := send(sending, b); err != nil && ctx.Err() == nil {
			c.failBatch(b, err)
		}
	})
	for i, k := range calls {
		if k != nil {
			waiting.Go(func() { replies[i].Reply, replies[i].Err = c.outcome(ctx, k, &reqs[i], began, nil) })
		}
	}
	waiting.Wait()
	if c.untrack(b) {
		cancel() // nobody waits for what is missing
	}
	sender.Wait()
	for i, k := range calls {
		if k != nil {
			replies[i].Reply.HTTPStatus = b.status
			replies[i].Reply.Timing.Connect, b.connect = b.connect, 0
		}
	}
	return replies
}

// enlist adds a request to b, which is not under way yet.
func (c *router) enlist(ctx context.Context, b *batch, req *Request) (*call, error) {
	k := c.begin(req)
	if ctx.Err() != nil {
		return k, gaveUp(ctx)
	}
	err := c.follow(k, req)
	if err == nil {
		k.line, err = c.env.current().appendRequest(k.line[:0], k.id, req)
	}
	if err != nil {
		return k, err
	}
	k.reply.BytesOut = len(k.line)
	k.batch = b
	if len(b.ids) > 0 {
		b.line = append(b.line, ',')
	}
	b.line = append(b.line, k.line...)
	b.ids = append(b.ids, k.id)
	return k, nil
}

// track says that b is under way.
func (c *router) track(b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.left = len(b.ids)
	c.batches = append(c.batches, b)
}

// untrack says that b is over. It reports whether the caller of one of its requests
// did not wait for the answer.
func (c *router) untrack(b *batch) (gaveUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.batches, b)
	c.batches = slices.Delete(c.batches, i, i+1)
	return b.gaveUp
}

// began says that b is being written now. The caller holds router.mu.
func (c *router) began(b *batch, now time.Duration) {
	for _, id := range b.ids {
		if k := c.calls.find(id); k != nil {
			k.sent = now
			k.track.begin(now)
		}
	}
}

// failBatch makes err the failure of all requests of b without an answer, unless the
// server said what the matter is.
func (c *router) failBatch(b *batch, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.refusal != nil {
		err = b.refusal
	}
	now := c.o.now()
	c.failRest(b, &textLine{first: or(b.first, now), end: now}, 0, err)
}

// failRest is for failBatch and refuseBatch, which hold router.mu. size is that of the
// message which says so, if there is one.
func (c *router) failRest(b *batch, t *textLine, size int, err error) {
	for _, id := range b.ids {
		if k := c.calls.find(id); k != nil {
			c.put(k, t, size, nil, err)
			size = 0
		}
	}
}

// refuseBatch charges an error that names no id to a batch, if it can be about one.
// Alone it is the answer to a whole one: to the oldest of which nothing was answered,
// since a server that can read a request knows its id (JSON-RPC 2.0, sections 5
// and 6). On the own stream of a batch it is else about what will be missing.
func (c *router) refuseBatch(t *textLine, m *message, size int) bool {
	if !m.anonymous() || m.err == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.batches {
		switch {
		case b.left == len(b.ids) && !b.gaveUp && !t.inArray && (c.own == b || c.calls.find(b.ids[0]).sent >= 0):
			c.failRest(b, t, size, m.rpcError(c.status()))
			return true
		case c.own == b && b.refusal == nil:
			b.refusal = m.rpcError(c.status())
			return true
		}
	}
	return false
}

// roundTrips writes requests as one line.
func (c *pipeConn) roundTrips(ctx context.Context, reqs []Request) []BatchReply {
	return c.batch(ctx, reqs, func(_ context.Context, b *batch) error {
		c.enqueue(&outgoing{line: oneLine(b.line), whole: b})
		return nil
	})
}

// roundTrips posts requests as one message; the answers come over the stream.
func (c *sseConn) roundTrips(ctx context.Context, reqs []Request) []BatchReply {
	return c.batch(ctx, reqs, func(ctx context.Context, b *batch) error {
		p := newPosting(&b.answered)
		p.prepare(c.posts.postHeader(c.env.current()), b.line, 0, c.o.now())
		c.posts.showSending(&p.request, ChannelPost)
		c.whenSent(b, &p.request)
		err := c.post(ctx, p, 0)
		b.first, b.status, b.connect = p.stamps.first, p.status, p.stamps.connect
		switch {
		case err == nil:
			return nil
		case b.answered.set.Load():
			c.overtaken(err)
			return nil
		case c.router.isOver():
			return c.dead
		}
		return err
	})
}

// whenSent has it noted when r, the message of b, is being written.
func (c *router) whenSent(b *batch, r *httpRequest) {
	show := r.onSent
	r.onSent = func(at time.Duration) {
		c.mu.Lock()
		c.began(b, at)
		c.mu.Unlock()
		if show != nil {
			show(at)
		}
	}
}

// batchCarrier cancels the requests of a batch over Streamable HTTP, which has a
// router of its own: the response to its POST is the stream on which answers come.
type batchCarrier struct{ *httpConn }

func (batchCarrier) send(context.Context, *call, time.Duration) error { return nil } // batch does
func (batchCarrier) unsend(*call) bool                                { return false }
func (c batchCarrier) cancel(id int64, reason string)                 { c.cancelRequest(id, reason) }

// roundTrips posts requests as one message and reads the answers from the response.
func (c *httpConn) roundTrips(ctx context.Context, reqs []Request) []BatchReply {
	r := newRouter(&c.o, c.env, AnomalyOddEvent)
	r.carrier, r.inbox, r.givenUp, r.tokens = batchCarrier{c}, &c.inbox, &c.givenUp, &c.tokens
	return r.batch(ctx, reqs, func(ctx context.Context, b *batch) error {
		if c.closing.Load() {
			return closedError()
		}
		x := newExchange(c, &Request{Method: "a batch"})
		defer x.release()
		r.own, r.stream, x.router = b, x.id, &r
		x.out = append(x.out[:0], b.line...)
		err := x.run(ctx)
		if err != nil && x.broken {
			err = x.resume(ctx, err)
		}
		b.first, b.status, b.connect = x.stamps.first, x.reply.HTTPStatus, x.stamps.connect
		return err
	})
}

// takeBatch handles a message, or several, on the stream of a batch. done tells that
// no answer is missing any more.
func (x *exchange) takeBatch(data []byte) (done bool, err error) {
	if isArray(data) {
		_, err = splitBatch(data)
	} else {
		_, err = decodeMessage(data)
	}
	if err != nil {
		return false, &ProtocolError{Kind: FaultBadJSON, Detail: excerpt(data), Err: err}
	}
	now := x.conn.o.now()
	t := textLine{text: data, first: now, end: now}
	if x.end >= 0 { // a body
		t.first, t.end = or(x.stamps.first, x.end), x.end
	}
	c := x.router
	c.own.status = x.reply.HTTPStatus
	c.line(&t)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.own.left == 0, nil
}
