package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"
)

// maxQuestions is how many requests of the server are answered at once on one
// Conn, and how many entries of one result: more than any load has calls in
// flight on one session.
const maxQuestions = 1024

// desk has the requests of the server answered, each on a goroutine of its own.
// Its Conn stops it and waits for it. Safe for concurrent use.
type desk struct {
	o *Options
	// send delivers an answer. It returns when that is done, or in vain after a
	// bounded time or the end of the Conn.
	send func(payload []byte) error

	mu      sync.Mutex // guards the fields below
	open    map[string][]*question
	busy    int // goroutines
	stopped bool
	running sync.WaitGroup
}

// question is a request of the server that is being answered.
type question struct {
	Question
	id     json.RawMessage
	key    string
	at     time.Duration
	cancel context.CancelCauseFunc
}

// verdict is what a desk does with a question.
type verdict uint8

const (
	deskTook  verdict = iota
	deskFull          // too many are being answered
	deskEnded         // nobody waits for an answer any more
)

// take starts to answer q, which belongs to the desk from now on. twice tells that
// one with the same id is being answered.
func (d *desk) take(q *question) (v verdict, twice bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.stopped:
		return deskEnded, false
	case d.busy >= maxQuestions:
		return deskFull, false
	case d.open == nil:
		d.open = make(map[string][]*question)
	}
	// No context governs it but that of the Conn, whose end is stop.
	ctx, cancel := context.WithCancelCause(context.Background())
	q.cancel, q.key = cancel, idKey(q.id)
	twice = len(d.open[q.key]) > 0
	d.open[q.key] = append(d.open[q.key], q)
	d.busy++
	d.running.Go(func() {
		defer d.leave()
		d.answer(ctx, q)
	})
	return deskTook, twice
}

func (d *desk) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
}

// answer has q answered and sends what comes of it, unless q was withdrawn.
func (d *desk) answer(ctx context.Context, q *question) {
	defer q.cancel(nil)
	result, err := d.o.ask(ctx, &q.Question)
	told := Asked{Method: q.Method, At: q.at, Took: d.o.now() - q.at, Refused: err != nil, Err: err}
	if !d.close(q) {
		told.Refused, told.Cancelled, told.Err = false, true, context.Cause(ctx)
		d.o.OnAsked(told)
		return
	}
	payload := resultMessage(q.id, result)
	if err != nil {
		payload = errorMessage(q.id, asRPC(err))
	}
	// Told before it is sent: whoever has the result of a call has been told of what
	// the server asked for it.
	d.o.OnAsked(told)
	if err := d.send(payload); err != nil {
		d.o.OnAnomaly(AnomalyReplyDropped, err.Error())
	}
}

// close takes q from the table; false when it was withdrawn.
func (d *desk) close(q *question) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	same := d.open[q.key]
	i := slices.Index(same, q)
	switch {
	case i < 0:
		return false
	case len(same) == 1:
		delete(d.open, q.key)
	default:
		d.open[q.key] = slices.Delete(same, i, i+1)
	}
	return true
}

// withdraw cancels the questions with that id. One that is unknown or answered
// already means nothing (specification, basic/utilities/cancellation).
func (d *desk) withdraw(id json.RawMessage) {
	key := idKey(id)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.open[key] {
		q.cancel(errWithdrawn)
	}
	delete(d.open, key)
}

// stop cancels every question; no further one is taken.
func (d *desk) stop(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, same := range d.open {
		for _, q := range same {
			q.cancel(cause)
		}
	}
	d.open, d.stopped = nil, true
}

// wait returns when the goroutines of a stopped desk have ended.
func (d *desk) wait() { d.running.Wait() }

// idKey returns a text that is equal for equal ids: 7 and 7.0 are, 7 and "7" are not.
func idKey(id json.RawMessage) string {
	if s, ok := text(id); ok {
		return `"` + s
	}
	if f, err := strconv.ParseFloat(string(id), 64); err == nil && f == float64(int64(f)) && f > -(1<<53) && f < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return string(id)
}
