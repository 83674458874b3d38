package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mcpbench/mcp"
)

// stopNowAfter is how long a run may take to end after the second signal.
const stopNowAfter = 2 * time.Second

// interruptible runs f with a context that ends with the first SIGINT or
// SIGTERM, so that a server which f has started is closed in order. The second ends
// the program, whatever f waits for: the opening of a pipe heeds no context. It is for
// work outside a load.
func interruptible(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(got)
	interrupted := &exitError{code: 128 + int(syscall.SIGINT), err: errors.New("interrupted")}
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	for {
		select {
		case err := <-done:
			if ctx.Err() != nil {
				return interrupted
			}
			return err
		case <-got:
			if ctx.Err() != nil {
				return interrupted
			}
			cancel()
		}
	}
}

// errStopNow is the cause of a run that a second signal cut.
var errStopNow = errors.New("stopped at once by a second signal")

// signals turns SIGINT, SIGTERM and SIGHUP into the three ways to stop a run: the first
// closes Stop (no new work, the grace period runs), the second cancels the
// context (work in flight is cut), the third, or two seconds after the second,
// calls abandon.
type signals struct {
	Stop <-chan struct{}

	first atomic.Int32 // the first signal
	end   chan struct{}
	done  sync.WaitGroup
}

// watchSignals starts to watch; Close ends it. ctx is the parent of the
// context that it returns.
func watchSignals(ctx context.Context, notify func(string), abandon func(code int)) (context.Context, *signals) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := make(chan struct{})
	s := &signals{Stop: stop, end: make(chan struct{})}
	got := make(chan os.Signal, 3)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	s.done.Go(func() {
		defer signal.Stop(got)
		defer cancel(nil)
		sig, ok := s.wait(got, nil)
		if !ok {
			return
		}
		s.first.Store(int32(sig)) //nolint:gosec // a signal number is small
		notify("stopping: open requests may end within the grace period; once more to cut them")
		close(stop)
		if _, ok = s.wait(got, nil); !ok {
			return
		}
		notify("stopping at once: open requests are cut")
		cancel(errStopNow)
		half := time.NewTimer(stopNowAfter / 2)
		defer half.Stop()
		third, ok := s.wait(got, half.C)
		if !ok {
			return
		}
		// What still lives of the servers would hold up the end, or outlive it.
		mcp.KillProcesses()
		if third == 0 {
			rest := time.NewTimer(stopNowAfter / 2)
			defer rest.Stop()
			if _, ok = s.wait(got, rest.C); !ok {
				return
			}
		}
		mcp.KillProcesses() // started in between
		abandon(128 + int(s.first.Load()))
	})
	return ctx, s
}

// wait returns the next signal, or 0 when the timer fires; ok is false when watching ends.
func (s *signals) wait(got <-chan os.Signal, timer <-chan time.Time) (sig syscall.Signal, ok bool) {
	select {
	case g := <-got:
		sig, _ = g.(syscall.Signal) // the only kind that we asked for
		return sig, true
	case <-timer:
		return 0, true
	case <-s.end:
		return 0, false
	}
}

// Signal returns the first signal, 0 when there was none.
func (s *signals) Signal() syscall.Signal { return syscall.Signal(s.first.Load()) }

// Close stops watching.
func (s *signals) Close() {
	close(s.end)
	s.done.Wait()
}
