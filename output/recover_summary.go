package output

import (
	"errors"
	"fmt"
	"io"
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
	moved     bool          // the clock was
}

// replaySink takes what the collector makes of the rows.
type replaySink struct {
	taken     atomic.Int64
	progress  chan struct{}  // has room for one signal
	known     map[int64]bool // seconds whose figures the run wrote itself
	intervals []metrics.Interval
	delays    []metrics.LoadRow // of these only lateness and queueing mean something
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

func newReplay(cfg metrics.CollectorConfig, known map[int64]bool) *replay {
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
		if !s.known[rows[i].Second] {
			s.intervals = append(s.intervals, rows[i])
		}
	}
	return nil
}

// WriteLoad keeps the delays of open loads, which the iterations tell.
func (s *replaySink) WriteLoad(rows []metrics.LoadRow) error {
	for i := range rows {
		if rows[i].Lateness.TotalCount() > 0 {
			s.delays = append(s.delays, rows[i])
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
		p.moved = true
		p.collector.StartClock(time.Now().Add(-at))
	}
}

// close ends the replay. Without a clock the collector would not read the gauges.
func (p *replay) close() {
	if !p.moved {
		p.collector.StartClock(time.Now())
	}
	p.collector.Close()
}

// summarize computes the summary from the rows of all parts and the connects,
// and adds the rows that the run did not come to write.
func (r *recovery) summarize(meta *journalMeta) (*metrics.Summary, error) {
	cut, err := r.readCut(meta)
	if err != nil {
		return nil, err
	}
	next, err := r.nextPart()
	if err != nil {
		return nil, err
	}
	tail := &segmentTables{folder: r.dir, number: next, block: &r.block, step: r.step}
	defer tail.end()
	if err := tail.use(meta); err != nil {
		return nil, err
	}
	p := newReplay(metrics.CollectorConfig{
		Catalog: meta.Catalog, Warmup: meta.Warmup,
		Gauges: func(group int) metrics.Gauges { return metrics.Gauges{SessionsWanted: cut.sessions[group]} },
	}, cut.seconds["intervals"])
	done := make(chan error, 1)
	go func() { done <- p.collector.Run() }()
	err = r.feedAll(p, cut, tail)
	p.close()
	if err := errors.Join(err, <-done); err != nil {
		return nil, err
	}
	if err := r.writeTail(tail, cut, p.sink); err != nil {
		return nil, err
	}
	return r.summaryOf(p.collector, cut)
}

func (r *recovery) summaryOf(c *metrics.Collector, cut *cutOff) (*metrics.Summary, error) {
	thresholds, err := r.thresholds()
	if err != nil {
		return nil, err
	}
	info := metrics.RunInfo{
		RunID: r.report.RunID, Scenario: r.file.Scenario.Name, StartedAt: r.file.StartedAt, Seed: r.file.Seed, Tags: r.file.Tags,
		ResultsDir: r.dir, Thresholds: thresholds, Signal: syscall.SIGKILL, CutOff: true,
	}
	if n := len(cut.marks); n > 0 && cut.marks[n-1].at > cut.warmup {
		info.MeasuredEnd = cut.marks[n-1].at
	}
	if n := len(r.marks); n > 0 {
		last := r.marks[n-1]
		r.report.Unjournalled = last.unjournalled
		info.Anomalies, info.ServerRequests = last.tallies.Anomalies, last.tallies.ServerRequests
	}
	r.report.At = cut.at()
	return c.Summary(info), nil
}

// feedAll feeds the connects, the requests and the iterations, and those that
// have no row yet, which also go to tail. The requests come before the
// iterations because they move the clock, and only they go into the intervals.
func (r *recovery) feedAll(p *replay, cut *cutOff, tail *segmentTables) error {
	if err := r.feedConnects(p, cut); err != nil {
		return err
	}
	n := namesOf(cut.cat)
	err := eachOfTable(r, "requests", func(row *requestFacts) error {
		s, err := n.request(row)
		if err == nil {
			p.feed(s)
			cut.request(&s)
		}
		return err
	})
	if err != nil {
		return err
	}
	err = eachOfTable(r, "iterations", func(row *iterationRow) error {
		s, err := n.iteration(row)
		if err == nil {
			p.feed(s)
		}
		return err
	})
	if err != nil {
		return err
	}
	return cut.eachIteration(func(s metrics.Sample) error {
		r.report.Interrupted++
		p.feed(s)
		return tail.sample(&s)
	})
}

// eachOfTable reads all parts of a table. One that cannot be read is lost, and
// no reason to give up the others.
func eachOfTable[T any](r *recovery, table string, do func(*T) error) error {
	parts, err := r.parts(table)
	if err != nil {
		return err
	}
	for _, part := range parts {
		err := eachRow(part, do)
		if err == nil || r.broken[part] {
			continue
		}
		if r.broken == nil {
			r.broken = map[string]bool{}
		}
		r.broken[part] = true
		name, relErr := filepath.Rel(r.dir, part)
		if relErr != nil {
			name = part
		}
		r.lose(Loss{File: name, Reason: err.Error()})
	}
	return nil
}

// connectRecords feeds the samples of kind connect.
type connectRecords struct {
	replay *replay
	cut    *cutOff
}

func (c connectRecords) meta(*journalMeta) error          { return nil }
func (c connectRecords) interval(*metrics.Interval) error { return nil }
func (c connectRecords) loadRow(*metrics.LoadRow) error   { return nil }
func (c connectRecords) sample(s *metrics.Sample) error {
	if s.Kind == metrics.KindConnect {
		c.replay.feed(*s)
		c.cut.connect(s)
	}
	return nil
}

func (r *recovery) feedConnects(p *replay, cut *cutOff) error {
	path := filepath.Join(r.dir, journalFolder, connectsName)
	if f := r.journalFile(connectsName); f == nil || !f.ours(r.file.RunID) {
		return nil
	}
	frames, file, err := openFrames(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	for {
		f, err := frames.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = decodeFrame(f, cut.cat, connectRecords{p, cut})
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
}

// nextPart returns a number that is after those of all segments and parts.
func (r *recovery) nextPart() (int, error) {
	next := 0
	for _, f := range r.files {
		next = max(next, f.number+1)
	}
	for _, m := range r.marks {
		for _, s := range m.segments {
			next = max(next, s.number+1)
		}
	}
	for _, table := range tableNames {
		parts, err := r.parts(table)
		if err != nil {
			return 0, err
		}
		for _, part := range parts {
			next = max(next, partNumber(part)+1)
		}
	}
	return next, nil
}

// writeTail writes what the run did not come to write as one more part of each
// table. Doing it again finds the rows there, and adds nothing.
func (r *recovery) writeTail(tail *segmentTables, cut *cutOff, sink *replaySink) error {
	err := cut.eachSession(func(s metrics.Sample) error {
		r.report.Sessions++
		return tail.sample(&s)
	})
	if err != nil {
		return err
	}
	for i := range sink.intervals {
		if err := tail.interval(&sink.intervals[i]); err != nil {
			return err
		}
	}
	rows := cut.loadRows(sink.delays)
	for i := range rows {
		if err := tail.loadRow(&rows[i]); err != nil {
			return err
		}
	}
	if err := tail.complete(); err != nil {
		return err
	}
	r.report.Rows.add(tail.rows)
	return tail.publish()
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
