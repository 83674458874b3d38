package feed

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

var (
	errBare  = errors.New(`a quote within a field that does not begin with one; put the field in quotes and write "" for each quote`)
	errQuote = errors.New(`text after the quote that ends a field; write "" for a quote within one`)
	errOpen  = errors.New("a quote that is never closed")
)

// fillCSV adds the fields of a row to dst.
func (t *text) fillCSV(row []byte, dst Row) error {
	// All fields are parts of one string, unless few of many are wanted.
	var whole string
	if 2*len(t.columns) >= len(t.names) {
		whole = string(row)
	}
	at, fields := 0, 0
	for at >= 0 {
		from, to, next, err := nextField(row, at, t.comma)
		if err != nil {
			return fmt.Errorf("field %d: %w", fields+1, err)
		}
		if fields < len(t.names) && t.names[fields] != "" {
			var value string
			if whole != "" {
				value = whole[from:to]
			} else {
				value = string(row[from:to])
			}
			if from > at {
				value = unquote(value)
			}
			dst[t.names[fields]] = value
		}
		fields++
		at = next
	}
	if fields != len(t.names) {
		return fmt.Errorf("the row has %s, the line of names %d", count(fields, "field"), len(t.names))
	}
	return nil
}

// splitCSV returns all fields of a row.
func splitCSV(row []byte, comma byte) ([]string, error) {
	var fields []string
	for at := 0; at >= 0; {
		from, to, next, err := nextField(row, at, comma)
		if err != nil {
			return nil, fmt.Errorf("field %d: %w", len(fields)+1, err)
		}
		value := string(row[from:to])
		if from > at {
			value = unquote(value)
		}
		fields = append(fields, value)
		at = next
	}
	return fields, nil
}

// nextField finds the field that begins at byte at: its text is row[from:to],
// which is in quotes when from > at, and the next field begins at next, -1 after
// the last.
func nextField(row []byte, at int, comma byte) (from, to, next int, err error) {
	if at == len(row) || row[at] != '"' {
		to, next = len(row), -1
		if i := bytes.IndexByte(row[at:], comma); i >= 0 {
			to, next = at+i, at+i+1
		}
		if bytes.IndexByte(row[at:to], '"') >= 0 {
			return 0, 0, 0, errBare
		}
		return at, to, next, nil
	}
	from = at + 1
	for to = from; ; to += 2 {
		i := bytes.IndexByte(row[to:], '"')
		if i < 0 {
			return 0, 0, 0, errOpen
		}
		to += i
		switch {
		case to+1 == len(row):
			return from, to, -1, nil
		case row[to+1] == comma:
			return from, to, to + 2, nil
		case row[to+1] != '"':
			return 0, 0, 0, errQuote
		}
	}
}

// unquote is the value of what is between quotes. As encoding/csv has it, the
// end of a line in it is \n.
func unquote(s string) string {
	if strings.Contains(s, `""`) {
		s = strings.ReplaceAll(s, `""`, `"`)
	}
	if strings.Contains(s, "\r\n") {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	return s
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
