package metrics

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Sink consumes what the collector saw. Its methods are called by one
// goroutine and must not keep the slices they are given, nor change what is in them.
type Sink interface {
	Write(batch []Sample) error
	Close() error
}

// IntervalSink is implemented by sinks that also take the per-second figures.
// The histograms in the rows are never changed again and may be kept.
type IntervalSink interface {
	WriteIntervals(rows []Interval) error
}

// LoadSink is implemented by sinks that also take the per-second load rows.
// The histograms in the rows are never changed again and may be kept.
type LoadSink interface {
	WriteLoad(rows []LoadRow) error
}

// GaugeSink is implemented by sinks that also take the gauges of all groups as
// they are read, ten times a second from the start of the clock on: what is
// known of work that has left no sample yet. at is the offset of the reading;
// groups is valid during the call.
type GaugeSink interface {
	WriteGauges(at time.Duration, groups []Gauges) error
}

// Tallies are counts over the whole run that no sample carries. They are never
// changed once they are made.
type Tallies struct {
	Anomalies      map[string]int64 // by kind; see Summary.Anomalies
	ServerRequests []ServerRequestSummary
}

// TallySink is implemented by sinks that also take the tallies as they are read,
// each time before the gauges.
type TallySink interface {
	WriteTallies(t Tallies) error
}

// Interval holds one second of one step, protocol version, phase and outcome
// class. Second counts from the start of the clock, by the End of the samples;
// everything before the clock started is second -1. A sample that arrives when
// its second was already handed over counts in the oldest one that was not, so
// that the counts of all intervals add up to those of the samples.
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
// integers are values at its end. Phase is that in which the second began.
// Lateness and Queued are those of the iterations that ended in the second;
// when some of them belong to another phase than the second does, these have a
// second row of their own phase, with counts of 0.
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
	// Gauges is read ten times a second for each group, by the collector's
	// goroutine; nil leaves the load rows without them.
	Gauges func(group int) Gauges
	// Tallies is read with the gauges; nil is none.
	Tallies func() Tallies
	// Warmup is the length of the warm-up phase; Endless when that is not known
	// beforehand, see Collector.EndWarmup.
	Warmup time.Duration
	// Thresholds are those of the run. One with Abort is judged each second.
	Thresholds []Threshold
	// Trial is written to intervals and load rows.
	Trial uint16
	// SlabLimit bounds how many slabs of samples may exist; 0 is 16 for each
	// of the 4 × GOMAXPROCS shards. A caller that finds none waits for one.
	SlabLimit int
}
