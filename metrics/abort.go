package metrics

import (
	"sync/atomic"
	"time"
)

// Abort ends a run early when its threshold does not hold over the last seconds.
type Abort struct {
	After  time.Duration // from the start of the measured phase; nothing is judged before
	Window time.Duration // what is looked back at: whole seconds from MinAbortWindow to MaxAbortWindow
}

// Defaults and limits of an Abort. Without an After it is the window, so that the
// first look is at a whole one.
const (
	DefaultAbortWindow = 10 * time.Second
	MinAbortWindow     = time.Second
	MaxAbortWindow     = time.Hour
)

// judgeDelay is how long after the end of a second it is judged: by then its
// samples have arrived. A later one counts in the next second.
const judgeDelay = flushPeriod

// aborts judges the thresholds that may end the run, each second. Run's goroutine
// owns it, except where fields say more.
type aborts struct {
	cfg     *CollectorConfig
	warmup  *warmup
	windows []window
	over    []atomic.Bool // by group, set by anybody: its load has ended
	tripped chan struct{} // closed when one did not hold; its window is not changed again

	ready  bool
	steps  [][]*window // those that a sample of the step goes to
	groups [][]*window
	next   int64 // the oldest second of the measured phase that is not judged
	done   bool
}

func newAborts(cfg *CollectorConfig, w *warmup) aborts {
	a := aborts{cfg: cfg, warmup: w, over: make([]atomic.Bool, len(cfg.Catalog.Groups)), tripped: make(chan struct{})}
	for i := range cfg.Thresholds {
		if t := &cfg.Thresholds[i]; t.Abort != nil {
			a.windows = append(a.windows, newWindow(t, cfg.Catalog))
		}
	}
	a.done = len(a.windows) == 0
	return a
}

// find says what each window looks at. What the targets are is known when the
// clock has started.
func (a *aborts) find() {
	if a.ready {
		return
	}
	a.ready = true
	cat := a.cfg.Catalog
	a.steps, a.groups = make([][]*window, len(cat.Steps)), make([][]*window, len(cat.Groups))
	for i := range a.windows {
		w := &a.windows[i]
		for k := range w.t.candidates(cat) {
			if !w.t.matches(cat, k) {
				continue
			}
			group := k
			if metricTable[w.t.Metric].scope == scopeStep {
				group = cat.Steps[k].Group
				a.steps[k] = append(a.steps[k], w)
			} else {
				a.groups[k] = append(a.groups[k], w)
			}
			w.groups = append(w.groups, group)
		}
	}
}

// add puts a sample into the windows that look at it.
func (a *aborts) add(s *Sample) {
	if a.done || s.Phase != PhaseMeasured {
		return
	}
	a.find()
	var to []*window
	switch s.Kind {
	case KindStep:
		to = a.steps[s.Step]
	case KindIteration, KindConnect:
		to = a.groups[s.Group]
	case KindSession:
	}
	if len(to) == 0 {
		return
	}
	// It may be late, and no more than the begun second is ahead.
	ahead := int64((s.End-a.warmup.end())/time.Second) - a.next
	for _, w := range to {
		w.add(s, int(min(max(ahead, 0), 1)))
	}
}

// judge looks at the seconds that have ended by now.
func (a *aborts) judge(elapsed time.Duration) {
	for !a.done && elapsed-a.warmup.end() >= time.Duration(a.next+1)*time.Second+judgeDelay {
		a.find()
		a.next++
		for i := range a.windows {
			w := &a.windows[i]
			w.roll(a.next - 1)
			if time.Duration(a.next)*time.Second < w.t.Abort.After || !a.loaded(w) {
				continue
			}
			w.seconds = min(a.next, int64(len(w.past)))
			v, ok := w.measure()
			if ok && !compare(v, w.t.Op, w.t.limit()) {
				w.tripped, w.at, w.value = true, a.next, v
				a.done = true
			}
		}
		if a.done {
			close(a.tripped)
		}
	}
}

// loaded reports whether a group that the window looks at still has load.
func (a *aborts) loaded(w *window) bool {
	for _, g := range w.groups {
		if !a.over[g].Load() {
			return true
		}
	}
	return false
}

// mark notes on the result of t that it ended the run, if it did.
func (a *aborts) mark(t *Threshold, r *ThresholdResult) {
	for i := range a.windows {
		w := &a.windows[i]
		if !w.tripped || t.Abort == nil || !w.t.Equal(*t) {
			continue
		}
		value := t.shown(w.value)
		r.OK, r.Aborted, r.AbortedAtS = false, true, float64(w.at)
		r.WindowValue, r.WindowS = &value, float64(w.seconds)
	}
}

// Aborted is closed when a threshold of CollectorConfig.Thresholds with Abort did
// not hold: the run is to end.
func (c *Collector) Aborted() <-chan struct{} { return c.aborts.tripped }

// AbortedBy returns the thresholds that did not hold when Aborted was closed, with
// the keys about the abort alone; none before. Safe for concurrent use.
func (c *Collector) AbortedBy() []ThresholdResult {
	var out []ThresholdResult
	select {
	case <-c.aborts.tripped:
	default:
		return nil
	}
	for i := range c.aborts.windows {
		if w := &c.aborts.windows[i]; w.tripped {
			r := ThresholdResult{Expr: w.t.Expr, Unit: w.t.shownUnit()}
			c.aborts.mark(w.t, &r)
			out = append(out, r)
		}
	}
	return out
}

// LoadOver says that a group begins nothing more. A threshold is no reason to end
// the run when the load of all groups that it selects is over: what becomes less
// then is our doing. Safe for concurrent use.
func (c *Collector) LoadOver(group int) { c.aborts.over[group].Store(true) }
