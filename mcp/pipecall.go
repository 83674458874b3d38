package mcp

import (
	"context"
	"time"
)

// outgoing is one line to write.
type outgoing struct {
	line     []byte // without its line feed
	call     *call  // whose request it is, or nil
	whole    *batch // or: whose requests
	written  chan error
	detached bool // nobody waits for it
}

// call is a request of a router. It belongs to its caller, but while it is in the
// table, to router.mu.
type call struct {
	outgoing
	id    int64
	buf   []byte          // Request.ResultBuf
	opens *listening      // the subscription that the request opens, or nil
	sent  time.Duration   // negative before
	track *tracker        // nil for a plain request
	gone  <-chan struct{} // closed when the session of the call ends before the connection

	posting *posting // of HTTP+SSE
	batch   *batch   // that the request goes out in, or nil

	done    chan struct{} // has room for the one word that the answer is there
	settled bool          // the word was taken
	timer   *time.Timer   // nil before the first limit

	// What came of it.
	reply      Reply
	err        error
	first, end time.Duration
	answered   bool
}

func (k *call) startTimer(limit time.Duration) <-chan time.Time {
	switch {
	case limit <= 0:
		return nil
	case k.timer == nil:
		k.timer = time.NewTimer(limit)
	default:
		k.timer.Reset(limit)
	}
	return k.timer.C
}

func (k *call) stopTimer() {
	if k.timer != nil {
		k.timer.Stop()
	}
}

// late tells that the answer came when the limit was over.
func (k *call) late(limit time.Duration) bool {
	return limit > 0 && k.answered && k.sent >= 0 && k.end > k.sent+limit
}

// finish fills the timing of a call that left the table. began is when its
// caller came.
func (k *call) finish(began time.Duration) (Reply, error) {
	t := &k.reply.Timing
	t.Start = max(began, or(k.sent, began))
	t.End = max(k.end, t.Start)
	t.FirstByte = t.End
	if k.answered {
		t.FirstByte = min(max(k.first, t.Start), t.End)
	}
	return k.reply, k.err
}

// callTable finds calls by their id: id modulo its length, a power of two, is the
// place. Ids whose place is taken are not given out.
type callTable struct {
	places []*call
	used   int
}

// add gives k an id and its place.
func (t *callTable) add(k *call, nextID func() int64) {
	if 2*t.used >= len(t.places) {
		old := t.places
		t.places = make([]*call, max(8, 2*len(old)))
		for _, o := range old {
			if o != nil {
				*t.place(o.id) = o // ids that differ modulo n do modulo 2n
			}
		}
	}
	for {
		k.id = nextID()
		if p := t.place(k.id); *p == nil {
			*p = k
			t.used++
			return
		}
	}
}

func (t *callTable) place(id int64) **call { return &t.places[id&int64(len(t.places)-1)] }

// find returns the call with that id, or nil.
func (t *callTable) find(id int64) *call {
	if len(t.places) == 0 {
		return nil
	}
	if k := *t.place(id); k != nil && k.id == id {
		return k
	}
	return nil
}

func (t *callTable) remove(k *call) {
	*t.place(k.id) = nil
	t.used--
}

// begin registers a call before it can possibly be answered.
func (c *router) begin(req *Request) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var k *call
	if n := len(c.free); n > 0 {
		k = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		k = &call{done: make(chan struct{}, 1)}
		k.call = k
	}
	k.buf, k.sent = req.ResultBuf, -1
	k.opens = req.listening()
	k.reply.Rounds = 1
	c.calls.add(k, c.env.nextID)
	if k.opens != nil {
		id := k.id
		k.opens.started(id, false, func() (Reply, bool) { return c.soFar(id) })
	}
	return k
}

// remove takes a call from the table; false when it was answered.
func (c *router) remove(k *call) bool {
	if c.calls.find(k.id) != k {
		return false
	}
	c.calls.remove(k)
	if k.track != nil {
		c.tokens.end(k.track)
	}
	return true
}

// recycle keeps a call that left the table for another one.
func (c *router) recycle(k *call) {
	if k.answered && !k.settled {
		<-k.done
	}
	line := k.line
	if cap(line) > joinedBytes {
		line = nil
	}
	*k = call{outgoing: outgoing{line: line, call: k}, posting: k.posting, done: k.done, timer: k.timer}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, k)
}

// soFar returns what is known of a call that has no answer yet; false when it was
// not sent.
func (c *router) soFar(id int64) (Reply, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.calls.find(id)
	if k == nil || k.sent < 0 {
		return Reply{}, false
	}
	r := k.reply
	r.Timing.Start = k.sent
	return r, true
}

// settle gives the call of that id its answer; false when there is none that was
// sent. m is nil when the answer is err.
func (c *router) settle(id int64, t *textLine, size int, m *message, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.calls.find(id)
	if k == nil || k.sent < 0 {
		return false
	}
	c.put(k, t, size, m, err)
	return true
}

// put gives a call of the table its answer. The caller holds c.mu.
func (c *router) put(k *call, t *textLine, size int, m *message, err error) {
	c.remove(k)
	k.first, k.end, k.answered = t.first, t.end, true
	if k.opens != nil {
		k.opens.answered()
	}
	k.reply.BytesIn += size
	switch b := k.batch; {
	case b != nil:
		if b.left--; b.left == 0 {
			b.answered.put(t.end)
		}
	case k.posting != nil:
		k.posting.answered.put(t.end)
	}
	if k.err = err; err == nil {
		k.reply.take(m, k.buf)
	}
	k.done <- struct{}{}
}

// send implements carrier.
func (c *pipeConn) send(_ context.Context, k *call, _ time.Duration) error {
	k.line = oneLine(k.line)
	c.enqueue(&k.outgoing)
	return nil
}

// cancel implements carrier.
func (c *pipeConn) cancel(id int64, reason string) {
	line := appendNotification(nil, "notifications/cancelled", cancelParams(id, reason))
	c.detach(line, func() { c.o.OnAnomaly(AnomalyCancelFailed, "too many lines wait for the server to read") })
}

// unsend implements carrier.
func (c *pipeConn) unsend(k *call) bool { return c.unqueue(&k.outgoing) }
