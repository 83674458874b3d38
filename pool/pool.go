// Package pool keeps a fixed number of slots supplied with live sessions: it
// bounds how many are dialled at once, backs off after failures, replaces
// sessions that were lost or are due for renewal, and closes all in order.
package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Session is what a slot holds. Close is called exactly once for each session.
type Session interface {
	Close(ctx context.Context) error
}

// Dial opens one session for the slot with the given index. It must obey ctx.
type Dial[S Session] func(ctx context.Context, slot int) (S, error)

// Config configures a Pool.
type Config struct {
	Size         int           // slots
	DialParallel int           // dials at once; 0 means 32
	DialTimeout  time.Duration // bound on one dial with its handshake; 0 means none
	CloseTimeout time.Duration // bound on closing one session; 0 means 10s
	RenewAfter   int64         // uses (see Slot.Done) after which a session is replaced; 0 means never
	BackoffMin   time.Duration // wait after the first failed dial, doubled each time; 0 means 100ms
	BackoffMax   time.Duration // 0 means 5s
}

func (c Config) withDefaults() Config {
	if c.DialParallel <= 0 {
		c.DialParallel = 32
	}
	if c.CloseTimeout <= 0 {
		c.CloseTimeout = 10 * time.Second
	}
	if c.BackoffMin <= 0 {
		c.BackoffMin = 100 * time.Millisecond
	}
	if c.BackoffMax <= 0 {
		c.BackoffMax = 5 * time.Second
	}
	return c
}

// ErrDialTimeout is the cause of a dial context that ran out of DialTimeout.
var ErrDialTimeout = errors.New("connect timeout")

// ErrClosed is returned by Slot.Session after Pool.Close.
var ErrClosed = errors.New("pool is closed")

// Pool is a set of slots. It is safe for concurrent use.
type Pool[S Session] struct {
	cfg     Config
	dial    Dial[S]
	slots   []*Slot[S]
	dialing chan struct{} // semaphore of DialParallel

	opened, reopened, failed, closed atomic.Int64
	active, connecting               atomic.Int64
	hopeless                         atomic.Int64 // slots whose last dials all failed, see Hopeless
	ended                            atomic.Int64 // slots, see Slot.End

	mu      sync.Mutex // guards down
	down    bool
	retired sync.WaitGroup // sessions being closed out of a slot
	hurry   chan struct{}  // closed when retired sessions have no more time
	hurried sync.Once
}

// New returns a pool of empty slots. It dials nothing and starts no goroutine.
func New[S Session](c Config, dial Dial[S]) *Pool[S] {
	c = c.withDefaults()
	p := &Pool[S]{cfg: c, dial: dial, dialing: make(chan struct{}, c.DialParallel), hurry: make(chan struct{})}
	for i := range c.Size {
		p.slots = append(p.slots, &Slot[S]{pool: p, index: i, lock: make(chan struct{}, 1)})
	}
	return p
}

// Slots returns the slots; the slice must not be changed.
func (p *Pool[S]) Slots() []*Slot[S] { return p.slots }

// Stats are counts since New; Active and Connecting are values of now.
type Stats struct {
	Opened             int64 // dials that gave a session
	Reopened           int64 // of these, in place of a session that was lost
	Failed             int64 // dials that gave none
	Closed             int64 // sessions whose Close returned no error
	Active, Connecting int
}

// Stats returns the current counts.
func (p *Pool[S]) Stats() Stats {
	return Stats{
		Opened: p.opened.Load(), Reopened: p.reopened.Load(), Failed: p.failed.Load(), Closed: p.closed.Load(),
		Active: int(p.active.Load()), Connecting: int(p.connecting.Load()),
	}
}

// hopelessAfter is the number of dials in a row that must fail before a slot counts as hopeless.
const hopelessAfter = 6

// Hopeless reports whether every slot is without a session and has failed to
// get one several times in a row: the server is gone for good, as far as one can tell.
func (p *Pool[S]) Hopeless() bool {
	return len(p.slots) > 0 && p.hopeless.Load() == int64(len(p.slots))
}

// Left returns how many slots have not ended.
func (p *Pool[S]) Left() int { return len(p.slots) - int(p.ended.Load()) }

// Close closes all sessions side by side, each within CloseTimeout and all
// within ctx, waits for them, and returns the joined errors. Slots give no
// session afterwards. Call it when all users of the pool have ended;
// a second call closes nothing more.
func (p *Pool[S]) Close(ctx context.Context) error {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	errs := make([]error, len(p.slots))
	var g sync.WaitGroup
	for i, s := range p.slots {
		g.Go(func() {
			s.lock <- struct{}{} // a dial under way ends first
			if l := s.live.Load(); l != nil && l.state.CompareAndSwap(held, closing) {
				errs[i] = p.closeSession(ctx, l)
			}
			<-s.lock
		})
	}
	g.Wait()
	stop := context.AfterFunc(ctx, func() { p.hurried.Do(func() { close(p.hurry) }) })
	defer stop()
	p.retired.Wait()
	return summarize(errs)
}

// summarize makes one error of many that are mostly alike.
func summarize(errs []error) error {
	var first error
	n := 0
	for _, err := range errs {
		if err == nil {
			continue
		}
		if n++; first == nil {
			first = err
		}
	}
	if n > 1 {
		return fmt.Errorf("%w (%d sessions in all)", first, n)
	}
	return first
}

func (p *Pool[S]) closeSession(ctx context.Context, l *Live[S]) error {
	p.active.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, p.cfg.CloseTimeout)
	defer cancel()
	if err := l.Session.Close(ctx); err != nil {
		return fmt.Errorf("close session: %w", err)
	}
	if n := l.state.Load(); n != lost && n != ended { // to close what was lost is only tidying up
		p.closed.Add(1)
	}
	return nil
}

// retire closes l in the background; Close waits for it.
func (p *Pool[S]) retire(ctx context.Context, l *Live[S]) {
	p.retired.Go(func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		closed := make(chan struct{})
		defer close(closed)
		p.retired.Go(func() {
			select {
			case <-p.hurry:
				cancel()
			case <-closed:
			}
		})
		// A failed close of a session that is given up anyway shows as opened > closed.
		_ = p.closeSession(ctx, l)
	})
}
