package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// learnRows is how many rows tell the columns of JSON.
const learnRows = 100

// textSource reads a text in order.
type textSource struct {
	text   *text
	in     *input
	scan   *scanner
	places *places // nil if it is a pipe
	marks  marks
	passed bool // the marks are complete
}

// openText reads the first block of a text.
func openText(t *text, in *input, wanted []string) (*textSource, *block, error) {
	s := &textSource{text: t, in: in, scan: newScanner(in.reader(), t.framer(), 0, 1, scanBytes), marks: marks{most: lateMarks}}
	if err := t.begin(s.scan, wanted); err != nil {
		return nil, nil, err
	}
	first, err := s.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil, fmt.Errorf("%s has no rows", t.file)
	case err != nil:
		return nil, nil, err
	}
	if !t.csv {
		rows := first.rows.(*textRows)
		few := make([]rawRow, min(first.n, learnRows))
		for k := range few {
			few[k] = rows.row(k)
		}
		if err := t.learn(few, wanted); err != nil {
			return nil, nil, err
		}
	}
	if in.at != nil {
		s.places = newPlaces(t, in)
	}
	return s, first, nil
}

// next waits for a row, and takes what is there besides.
func (s *textSource) next() (*block, error) {
	row, err := s.scan.next()
	rows := &textRows{text: s.text}
	for err == nil {
		if rows.data == nil {
			rows.data = make([]byte, 0, min(blockBytes, len(s.scan.buf)-s.scan.start)+len(row.data))
			rows.line = row.line
		}
		rows.add(row)
		if !s.passed && s.in.at != nil {
			s.marks.note(row)
		}
		if len(rows.data) >= blockBytes {
			break
		}
		row, err = s.scan.buffered()
	}
	switch {
	case len(rows.ends) > 0: // an error comes again
		return &block{n: len(rows.ends), bytes: cap(rows.data) + 8*cap(rows.ends), rows: rows, marks: s.marks}, nil
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	}
	return nil, fmt.Errorf("read %s: %w", s.text.file, err)
}

func (s *textSource) rewind() error {
	s.passed = true
	r := io.NewSectionReader(s.in.at, s.text.header, s.in.size-s.text.header)
	s.scan.reset(r, s.text.header, s.text.line)
	return nil
}

func (s *textSource) late(ctx context.Context, m marks, n int64, dst Row) error {
	if s.places == nil {
		return errLate
	}
	return s.places.fill(ctx, m, n, dst)
}

func (s *textSource) close() error { return s.in.close() }

// textRows is rows of a block.
type textRows struct {
	text *text
	data []byte
	line int64 // of the first
	ends []rowEnd
}

// rowEnd is where a row ends in the data, and its line after the first.
type rowEnd struct {
	at   uint32
	line uint32 // the highest bit marks a row that is too long
}

const longRow = 1 << 31

func (r *textRows) add(row rawRow) {
	r.data = append(r.data, row.data...)
	// Between two rows there may be any number of blank lines; what does not fit
	// is only a line number in a message.
	e := rowEnd{at: uint32(len(r.data)), line: uint32(min(row.line-r.line, longRow-1))} //nolint:gosec // a block is smaller
	if row.long {
		e.line |= longRow
	}
	r.ends = append(r.ends, e)
}

func (r *textRows) row(k int) rawRow {
	from := uint32(0)
	if k > 0 {
		from = r.ends[k-1].at
	}
	e := r.ends[k]
	return rawRow{data: r.data[from:e.at], line: r.line + int64(e.line&^longRow), long: e.line&longRow != 0}
}

func (r *textRows) fill(k int, dst Row) error { return r.text.fill(r.row(k), dst) }
