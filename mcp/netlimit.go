package mcp

import (
	"context"
	"errors"
	"time"
)

// limit ends a context when a time limit of a request runs out.
type limit struct {
	timer  *time.Timer // nil: no limit
	after  time.Duration
	bounds *bounds     // nil: after is all
	ran    func() bool // it ran out
	stop   context.CancelCauseFunc
	now    func() time.Duration
}

// newLimit returns a context that ends after so long, or, when there are bounds, when
// they do.
func newLimit(ctx context.Context, after time.Duration, b *bounds, now func() time.Duration) (context.Context, *limit) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &limit{after: after, bounds: b, stop: cancel, now: now}
	l.ran = func() bool { return errors.Is(context.Cause(ctx), errTimeout) }
	if l.after <= 0 && l.bounds == nil {
		return ctx, l
	}
	expire := func() { cancel(errTimeout) }
	first := l.after
	if l.bounds != nil {
		expire = func() {
			if ctx.Err() == nil { // else the exchange is over
				l.strike(cancel)
			}
		}
		now := l.now()
		first, _ = l.bounds.strike(now)
		first -= now
	}
	// The timer must be there before it strikes.
	l.timer = time.AfterFunc(forever, expire)
	l.timer.Reset(first)
	l.stop = func(cause error) {
		l.timer.Stop()
		cancel(cause)
	}
	return ctx, l
}

const forever = time.Duration(1<<63 - 1)

// strike does what is due of the bounds.
func (l *limit) strike(cancel context.CancelCauseFunc) {
	switch next, over := l.bounds.strike(l.now()); {
	case over != nil:
		cancel(errTimeout)
	case next > 0:
		l.timer.Reset(next - l.now())
	default:
		cancel(errTimeout) // the request is over, and nobody waits for the rest
	}
}

// restart counts the limit from now. Opening a connection thus has as much time
// of its own as the exchange that follows.
func (l *limit) restart() {
	switch {
	case l.timer == nil:
	case l.bounds != nil:
		l.bounds.begin(l.now()) // the timer strikes in time to see it
	default:
		l.timer.Reset(l.after)
	}
}
