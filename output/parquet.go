package output

import (
	"errors"
	"time"

	"mcpbench/metrics"
)

// Default sizes of journal segments and of the parts made of them.
const (
	defaultRowGroupRows = 256 << 10
	defaultPartRows     = 1 << 20
	defaultSegmentBytes = 256 << 20
	defaultBacklog      = 2
)

// ParquetConfig configures the recording of a run. Folder, RunID and Catalog are needed.
type ParquetConfig struct {
	Folder  *Folder
	RunID   string
	Agent   string // "" is local
	Catalog *metrics.Catalog
	// T0 is the wall time of offset 0; see also SetT0.
	T0 time.Time
	// Warmup is the length of the warm-up phase, for the summary of a run that
	// is killed.
	Warmup time.Duration
	// Run goes into the journal and into the metadata of each file as
	// mcpbench.run, without the parts that are not known before the end. nil
	// leaves it out. It is copied.
	Run *RunFile
	// RowGroupRows bounds a row group; 0 is 262144.
	RowGroupRows int
	// A journal segment is sealed, and becomes one part of each table, when it
	// has at least PartRows rows of all tables together or SegmentBytes bytes;
	// 0 is 1048576 rows and 256 MiB.
	PartRows     int
	SegmentBytes int64
	// Backlog is how many sealed segments may wait for their compaction, besides
	// the one being compacted; 0 is 2. When there are as many, Write waits, and
	// Waits counts it. The journal takes at most Backlog+2 segments on disk,
	// besides 64 MiB for attempts to open a session and 3 MiB for marks.
	Backlog int

	// Of tests: see createSegment and compactSegment.
	create func(path string) (segmentFile, error)
	step   func(string) error
}

// meta is the metadata of the first segment.
func (c *ParquetConfig) meta() journalMeta {
	m := journalMeta{
		SchemaVersion: SchemaVersion, RunID: c.RunID, Agent: c.Agent, T0: c.T0.UnixMicro(), Warmup: c.Warmup,
		GroupRows: c.RowGroupRows, Catalog: c.Catalog,
	}
	if m.Agent == "" {
		m.Agent = "local"
	}
	if m.GroupRows <= 0 {
		m.GroupRows = defaultRowGroupRows
	}
	if c.Run != nil {
		m.Run = c.Run.normal()
	}
	return m
}

// Parquet records a run: what it is given is in the journal, and so survives
// the end of this process, when the call returns. Segments of the journal
// become Parquet parts of the tables requests, iterations, sessions, intervals
// and load in the background. Its methods are for one goroutine, but SetT0 and
// Waits are for any. Close ends the goroutine of the compaction and must
// always be called; then Folder.WriteRun with the time of the end gives the
// folder free.
type Parquet struct {
	journal *journal
}

var (
	_ metrics.Sink         = (*Parquet)(nil)
	_ metrics.IntervalSink = (*Parquet)(nil)
	_ metrics.LoadSink     = (*Parquet)(nil)
	_ metrics.GaugeSink    = (*Parquet)(nil)
	_ metrics.TallySink    = (*Parquet)(nil)
)

// NewParquet locks the folder for this run and begins the journal, so that a
// path that cannot be written is known before the load begins. The error is
// ErrRunning when another process holds the lock.
func NewParquet(c ParquetConfig) (*Parquet, error) {
	if c.Folder == nil || c.Catalog == nil || c.RunID == "" {
		return nil, errors.New("open the journal: need a results folder, a run id and a catalog")
	}
	j, err := startJournal(c)
	if err != nil {
		return nil, err
	}
	return &Parquet{journal: j}, nil
}

// SetT0 sets the wall time of offset 0. It must be set before the first Write.
func (p *Parquet) SetT0(t0 time.Time) { p.journal.t0.Store(t0.UnixMicro()) }

// Write takes one batch of samples with one system call. It returns the first
// failure of the journal or of the compaction, naming the file. After a
// failure nothing more is written; everything before it is kept.
func (p *Parquet) Write(batch []metrics.Sample) error { return p.journal.write(batch) }

// WriteIntervals takes the figures of finished seconds.
func (p *Parquet) WriteIntervals(rows []metrics.Interval) error {
	return p.journal.writeIntervals(rows)
}

// WriteLoad takes the load rows of finished seconds.
func (p *Parquet) WriteLoad(rows []metrics.LoadRow) error { return p.journal.writeLoad(rows) }

// WriteGauges notes in the journal how far the run has come, for the case that
// it is killed.
func (p *Parquet) WriteGauges(at time.Duration, groups []metrics.Gauges) error {
	return p.journal.writeGauges(at, groups)
}

// WriteTallies notes in the journal, with the next WriteGauges, what no row tells.
func (p *Parquet) WriteTallies(t metrics.Tallies) error {
	p.journal.marks.mark.tallies = t
	return nil
}

// Waits returns how often Write had to wait for the compaction, and how long
// in all.
func (p *Parquet) Waits() (n int64, total time.Duration) {
	return p.journal.waits.Load(), time.Duration(p.journal.waited.Load())
}

// Close compacts what is in the journal and waits for it. When that fails, the
// segments stay, and Recover can finish them later.
func (p *Parquet) Close() error { return p.journal.close() }
