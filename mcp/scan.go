package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// scanner walks the members of one JSON object without decoding their values.
// It relies on the object being valid JSON; on anything else it stops early but
// stays within bounds.
type scanner struct {
	data []byte
	pos  int
}

// member is one member of an object. Start and end delimit its value in the
// data; at is where its key begins.
type member struct {
	key            []byte
	at, start, end int
}

func scanObject(data []byte) scanner {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return scanner{data: data, pos: len(data)}
	}
	return scanner{data: data, pos: i + 1}
}

// next returns the next member; ok is false at the end of the object.
func (s *scanner) next() (m member, ok bool) {
	d := s.data
	i := skipSpace(d, s.pos)
	if i < len(d) && d[i] == ',' {
		i = skipSpace(d, i+1)
	}
	if i >= len(d) || d[i] != '"' {
		return member{}, false
	}
	m.at = i
	end := skipString(d, i)
	if end < 0 {
		return member{}, false
	}
	m.key = d[i+1 : end-1]
	i = skipSpace(d, end)
	if i >= len(d) || d[i] != ':' {
		return member{}, false
	}
	m.start = skipSpace(d, i+1)
	m.end = skipValue(d, m.start)
	if m.end < 0 {
		return member{}, false
	}
	s.pos = m.end
	return m, true
}

// named reports whether the member's key is name, also when it is written with escapes.
func (m *member) named(name string) bool {
	if string(m.key) == name {
		return true
	}
	return bytes.IndexByte(m.key, '\\') >= 0 && string(m.unescaped()) == name
}

// unescaped returns the key with its escapes resolved.
func (m *member) unescaped() []byte {
	var key string
	if json.Unmarshal(slices.Concat([]byte{'"'}, m.key, []byte{'"'}), &key) != nil {
		return nil
	}
	return []byte(key)
}

// lookup returns the raw value of a member of the JSON object data, or nil. Of
// equal keys the last one counts, as in encoding/json.
func lookup(data []byte, name string) json.RawMessage {
	var value []byte
	s := scanObject(data)
	for m, ok := s.next(); ok; m, ok = s.next() {
		if m.named(name) {
			value = data[m.start:m.end]
		}
	}
	return value
}

// lookupString returns the string that a member of the JSON object data holds.
func lookupString(data []byte, name string) (string, bool) {
	return text(lookup(data, name))
}

// text returns the string that a JSON value is.
func text(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if inner := raw[1 : len(raw)-1]; isPlain(inner) {
		return string(inner), true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// isPlain reports whether b stands for itself between quotes.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func skipSpace(d []byte, i int) int {
	for i < len(d) && (d[i] == ' ' || d[i] == '\n' || d[i] == '\r' || d[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index after the string that begins at i, or -1.
func skipString(d []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(d[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for d[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// skipValue returns the index after the value that begins at i, or -1.
func skipValue(d []byte, i int) int {
	if i >= len(d) {
		return -1
	}
	switch d[i] {
	case '"':
		return skipString(d, i)
	case '{', '[':
		return skipNested(d, i)
	}
	start := i
	for i < len(d) && strings.IndexByte(",]} \n\r\t", d[i]) < 0 {
		i++
	}
	if i == start || i == len(d) {
		return -1 // nothing there, or possibly cut short
	}
	return i
}

func skipNested(d []byte, i int) int {
	depth := 0
	for i < len(d) {
		switch d[i] {
		case '"':
			if i = skipString(d, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// excerpt returns the beginning of data for a message to a user: at most 200
// bytes, valid UTF-8.
func excerpt(data []byte) string {
	const size = 200
	data = bytes.TrimSpace(data)
	if len(data) > size {
		return string(bytes.ToValidUTF8(data[:size], nil)) + "…"
	}
	return string(bytes.ToValidUTF8(data, []byte("\uFFFD")))
}
