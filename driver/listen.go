package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/pool"
	"mcpbench/scenarios"
)

// errStepTimeout is the cause of a context that ended by the limit of a step
// that is no plain request.
var errStepTimeout = errors.New("the limit of the step ran out")

// listen performs a step that is no plain request: what of it is a request,
// a notification or a wait makes one row.
func (w *worker) listen(
	ctx context.Context, live *pool.Live[*session], step *scenarios.Step, id uint16, req mcp.Request,
) metrics.Outcome {
	w.evaluated = true
	s := live.Session
	if s.listener == nil {
		return w.scriptError(s, id, errors.New("the session can make requests only"))
	}
	limited, cancel := context.WithTimeoutCause(ctx, req.Timeout, errStepTimeout)
	defer cancel()
	s.calls.begin()
	defer s.calls.end()
	if step.Kind != scenarios.StepWait {
		w.did.inFlight.Add(1)
		defer w.did.inFlight.Add(-1)
	}
	began := time.Since(w.g.runner.base)
	rows, outcome := 0, metrics.OK
	row := func(reply mcp.Reply, err error) {
		if ctx.Err() == nil && (errors.Is(err, errStepTimeout) || errors.Is(err, context.DeadlineExceeded)) {
			err = timedOut(step)
		}
		if reply.Timing == (mcp.Timing{}) {
			end := time.Since(w.g.runner.base)
			reply.Timing = mcp.Timing{Start: began, FirstByte: end, End: end}
		}
		o := w.finish(ctx, live, step, id, req.Timeout, reply, err)
		w.record() // the next request may take long
		if rows++; outcome == metrics.OK {
			outcome = o
		}
	}
	err := w.perform(limited, s, step, &req, row)
	if _, missing := errors.AsType[*missingError](err); missing {
		return w.scriptError(s, id, err)
	}
	if err != nil && rows == 0 {
		row(mcp.Reply{}, err)
	}
	return outcome
}

// timedOut is the error of a step that ran out of its limit.
func timedOut(step *scenarios.Step) error {
	if step.Kind == scenarios.StepWait {
		return errNotCome
	}
	return &mcp.TimeoutError{Limit: mcp.TimeoutTotal}
}

// missingError is a step whose subscription is not there.
type missingError struct{ name string }

// Error names the subscription.
func (e *missingError) Error() string { return fmt.Sprintf("there is no subscription %q", e.name) }

// perform does the step's own part, and calls row for each request of it, and for
// a notification or a wait. The Reply has no timing where nobody else took it.
func (w *worker) perform(ctx context.Context, s *session, step *scenarios.Step, req *mcp.Request, row func(mcp.Reply, error)) error {
	switch step.Kind {
	case scenarios.StepSubscribe:
		return w.subscribe(ctx, s, step, req.Params, row)
	case scenarios.StepUnsubscribe:
		u := s.subs.find(w.owner(), step.Handle, true)
		if u == nil {
			return &missingError{step.Handle}
		}
		return u.CloseEach(ctx, row)
	case scenarios.StepWait:
		reply, err := w.wait(ctx, s, step)
		if err == nil {
			row(reply, nil)
		}
		return err
	case scenarios.StepNotify:
		err := s.listener.Notify(ctx, step.Method, req.Params)
		if err == nil {
			row(mcp.Reply{}, nil)
		}
		return err
	case scenarios.StepRequest: // the caller's
	}
	return fmt.Errorf("step %s: unknown kind %d", step.ID, step.Kind)
}

// owner is whose the names are that the worker's steps give: those of steps
// before and after are the session's.
func (w *worker) owner() *worker {
	switch {
	case w.once != nil:
		return nil
	case w.chief != nil:
		return w.chief.owner()
	}
	return w
}

// subscribe starts a subscription and gives it its name. One that still had the
// name is ended: its iteration is over, and no step asked for that.
func (w *worker) subscribe(ctx context.Context, s *session, step *scenarios.Step, params []byte, row func(mcp.Reply, error)) error {
	var about struct {
		URIs                      []string
		Tools, Prompts, Resources bool
	}
	if err := json.Unmarshal(params, &about); err != nil { // of our own making
		return fmt.Errorf("step %s: %w", step.ID, err)
	}
	u, err := s.listener.SubscribeEach(ctx, mcp.Filter{
		Resources: about.URIs, ToolsListChanged: about.Tools, PromptsListChanged: about.Prompts, ResourcesListChanged: about.Resources,
	}, row)
	if err != nil {
		return err
	}
	name := step.Handle
	if name == "" {
		name = "#" + step.ID // no name that a step can have
	}
	if old := s.subs.put(subscriptionKey{w.owner(), name}, u); old != nil {
		_ = old.CloseEach(ctx, func(mcp.Reply, error) {}) // the session's end ends it at the latest
	}
	return nil
}

// wait waits for a notification. Its result, for checks, is the notification's
// params; its end is the arrival, or the begin of the waiting when that is later.
func (w *worker) wait(ctx context.Context, s *session, step *scenarios.Step) (mcp.Reply, error) {
	began := time.Since(w.g.runner.base)
	var n mcp.Notification
	var err error
	if step.Handle == "" {
		n, err = s.listener.Await(ctx, step.Notification)
	} else {
		u := s.subs.find(w.owner(), step.Handle, false)
		if u == nil {
			return mcp.Reply{}, &missingError{step.Handle}
		}
		n, err = u.await(ctx, step.Notification)
	}
	if err != nil {
		return mcp.Reply{}, err
	}
	if n.Params == nil {
		n.Params = json.RawMessage("{}")
	}
	end := max(began, n.At)
	return mcp.Reply{
		Result: n.Params, Timing: mcp.Timing{Start: began, FirstByte: end, End: end}, Notifications: 1,
	}, nil
}

// addHints puts the cache hints of a result into a sample, if it has any.
func addHints(s *metrics.Sample, v mcp.Version, method string, result json.RawMessage) {
	h, ok := v.CacheHints(method, result)
	if !ok {
		return
	}
	if s.Extra == nil {
		s.Extra = &metrics.Extra{}
	}
	s.Extra.HasCache, s.Extra.CacheTTL, s.Extra.CacheScope = true, h.TTL, h.Scope
}

// addMore puts into a sample what only some requests have: when their progress
// came, how long each of several exchanges took, and when the server stopped after the request was cancelled.
func addMore(s *metrics.Sample, reply mcp.Reply, err error) {
	if s.Extra == nil {
		s.Extra = &metrics.Extra{}
	}
	x := s.Extra
	if m := reply.More; m != nil && m.First > 0 {
		x.HasProgress = true
		x.FirstProgress, x.LastProgress = m.First-reply.Timing.Start, m.Last-reply.Timing.Start
		x.Gaps = m.Gaps
	}
	if m := reply.More; m != nil {
		for _, trip := range m.Trips {
			x.Rounds = append(x.Rounds, trip.End-trip.Start)
		}
	}
	if c, ok := errors.AsType[*mcp.CancelledError](err); ok && c.Stopped > 0 {
		x.HasCancelStop, x.CancelStop = true, c.Stopped-c.Sent
	}
}
