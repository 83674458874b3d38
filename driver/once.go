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

// part is what a session does once.
type part struct {
	do    []*scenarios.Action
	steps []*scenarios.Step
	first uint16 // index of steps[0] in the catalog
}

func (g *group) before() part { return part{g.plan.DoBefore, g.plan.Before, g.plan.FirstBefore} }
func (g *group) after() part  { return part{g.plan.DoAfter, g.plan.After, g.plan.FirstAfter} }

// runOnce performs a part on a session that no iteration uses, until a step
// fails: that is a *onceError, or the cause of ctx. Nothing it does counts as
// load. What it saves is there for all iterations of the session.
func (g *group) runOnce(ctx context.Context, s *session, slot int, do part) error {
	w := &worker{g: g, did: &tally{}, once: &once{}, seq: s.onceSeq}
	defer func() { s.onceSeq = w.seq }()
	w.arrival = arrival{index: metrics.NoIteration, intended: metrics.NoOffset, released: metrics.NoOffset}
	w.env = scenarios.Env{
		Seed: g.runner.plan.Seed, Group: int(g.index), Session: slot, Iteration: uint64(slot), //nolint:gosec // a place
		Protocol: string(s.version),
	}
	if err := g.plan.SessionFeeds.Fill(ctx, &w.env, uint64(slot)); err != nil { //nolint:gosec // a place
		return &onceError{step: "data", outcome: metrics.ScriptError, message: own(err)}
	}
	w.env.Tools = g.tools.Load()
	w.env.Begin(s.saved)
	p := pass{
		live: &pool.Live[*session]{Session: s}, rows: lacking(do.steps, s.Info()), first: do.first,
		outcome: metrics.IterCompleted, failed: metrics.NoStep,
	}
	w.do(ctx, &p, do.do)
	s.saved = w.env.Saved()
	switch p.outcome {
	case metrics.IterInterrupted:
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	case metrics.IterCompleted, metrics.IterDropped, metrics.IterAgentLost:
		return nil
	case metrics.IterFailed, metrics.IterScriptError:
	}
	e := &onceError{step: "a control step", outcome: metrics.ScriptError, message: w.failure}
	if p.failed != metrics.NoStep {
		e = &onceError{step: do.steps[p.failed-do.first].ID, outcome: w.once.last.Outcome, code: w.once.last.Code}
		if x := w.once.last.Extra; x != nil {
			e.message = x.Message
		}
	}
	return e
}

// closeUnprepared bounds the end of a session whose steps before failed.
const closeUnprepared = 5 * time.Second

// prepare performs the steps before. When they fail the session is closed and
// recorded as one that could not be opened.
func (g *group) prepare(ctx context.Context, s *session, slot int) error {
	if len(g.plan.DoBefore) == 0 {
		return nil
	}
	if err := g.runOnce(ctx, s, slot, g.before()); err != nil {
		return g.unprepared(ctx, s, fmt.Errorf("before: %w", err))
	}
	return nil
}

// unprepared closes a session that cannot be used and records it as one that could
// not be opened. It returns err.
func (g *group) unprepared(ctx context.Context, s *session, err error) error {
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
	if len(g.plan.DoAfter) == 0 || !s.finished.CompareAndSwap(false, true) || ended(s) {
		return
	}
	if err := g.runOnce(ctx, s, slot, g.after()); err != nil && !g.afterFailed.Swap(true) {
		g.runner.log.Warn("after failed; further failures are not logged", zap.String("group", g.plan.Name), zap.Error(err))
	}
}

// finishAtOnce is how many sessions perform their steps after side by side.
const finishAtOnce = 256

// finishSessions performs the steps after on the sessions that lived to the end,
// within a grace period of their own.
func (g *group) finishSessions(ctx context.Context) {
	if len(g.plan.DoAfter) == 0 {
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
