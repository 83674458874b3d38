package output

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/parquet-go/parquet-go"

	"mcpbench/metrics"
)

// Default sizes of the parts.
const (
	defaultRowGroupRows = 256 << 10
	defaultPartRows     = 1 << 20
)

// ParquetConfig configures a Parquet sink. Folder, RunID and Catalog are needed.
type ParquetConfig struct {
	Folder  *Folder
	RunID   string
	Agent   string // "" is local
	Catalog *metrics.Catalog
	// T0 is the wall time of offset 0; see also SetT0.
	T0 time.Time
	// Run goes into the metadata of each file as mcpbench.run, without the
	// parts that are not known before the end. nil leaves it out.
	Run *RunFile
	// RowGroupRows and PartRows bound a row group and a part; 0 is 262144 and
	// 1048576. A part holds whole row groups: PartRows is rounded down to a
	// multiple of RowGroupRows, at least one.
	RowGroupRows, PartRows int
}

// Parquet writes the tables requests, iterations, sessions, intervals and
// load of a run as it goes. It holds the samples of at most two row groups. Its
// methods are for one goroutine, but SetT0 is for any. Close ends the
// goroutine that writes the requests and must always be called.
type Parquet struct {
	catalog *metrics.Catalog
	t0      atomic.Int64 // Unix microseconds

	requests   *requestTable
	iterations *partWriter[iterationRow]
	sessions   *partWriter[sessionRow]
	intervals  *partWriter[intervalRow]
	load       *partWriter[loadRow]

	iterationRows rowBuffer[iterationRow, iterationNulls]
	sessionRows   rowBuffer[sessionRow, sessionNulls]
	encoder       histEncoder
}

var (
	_ metrics.Sink         = (*Parquet)(nil)
	_ metrics.IntervalSink = (*Parquet)(nil)
	_ metrics.LoadSink     = (*Parquet)(nil)
)

// NewParquet makes the folder and the first part of every table, so that a
// path that cannot be written is known before the load begins.
func NewParquet(c ParquetConfig) (*Parquet, error) {
	if c.Folder == nil || c.Catalog == nil {
		return nil, errors.New("open Parquet tables: need a results folder and a catalog")
	}
	tc, err := c.tables()
	if err != nil {
		return nil, err
	}
	p := &Parquet{catalog: c.Catalog}
	p.SetT0(c.T0)
	var errs [5]error
	requests, err := newTable[requestRow](tc, "requests", sortByStart)
	errs[0] = err
	p.iterations, errs[1] = newTable[iterationRow](tc, "iterations")
	p.sessions, errs[2] = newTable[sessionRow](tc, "sessions")
	p.intervals, errs[3] = newTable[intervalRow](tc, "intervals")
	p.load, errs[4] = newTable[loadRow](tc, "load")
	if err := errors.Join(errs[:]...); err != nil {
		requests.abandon(err)
		p.iterations.abandon(err)
		p.sessions.abandon(err)
		p.intervals.abandon(err)
		p.load.abandon(err)
		return nil, err
	}
	p.requests = startRequests(&requestWriter{partWriter: requests, catalog: c.Catalog, runID: c.RunID, t0: &p.t0})
	return p, nil
}

func (c *ParquetConfig) tables() (tableConfig, error) {
	groupRows, partRows := c.RowGroupRows, c.PartRows
	if groupRows <= 0 {
		groupRows = defaultRowGroupRows
	}
	if partRows <= 0 {
		partRows = defaultPartRows
	}
	agent := c.Agent
	if agent == "" {
		agent = "local"
	}
	tc := tableConfig{
		folder: c.Folder.Path(), agent: agent,
		groupRows: int64(groupRows), perPart: int64(max(partRows-partRows%groupRows, groupRows)),
		metadata: map[string]string{
			"mcpbench.schema_version": fmt.Sprint(SchemaVersion),
			"mcpbench.agent":          agent,
		},
	}
	if c.Run != nil {
		data, err := c.Run.MarshalCompact()
		if err != nil {
			return tableConfig{}, err
		}
		tc.metadata["mcpbench.run"] = string(data)
		tc.version = c.Run.Mcpbench
	}
	return tc, nil
}

// SetT0 sets the wall time of offset 0. Rows of the requests table take it
// when their row group is written, so it must be set before the first Write
// at the latest.
func (p *Parquet) SetT0(t0 time.Time) { p.t0.Store(t0.UnixMicro()) }

// Write takes one batch of samples. Samples of kind connect make no row. It
// returns the first failure of any table, naming the file; later rows of that
// table are not written any more.
func (p *Parquet) Write(batch []metrics.Sample) error {
	for i := range batch {
		s := &batch[i]
		switch s.Kind {
		case metrics.KindStep:
			p.requests.add(s)
		case metrics.KindIteration:
			p.addIteration(s)
		case metrics.KindSession:
			p.addSession(s)
		case metrics.KindConnect:
		}
	}
	p.iterationRows.flush(p.iterations)
	p.sessionRows.flush(p.sessions)
	return errors.Join(p.requests.err, p.iterations.err, p.sessions.err)
}

// Close completes all tables. A table that could not be written whole keeps
// its last part under a name that no reader takes for a table.
func (p *Parquet) Close() error {
	return errors.Join(p.requests.close(), p.iterations.close(), p.sessions.close(),
		p.intervals.close(), p.load.close())
}

// rowBuffer collects converted rows and the block that their nullable columns
// point into. Both are reused, so that a row costs no allocation.
type rowBuffer[Row, Nulls any] struct {
	rows  []Row
	nulls [chunkRows]Nulls
}

// next returns an empty row and the block for its nullable columns. The caller
// flushes when full reports true.
func (b *rowBuffer[Row, Nulls]) next() (*Row, *Nulls) {
	var row Row
	if b.rows == nil {
		b.rows = make([]Row, 0, chunkRows)
	}
	b.rows = append(b.rows, row)
	i := len(b.rows) - 1
	return &b.rows[i], &b.nulls[i]
}

func (b *rowBuffer[Row, Nulls]) full() bool { return len(b.rows) == chunkRows }

// flush writes the rows; the table keeps its own error.
func (b *rowBuffer[Row, Nulls]) flush(t *partWriter[Row]) {
	_ = t.write(b.rows)
	b.rows = b.rows[:0]
}

// set stores v in place and returns a pointer to it: the value of a nullable column.
func set[T any](place *T, v T) *T {
	*place = v
	return place
}

// setNonzero is set for columns in which 0 means that there was no such thing.
func setNonzero[T comparable](place *T, v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return set(place, v)
}

var sortByStart = parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("start_offset_ns")))
