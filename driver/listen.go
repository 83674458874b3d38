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
	reply, err := w.perform(limited, s, step, &req)
	var missing *missingError
	switch {
	case errors.As(err, &missing):
		return w.scriptError(s, id, err)
	case err == nil && reply.Rounds == 0 && reply.BytesOut == 0 && step.Kind != scenarios.StepWait && step.Kind != scenarios.StepNotify:
		return metrics.OK // nothing was asked of the server
	case ctx.Err() == nil && (errors.Is(err, errStepTimeout) || errors.Is(err, context.DeadlineExceeded)):
		err = timedOut(step)
	}
	if reply.Timing == (mcp.Timing{}) {
		end := time.Since(w.g.runner.base)
		reply.Timing = mcp.Timing{Start: began, FirstByte: end, End: end}
	}
	return w.finish(ctx, live, step, id, req.Timeout, reply, err)
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

// perform does the step's own part. The Reply has no timing where nobody else
// took it.
func (w *worker) perform(ctx context.Context, s *session, step *scenarios.Step, req *mcp.Request) (mcp.Reply, error) {
	switch step.Kind {
	case scenarios.StepSubscribe:
		return w.subscribe(ctx, s, step, req.Params)
	case scenarios.StepUnsubscribe:
		u := s.subs.find(w.owner(), step.Handle, true)
		if u == nil {
			return mcp.Reply{}, &missingError{step.Handle}
		}
		return u.Close(ctx)
	case scenarios.StepWait:
		return w.wait(ctx, s, step)
	case scenarios.StepNotify:
		return mcp.Reply{}, s.listener.Notify(ctx, step.Method, req.Params)
	case scenarios.StepRequest: // the caller's
	}
	return mcp.Reply{}, fmt.Errorf("step %s: unknown kind %d", step.ID, step.Kind)
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
func (w *worker) subscribe(ctx context.Context, s *session, step *scenarios.Step, params []byte) (mcp.Reply, error) {
	var about struct {
		URIs                      []string
		Tools, Prompts, Resources bool
	}
	if err := json.Unmarshal(params, &about); err != nil { // of our own making
		return mcp.Reply{}, fmt.Errorf("step %s: %w", step.ID, err)
	}
	u, reply, err := s.listener.Subscribe(ctx, mcp.Filter{
		Resources: about.URIs, ToolsListChanged: about.Tools, PromptsListChanged: about.Prompts, ResourcesListChanged: about.Resources,
	})
	if err != nil {
		return reply, err
	}
	name := step.Handle
	if name == "" {
		name = "#" + step.ID // no name that a step can have
	}
	if old := s.subs.put(subscriptionKey{w.owner(), name}, u); old != nil {
		_, _ = old.Close(ctx) // the session's end ends it at the latest
	}
	return reply, nil
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

// addMore puts into a sample what only some requests have: when their progress
// came, and when the server stopped after the request was cancelled.
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
	if c, ok := errors.AsType[*mcp.CancelledError](err); ok && c.Stopped > 0 {
		x.HasCancelStop, x.CancelStop = true, c.Stopped-c.Sent
	}
}
