package mcp

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// stopWait is how long, after a cancellation on purpose, we wait for a sign that
// the server stopped: of the servers known, some answer at once and one never does.
// Request.Timeout may end the wait before.
const stopWait = 2 * time.Second

// postGrace is how long a POST may go without a response after its request was
// answered on another stream: long enough for a response that the answer overtook,
// after which the connection can be used again.
const postGrace = 250 * time.Millisecond

var (
	// errIdle is Wants.IdleTimeout.
	errIdle = errors.New("idle limit ran out")
	// errCancelDue ends the exchange of a request whose cancellation is the end of
	// its response stream.
	errCancelDue = errors.New("cancelled by closing the stream")
	// errSilent ends the exchange of a cancelled request that got no sign.
	errSilent = errors.New("no sign that the server stopped")
	// errAnswered ends a POST without a response whose request was answered elsewhere.
	errAnswered = fmt.Errorf("no response to it within %v after the answer", postGrace)
)

// bounds are the moments at which a request with an idle limit or a cancellation on
// purpose is ended or cancelled. Nothing runs by itself: whoever waits for
// the answer asks when to look again, and strikes when that moment came. Safe for
// concurrent use.
type bounds struct {
	total, idle, cancel time.Duration // from the send, idle from the last progress too; 0: none
	// tell tells the server that the request is cancelled, without waiting, while
	// its answer is still awaited. nil: closing the stream tells.
	tell func()
	// answered, unless nil, is when the answer came on another stream than that of
	// the exchange, which then has postGrace.
	answered *mark

	mu     sync.Mutex
	made   time.Duration
	sent   time.Duration // negative before
	heard  time.Duration // the send or the latest progress
	told   time.Duration // when the server was told, negative before
	ended  bool          // the request is over, nothing is due any more
	reason error         // what was due that ends the exchange
}

func newBounds(w *Wants, total, now time.Duration, tell func()) *bounds {
	return &bounds{total: total, idle: w.IdleTimeout, cancel: w.CancelAfter, tell: tell, made: now, sent: -1, told: -1}
}

// reset makes b new for another exchange with a limit.
func (b *bounds) reset(total, now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total, b.made, b.sent, b.heard, b.told = total, now, -1, 0, -1
	b.ended, b.reason = false, nil
}

// begin says that the request is sent now, possibly for a second time, and returns
// when to strike.
func (b *bounds) begin(now time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.told < 0 {
		b.sent, b.heard = now, max(b.heard, now) // progress may have come meanwhile
	}
	next, _ := b.next(now)
	return next
}

// progress says that the server showed a sign of life for the request.
func (b *bounds) progress(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = max(b.heard, now)
}

// end says that the request is over. It reports when the server was told of its
// cancellation, negative if it was not.
func (b *bounds) end() (told time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	return b.told
}

// why returns what was due that ended the exchange, nil when something else did.
func (b *bounds) why() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reason
}

// cancelled reports whether the server was told of the cancellation.
func (b *bounds) cancelled() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.told >= 0
}

// strike does what is due. over ends the exchange; otherwise next is when to
// strike again, 0 for never.
func (b *bounds) strike(now time.Duration) (next time.Duration, over error) {
	b.mu.Lock()
	next, what := b.next(now)
	due := next != 0 && now >= next
	cancel := due && errors.Is(what, errCancelDue) && b.tell != nil
	switch {
	case cancel:
		b.told = now
		next, _ = b.next(now)
	case due:
		b.reason = what
	}
	over = b.reason
	b.mu.Unlock()
	if cancel {
		b.tell() // outside the lock, because it takes others
	}
	return next, over
}

// next returns the next moment and what is due then. Of equal moments the whole
// limit comes first, the cancellation last.
func (b *bounds) next(now time.Duration) (at time.Duration, what error) {
	consider := func(from, after time.Duration, e error) {
		if after > 0 && (at == 0 || from+after < at) {
			at, what = from+after, e
		}
	}
	switch {
	case b.ended:
	case b.sent < 0:
		consider(b.made, b.total, errTimeout)
		// What counts from the send cannot be due before as much time from now.
		consider(now, b.idle, nil)
		consider(now, b.cancel, nil)
	case b.told >= 0:
		consider(b.sent, b.total, errSilent)
		consider(b.told, stopWait, errSilent)
	default:
		consider(b.sent, b.total, errTimeout)
		consider(b.heard, b.idle, errIdle)
		consider(b.sent, b.cancel, errCancelDue)
	}
	switch {
	case b.answered == nil:
	case b.answered.set.Load():
		consider(b.answered.or(now), postGrace, errAnswered)
	default:
		consider(now, postGrace, nil) // to look again
	}
	return at, what
}

// fault is the error of an exchange that a limit ended; without bounds there is only one.
func (b *bounds) fault() error {
	switch why := b.why(); {
	case errors.Is(why, errIdle):
		return &TimeoutError{Limit: TimeoutIdle}
	case errors.Is(why, errCancelDue), errors.Is(why, errSilent), errors.Is(why, errAnswered):
		return why
	}
	return &TimeoutError{Limit: TimeoutTotal}
}
