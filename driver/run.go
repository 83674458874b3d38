// Package driver runs a plan: it opens the sessions, paces arrivals, lets
// workers replay the steps, classifies what came of each request and hands one
// sample for each finished thing to the collector.
package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/pool"
)

// ErrNoSession is returned when a group could not open one session before the
// load started: what it was to measure cannot be. It wraps the first failure.
var ErrNoSession = errors.New("no session could be opened")

// ErrServerGone is returned when every session was lost, none could be opened
// again after several tries, and no duration would end the load.
var ErrServerGone = errors.New("all sessions were lost and none could be opened again")

// ErrNothingToDo is returned when no step of a flow exists in the negotiated version.
var ErrNothingToDo = errors.New("no step of the flow exists in this protocol version")

// Runner runs one Plan once.
type Runner struct {
	plan      *Plan
	collector *metrics.Collector
	log       *zap.Logger
	groups    []*group

	base     time.Time     // of all mcp timings
	t0       time.Duration // clock start since base; written once before clock is closed
	clock    chan struct{} // closed when the clock has started
	sessions atomic.Uint32 // numbers given out
	stopped  atomic.Int64  // offset at which the user stopped the load, 0 if not
	warm     warmup

	mu    sync.Mutex       // guards early
	early []metrics.Sample // what ended before the clock started, offsets since base

	anomalies [256]atomic.Int64
	asked     metrics.ServerRequests
}

// New returns a Runner that has dialled nothing yet.
func New(p *Plan, c *metrics.Collector, log *zap.Logger) *Runner {
	r := &Runner{plan: p, collector: c, log: log, base: time.Now(), clock: make(chan struct{})}
	r.warm.init(p)
	for i := range p.Groups {
		r.groups = append(r.groups, newGroup(r, i, &p.Groups[i]))
	}
	return r
}

// Run opens the sessions, runs the load and records it, and returns when all
// work has ended and the collector has written everything. Closing stop ends
// the load gracefully: no new work, requests in flight may take Plan.Grace; so
// does a threshold with an abort. Cancelling ctx cuts what is in flight, and the
// sessions. Else they stay open: see Close.
func (r *Runner) Run(ctx context.Context, stop <-chan struct{}) error {
	var g errgroup.Group
	g.Go(r.collector.Run)
	err := r.load(ctx, stop)
	r.startClock() // also a run that never got so far records its failed dials
	var after sync.WaitGroup
	for _, gr := range r.groups {
		after.Go(func() { gr.finishSessions(ctx) })
	}
	after.Wait()
	for _, gr := range r.groups {
		gr.endSessions()
	}
	if ctx.Err() != nil { // cut: servers that go on talking must not hold up what is still to be written
		if cerr := r.Close(ctx); cerr != nil {
			r.log.Debug("sessions cut", zap.Error(cerr))
		}
	}
	r.collector.Close()
	return errors.Join(err, g.Wait())
}

// Close closes all sessions in order and waits for them, each bounded and all
// bounded by ctx. Call it after Run.
func (r *Runner) Close(ctx context.Context) error {
	errs := make([]error, len(r.groups))
	var wg sync.WaitGroup
	for i, g := range r.groups {
		wg.Go(func() { errs[i] = g.pool.Close(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Gauges returns the live state of a group. It may be called at any time.
func (r *Runner) Gauges(group int) metrics.Gauges { return r.groups[group].gauges() }

// SessionStats returns the counts of all groups' pools.
func (r *Runner) SessionStats() pool.Stats {
	var sum pool.Stats
	for _, g := range r.groups {
		s := g.pool.Stats()
		sum.Opened += s.Opened
		sum.Reopened += s.Reopened
		sum.Failed += s.Failed
		sum.Closed += s.Closed
		sum.Active += s.Active
		sum.Connecting += s.Connecting
	}
	return sum
}

// Anomalies returns the anomalies counted so far, by kind.
func (r *Runner) Anomalies() map[string]int64 {
	out := map[string]int64{}
	for i := range r.anomalies {
		if n := r.anomalies[i].Load(); n > 0 {
			out[mcp.Anomaly(i).String()] = n
		}
	}
	return out
}

// ServerRequests returns what the servers asked of the clients so far, by method.
func (r *Runner) ServerRequests() []metrics.ServerRequestSummary { return r.asked.Summary() }

// Tallies returns what Anomalies and ServerRequests do. It may be called at any time.
func (r *Runner) Tallies() metrics.Tallies {
	return metrics.Tallies{Anomalies: r.Anomalies(), ServerRequests: r.ServerRequests()}
}

// MeasuredEnd returns the offset at which the load was to end by time, or at
// which it was stopped; 0 when only iterations ended it. Valid after Run.
func (r *Runner) MeasuredEnd() time.Duration {
	if at := time.Duration(r.stopped.Load()); at > 0 {
		return at
	}
	var end time.Duration
	for _, g := range r.groups {
		if g.endedByTime.Load() {
			end = max(end, r.warm.end()+g.plan.Duration)
		}
	}
	return end
}

// loadsOver reports whether every group's load has lasted until its scheduled end.
func (r *Runner) loadsOver() bool {
	for _, g := range r.groups {
		if !g.endedByTime.Load() {
			return false
		}
	}
	return true
}

func (r *Runner) load(ctx context.Context, stop <-chan struct{}) error {
	work, endWork := context.WithCancelCause(ctx)
	defer endWork(errGraceOver)
	soft, endSoft := context.WithCancelCause(work)
	defer endSoft(errScheduleEnd)

	var watch sync.WaitGroup
	ended := make(chan struct{})
	watch.Go(func() {
		cause := errUserStop
		select {
		case <-stop:
		case <-r.collector.Broken():
			cause = errNotRecorded // the collector returns the sink's own error
		case <-r.collector.Aborted():
			cause = errAborted
			r.logAborts()
		case <-ended:
			return
		}
		select {
		case <-r.clock:
			if !r.loadsOver() { // else it is the grace period that was stopped
				r.stopped.Store(int64(r.now()))
			}
		default: // stopped while sessions were being opened
		}
		endSoft(cause)
	})
	defer watch.Wait()
	defer close(ended)

	select {
	case <-stop: // before anything was begun; the goroutine above may come too late
		endSoft(errUserStop)
	default:
	}
	if err := r.openSessions(soft); err != nil {
		return err
	}
	r.startClock()
	var g errgroup.Group
	warming, endWarming := context.WithCancel(soft)
	var warm sync.WaitGroup
	defer warm.Wait()
	defer endWarming()
	warm.Go(func() { r.warm.run(warming, r) })
	for _, gr := range r.groups {
		g.Go(func() error {
			err := gr.run(work, soft)
			if err != nil && !errors.Is(err, ErrSessionsLost) {
				endWork(err) // one group that cannot go on ends the run
			}
			return err
		})
	}
	return g.Wait()
}

func (r *Runner) logAborts() {
	for _, t := range r.collector.AbortedBy() {
		r.log.Warn("stopping: a threshold did not hold", zap.String("threshold", t.Expr), zap.Float64("at_s", t.AbortedAtS),
			zap.Float64("value", *t.WindowValue), zap.String("unit", t.Unit), zap.Float64("window_s", t.WindowS))
	}
}

// Causes of soft, which ends new work, other than the end of a schedule.
var (
	errUserStop    = errors.New("stopped by the user")
	errNotRecorded = errors.New("the results cannot be written")
	errAborted     = errors.New("ended by a threshold")
)

// enoughFailures is how many dials of a group may fail, and none succeed, before
// the rest is not tried: with long limits that would take minutes.
const enoughFailures = 32

var errAllRefused = errors.New("no session could be opened in many tries")

// openSessions dials every slot once, each pool within its DialParallel, before the clock starts.
func (r *Runner) openSessions(ctx context.Context) error {
	var g errgroup.Group
	for _, gr := range r.groups {
		gctx, give := context.WithCancelCause(ctx)
		defer give(nil)
		for i, s := range gr.pool.Slots() {
			if !gr.opensAtStart(i) {
				continue
			}
			g.Go(func() error {
				if _, err := s.Session(gctx); err != nil {
					gr.refusal.CompareAndSwap(nil, &err)
					if st := gr.pool.Stats(); st.Opened == 0 && st.Failed >= enoughFailures {
						give(errAllRefused)
					}
				}
				return nil
			})
		}
	}
	_ = g.Wait() // the goroutines return no error
	stopped := ctx.Err() != nil
	return r.sessionsOpened(stopped)
}

// sessionsOpened says whether the load may start. A run that was stopped before
// may: it ends at once by itself.
func (r *Runner) sessionsOpened(stopped bool) error {
	for _, gr := range r.groups {
		n, err := gr.describeTarget()
		failure := gr.refusal.Load()
		switch {
		case err != nil:
			return err
		case n > 0 || stopped:
			continue
		case failure == nil:
			return fmt.Errorf("group %s: %w", gr.plan.Name, ErrNoSession)
		case len(r.groups) > 1:
			return fmt.Errorf("group %s: %w: %w", gr.plan.Name, ErrNoSession, *failure)
		}
		return fmt.Errorf("%w: %w", ErrNoSession, *failure)
	}
	return nil
}

// startClock sets offset 0 and releases what was recorded before. It has an effect once.
func (r *Runner) startClock() {
	select {
	case <-r.clock:
		return
	default:
	}
	now := time.Now()
	r.mu.Lock()
	r.t0 = now.Sub(r.base)
	early := r.early
	r.early = nil
	close(r.clock)
	r.mu.Unlock()
	if r.plan.OnClock != nil {
		r.plan.OnClock(now)
	}
	r.collector.StartClock(now)
	for _, s := range early {
		r.collector.Record(r.shift(s))
	}
}

// shift turns offsets since base into offsets since the clock started.
func (r *Runner) shift(s metrics.Sample) metrics.Sample {
	s.Start -= r.t0
	s.FirstByte -= r.t0
	s.End -= r.t0
	if s.Extra != nil && s.Extra.Session != nil {
		s.Extra.Session.Ended -= r.t0
	}
	return s
}

// now returns the offset since the clock started; only after that.
func (r *Runner) now() time.Duration { return time.Since(r.base) - r.t0 }

// recordSinceBase records s, whose offsets count from base, also before the clock
// has started. A request among such samples is of a step that a session has once
// and is never part of the load.
func (r *Runner) recordSinceBase(s metrics.Sample) {
	r.mu.Lock()
	select {
	case <-r.clock:
		r.mu.Unlock()
	default:
		s.Phase = metrics.PhaseSetup
		r.early = append(r.early, s)
		r.mu.Unlock()
		return
	}
	s = r.shift(s)
	s.Phase = metrics.PhaseSetup
	if s.Kind != metrics.KindStep {
		s.Phase = r.phase(s.Start)
	}
	r.collector.Record(s)
}

func (r *Runner) phase(at time.Duration) metrics.Phase {
	switch {
	case at < 0:
		return metrics.PhaseSetup
	case at < r.warm.end():
		return metrics.PhaseWarmup
	}
	return metrics.PhaseMeasured
}

func (r *Runner) onAsked(a mcp.Asked) {
	reply := metrics.Answered
	switch {
	case a.Cancelled:
		reply = metrics.Unanswered
	case a.Refused:
		reply = metrics.Refused
	}
	r.asked.Add(a.Method, a.Took, reply)
}

func (r *Runner) onAnomaly(kind mcp.Anomaly, detail string) {
	if r.anomalies[kind].Add(1) <= 10 {
		r.log.Debug("anomaly", zap.Stringer("kind", kind), zap.String("detail", detail))
	}
}
