package metrics

import "time"

// snapshotWindow is the number of seconds that Snapshot.P99 looks back.
const snapshotWindow = 10

// Snapshot is what a progress display reads. It is immutable.
type Snapshot struct {
	Elapsed    time.Duration // since the clock started; 0 before
	Requests   int64         // all phases
	OK, Failed int64
	RatePerS   float64       // requests in the last whole second
	P99        time.Duration // latency over the last ten seconds, 0 when none
	Iterations int64         // finished, all phases
	Dropped    int64
	Sessions   int // active now
	InFlight   int
	Groups     []Gauges
}

// publish makes a new snapshot.
func (c *Collector) publish(now time.Time) {
	elapsed := c.elapsed(now)
	whole := int64(elapsed / time.Second)
	t := &c.totals
	s := &Snapshot{
		Elapsed: elapsed, Requests: t.live.requests, OK: t.live.ok, Failed: t.live.failed,
		Iterations: t.live.iterations, Dropped: t.live.dropped,
		RatePerS: float64(c.seconds.requests(whole - 1)),
		P99:      c.seconds.recentP99(whole - snapshotWindow),
		Groups:   make([]Gauges, len(c.cfg.Catalog.Groups)),
	}
	if c.cfg.Gauges != nil {
		for i := range s.Groups {
			g := c.cfg.Gauges(i)
			s.Groups[i] = g
			s.Sessions += g.SessionsActive
			s.InFlight += g.InFlight
		}
	}
	c.snapshot.Store(s)
}
