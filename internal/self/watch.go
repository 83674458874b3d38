// Package self watches what this process itself uses of its machine, and knows
// how much of it there is: whether a load generator was the limit shows there.
package self

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"mcpbench/metrics"
)

// period is the time between two looks.
const period = time.Second

// leastSpan is the shortest time over which a share of the processors says
// something: what is shorter counts only when nothing else does.
const leastSpan = 250 * time.Millisecond

// Config says where a Watch looks. What is nil is taken from this process.
type Config struct {
	Root   string // of the file system, "/"
	CPU    func() (user, system time.Duration)
	Pauses func(*debug.GCStats)
	FDs    func() int64 // open file descriptors; 0 is not known
	Held   func() int64 // connections to one target
	// The functions are called one at a time.
}

// Watch looks once a second. Its methods may be called from any goroutine.
type Watch struct {
	cfg Config

	mu       sync.Mutex // guards the fields below
	from     time.Time  // of the measured run; zero before
	ended    bool
	looked   time.Time // the last time
	cpu      time.Duration
	seen     time.Time // the end of the last collection that was looked at
	pauses   debug.GCStats
	whole    bool // share is of a span that is long enough
	share    float64
	hasShare bool
	use      metrics.OwnUse
}

// NewWatch returns a watch that has not looked yet.
func NewWatch(cfg Config) *Watch {
	if cfg.CPU == nil {
		cfg.CPU = CPU
	}
	if cfg.Pauses == nil {
		cfg.Pauses = debug.ReadGCStats
	}
	if cfg.FDs == nil {
		cfg.FDs = descriptors
	}
	if cfg.Held == nil {
		cfg.Held = func() int64 { return 0 }
	}
	return &Watch{cfg: cfg}
}

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	w.look()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.look()
		}
	}
}

// Begin says from when on processor time and pauses belong to the measured run.
// It costs a microsecond or so.
func (w *Watch) Begin(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = at
	if now := time.Now(); !at.After(now) { // a run may be over before the next look
		user, system := w.cfg.CPU()
		w.looked, w.cpu = now, user+system
	}
}

// End looks a last time: the load is over, and what follows is no part of the run.
func (w *Watch) End() {
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// Use returns what was seen so far.
func (w *Watch) Use() metrics.OwnUse {
	w.mu.Lock()
	defer w.mu.Unlock()
	use := w.use
	if w.hasShare {
		share := w.share
		use.CPUShareMax = &share
	}
	return use
}

// look takes one reading. Descriptors, ports and goroutines count from the first
// one on: opening the sessions takes most of them.
func (w *Watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	now := time.Now()
	user, system := w.cfg.CPU()
	w.use.Goroutines = max(w.use.Goroutines, int64(runtime.NumGoroutine()))
	w.use.FDs = max(w.use.FDs, w.cfg.FDs())
	w.use.Ports = max(w.use.Ports, w.cfg.Held())
	w.use.TimeWait = max(w.use.TimeWait, timeWait(w.cfg.Root))
	w.lookAtPauses(now)
	if w.measured(w.looked) {
		w.addShare(now.Sub(w.looked), user+system-w.cpu)
	}
	w.looked, w.cpu = now, user+system
}

// measured reports whether at is within the measured run.
func (w *Watch) measured(at time.Time) bool {
	return !w.from.IsZero() && !at.IsZero() && !at.Before(w.from)
}

// addShare notes that so much processor time was used in such a span.
func (w *Watch) addShare(span, used time.Duration) {
	whole := span >= leastSpan
	if span <= 0 || w.whole && !whole {
		return
	}
	share := min(float64(used)/float64(span)/float64(processors()), 1)
	if whole && !w.whole {
		w.share = 0
	}
	w.whole, w.hasShare = whole, true
	w.share = max(w.share, share)
}

// processors is how many of them this process may use at once.
func processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// lookAtPauses takes the collections that ended since the last look and within
// the measured run. The runtime remembers the last 256.
func (w *Watch) lookAtPauses(now time.Time) {
	w.cfg.Pauses(&w.pauses)
	for i, end := range w.pauses.PauseEnd {
		if !end.After(w.seen) {
			break // the most recent come first
		}
		if w.measured(end) {
			w.use.GCPauseMax = max(w.use.GCPauseMax, w.pauses.Pause[i])
		}
	}
	w.seen = now
}
