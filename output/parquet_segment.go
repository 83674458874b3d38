package output

import (
	"errors"
	"fmt"
	"slices"

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
// the columns of the tables that are written by columns.
type tableBlock struct {
	pending    []metrics.Sample
	order      orderBuffer
	requests   requestColumns
	iterations iterationColumns
	encoder    histEncoder
}

// add keeps a request for the row group at hand. A small run does not take the
// memory of a whole one, and a long run does not get there by doubling it.
func (b *tableBlock) add(s *metrics.Sample, groupRows int) {
	const small = 8 << 10
	if n := len(b.pending); n == small && n < groupRows {
		b.pending = slices.Grow(b.pending, groupRows-n)
	}
	b.pending = append(b.pending, *s)
	b.order.add(s.Start)
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
	requests, iterations := &t.block.requests, &t.block.iterations
	requests.catalog, requests.run, requests.t0 = m.Catalog, m.RunID, m.T0
	iterations.catalog = m.Catalog
	if t.requests != nil {
		requests.prepare()
	}
	if t.iterations != nil {
		iterations.prepare()
	}
	return nil
}

// open opens the part of a table when its first row comes.
func open[T any](t *segmentTables, place **part[T], table string) (*part[T], error) {
	if *place == nil {
		p, err := newPart[T](&t.config, table, t.number, t.columns(table))
		if err != nil {
			return nil, err
		}
		*place = p
		t.parts = append(t.parts, p)
	}
	return *place, nil
}

// columns returns those of a table that has a row for each request, nil for others.
func (t *segmentTables) columns(table string) columnTable {
	switch table {
	case "requests":
		return &t.block.requests
	case "iterations":
		return &t.block.iterations
	}
	return nil
}

func (t *segmentTables) openRequests() (*part[requestRow], error) {
	return open(t, &t.requests, "requests")
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
		t.block.add(s, int(t.config.groupRows))
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
		t.block.iterations.set(p.rows.inPage, s)
		return p.add(1)
	case metrics.KindSession:
		if s.Extra == nil || s.Extra.Session == nil {
			return nil // by contract it is there
		}
		p, err := open(t, &t.sessions, "sessions")
		if err != nil {
			return err
		}
		t.rows.Sessions++
		var row sessionRow
		fillSession(&row, s)
		return p.write(row)
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
	return p.write(row)
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
	return p.write(row)
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
	b.pending = b.pending[:0]
	b.order.empty()
	clear(b.pending[:cap(b.pending)]) // lets go of what the samples pointed to
}
