// Package sse reads a stream of server-sent events as it arrives.
package sse

import (
	"bytes"
	"errors"
	"io"
	"time"
)

// ErrTooLong is an event with more bytes than the reader's limit.
var ErrTooLong = errors.New("event is longer than the limit")

// Event is one block of fields. Blocks without data are returned too, because
// their id and retry count.
type Event struct {
	Name  string // event field, "" when there is none
	Data  []byte // data fields joined by newlines; valid until the next call of Next
	ID    string // id field
	HasID bool   // the block had an id field, possibly an empty one
	// Retry is the reconnection time of the block; negative when it gave none.
	Retry time.Duration
	// First and Last are when the block's first field and its last byte were read,
	// by Reader.Clock; 0 without one.
	First, Last time.Duration
}

// Reader splits a stream into events by the rules of the WHATWG HTML standard,
// section 9.2.6: lines end in LF, CR or CRLF; a leading byte order mark and
// comments are skipped; one space after the colon is dropped; an id with a NUL
// and a retry that is not all digits are ignored; a last block that no blank
// line ends is discarded. Not safe for concurrent use.
type Reader struct {
	// Clock, if set, stamps what is read. Reset takes it away.
	Clock func() time.Duration

	src   io.Reader
	limit int

	buf      []byte // what was read and not consumed is buf[pos:end]
	pos, end int
	pending  error // from src, returned when the buffer is used up
	skipLF   bool  // the last line ended in CR: a LF that follows belongs to it
	started  bool
	line     []byte // the part of a line that did not fit one read
	data     []byte
	size     int           // bytes of the current block
	midLine  bool          // after ErrTooLong: the end of the line was not read
	filled   time.Duration // when src was last read
	lineAt   time.Duration // when the beginning of the current line was read
}

// bufferSize suits events of a few hundred bytes; longer lines are collected apart.
const bufferSize = 4096

// keepBytes is how large the collecting buffers may stay between events.
const keepBytes = 64 << 10

// NewReader returns a reader of src that refuses blocks of more than limit bytes.
func NewReader(src io.Reader, limit int) *Reader {
	return &Reader{src: src, limit: limit, buf: make([]byte, bufferSize)}
}

// Reset makes the reader one of src, as new, but for its buffers.
func (r *Reader) Reset(src io.Reader, limit int) {
	*r = Reader{src: src, limit: limit, buf: r.buf, line: shrink(r.line), data: shrink(r.data)}
}

// Next returns the next block that has any field. At the end of the source it
// returns the source's error, io.EOF for a clean end.
func (r *Reader) Next() (Event, error) {
	ev := Event{Retry: -1}
	r.data = shrink(r.data)
	r.size = 0
	hasData, hasField := false, false
	for {
		line, err := r.readLine()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if hasField {
				ev.Data, ev.Last = r.data, r.filled
				return ev, nil
			}
			r.size = 0 // a comment alone makes no block
			continue
		}
		if line[0] == ':' {
			r.size -= len(line) // heartbeats may go on for hours
			continue
		}
		field, value := splitField(line)
		if !hasField {
			hasField, ev.First = true, r.lineAt
		}
		switch string(field) {
		case "data":
			if hasData {
				r.data = append(r.data, '\n')
			}
			r.data = append(r.data, value...)
			hasData = true
		case "event":
			ev.Name = eventName(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				ev.ID, ev.HasID = string(value), true
			}
		case "retry":
			if ms, ok := digits(value); ok {
				ev.Retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// eventName spares the usual name an allocation.
func eventName(value []byte) string {
	const usual = "message"
	if string(value) == usual {
		return usual
	}
	return string(value)
}

func splitField(line []byte) (field, value []byte) {
	field, value, _ = bytes.Cut(line, []byte{':'})
	value, _ = bytes.CutPrefix(value, []byte{' '})
	return field, value
}

// digits reads a number of ASCII digits, at most ten of them.
func digits(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 10 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// readLine returns the next line without its end; it is valid until the next call.
func (r *Reader) readLine() ([]byte, error) {
	r.line = shrink(r.line)
	for begun := false; ; begun = true {
		chunk, whole, err := r.readPart()
		if err != nil {
			return nil, err
		}
		if !begun {
			r.lineAt = r.filled
		}
		if r.size += len(chunk); r.size > r.limit || !whole {
			r.line = append(r.line, chunk...)
			if r.size > r.limit {
				r.midLine = !whole
				return nil, ErrTooLong
			}
			continue
		}
		line := chunk
		if len(r.line) > 0 {
			r.line = append(r.line, line...)
			line = r.line
		}
		return r.trimMark(line), nil
	}
}

// trimMark drops the byte order mark that may precede the first line.
func (r *Reader) trimMark(line []byte) []byte {
	if !r.started {
		r.started = true
		line, _ = bytes.CutPrefix(line, []byte("\xEF\xBB\xBF"))
	}
	return line
}

func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

func (r *Reader) fill() error {
	for r.pending == nil {
		n, err := r.src.Read(r.buf)
		if r.Clock != nil {
			r.filled = r.Clock()
		}
		r.pos, r.end = 0, n
		r.pending = err
		if n > 0 {
			return nil
		}
	}
	return r.pending
}

func shrink(b []byte) []byte {
	if cap(b) > keepBytes {
		return nil
	}
	return b[:0]
}
