package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"mcpbench/metrics"
	"mcpbench/pool"
	"mcpbench/scenarios"
)

// once is what a worker has that performs the steps before or after.
type once struct {
	last metrics.Sample // of its last request
}

// onceError is a step that a session has once and that failed.
type onceError struct {
	step    string
	outcome metrics.Outcome
	code    int32
	message string // masked
}

// Error names the step and what came of it.
func (e *onceError) Error() string {
	if e.message == "" {
		return fmt.Sprintf("step %s: %v", e.step, e.outcome)
	}
	return fmt.Sprintf("step %s: %v: %s", e.step, e.outcome, e.message)
}

// runOnce performs steps on a session that no iteration uses, until one fails:
// that is a *onceError, or the cause of ctx. Nothing it does counts as load.
func (g *group) runOnce(ctx context.Context, s *session, slot int, steps []*scenarios.Step, first uint16) error {
	w := &worker{g: g, did: &tally{}, once: &once{}, seq: s.onceSeq}
	defer func() { s.onceSeq = w.seq }()
	w.arrival = arrival{index: metrics.NoIteration, intended: metrics.NoOffset, released: metrics.NoOffset}
	w.env = scenarios.Env{
		Seed: g.runner.plan.Seed, Group: int(g.index), Session: slot, Iteration: uint64(slot), //nolint:gosec // a place
		Protocol: string(s.version),
	}
	live := &pool.Live[*session]{Session: s}
	info := s.Info()
	for i, step := range steps {
		if lacks(step, info) {
			continue
		}
		outcome := w.step(ctx, live, step, first+uint16(i))
		switch {
		case outcome == metrics.Interrupted:
			return fmt.Errorf("step %s: %w", step.ID, context.Cause(ctx))
		case outcome.Failed(), outcome == metrics.ClientError, outcome == metrics.ScriptError:
			e := &onceError{step: step.ID, outcome: outcome, code: w.once.last.Code}
			if x := w.once.last.Extra; x != nil {
				e.message = x.Message
			}
			return e
		}
	}
	return nil
}

// closeUnprepared bounds the end of a session whose steps before failed.
const closeUnprepared = 5 * time.Second

// prepare performs the steps before. When they fail the session is closed and
// recorded as one that could not be opened.
func (g *group) prepare(ctx context.Context, s *session, slot int) error {
	if len(g.plan.Before) == 0 {
		return nil
	}
	err := g.runOnce(ctx, s, slot, g.plan.Before, g.plan.FirstBefore)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("before: %w", err)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeUnprepared)
	defer cancel()
	if cerr := s.Close(bounded); cerr != nil {
		g.runner.log.Debug("session not closed in order", zap.String("group", g.plan.Name), zap.Error(cerr))
	}
	e, failed := errors.AsType[*onceError](err)
	if !failed { // the end of the run
		g.runner.recordSinceBase(s.opened)
		g.endSession(s, "run_end", nil)
		return err
	}
	s.opened.Outcome, s.opened.Code = e.outcome, e.code
	s.opened.Extra = &metrics.Extra{Message: mask(err.Error())}
	g.runner.recordSinceBase(s.opened)
	g.endSession(s, "before_failed", err)
	g.runner.log.Debug("session not opened", zap.String("group", g.plan.Name), zap.Error(err))
	return err
}

// finish performs the steps after, once. A failure changes nothing any more: it
// has its row, and is logged.
func (g *group) finish(ctx context.Context, s *session, slot int) {
	if len(g.plan.After) == 0 || !s.finished.CompareAndSwap(false, true) || ended(s) {
		return
	}
	if err := g.runOnce(ctx, s, slot, g.plan.After, g.plan.FirstAfter); err != nil && !g.afterFailed.Swap(true) {
		g.runner.log.Warn("after failed; further failures are not logged", zap.String("group", g.plan.Name), zap.Error(err))
	}
}

// finishAtOnce is how many sessions perform their steps after side by side.
const finishAtOnce = 256

// finishSessions performs the steps after on the sessions that lived to the end,
// within a grace period of their own.
func (g *group) finishSessions(ctx context.Context) {
	if len(g.plan.After) == 0 {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.runner.plan.Grace, errGraceOver)
	defer cancel()
	var all errgroup.Group
	all.SetLimit(finishAtOnce)
	for _, slot := range g.pool.Slots() {
		if l := slot.Live(); l != nil {
			all.Go(func() error {
				g.finish(ctx, l.Session, slot.Index())
				return nil
			})
		}
	}
	_ = all.Wait() // the goroutines return no error
}
