package feed

import (
	"bytes"
	"errors"
	"io"
)

// maxRow is how long one row may be; a longer one is an error for that row.
const maxRow = 16 << 20

// scanBytes is how much is read at once.
const scanBytes = 256 << 10

// framer finds where rows end. It keeps what it knows of a row between calls, so
// that no byte is looked at twice as a long row comes in.
type framer struct {
	csv   bool
	comma byte

	seen  int // of the first line
	pos   int // of the fields, when the first line has a quote
	state fieldState
}

type fieldState uint8

const (
	fieldStart fieldState = iota
	inPlain
	inQuotes
	afterQuote
	broken // a quote out of place: the row ends with the line
)

// next returns how many bytes of data the first row has with its line's end, 0
// when that is not in data. last tells that nothing comes after data.
//
// A row of CSV goes over the ends of lines in quotes (RFC 4180 §2.6), and, as
// encoding/csv has it, a row with a quote out of place ends with its line.
func (f *framer) next(data []byte, last bool) int {
	n := 0
	if f.pos == 0 {
		n = f.line(data, last)
	}
	if f.pos > 0 || n > 0 && f.csv && bytes.IndexByte(data[:n], '"') >= 0 {
		n = f.fields(data, last)
	}
	if n > 0 {
		f.reset()
	}
	return n
}

func (f *framer) reset() { f.seen, f.pos, f.state = 0, 0, fieldStart }

// line finds the end of the first line.
func (f *framer) line(data []byte, last bool) int {
	if i := bytes.IndexByte(data[f.seen:], '\n'); i >= 0 {
		return f.seen + i + 1
	}
	f.seen = len(data)
	if last {
		return len(data)
	}
	return 0
}

// fields goes through the fields of a row that has a quote.
func (f *framer) fields(data []byte, last bool) int {
	for f.pos < len(data) {
		c := data[f.pos]
		switch f.state {
		case fieldStart:
			f.state = inPlain
			if c == '"' {
				f.state = inQuotes
				f.pos++
			}
			continue
		case inPlain:
			switch c {
			case '"':
				f.state = broken
			case f.comma:
				f.state = fieldStart
			case '\n':
				return f.pos + 1
			}
		case inQuotes:
			i := bytes.IndexByte(data[f.pos:], '"')
			if i < 0 {
				f.pos = len(data)
				continue
			}
			f.pos += i
			f.state = afterQuote
		case afterQuote:
			switch {
			case c == '"':
				f.state = inQuotes
			case c == f.comma:
				f.state = fieldStart
			case c == '\n':
				return f.pos + 1
			case c == '\r' && f.pos+1 == len(data):
				if last {
					return len(data)
				}
				return 0 // look at it again when it is known what follows
			case c == '\r' && data[f.pos+1] == '\n':
				return f.pos + 2
			default:
				f.state = broken
			}
		case broken:
			if i := bytes.IndexByte(data[f.pos:], '\n'); i >= 0 {
				return f.pos + i + 1
			}
			f.pos = len(data)
			continue
		}
		f.pos++
	}
	if last {
		return len(data)
	}
	return 0
}

// rawRow is the text of one row.
type rawRow struct {
	data []byte // without the end of its line; valid until the next call
	off  int64  // where it begins in the file
	line int64  // the line it begins with, from 1
	long bool   // longer than maxRow; data is empty
}

// scanner cuts a text into rows. Blank lines are none.
type scanner struct {
	r      io.Reader
	framer framer
	buf    []byte
	start  int // buf[start:] is not yet used
	off    int64
	line   int64
	last   bool // everything is in buf
	skip   bool // the rest of a line is to be left out
	err    error
	size   int // of the buffer, unless a row is longer
	max    int
}

// newScanner reads r, which is at byte off and line line of a file.
func newScanner(r io.Reader, f framer, off, line int64, size int) *scanner {
	return &scanner{r: r, framer: f, off: off, line: line, buf: make([]byte, 0, size), size: size, max: maxRow}
}

// reset makes s read r.
func (s *scanner) reset(r io.Reader, off, line int64) {
	s.framer.reset()
	*s = scanner{r: r, framer: s.framer, off: off, line: line, buf: s.buf[:0], size: s.size, max: s.max}
}

// errMore says that the next row is not in the buffer.
var errMore = errors.New("more must be read")

// next returns the next row, io.EOF after the last.
func (s *scanner) next() (rawRow, error) {
	for {
		row, err := s.buffered()
		if !errors.Is(err, errMore) {
			return row, err
		}
		s.read()
	}
}

// buffered returns the next row if it can be had without a read, else errMore.
func (s *scanner) buffered() (rawRow, error) {
	for {
		data := s.buf[s.start:]
		if s.skip {
			if !s.leaveOut(data) {
				return rawRow{}, s.more()
			}
			continue
		}
		if s.last && len(data) == 0 {
			return rawRow{}, s.more()
		}
		n := s.framer.next(data, s.last && s.err == nil)
		if n > s.max || n == 0 && len(data) > s.max {
			row := rawRow{off: s.off, line: s.line, long: true}
			s.framer.reset()
			if n == 0 {
				n, s.skip = len(data), true
			}
			s.use(n)
			return row, nil
		}
		if n == 0 {
			return rawRow{}, s.more()
		}
		row := rawRow{data: trimEnd(data[:n]), off: s.off, line: s.line}
		s.use(n)
		if !blank(row.data, s.framer.csv) {
			return row, nil
		}
	}
}

// leaveOut drops up to the end of the line, and reports whether that was there.
func (s *scanner) leaveOut(data []byte) bool {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		s.use(len(data))
		return false
	}
	s.use(i + 1)
	s.skip = false
	return true
}

// more is why there is no row: errMore, or what ended the text.
func (s *scanner) more() error {
	switch {
	case !s.last:
		return errMore
	case s.err != nil:
		return s.err
	}
	return io.EOF
}

func (s *scanner) use(n int) {
	s.line += int64(bytes.Count(s.buf[s.start:s.start+n], []byte{'\n'}))
	s.start += n
	s.off += int64(n)
}

// read does one read, which may wait.
func (s *scanner) read() {
	rest, room := s.buf[s.start:], s.buf[:0]
	switch {
	case len(rest) == cap(s.buf):
		room = make([]byte, 0, max(min(2*len(rest), s.max+s.size), len(rest)+1))
	case cap(s.buf) > 2*s.size && len(rest) < s.size:
		room = make([]byte, 0, s.size) // the long row is over
	}
	if s.start > 0 || cap(room) != cap(s.buf) {
		s.buf, s.start = append(room, rest...), 0
	}
	n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
	s.buf = s.buf[:len(s.buf)+n]
	if err != nil {
		s.last = true
		if !errors.Is(err, io.EOF) {
			s.err = err
		}
	}
}

// trimEnd removes the end of a line, \n or \r\n; also a \r alone, which
// encoding/csv forgives at the end of a file.
func trimEnd(row []byte) []byte {
	n := len(row)
	if n > 0 && row[n-1] == '\n' {
		n--
	} else if n == 0 || row[n-1] != '\r' {
		return row
	}
	if n > 0 && row[n-1] == '\r' {
		n--
	}
	return row[:n]
}

// blank tells a line that is no row: of CSV an empty one, of JSON one of space.
func blank(row []byte, csv bool) bool {
	if csv {
		return len(row) == 0
	}
	return len(bytes.TrimLeft(row, " \t\r\n")) == 0
}
