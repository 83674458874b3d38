package output

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go"

	"mcpbench/metrics"
)

// openPart is a part of any table.
type openPart interface {
	complete() error
	publish() error
	abandon()
	discard()
}

// segmentTables turns the records of one journal segment into one part of each
// table, all numbered like the segment: writing a segment twice replaces its
// parts, and never adds a row. The parts get their final names together, once
// all of them are complete.
type segmentTables struct {
	folder string
	number int
	runID  string             // "" takes that of the first metadata
	block  *tableBlock        // what is reused from segment to segment
	step   func(string) error // see compactSegment; nil but in tests

	catalog *metrics.Catalog // nil before the first metadata
	t0      int64            // Unix microseconds
	config  tableConfig
	parts   []openPart
	rows    TableRows

	requests   *part[requestRow]
	iterations *part[iterationRow]
	sessions   *part[sessionRow]
	intervals  *part[intervalRow]
	load       *part[loadRow]
}

// TableRows counts the rows of the tables.
type TableRows struct {
	Requests, Iterations, Sessions, Intervals, Load int64
}

func (r *TableRows) add(more TableRows) {
	r.Requests += more.Requests
	r.Iterations += more.Iterations
	r.Sessions += more.Sessions
	r.Intervals += more.Intervals
	r.Load += more.Load
}

// tableBlock holds the memory of one compaction: one row group of samples and
// the rows of one chunk.
type tableBlock struct {
	pending       []metrics.Sample
	order         []orderKey
	checks        []checkRow
	requestRows   rowBuffer[requestRow, requestNulls]
	iterationRows rowBuffer[iterationRow, iterationNulls]
	sessionRows   rowBuffer[sessionRow, sessionNulls]
	encoder       histEncoder
}

// errForeign says that a segment belongs elsewhere.
var errForeign = errors.New("not a segment of this run")

// meta takes the metadata. That of a run changes only before its first sample.
func (t *segmentTables) meta(m *journalMeta) error {
	if t.runID != "" && m.RunID != t.runID {
		return fmt.Errorf("%w: it is of run %s, not %s", errForeign, m.RunID, t.runID)
	}
	if m.Segment != t.number {
		return fmt.Errorf("%w: it is segment %d, not %d", errForeign, m.Segment, t.number)
	}
	return t.use(m)
}

// use begins with metadata, from the segment itself or of the run.
func (t *segmentTables) use(m *journalMeta) error {
	config, err := tablesOf(t.folder, m)
	if err != nil {
		return err
	}
	t.config, t.catalog, t.t0, t.runID = config, m.Catalog, m.T0, m.RunID
	return nil
}

// open opens the part of a table when its first row comes.
func open[T any](t *segmentTables, place **part[T], table string, options ...parquet.WriterOption) (*part[T], error) {
	if *place == nil {
		p, err := newPart[T](t.config, table, t.number, options...)
		if err != nil {
			return nil, err
		}
		*place = p
		t.parts = append(t.parts, p)
	}
	return *place, nil
}

func (t *segmentTables) openRequests() (*part[requestRow], error) {
	return open(t, &t.requests, "requests", sortByStart, noBounds)
}

// openAll opens every table, so that one without rows still leaves its schema.
func (t *segmentTables) openAll() error {
	_, e1 := t.openRequests()
	_, e2 := open(t, &t.iterations, "iterations")
	_, e3 := open(t, &t.sessions, "sessions")
	_, e4 := open(t, &t.intervals, "intervals")
	_, e5 := open(t, &t.load, "load")
	return errors.Join(e1, e2, e3, e4, e5)
}

func (t *segmentTables) sample(s *metrics.Sample) error {
	switch s.Kind {
	case metrics.KindStep:
		t.block.pending = append(t.block.pending, *s)
		t.rows.Requests++
		if int64(len(t.block.pending)) == t.config.groupRows {
			return t.writeGroup()
		}
		return nil
	case metrics.KindIteration:
		p, err := open(t, &t.iterations, "iterations")
		if err != nil {
			return err
		}
		t.rows.Iterations++
		row, nulls := t.block.iterationRows.next()
		fillIteration(row, nulls, s, t.catalog)
		return t.block.iterationRows.written(p)
	case metrics.KindSession:
		if s.Extra == nil || s.Extra.Session == nil {
			return nil // by contract it is there
		}
		p, err := open(t, &t.sessions, "sessions")
		if err != nil {
			return err
		}
		t.rows.Sessions++
		row, nulls := t.block.sessionRows.next()
		fillSession(row, nulls, s)
		return t.block.sessionRows.written(p)
	case metrics.KindConnect:
	}
	return nil
}

func (t *segmentTables) interval(v *metrics.Interval) error {
	p, err := open(t, &t.intervals, "intervals")
	if err != nil {
		return err
	}
	t.rows.Intervals++
	var row intervalRow
	if err := fillInterval(&row, v, t.catalog, &t.block.encoder); err != nil {
		return fmt.Errorf("write %s: %w", p.path, err)
	}
	p.write([]intervalRow{row})
	return p.err
}

func (t *segmentTables) loadRow(v *metrics.LoadRow) error {
	p, err := open(t, &t.load, "load")
	if err != nil {
		return err
	}
	t.rows.Load++
	var row loadRow
	if err := fillLoad(&row, v, t.catalog, &t.block.encoder); err != nil {
		return fmt.Errorf("write %s: %w", p.path, err)
	}
	p.write([]loadRow{row})
	return p.err
}

// before is called before each step that a kill may prevent.
func (t *segmentTables) before(step string) error {
	if t.step == nil {
		return nil
	}
	return t.step(step)
}

// complete writes what is pending and makes all parts whole.
func (t *segmentTables) complete() error {
	if len(t.block.pending) > 0 {
		if err := t.writeGroup(); err != nil {
			return err
		}
	}
	if t.iterations != nil {
		t.block.iterationRows.flush(t.iterations)
	}
	if t.sessions != nil {
		t.block.sessionRows.flush(t.sessions)
	}
	for _, p := range t.parts {
		if err := t.before("complete a part"); err != nil {
			return err
		}
		if err := p.complete(); err != nil {
			return err
		}
	}
	return nil
}

// publish gives the complete parts their names.
func (t *segmentTables) publish() error {
	for _, p := range t.parts {
		if err := t.before("publish a part"); err != nil {
			return err
		}
		if err := p.publish(); err != nil {
			return err
		}
	}
	return nil
}

// discard removes the parts that have no final name yet.
func (t *segmentTables) discard() {
	for _, p := range t.parts {
		p.discard()
	}
}

// end closes what is open and empties the block for the next segment. It must
// always be called.
func (t *segmentTables) end() {
	for _, p := range t.parts {
		p.abandon()
	}
	b := t.block
	clear(b.pending) // lets go of what the samples point to
	b.pending = b.pending[:0]
	b.requestRows.rows, b.iterationRows.rows, b.sessionRows.rows = b.requestRows.rows[:0], b.iterationRows.rows[:0], b.sessionRows.rows[:0]
	b.checks = b.checks[:0]
}

// rowBuffer collects converted rows and the block that their nullable columns
// point into. Both are reused, so that a row costs no allocation.
type rowBuffer[Row, Nulls any] struct {
	rows  []Row
	nulls [chunkRows]Nulls
}

// next returns an empty row and the block for its nullable columns. written
// follows each.
func (b *rowBuffer[Row, Nulls]) next() (*Row, *Nulls) {
	var row Row
	if b.rows == nil {
		b.rows = make([]Row, 0, chunkRows)
	}
	b.rows = append(b.rows, row)
	i := len(b.rows) - 1
	return &b.rows[i], &b.nulls[i]
}

// written flushes a full buffer.
func (b *rowBuffer[Row, Nulls]) written(p *part[Row]) error {
	if len(b.rows) == chunkRows {
		b.flush(p)
	}
	return p.err
}

// flush writes the rows; the part keeps its own error.
func (b *rowBuffer[Row, Nulls]) flush(p *part[Row]) {
	p.write(b.rows)
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

// noBounds leaves the least and greatest value of each page of columns that
// hold names out of the page index: they are the same in nearly every page, and
// finding them takes an eighth of the time of a compaction.
var noBounds = skipBounds("run_id", "group", "flow", "step", "protocol_version", "transport", "method", "name", "outcome", "error_message")

// skipBounds is parquet.SkipPageBounds for some columns.
func skipBounds(columns ...string) parquet.WriterOption {
	options := make([]parquet.WriterOption, len(columns))
	for i, c := range columns {
		options[i] = parquet.SkipPageBounds(c)
	}
	return bounds(options)
}

type bounds []parquet.WriterOption

// ConfigureWriter applies the options.
func (b bounds) ConfigureWriter(c *parquet.WriterConfig) {
	for _, o := range b {
		o.ConfigureWriter(c)
	}
}

var sortByStart = parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("start_offset_ns")))
