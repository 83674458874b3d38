package driver

import (
	"context"
	"errors"
	"fmt"

	"mcpbench/pool"
	"mcpbench/scenarios"
)

// ErrSessionLost is returned when a session was lost and that was to end the run.
var ErrSessionLost = errors.New("a session was lost, and on_session_loss is abort")

// ErrSessionsLost is returned when a group has lost every session and none was to be
// replaced. Other groups run to their end before.
var ErrSessionsLost = errors.New("every session was lost, and on_session_loss is end_session")

// lose gives up a session that is of no more use, and does what the plan says is to
// follow. Only the first of several workers that have it has an effect.
func (w *worker) lose(ctx context.Context, live *pool.Live[*session], cause error) {
	g := w.g
	policy := g.plan.OnLoss
	var gone bool
	if policy == scenarios.LossEnds {
		gone = w.slot.End(ctx, live)
	} else {
		gone = w.slot.Discard(ctx, live, cause)
	}
	if !gone {
		return
	}
	g.endSession(live.Session, "lost", cause)
	close(live.Session.life.gone)
	which := fmt.Sprintf("session %d of server %s", live.Session.number, g.target().Server)
	switch policy {
	case scenarios.LossReopens:
	case scenarios.LossAborts:
		w.giveUp(fmt.Errorf("%w: %s: %s", ErrSessionLost, which, cause.Error())) // its text: whoever is cut by it has lost nothing
	case scenarios.LossEnds:
		if g.pool.Left() == 0 && !g.served() {
			w.endLoad(fmt.Errorf("%w; the last was %s: %s", ErrSessionsLost, which, cause.Error()))
		}
	}
}

// served reports whether all that the group was to do has begun, so that it needs no
// session any more.
func (g *group) served() bool {
	if g.plan.Open {
		return g.paced.Load()
	}
	return g.usedUp()
}

// unservable deals with an arrival that a worker has taken and that its slot cannot
// serve: where the slot has ended, another one may.
func (w *worker) unservable(work context.Context, a arrival) {
	if work.Err() == nil && w.slot.Ended() {
		w.g.queue.putBack(a)
		return
	}
	w.g.neverStarted(a, unserved(work))
}
