package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
)

// Bounds of the index of a text: 4 MiB where every row is found by it, 512 KiB
// for those that come late to a stream.
const (
	maxMarks  = 1 << 18
	lateMarks = 1 << 15
)

// mark is where a row begins.
type mark struct{ off, line int64 }

// marks is the index of a text: where every step-th row begins. Copies may be
// read while the original grows.
type marks struct {
	most int // of at
	at   []mark
	step int64
	rows int64 // that were noted
}

// note takes the next row. The step doubles when there are too many marks.
func (m *marks) note(row rawRow) {
	if m.step == 0 {
		m.step = 1
	}
	if m.rows%m.step == 0 {
		m.at = append(m.at, mark{row.off, row.line})
	}
	m.rows++
	if len(m.at) <= m.most {
		return
	}
	half := make([]mark, 0, m.most)
	for i := 0; i < len(m.at); i += 2 {
		half = append(half, m.at[i])
	}
	m.at, m.step = half, 2*m.step
}

// places reads rows at any place of a text.
type places struct {
	text *text
	held []byte // the whole text, if it is held
	src  io.ReaderAt
	size int64
	// cursors bounds how many read src at once, and so the memory.
	cursors chan *cursor
}

// cursor reads from one place to the next mark.
type cursor struct {
	scanner scanner
	src     io.ReaderAt
	at, end int64
}

const cursorBytes = 64 << 10

func newPlaces(t *text, in *input) *places {
	p := &places{text: t, held: in.held, src: in.at, size: in.size}
	if in.held != nil {
		return p
	}
	p.cursors = make(chan *cursor, min(2*runtime.GOMAXPROCS(0), 16))
	for range cap(p.cursors) {
		c := &cursor{src: in.at}
		c.scanner = *newScanner(c, t.framer(), 0, 1, cursorBytes)
		p.cursors <- c
	}
	return p
}

// Read implements io.Reader.
func (c *cursor) Read(b []byte) (int, error) {
	if c.at >= c.end {
		return 0, io.EOF
	}
	n, err := c.src.ReadAt(b[:min(int64(len(b)), c.end-c.at)], c.at)
	c.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// fill adds the values of row n to dst; m has at least n+1 rows.
func (p *places) fill(ctx context.Context, m marks, n int64, dst Row) error {
	k := n / m.step
	from, end := m.at[k], p.size
	if p.held != nil {
		s := scanner{framer: p.text.framer(), buf: p.held[from.off:end], off: from.off, line: from.line, last: true, max: maxRow}
		return p.scan(&s, n%m.step, dst)
	}
	if k+1 < int64(len(m.at)) {
		end = m.at[k+1].off
	}
	var c *cursor
	select {
	case c = <-p.cursors:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { p.cursors <- c }()
	c.at, c.end = from.off, end
	c.scanner.reset(c, from.off, from.line)
	return p.scan(&c.scanner, n%m.step, dst)
}

// scan leaves out some rows and takes the next.
func (p *places) scan(s *scanner, leave int64, dst Row) error {
	for {
		row, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%s is shorter than when it was opened", p.text.file)
		case err != nil:
			return fmt.Errorf("read %s: %w", p.text.file, err)
		case leave == 0:
			return p.text.fill(row, dst)
		}
		leave--
	}
}

// table is a text of which all rows were noted.
type table struct {
	places *places
	marks  marks
	in     *input
}

func (t *table) fill(ctx context.Context, n int64, dst Row) error {
	if n >= t.marks.rows {
		return io.EOF
	}
	return t.places.fill(ctx, t.marks, n, dst)
}

func (t *table) rows() int64 { return t.marks.rows }

func (t *table) close() error { return t.in.close() }

// newTable goes through the text once.
func newTable(ctx context.Context, t *text, in *input, wanted []string) (*table, error) {
	s := newScanner(in.reader(), t.framer(), 0, 1, scanBytes)
	if err := t.begin(s, wanted); err != nil {
		return nil, err
	}
	m := marks{most: maxMarks}
	var first []rawRow
	for {
		row, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", t.file, err)
		}
		if m.rows&0xffff == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		m.note(row)
		if !t.csv && len(first) < learnRows {
			row.data = append([]byte(nil), row.data...)
			first = append(first, row)
		}
	}
	if m.rows == 0 {
		return nil, fmt.Errorf("%s has no rows", t.file)
	}
	if !t.csv {
		if err := t.learn(first, wanted); err != nil {
			return nil, err
		}
	}
	return &table{places: newPlaces(t, in), marks: m, in: in}, nil
}
