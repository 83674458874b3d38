package pool_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/pool"
)

type session struct {
	id     int
	closed atomic.Int64
	linger time.Duration
}

func (s *session) Close(ctx context.Context) error {
	s.closed.Add(1)
	if s.linger == 0 {
		return nil
	}
	select {
	case <-time.After(s.linger):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestOneDialServesAllThatShareTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		p := pool.New(pool.Config{Size: 1}, func(context.Context, int) (*session, error) {
			time.Sleep(50 * time.Millisecond)
			return &session{id: int(dials.Add(1))}, nil
		})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				l, err := p.Slots()[0].Session(t.Context())
				if err != nil || l.Session.id != 1 {
					t.Errorf("Session() = %v, %v; want session 1", l, err)
				}
			})
		}
		wg.Wait()
		if got := p.Stats(); got.Opened != 1 || got.Active != 1 || got.Connecting != 0 {
			t.Errorf("Stats() = %+v", got)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := p.Stats(); got.Closed != 1 || got.Active != 0 {
			t.Errorf("after Close: %+v", got)
		}
	})
}

func TestDialParallelIsNeverExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		p := pool.New(pool.Config{Size: 40, DialParallel: 7}, func(context.Context, int) (*session, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(10 * time.Millisecond)
			now.Add(-1)
			return &session{}, nil
		})
		start := time.Now()
		var wg sync.WaitGroup
		for _, s := range p.Slots() {
			wg.Go(func() { _, _ = s.Session(t.Context()) })
		}
		wg.Wait()
		if most.Load() != 7 {
			t.Errorf("%d dials at once, want 7", most.Load())
		}
		if took := time.Since(start); took != 60*time.Millisecond { // ceil(40/7) rounds of 10 ms
			t.Errorf("took %v, want 60ms", took)
		}
	})
}

func TestBackOffDoublesUpToItsMaximumAndHopelessTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		var at []time.Duration
		start := time.Now()
		broken := true
		p := pool.New(pool.Config{Size: 1}, func(context.Context, int) (*session, error) {
			at = append(at, time.Since(start))
			if broken {
				return nil, refused
			}
			return &session{}, nil
		})
		s := p.Slots()[0]
		for i := range 8 {
			if _, err := s.Session(t.Context()); !errors.Is(err, refused) {
				t.Fatalf("dial %d: %v", i, err)
			}
			if got, want := p.Hopeless(), i >= 5; got != want {
				t.Errorf("after %d failures Hopeless() = %v, want %v", i+1, got, want)
			}
		}
		want := []time.Duration{0, 100, 300, 700, 1500, 3100, 6300, 11300} // ms; the wait is capped at 5 s
		for i, w := range want {
			if at[i] != w*time.Millisecond {
				t.Errorf("dial %d at %v, want %v", i, at[i], w*time.Millisecond)
			}
		}
		broken = false
		if _, err := s.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.Hopeless() {
			t.Error("hopeless after a dial that succeeded")
		}
		if got := p.Stats(); got.Failed != 8 || got.Opened != 1 || got.Reopened != 0 {
			t.Errorf("Stats() = %+v", got)
		}
	})
}

func TestALostSessionIsReopenedOnceForAllCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		var all sync.Map
		p := pool.New(pool.Config{Size: 1}, func(context.Context, int) (*session, error) {
			n := int(dials.Add(1))
			s := &session{id: n}
			all.Store(n, s)
			return s, nil
		})
		slot := p.Slots()[0]
		first, err := slot.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var discarded atomic.Int64
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if slot.Discard(t.Context(), first, errors.New("lost")) {
					discarded.Add(1)
				}
				if l, err := slot.Session(t.Context()); err != nil || l.Session.id != 2 {
					t.Errorf("after the loss: %v, %v; want session 2", l, err)
				}
			})
		}
		wg.Wait()
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if discarded.Load() != 1 || dials.Load() != 2 {
			t.Errorf("%d discards, %d dials; want 1 and 2", discarded.Load(), dials.Load())
		}
		if got := p.Stats(); got.Reopened != 1 || got.Closed != 1 { // what was lost does not count as closed
			t.Errorf("Stats() = %+v", got)
		}
		all.Range(func(k, v any) bool {
			if n := v.(*session).closed.Load(); n != 1 {
				t.Errorf("session %v closed %d times", k, n)
			}
			return true
		})
	})
}

func TestRenewalReplacesAHealthySessionAndIsNoLoss(t *testing.T) {
	var dials int
	p := pool.New(pool.Config{Size: 1, RenewAfter: 3}, func(context.Context, int) (*session, error) {
		dials++
		return &session{id: dials}, nil
	})
	slot := p.Slots()[0]
	for range 9 {
		l, err := slot.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if slot.Done(l) {
			slot.Discard(t.Context(), l, pool.ErrRenew)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.Stats(); got.Opened != 3 || got.Reopened != 0 || got.Closed != 3 {
		t.Errorf("Stats() = %+v; want 3 opened, 0 reopened, 3 closed", got)
	}
}

func TestDialTimeoutIsToldByItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool.New(pool.Config{Size: 1, DialTimeout: time.Second}, func(ctx context.Context, _ int) (*session, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		start := time.Now()
		_, err := p.Slots()[0].Session(t.Context())
		if !errors.Is(err, pool.ErrDialTimeout) || time.Since(start) != time.Second {
			t.Errorf("err = %v after %v", err, time.Since(start))
		}
	})
}

func TestTheEndOfTheRunIsNoFailedDial(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	p := pool.New(pool.Config{Size: 1}, func(ctx context.Context, _ int) (*session, error) {
		cancel(stop)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	if _, err := p.Slots()[0].Session(ctx); !errors.Is(err, stop) {
		t.Errorf("err = %v", err)
	}
	if got := p.Stats(); got.Failed != 0 {
		t.Errorf("Stats() = %+v", got)
	}
}

func TestCloseHurriesSessionsThatWereGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool.New(pool.Config{Size: 1}, func(context.Context, int) (*session, error) {
			return &session{linger: time.Hour}, nil
		})
		l, err := p.Slots()[0].Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.Slots()[0].Discard(t.Context(), l, errors.New("lost"))
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("Close took %v, want 1s", took)
		}
	})
}

func TestCloseIsBoundedAndFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool.New(pool.Config{Size: 3, CloseTimeout: 2 * time.Second}, func(_ context.Context, i int) (*session, error) {
			return &session{linger: time.Duration(i) * 5 * time.Second}, nil
		})
		for _, s := range p.Slots() {
			if _, err := s.Session(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		err := p.Close(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("Close() = %v after %v, want a deadline after 2s", err, time.Since(start))
		}
		if got := p.Stats(); got.Closed != 1 || got.Active != 0 {
			t.Errorf("Stats() = %+v", got)
		}
		if _, err := p.Slots()[0].Session(t.Context()); !errors.Is(err, pool.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
