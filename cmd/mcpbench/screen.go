package main

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"mcpbench/internal/self"
	"mcpbench/metrics"
	"mcpbench/output"
)

// screen is what goes on beside a run: progress and log lines on stderr, and a
// look at the control group and at this process.
type screen struct {
	progress *output.Progress
	log      *zap.Logger
	cancel   context.CancelFunc
	done     sync.WaitGroup
	throttle *throttleWatch
	own      *self.Watch
}

// newScreen returns a screen that shows log lines but no progress yet.
func (e *execution) newScreen() *screen {
	s := &screen{throttle: newThrottleWatch("/"), own: e.own}
	p := e.program
	config := output.ProgressConfig{
		Mode: e.progressMode(), Out: e.err, Warmup: p.Warmup,
		Stopped: func() bool {
			return e.signal != nil && e.signal.Signal() != 0 || e.collector != nil && e.collector.AbortedBy() != nil
		},
		Snapshot: func() *metrics.Snapshot {
			if e.collector == nil || e.runner == nil || e.runner.SessionStats().Opened == 0 {
				return nil // no session, no progress to show
			}
			return e.collector.Snapshot()
		},
	}
	timed, counted := true, true
	for _, g := range p.Groups {
		config.Measured = max(config.Measured, g.Duration)
		config.Iterations += g.Iterations
		timed = timed && g.Duration > 0
		counted = counted && g.Iterations > 0
	}
	if !timed {
		config.Measured = 0
	}
	if !counted {
		config.Iterations = 0
	}
	s.progress = output.NewProgress(config)
	s.log = e.flags.logTo(s.progress.LogWriter())
	return s
}

func (e *execution) progressMode() output.ProgressMode {
	f := e.flags
	switch {
	case f.quiet || f.progress == "none":
		return output.ProgressNone
	case f.progress == "bar" || f.progress == "auto" && isTerminal(e.err):
		return output.ProgressBar
	}
	return output.ProgressLine
}

// start shows progress. The runner exists now.
func (s *screen) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.done.Go(func() { s.progress.Run(ctx) })
	s.done.Go(func() { s.throttle.run(ctx) })
	s.done.Go(func() { s.own.Run(ctx) })
}

// stop shows the final state; it may be called without start.
func (s *screen) stop() {
	if s.cancel != nil {
		s.cancel()
		s.done.Wait()
	}
}

func (s *screen) notice(text string) { s.log.Warn(text) }
