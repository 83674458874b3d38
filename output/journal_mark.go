package output

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mcpbench/metrics"
)

const (
	// maxMarkBytes and markSpan say when the marks begin anew: a file of them has
	// at least that many bytes and seconds, so that with the other one the last
	// markSpan seconds are always there. Load rows are at most two seconds behind.
	maxMarkBytes = 1 << 20
	markSpan     = 5 * time.Second
	// maxSegmentsOver is how many segments may be on disk besides the backlog: one
	// that is compacted and one that is written.
	maxSegmentsOver = 2
)

// markNames are the two files that marks go to in turn.
var markNames = [2]string{"marks-0.wal", "marks-1.wal"}

// mark is a record that says how far the run and its journal have come. It is what tells a
// recovery of arrivals that wait and of rows that were there and are gone.
type mark struct {
	runID        string
	at           time.Duration // of the reading; 0 before the first
	segments     []segmentMark // the latest, in order; the last one is being written
	groups       []metrics.Gauges
	warmup       []int64 // by group: arrivals until the first reading after the warm-up
	unjournalled int64   // connects for which there was no room
	tallies      metrics.Tallies
}

// segmentMark is what a segment holds.
type segmentMark struct {
	number  int
	bytes   int64
	last    int64 // where the last write began: a torn write can take no more
	records uint32
}

func appendMark(dst []byte, m *mark) []byte {
	dst = append(dst, byte(recordMark))
	dst = appendText(dst, m.runID)
	dst = binary.AppendVarint(dst, int64(m.at))
	dst = binary.AppendVarint(dst, m.unjournalled)
	dst = binary.AppendUvarint(dst, uint64(len(m.segments)))
	for _, s := range m.segments {
		for _, n := range [...]int64{int64(s.number), s.bytes, s.last, int64(s.records)} {
			dst = binary.AppendVarint(dst, n)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(m.groups)))
	for i := range m.groups {
		g := &m.groups[i]
		for _, n := range [...]int64{
			g.Intended, g.Started, g.Completed, g.Dropped,
			int64(g.SessionsWanted), int64(g.SessionsActive), int64(g.SessionsConnecting), int64(g.InFlight),
		} {
			dst = binary.AppendVarint(dst, n)
		}
	}
	return appendTallies(appendCounts(dst, m.warmup), &m.tallies)
}

// mark decodes what appendMark wrote after the kind.
func (d *decoder) mark() (*mark, error) {
	m := &mark{runID: d.text(), at: d.duration(), unjournalled: d.varint()}
	for range d.count() {
		m.segments = append(m.segments, segmentMark{
			number: int(d.varint()), bytes: d.varint(), last: d.varint(), records: uint32(d.varint()), //nolint:gosec // written from these types
		})
	}
	for range d.count() {
		m.groups = append(m.groups, metrics.Gauges{
			Intended: d.varint(), Started: d.varint(), Completed: d.varint(), Dropped: d.varint(),
			SessionsWanted: int(d.varint()), SessionsActive: int(d.varint()),
			SessionsConnecting: int(d.varint()), InFlight: int(d.varint()),
		})
	}
	m.warmup = d.counts()
	m.tallies = d.tallies()
	return m, d.err
}

// marker writes the marks of a journal.
type marker struct {
	journal *journal
	mark    mark
	keep    int // segments that a mark names: all that may be on disk
	file    *segment
	turn    int           // which of markNames file is
	since   time.Duration // at of the first mark in file
	frames  frameBuilder
}

// begin notes a segment that is about to be made.
func (m *marker) begin(number int) error {
	s := m.mark.segments
	if len(s) >= m.keep {
		s = s[:copy(s, s[1:])]
	}
	m.mark.segments = append(s, segmentMark{number: number})
	return m.write()
}

// wrote notes what came into the segment at hand.
func (m *marker) wrote(s *segment, from int64) {
	at := &m.mark.segments[len(m.mark.segments)-1]
	at.last, at.bytes, at.records = from, s.bytes, s.records
}

// read takes a reading of the gauges.
func (m *marker) read(at time.Duration, groups []metrics.Gauges) error {
	m.mark.at = at
	m.mark.groups = append(m.mark.groups[:0], groups...)
	if m.mark.warmup == nil && at >= m.journal.meta.Warmup {
		for i := range groups {
			m.mark.warmup = append(m.mark.warmup, groups[i].Intended)
		}
	}
	if m.file != nil && m.file.bytes >= maxMarkBytes && at-m.since >= markSpan {
		if err := m.change(); err != nil {
			return err
		}
	}
	return m.write()
}

// change goes over to the other file, whose marks are old.
func (m *marker) change() error {
	if err := m.close(); err != nil {
		return err
	}
	m.turn = 1 - m.turn
	path := filepath.Join(m.journal.dir, markNames[m.turn])
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("begin the journal's marks anew: %w", err)
	}
	return nil
}

func (m *marker) write() error {
	if m.file == nil {
		file, err := m.journal.open(markNames[m.turn])
		if err != nil {
			return err
		}
		m.file, m.since = file, m.mark.at
	}
	m.frames.reset(m.file.records)
	m.frames.begin()
	m.frames.buf = appendMark(m.frames.buf, &m.mark)
	return m.file.append(&m.frames)
}

func (m *marker) close() error {
	s := m.file
	if s == nil {
		return nil
	}
	m.file = nil
	if err := s.file.Close(); err != nil {
		return writeError(s.path, err)
	}
	return nil
}
