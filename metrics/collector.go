package metrics

import (
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// flushPeriod is the greatest age of a sample before it is handed over.
	flushPeriod = 100 * time.Millisecond
	// publishPeriod is the time between snapshots. They are taken publishDelay
	// after each half second, when the samples of that half have arrived.
	publishPeriod = 500 * time.Millisecond
	publishDelay  = 2 * flushPeriod
	// secondsOpen is how many seconds an interval stays open after its own.
	secondsOpen = 1
)

// Collector turns samples into distributions, counts and rows. Record may be
// called by many goroutines; one goroutine runs Run, which owns everything
// else until it returns. Its memory does not depend on the length of the run.
//
// Order of use: go Run, Record for what came before the clock, StartClock,
// Record, Close, wait for Run, Summary.
type Collector struct {
	cfg      CollectorConfig
	stream   *stream
	clock    atomic.Pointer[time.Time]
	snapshot atomic.Pointer[Snapshot]
	broken   chan struct{} // closed when a sink has failed
	warmup   warmup

	// Owned by Run, then by the caller of Summary.
	started     time.Time // when Run began
	lastPublish int64
	sinks       []sink
	err         error // the first error of a sink
	totals      totals
	seconds     seconds
	gauges      []Gauges // the latest reading, by group
	aborts      aborts
}

// sink is a Sink with the abilities found by type assertion.
type sink struct {
	Sink
	intervals IntervalSink // nil when it takes none
	load      LoadSink
	gauges    GaugeSink
	tallies   TallySink
	failed    bool
}

// NewCollector returns a collector whose Run has not begun. Record may be
// called at once, but waits when the slabs are used up before Run begins.
func NewCollector(cfg CollectorConfig) *Collector {
	if cfg.Catalog == nil {
		cfg.Catalog = &Catalog{}
	}
	c := &Collector{cfg: cfg, stream: newStream(cfg.SlabLimit), totals: newTotals(cfg.Catalog), broken: make(chan struct{})}
	c.warmup.at.Store(int64(cfg.Warmup))
	c.seconds = newSeconds(&c.cfg, &c.warmup)
	c.aborts = newAborts(&c.cfg, &c.warmup)
	for _, s := range cfg.Sinks {
		intervals, _ := s.(IntervalSink)
		load, _ := s.(LoadSink)
		gauges, _ := s.(GaugeSink)
		tallies, _ := s.(TallySink)
		c.sinks = append(c.sinks, sink{Sink: s, intervals: intervals, load: load, gauges: gauges, tallies: tallies})
	}
	c.gauges = make([]Gauges, len(cfg.Catalog.Groups))
	c.snapshot.Store(&Snapshot{Groups: make([]Gauges, len(cfg.Catalog.Groups))})
	return c
}

// Record takes one sample, which reaches the sinks within about 100 ms. It
// never drops one: when the collector is so far behind that no slab is free,
// it waits, and the run is unsound. Safe for concurrent use; not after Close.
func (c *Collector) Record(s Sample) { c.stream.put([]Sample{s}) }

// RecordAll is Record for several samples of one session, in order, at the price
// of little more than one: most of it is to fetch the memory they go to.
func (c *Collector) RecordAll(some []Sample) { c.stream.put(some) }

// StartClock says when offset 0 was; without it no second ends before Close. A
// later call moves it, as one who replays a run does to let seconds end.
func (c *Collector) StartClock(t0 time.Time) { c.clock.Store(&t0) }

// Close ends the stream of samples. It is called once, after all callers of
// Record are done; Run then returns.
func (c *Collector) Close() { c.stream.end() }

// Broken is closed when a sink has failed: what is recorded from then on is not
// all written, so there is little point in going on.
func (c *Collector) Broken() <-chan struct{} { return c.broken }

// Snapshot returns the latest published state, never nil. Safe for concurrent use.
func (c *Collector) Snapshot() *Snapshot { return c.snapshot.Load() }

// Run consumes the samples until Close and everything recorded is written,
// also when a sink fails: that sink gets nothing more but its Close. The
// result is the first error of a sink.
func (c *Collector) Run() error {
	c.started = time.Now()
	timer := time.NewTimer(flushPeriod)
	defer timer.Stop()
	for {
		select {
		case b, ok := <-c.stream.full:
			if !ok {
				return c.finish()
			}
			c.consume(b)
		case <-timer.C:
			c.drain()
			c.tick(time.Now())
			timer.Reset(time.Until(c.nextTick(time.Now())))
		}
	}
}

// nextTick returns the first multiple of flushPeriod after now, counted from
// the start of the clock so that ticks fall on the ends of seconds.
func (c *Collector) nextTick(now time.Time) time.Time {
	base := c.base()
	return base.Add((now.Sub(base)/flushPeriod + 1) * flushPeriod)
}

// base is the start of the clock, or before that the start of Run.
func (c *Collector) base() time.Time {
	if t0 := c.clock.Load(); t0 != nil {
		return *t0
	}
	return c.started
}

// elapsed returns the time since the clock started, 0 before.
func (c *Collector) elapsed(now time.Time) time.Duration {
	t0 := c.clock.Load()
	if t0 == nil {
		return 0
	}
	return max(now.Sub(*t0), 0)
}

// drain consumes what was recorded until now: the slabs handed over, then
// those being filled.
func (c *Collector) drain() {
	for range len(c.stream.full) {
		c.consume(<-c.stream.full) // nobody else receives
	}
	for i := range c.stream.shards {
		if b := c.stream.shards[i].steal(); b != nil {
			c.consume(b)
		}
	}
}

func (c *Collector) consume(b *slab) {
	for i := range b.samples {
		s := &b.samples[i]
		c.totals.add(s)
		c.seconds.add(s)
		c.aborts.add(s)
	}
	for i := range c.sinks {
		c.call(&c.sinks[i], "write samples", func(s *sink) error { return s.Write(b.samples) })
	}
	c.stream.release(b)
}

// call runs one operation of a sink that has not failed yet.
func (c *Collector) call(s *sink, what string, op func(*sink) error) {
	if s.failed {
		return
	}
	if err := op(s); err != nil {
		s.failed = true
		c.fail(what, err)
	}
}

func (c *Collector) fail(what string, err error) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: %w", what, err)
		close(c.broken)
	}
}

func (c *Collector) tick(now time.Time) {
	if c.clock.Load() != nil {
		elapsed := c.elapsed(now)
		c.readGauges(elapsed)
		if c.seconds.due(elapsed) {
			c.seconds.readGauges(int64(elapsed/time.Second)-1, c.gauges)
		}
		c.flush(int64(elapsed/time.Second) - secondsOpen)
		c.aborts.judge(elapsed)
	}
	if k := int64((now.Sub(c.base()) - publishDelay + publishPeriod) / publishPeriod); k != c.lastPublish {
		c.lastPublish = k
		c.publish(now)
	}
}

// readTallies hands the tallies to the sinks that take them.
func (c *Collector) readTallies() {
	if c.cfg.Tallies == nil {
		return
	}
	t := c.cfg.Tallies()
	for i := range c.sinks {
		if s := &c.sinks[i]; s.tallies != nil {
			c.call(s, "write tallies", func(s *sink) error { return s.tallies.WriteTallies(t) })
		}
	}
}

// readGauges takes a new reading and hands it to the sinks, after the tallies. That of the end of
// a second is the one that its load rows are made of.
func (c *Collector) readGauges(elapsed time.Duration) {
	c.readTallies()
	if c.cfg.Gauges == nil {
		return
	}
	for g := range c.gauges {
		c.gauges[g] = c.cfg.Gauges(g)
	}
	for i := range c.sinks {
		if s := &c.sinks[i]; s.gauges != nil {
			c.call(s, "write gauges", func(s *sink) error { return s.gauges.WriteGauges(elapsed, c.gauges) })
		}
	}
}

// flush hands over the seconds before the given one.
func (c *Collector) flush(before int64) {
	for c.seconds.next < before {
		rows, load := c.seconds.close()
		for i := range c.sinks {
			s := &c.sinks[i]
			if s.intervals != nil && len(rows) > 0 {
				c.call(s, "write intervals", func(s *sink) error { return s.intervals.WriteIntervals(rows) })
			}
			if s.load != nil && len(load) > 0 {
				c.call(s, "write load", func(s *sink) error { return s.load.WriteLoad(load) })
			}
		}
	}
}

// finish handles the end of the stream: the last seconds, the last snapshot, the sinks' end.
func (c *Collector) finish() error {
	now := time.Now()
	if c.clock.Load() != nil {
		// The second that has just ended, or the one that is cut short.
		c.readGauges(c.elapsed(now))
		c.seconds.readGauges(int64((c.elapsed(now)-1)/time.Second), c.gauges)
	}
	c.flush(c.seconds.end())
	c.publish(now)
	for i := range c.sinks {
		if err := c.sinks[i].Close(); err != nil {
			c.fail("close results", err)
		}
	}
	return c.err
}
