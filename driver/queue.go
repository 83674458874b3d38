package driver

import (
	"slices"
	"sync"
)

// queue holds the arrivals that were released and that no session has taken,
// in order. The pacer pushes, workers take; both may be many. A worker that waits
// is handed its arrival, the one that waits longest first, so that all sessions
// have their turn.
type queue struct {
	limit    int  // arrivals that may wait; 0 is no limit
	onlyIdle bool // take an arrival only when a worker waits for one

	mu     sync.Mutex
	items  []arrival // from head on
	head   int
	idle   []*waiter // that wait, from first on; only when there are no items
	first  int
	closed bool
	// emptied gets a token when the last waiting arrival was taken.
	emptied chan struct{}
}

// waiter is a worker's place among those that wait. It is used again and again.
type waiter struct {
	ready chan struct{} // of one: a token when given is set
	given verdictOfWait
	a     arrival
}

type verdictOfWait uint8

const (
	waits verdictOfWait = iota
	served
	noMore
)

func newWaiter() *waiter { return &waiter{ready: make(chan struct{}, 1)} }

func newQueue(limit int, onlyIdle bool) *queue {
	return &queue{limit: limit, onlyIdle: onlyIdle, emptied: make(chan struct{}, 1)}
}

// push adds an arrival, or returns false when there is no room for it.
func (q *queue) push(a arrival) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hand(a) {
		return true
	}
	if q.onlyIdle || q.limit > 0 && len(q.items)-q.head >= q.limit {
		return false
	}
	q.items = append(q.items, a)
	return true
}

// hand gives an arrival to the worker that waits longest; false when none does.
// q.mu is held.
func (q *queue) hand(a arrival) bool {
	if q.first == len(q.idle) {
		return false
	}
	w := q.idle[q.first]
	q.idle[q.first] = nil
	q.first++
	q.compact()
	w.a, w.given = a, served
	w.ready <- struct{}{}
	return true
}

// compact gives back the room of those who have left the line.
func (q *queue) compact() {
	switch {
	case q.first == len(q.idle):
		q.idle, q.first = q.idle[:0], 0
	case q.first >= 1024 && q.first*2 >= len(q.idle):
		q.idle = q.idle[:copy(q.idle, q.idle[q.first:])]
		q.first = 0
	}
}

// takeResult says how take ended.
type takeResult uint8

const (
	tookOne   takeResult = iota
	tookNone             // there will be no more
	tookLeave            // over came first
)

// take waits for an arrival, until over is closed. ready is called when the caller
// counts among those that wait. w is the caller's.
func (q *queue) take(w *waiter, ready func(), over <-chan struct{}) (arrival, takeResult) {
	q.mu.Lock()
	switch {
	case q.head < len(q.items):
		a := q.pop()
		q.mu.Unlock()
		return a, tookOne
	case q.closed:
		q.mu.Unlock()
		return arrival{}, tookNone
	}
	w.given = waits
	q.idle = append(q.idle, w)
	q.mu.Unlock()
	ready()
	select {
	case <-w.ready:
	case <-over:
		q.mu.Lock()
		if w.given == waits {
			q.withdraw(w)
			q.mu.Unlock()
			return arrival{}, tookLeave
		}
		q.mu.Unlock()
		<-w.ready
	}
	if w.given == noMore {
		return arrival{}, tookNone
	}
	return w.a, tookOne
}

// withdraw takes w out of the line; q.mu is held. Its entry may be used again at
// once, so it must not stay there.
func (q *queue) withdraw(w *waiter) {
	if i := slices.Index(q.idle[q.first:], w); i >= 0 {
		q.idle = slices.Delete(q.idle, q.first+i, q.first+i+1)
	}
}

// pop removes the first arrival; q.mu is held and there is one.
func (q *queue) pop() arrival {
	a := q.items[q.head]
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
		select {
		case q.emptied <- struct{}{}:
		default: // a token is there already
		}
	case q.head >= 1024 && q.head*2 >= len(q.items):
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
	return a
}

// putBack makes a, which was taken, the first of those that wait.
func (q *queue) putBack(a arrival) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.head == len(q.items) && q.hand(a):
	case q.head > 0:
		q.head--
		q.items[q.head] = a
	default:
		q.items = slices.Insert(q.items, 0, a)
	}
}

// empty reports whether no arrival waits.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.head == len(q.items)
}

// close ends the queue: workers get what still waits, then nothing.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, w := range q.idle[q.first:] {
		w.given = noMore
		w.ready <- struct{}{}
	}
	q.idle, q.first = nil, 0
}

// abandon takes out everything that waits.
func (q *queue) abandon() []arrival {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := append([]arrival(nil), q.items[q.head:]...)
	q.items, q.head = q.items[:0], 0
	return out
}
