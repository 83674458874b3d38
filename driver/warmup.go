package driver

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"mcpbench/scenarios"
)

// warmup knows when the warm-up is over.
type warmup struct {
	goal  *scenarios.WarmupGoal // nil: it ends by time
	at    atomic.Int64          // its end, as an offset; MaxInt64 until it is known
	known chan struct{}         // closed when it is

	done    atomic.Int64 // iterations that have ended, of a goal of iterations
	reached chan struct{}

	mu        sync.Mutex      // guards latencies
	latencies []time.Duration // of the window, of a goal of stability
}

func (w *warmup) init(p *Plan) {
	w.goal, w.known, w.reached = p.WarmupGoal, make(chan struct{}), make(chan struct{})
	w.at.Store(int64(p.Warmup))
	if w.goal == nil {
		close(w.known)
		return
	}
	w.at.Store(math.MaxInt64)
}

// end is when the warm-up is over, or a time that never comes.
func (w *warmup) end() time.Duration { return time.Duration(w.at.Load()) }

// there tells that there is a warm-up.
func (w *warmup) there() bool { return w.at.Load() > 0 }

// warmedUp waits until the length of the warm-up is known, and returns it.
func (r *Runner) warmedUp(ctx context.Context) (end time.Duration, ok bool) {
	select {
	case <-r.warm.known:
		return r.warm.end(), true
	case <-ctx.Done():
		return 0, false
	}
}

// warming tells that iterations are of interest to the goal.
func (w *warmup) warming() bool { return w.goal != nil && w.at.Load() == math.MaxInt64 }

// iterated tells of an iteration that has ended.
func (w *warmup) iterated() {
	if w.goal.Iterations > 0 && w.done.Add(1) == w.goal.Iterations {
		close(w.reached)
	}
}

// timed tells of the latency of a request.
func (w *warmup) timed(latency time.Duration) {
	if w.goal.Window == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.latencies) < mostLatencies {
		w.latencies = append(w.latencies, latency)
	}
}

// mostLatencies bounds what is kept of a window; of more the first are enough.
const mostLatencies = 100_000

// run ends the warm-up when its goal is met, or its greatest length is over.
func (w *warmup) run(ctx context.Context, r *Runner) {
	if w.goal == nil {
		return
	}
	most := time.NewTimer(w.goal.Max - r.now())
	defer most.Stop()
	var window <-chan time.Time
	if w.goal.Window > 0 {
		t := time.NewTicker(w.goal.Window)
		defer t.Stop()
		window = t.C
	}
	var medians []time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.reached:
			w.over(r)
			return
		case <-most.C:
			r.log.Warn("the warm-up has not met its goal, and ends by time", zap.Duration("max", w.goal.Max))
			w.over(r)
			return
		case <-window:
			if medians = append(medians, w.median()); settled(medians, w.goal.Within) {
				w.over(r)
				return
			}
		}
	}
}

func (w *warmup) over(r *Runner) {
	end := r.now() + 1 // what was intended until now is of the warm-up
	w.at.Store(int64(end))
	close(w.known)
	r.collector.EndWarmup(end)
	r.log.Info("warm-up is over", zap.Duration("after", end.Round(time.Millisecond)))
}

// median returns that of the latencies since the last call, 0 when there is none.
func (w *warmup) median() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.latencies) == 0 {
		return 0
	}
	slices.Sort(w.latencies)
	m := w.latencies[(len(w.latencies)-1)/2]
	w.latencies = w.latencies[:0]
	return m
}

// settled reports whether the last three medians differ by no more than a share of
// the least.
func settled(medians []time.Duration, within float64) bool {
	const windows = 3
	if len(medians) < windows {
		return false
	}
	last := medians[len(medians)-windows:]
	least, most := slices.Min(last), slices.Max(last)
	return least > 0 && float64(most-least) <= within*float64(least)
}
