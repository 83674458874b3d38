package pool

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Live is a session in its slot.
type Live[S Session] struct {
	Session S
	uses    atomic.Int64
	state   atomic.Int32 // one of the states below; whoever moves it off held owns the closing
}

// States of a Live. A session that is no longer held stays in its slot until
// the next dial replaces it, so that the dial knows what it is a replacement for.
const (
	held int32 = iota
	renewed
	lost
	ended // lost, and nothing is to replace it
	closing
)

func (l *Live[S]) usable() bool { return l != nil && l.state.Load() == held }

// Slot is a session's place in the pool across reconnects. It is safe for
// concurrent use: callers share the session, and one dial serves all that wait.
type Slot[S Session] struct {
	pool  *Pool[S]
	index int
	live  atomic.Pointer[Live[S]]

	lock     chan struct{} // of one, held while dialling or replacing; guards the rest
	failures int           // dials in a row that failed
	next     time.Time     // not before this the next dial
}

// Index returns the slot's number in its pool, from 0.
func (s *Slot[S]) Index() int { return s.index }

// Live returns the slot's session, or nil when it has none now.
func (s *Slot[S]) Live() *Live[S] {
	if l := s.live.Load(); l.usable() {
		return l
	}
	return nil
}

// Session returns the slot's session and dials one when there is none, after
// the back-off that earlier failures have earned. It waits as long as ctx
// allows; a dial that fails is returned as an error and not repeated.
func (s *Slot[S]) Session(ctx context.Context) (*Live[S], error) {
	if l := s.live.Load(); l.usable() {
		return l, nil
	}
	select {
	case s.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.lock }()
	if l := s.live.Load(); l.usable() {
		return l, nil
	}
	if s.Ended() {
		return nil, ErrSlotEnded
	}
	if s.pool.isDown() {
		return nil, ErrClosed
	}
	if err := sleepUntil(ctx, s.next); err != nil {
		return nil, err
	}
	return s.dial(ctx)
}

func (s *Slot[S]) dial(ctx context.Context) (*Live[S], error) {
	p := s.pool
	select {
	case p.dialing <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-p.dialing }()
	if ctx.Err() != nil { // of two that are ready, select takes either
		return nil, context.Cause(ctx)
	}
	p.connecting.Add(1)
	defer p.connecting.Add(-1)

	dctx := ctx
	if p.cfg.DialTimeout > 0 {
		var cancel context.CancelFunc
		dctx, cancel = context.WithTimeoutCause(ctx, p.cfg.DialTimeout, ErrDialTimeout)
		defer cancel()
	}
	session, err := p.dial(dctx, s.index)
	if err != nil {
		if ctx.Err() == nil { // a dial that the end of the run cut is nobody's failure
			p.failed.Add(1)
			s.backOff()
		}
		return nil, err
	}
	if s.failures >= hopelessAfter {
		p.hopeless.Add(-1)
	}
	s.failures = 0
	p.opened.Add(1)
	if old := s.live.Load(); old != nil && old.state.Load() == lost {
		p.reopened.Add(1)
	}
	p.active.Add(1)
	l := &Live[S]{Session: session}
	s.live.Store(l)
	return l, nil
}

func (s *Slot[S]) backOff() {
	wait := s.pool.cfg.BackoffMin << min(s.failures, 30)
	if wait > s.pool.cfg.BackoffMax || wait <= 0 {
		wait = s.pool.cfg.BackoffMax
	}
	s.failures++
	if s.failures == hopelessAfter {
		s.pool.hopeless.Add(1)
	}
	s.next = time.Now().Add(wait)
}

// Done counts one use of l and reports whether the session has reached
// Config.RenewAfter; the caller then calls Discard with ErrRenew.
func (s *Slot[S]) Done(l *Live[S]) (renew bool) {
	n := l.uses.Add(1)
	return s.pool.cfg.RenewAfter > 0 && n >= s.pool.cfg.RenewAfter
}

// ErrRenew as the cause given to Discard says that the session was healthy and
// has reached its age; any other cause counts as a loss.
var ErrRenew = errors.New("session renewed")

// Discard takes l out of the slot and closes it in the background. Only the
// first of several callers that share l has an effect: it gets true. The next
// call of Session dials.
func (s *Slot[S]) Discard(ctx context.Context, l *Live[S], cause error) bool {
	to := lost
	if errors.Is(cause, ErrRenew) {
		to = renewed
	}
	if !l.state.CompareAndSwap(held, to) {
		return false
	}
	s.pool.retire(ctx, l)
	return true
}

// ErrSlotEnded is returned by Slot.Session after Slot.End.
var ErrSlotEnded = errors.New("the slot has ended")

// End is Discard for a session that was lost and that nothing is to replace: the
// slot stays empty.
func (s *Slot[S]) End(ctx context.Context, l *Live[S]) bool {
	if !l.state.CompareAndSwap(held, ended) {
		return false
	}
	s.pool.ended.Add(1)
	s.pool.hopeless.Add(1) // no dial had failed since the session was opened
	s.pool.retire(ctx, l)
	return true
}

// Ended reports whether the slot was ended. It is for callers that had its session.
func (s *Slot[S]) Ended() bool {
	l := s.live.Load()
	return l != nil && l.state.Load() == ended
}

func (p *Pool[S]) isDown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.down
}

func sleepUntil(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the next dial: %w", context.Cause(ctx))
	}
}
