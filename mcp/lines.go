package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

// oneLine makes a message fit one line: in valid JSON line breaks stand only
// between tokens, where a space does as well.
func oneLine(message []byte) []byte {
	for _, end := range []byte{'\n', '\r'} {
		for rest := message; ; {
			i := bytes.IndexByte(rest, end)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
	return message
}

const (
	readBuffer = 64 << 10
	// tailBytes is how much of the end of an oversized line is kept to tell whose answer it was.
	tailBytes = 256
)

// stampedReader notes when the bytes last read arrived.
type stampedReader struct {
	r   io.Reader
	now func() time.Duration
	at  time.Duration
}

func (s *stampedReader) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.at = s.now()
	return n, err
}

// lineReader reads lines of bounded length in bounded memory.
type lineReader struct {
	src   *stampedReader
	br    *bufio.Reader
	limit int64
	line  []byte // of the current line what fits the limit
}

// textLine is one line without its end, valid until the next one is read.
type textLine struct {
	text       []byte
	tail       []byte // of an oversized line: its last bytes; text is its beginning
	oversized  bool
	inArray    bool          // each of its messages is one of several
	first, end time.Duration // arrival of its first and of its last byte
}

func newLineReader(r io.Reader, limit int64, now func() time.Duration) *lineReader {
	src := &stampedReader{r: r, now: now}
	return &lineReader{src: src, br: bufio.NewReaderSize(src, readBuffer), limit: limit}
}

// next returns the next line, also a last one without a line feed.
func (l *lineReader) next() (textLine, error) {
	if _, err := l.br.Peek(1); err != nil {
		return textLine{}, err
	}
	t := textLine{first: l.src.at}
	if cap(l.line) > 1<<20 {
		l.line = nil
	}
	l.line = l.line[:0]
	for {
		part, err := l.br.ReadSlice('\n')
		t.end = l.src.at
		switch {
		case err == nil && len(l.line) == 0 && int64(len(part)) <= l.limit+1:
			t.text = trimEnd(part) // the usual case: no copy
			return t, nil
		case !t.oversized && int64(len(l.line)+len(part)) <= l.limit+1:
			l.line = append(l.line, part...)
		default:
			if !t.oversized {
				t.oversized = true
				fits := min(int(l.limit)-len(l.line), len(part))
				l.line = append(l.line, part[:max(0, fits)]...)
				t.tail = append(t.tail, l.line[max(0, len(l.line)-tailBytes):]...)
				part = part[max(0, fits):]
			}
			t.tail = append(t.tail, part[max(0, len(part)-tailBytes):]...)
			t.tail = t.tail[max(0, len(t.tail)-tailBytes):]
		}
		if err == nil || !errors.Is(err, bufio.ErrBufferFull) {
			t.text = trimEnd(l.line)
			if errors.Is(err, io.EOF) {
				err = nil // the next call says so
			}
			return t, err
		}
	}
}

func trimEnd(b []byte) []byte { return bytes.TrimRight(b, "\r\n") }
