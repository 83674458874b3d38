package driver

import (
	"slices"
	"sync"
)

// queue holds the arrivals that were released and that no session has taken,
// in order. The pacer pushes, workers take; both may be many.
type queue struct {
	limit    int  // arrivals that may wait; 0 is no limit
	onlyIdle bool // take an arrival only when a worker waits for one

	mu     sync.Mutex
	wake   sync.Cond // an arrival came, or the end
	items  []arrival // from head on
	head   int
	idle   int // workers that wait
	closed bool
	// emptied gets a token when the last waiting arrival was taken.
	emptied chan struct{}
}

func newQueue(limit int, onlyIdle bool) *queue {
	q := &queue{limit: limit, onlyIdle: onlyIdle, emptied: make(chan struct{}, 1)}
	q.wake.L = &q.mu
	return q
}

// push adds an arrival, or returns false when there is no room for it.
func (q *queue) push(a arrival) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := len(q.items) - q.head
	if q.onlyIdle && waiting >= q.idle || q.limit > 0 && waiting >= q.limit+q.idle {
		return false
	}
	q.items = append(q.items, a)
	q.wake.Signal()
	return true
}

// take waits for an arrival; ok is false when there will be no more. waiting is
// called when the caller counts among those that wait.
func (q *queue) take(waiting func()) (a arrival, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.idle++
	waiting()
	for q.head == len(q.items) && !q.closed {
		q.wake.Wait()
	}
	q.idle--
	if q.head == len(q.items) {
		return arrival{}, false
	}
	return q.pop(), true
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
	if q.head > 0 {
		q.head--
		q.items[q.head] = a
	} else {
		q.items = slices.Insert(q.items, 0, a)
	}
	q.wake.Signal()
}

// empty reports whether no arrival waits.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.head == len(q.items)
}

// close ends the queue: workers get what still waits, then false.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Broadcast()
}

// abandon takes out everything that waits.
func (q *queue) abandon() []arrival {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := append([]arrival(nil), q.items[q.head:]...)
	q.items, q.head = q.items[:0], 0
	return out
}
