package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"mcpbench/metrics"
)

// replay feeds the rows of a folder to a collector, as the run did. It hands
// over no more than the collector has room for: a wait for a slab would make
// the run unsound.
type replay struct {
	collector *metrics.Collector
	fed       int64
	sink      *replaySink
	window    int64         // how much may be fed and not taken yet
	latest    time.Duration // the greatest Start of a request so far
}

// replaySink takes what the collector makes of the rows.
type replaySink struct {
	taken     atomic.Int64
	progress  chan struct{} // has room for one signal
	known     int64         // the last second whose figures the run wrote itself
	intervals []metrics.Interval
}

const (
	// replaySlabs is how many full slabs the collector may hold, besides one
	// for each shard (metrics: 4 × GOMAXPROCS) that is being filled.
	replaySlabs = 64
	slabSamples = 1024
	// clockMargin is how far the clock of the replay stays behind its rows, so
	// that a second is not closed before its last row has come.
	clockMargin = 10 * time.Second
	// advanceRows is how often the clock moves.
	advanceRows = 8192
)

func newReplay(cfg metrics.CollectorConfig, known int64) *replay {
	shards := 4 * runtime.GOMAXPROCS(0)
	p := &replay{
		sink:   &replaySink{progress: make(chan struct{}, 1), known: known},
		window: int64(replaySlabs+shards) * slabSamples,
	}
	cfg.Sinks = []metrics.Sink{p.sink}
	cfg.SlabLimit = replaySlabs + 3*shards
	p.collector = metrics.NewCollector(cfg)
	return p
}

func (s *replaySink) Write(batch []metrics.Sample) error {
	s.taken.Add(int64(len(batch)))
	select {
	case s.progress <- struct{}{}:
	default:
	}
	return nil
}

// WriteIntervals keeps the figures of the seconds that the run did not come to write.
func (s *replaySink) WriteIntervals(rows []metrics.Interval) error {
	for i := range rows {
		if rows[i].Second > s.known {
			s.intervals = append(s.intervals, rows[i])
		}
	}
	return nil
}

func (s *replaySink) Close() error { return nil }

func (p *replay) feed(s metrics.Sample) {
	p.collector.Record(s)
	p.fed++
	for p.fed-p.sink.taken.Load() > p.window {
		<-p.sink.progress
	}
	if s.Kind != metrics.KindStep {
		return
	}
	// The rows of a group are in the order of their starts, and all rows of a
	// later group ended after it: none that is to come ends before the start of
	// this one. The clock lets the collector close the seconds before, so that
	// its memory does not grow with the length of the run.
	p.latest = max(p.latest, s.Start)
	if at := p.latest - clockMargin; at > 0 && p.fed%advanceRows == 0 {
		p.collector.StartClock(time.Now().Add(-at))
	}
}

// summarize computes the summary from the rows of all parts and the connects,
// and completes the intervals with the seconds that the run did not come to write.
func (r *recovery) summarize(meta *journalMeta) (*metrics.Summary, error) {
	known, wanted, err := r.knownSeconds(meta.Catalog)
	if err != nil {
		return nil, err
	}
	p := newReplay(metrics.CollectorConfig{
		Catalog: meta.Catalog, Warmup: meta.Warmup,
		Gauges: func(group int) metrics.Gauges { return metrics.Gauges{SessionsWanted: wanted[group]} },
	}, known)
	done := make(chan error, 1)
	go func() { done <- p.collector.Run() }()
	err = r.feedAll(p, meta.Catalog)
	p.collector.Close()
	if err := errors.Join(err, <-done); err != nil {
		return nil, err
	}
	if err := r.writeTail(meta, p.sink.intervals); err != nil {
		return nil, err
	}
	thresholds, err := r.thresholds()
	if err != nil {
		return nil, err
	}
	s := p.collector.Summary(metrics.RunInfo{
		RunID: r.report.RunID, Scenario: r.file.Scenario.Name, StartedAt: r.file.StartedAt, Seed: r.file.Seed,
		ResultsDir: r.dir, Thresholds: thresholds, Signal: syscall.SIGKILL,
	})
	return s, nil
}

// feedAll feeds the connects, the requests and the iterations. The requests
// come before the iterations because they move the clock, and only they go
// into the intervals.
func (r *recovery) feedAll(p *replay, cat *metrics.Catalog) error {
	if err := r.feedConnects(p, cat); err != nil {
		return err
	}
	n := namesOf(cat)
	if err := feedTable(r, p, "requests", n.request); err != nil {
		return err
	}
	return feedTable(r, p, "iterations", n.iteration)
}

// feedTable feeds all parts of a table.
func feedTable[T any](r *recovery, p *replay, table string, sample func(*T) (metrics.Sample, error)) error {
	parts, err := r.parts(table)
	if err != nil {
		return err
	}
	for _, part := range parts {
		err := eachRow(part, func(row *T) error {
			s, err := sample(row)
			if err == nil {
				p.feed(s)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// connectRecords feeds the samples of kind connect.
type connectRecords struct{ replay *replay }

func (c connectRecords) meta(*journalMeta) error          { return nil }
func (c connectRecords) interval(*metrics.Interval) error { return nil }
func (c connectRecords) loadRow(*metrics.LoadRow) error   { return nil }
func (c connectRecords) sample(s *metrics.Sample) error {
	if s.Kind == metrics.KindConnect {
		c.replay.feed(*s)
	}
	return nil
}

func (r *recovery) feedConnects(p *replay, cat *metrics.Catalog) error {
	path := filepath.Join(r.dir, journalFolder, connectsName)
	frames, file, err := openFrames(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	for {
		f, err := frames.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = decodeFrame(f, cat, connectRecords{p})
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	r.report.TornBytes += frames.damage.TornBytes
	r.report.Gaps += frames.damage.Gaps
	r.report.LostRecords += frames.damage.LostRecords
	r.report.LostBytes += frames.damage.LostBytes
	return nil
}

// knownSeconds returns the last second that the run wrote figures of, and the
// most sessions that each group wanted.
func (r *recovery) knownSeconds(cat *metrics.Catalog) (last int64, wanted []int, err error) {
	last, wanted = noSecond, make([]int, len(cat.Groups))
	n := namesOf(cat)
	parts, err := r.parts("intervals")
	for _, part := range parts {
		err = errors.Join(err, eachRow(part, func(row *intervalFacts) error {
			last = max(last, row.Second)
			return nil
		}))
	}
	if err != nil {
		return 0, nil, err
	}
	parts, err = r.parts("load")
	for _, part := range parts {
		err = errors.Join(err, eachRow(part, func(row *loadFacts) error {
			last = max(last, row.Second)
			if g, ok := n.groups[row.Group]; ok {
				wanted[g] = max(wanted[g], int(row.Wanted))
			}
			return nil
		}))
	}
	return last, wanted, err
}

// noSecond is before all seconds: that of the setup is -1.
const noSecond = -2

// writeTail writes intervals as one more part of their table. Doing it again
// finds their seconds known, and adds nothing.
func (r *recovery) writeTail(meta *journalMeta, rows []metrics.Interval) error {
	if len(rows) == 0 {
		return nil
	}
	next := 0
	for _, table := range tableNames {
		parts, err := r.parts(table)
		if err != nil {
			return err
		}
		for _, part := range parts {
			next = max(next, partNumber(part)+1)
		}
	}
	t := &segmentTables{folder: r.dir, number: next, block: &r.block}
	defer t.end()
	if err := t.use(meta); err != nil {
		return err
	}
	for i := range rows {
		if err := t.interval(&rows[i]); err != nil {
			return err
		}
	}
	if err := t.complete(); err != nil {
		return err
	}
	r.report.Rows.add(t.rows)
	return t.publish()
}

// thresholds reads those that run.json named at the start; none are the defaults.
func (r *recovery) thresholds() ([]metrics.Threshold, error) {
	var out []metrics.Threshold
	for _, t := range r.file.Thresholds {
		parsed, err := metrics.ParseThreshold(t.Expr)
		if err != nil {
			return nil, fmt.Errorf("threshold %q of run.json: %w", t.Expr, err)
		}
		parsed.Default = t.Default
		out = append(out, parsed)
	}
	return out, nil
}
