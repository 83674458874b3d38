package metrics

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Sink consumes what the collector saw. Its methods are called by one
// goroutine and must not keep the slices they are given.
type Sink interface {
	Write(batch []Sample) error
	Close() error
}

// IntervalSink is implemented by sinks that also take the per-second figures.
type IntervalSink interface {
	WriteIntervals(rows []Interval) error
}

// LoadSink is implemented by sinks that also take the per-second load rows.
type LoadSink interface {
	WriteLoad(rows []LoadRow) error
}

// Interval holds one second of one step, protocol version, phase and outcome
// class. Second counts from the start of the clock, by the End of the samples.
type Interval struct {
	Second   int64
	Trial    uint16
	Step     uint16
	Proto    uint8
	Phase    Phase
	Class    Class
	Count    int64
	Outcomes [NumOutcomes]int64
	Passed   []int64 // per check of the step, evaluated on this class's requests
	Failed   []int64
	BytesOut int64
	BytesIn  int64
	Min, Max time.Duration           // latency, exact
	Hist     *hdrhistogram.Histogram // latency in ns, two digits
	Service  *hdrhistogram.Histogram // service time in ns, two digits
}

// LoadRow holds one second of one group. Counts are of that second; the other
// integers are values at its end.
type LoadRow struct {
	Second             int64
	Trial              uint16
	Group              uint8
	Phase              Phase
	Intended           int64
	Started            int64
	Completed          int64
	Dropped            int64
	SessionsWanted     int
	SessionsActive     int
	SessionsConnecting int
	InFlight           int
	Lateness, Queued   *hdrhistogram.Histogram // ns, two digits; empty in a closed load
}

// Gauges is the live state of one group as its driver sees it. The first four
// are totals since the start of the clock and never fall.
type Gauges struct {
	Intended, Started, Completed, Dropped                        int64
	SessionsWanted, SessionsActive, SessionsConnecting, InFlight int
}

// CollectorConfig configures a Collector.
type CollectorConfig struct {
	Catalog *Catalog
	Sinks   []Sink
	// Gauges is read once a second for each group; nil leaves the load rows
	// without them.
	Gauges func(group int) Gauges
	// Warmup is the length of the warm-up phase.
	Warmup time.Duration
}

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
