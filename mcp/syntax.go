package mcp

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/bits"
)

// maxDepth is how deep objects and arrays may nest, the same as in encoding/json.
const maxDepth = 10000

// span is a part of some text; the zero span is no part.
type span struct{ start, end int }

func (s span) in(text []byte) []byte {
	if s.end == 0 {
		return nil
	}
	return text[s.start:s.end]
}

var errNotObject = errors.New("not a JSON object")

// decodeMessage splits one JSON object into the members JSON-RPC knows, and
// checks all of it, in one pass. Keys are matched exactly, other members are
// ignored, of equal keys the last counts. It accepts what encoding/json does.
func decodeMessage(data []byte) (message, error) {
	var m message
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return message{}, syntaxError(data)
	}
	end := m.object(data, i)
	if end < 0 || skipSpace(data, end) != len(data) {
		return message{}, syntaxError(data)
	}
	return m, nil
}

// syntaxError returns what is wrong with text that is no JSON object.
func syntaxError(data []byte) error {
	var v json.RawMessage
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	return errNotObject
}

// object reads the message that begins at i and returns the index after it, or -1.
func (m *message) object(d []byte, i int) int {
	w := walker{data: d, pos: i + 1}
	for w.next() {
		key := member{key: d[w.key.start:w.key.end]}
		var end int
		slot := m.slot(&key)
		if slot == &m.result {
			end = m.resultValue(d, w.pos)
		} else {
			end = valueEnd(d, w.pos, 1)
		}
		if end < 0 {
			return -1
		}
		if slot != nil {
			*slot = d[w.pos:end]
		}
		w.pos = end
	}
	return w.end
}

// resultValue reads the result that begins at i and notes the members that
// decide what it means. It returns the index after it, or -1.
func (m *message) resultValue(d []byte, i int) int {
	m.isError, m.resultType = span{}, span{}
	if i >= len(d) || d[i] != '{' {
		return valueEnd(d, i, 1)
	}
	w := walker{data: d, pos: i + 1}
	for w.next() {
		end := valueEnd(d, w.pos, 2)
		if end < 0 {
			return -1
		}
		key := member{key: d[w.key.start:w.key.end]}
		switch {
		case key.named("isError"):
			m.isError = span{w.pos - i, end - i}
		case key.named("resultType"):
			m.resultType = span{w.pos - i, end - i}
		}
		w.pos = end
	}
	return w.end
}

// walker goes through the members of an object and checks all but their values,
// which its user reads: from pos, which the user then moves behind it.
type walker struct {
	data  []byte
	pos   int
	key   span // without its quotes
	begun bool
	end   int // after the last next: the index after the object, or -1
}

// next moves to the value of the next member; false at the end of the object or
// when it is malformed.
func (w *walker) next() bool {
	d := w.data
	w.end = -1
	i := skipSpace(d, w.pos)
	if i >= len(d) {
		return false
	}
	switch {
	case d[i] == '}':
		w.end = i + 1
		return false
	case !w.begun:
		w.begun = true
	case d[i] == ',':
		i = skipSpace(d, i+1)
	default:
		return false
	}
	if i >= len(d) || d[i] != '"' {
		return false
	}
	end := stringEnd(d, i+1)
	if end < 0 {
		return false
	}
	w.key = span{i + 1, end - 1}
	i = skipSpace(d, end)
	if i >= len(d) || d[i] != ':' {
		return false
	}
	w.pos = skipSpace(d, i+1)
	return true
}

// valueEnd returns the index after the JSON value that begins at i, or -1 when it
// is malformed. depth is that of the objects and arrays around it.
func valueEnd(d []byte, i, depth int) int {
	if i >= len(d) {
		return -1
	}
	switch d[i] {
	case '"':
		return stringEnd(d, i+1)
	case '{':
		return objectEnd(d, i, depth+1)
	case '[':
		return arrayEnd(d, i, depth+1)
	case 't':
		return literalEnd(d, i, "true")
	case 'f':
		return literalEnd(d, i, "false")
	case 'n':
		return literalEnd(d, i, "null")
	}
	return numberEnd(d, i)
}

func objectEnd(d []byte, i, depth int) int {
	if depth > maxDepth {
		return -1
	}
	w := walker{data: d, pos: i + 1}
	for w.next() {
		if w.pos = valueEnd(d, w.pos, depth); w.pos < 0 {
			return -1
		}
	}
	return w.end
}

func arrayEnd(d []byte, i, depth int) int {
	if depth > maxDepth {
		return -1
	}
	i = skipSpace(d, i+1)
	if i < len(d) && d[i] == ']' {
		return i + 1
	}
	for {
		if i = valueEnd(d, i, depth); i < 0 {
			return -1
		}
		i = skipSpace(d, i)
		switch {
		case i >= len(d):
			return -1
		case d[i] == ']':
			return i + 1
		case d[i] != ',':
			return -1
		}
		i = skipSpace(d, i+1)
	}
}

func literalEnd(d []byte, i int, word string) int {
	end := i + len(word)
	if end > len(d) || string(d[i:end]) != word {
		return -1
	}
	return end
}

func numberEnd(d []byte, i int) int {
	if i < len(d) && d[i] == '-' {
		i++
	}
	start := i
	i = digitsEnd(d, i)
	if i == start || d[start] == '0' && i > start+1 {
		return -1
	}
	if i < len(d) && d[i] == '.' {
		start = i + 1
		if i = digitsEnd(d, start); i == start {
			return -1
		}
	}
	if i < len(d) && (d[i] == 'e' || d[i] == 'E') {
		start = i + 1
		if start < len(d) && (d[start] == '+' || d[start] == '-') {
			start++
		}
		if i = digitsEnd(d, start); i == start {
			return -1
		}
	}
	return i
}

func digitsEnd(d []byte, i int) int {
	for i < len(d) && d[i] >= '0' && d[i] <= '9' {
		i++
	}
	return i
}

// Eight bytes at once: each of these has the same byte eight times.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// special returns a mask whose lowest set bit is in the first byte of w, counted
// from its low end, that is a quote, a backslash or a control character; 0
// when there is none. Subtracting borrows only from bytes above a hit.
func special(w uint64) uint64 {
	quote, slash := w^('"'*ones), w^('\\'*ones)
	return ((w-' '*ones)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// stringEnd returns the index after the string whose text begins at i, or -1.
func stringEnd(d []byte, i int) int {
	for {
		if i = plainEnd(d, i); i >= len(d) || d[i] < ' ' {
			return -1
		}
		if d[i] == '"' {
			return i + 1
		}
		if i = escapeEnd(d, i); i < 0 {
			return -1
		}
	}
}

// plainEnd returns the index of the first byte from i on that does not stand for
// itself in a string, or len(d).
func plainEnd(d []byte, i int) int {
	if i+8 <= len(d) { // most strings are short
		if hit := special(binary.LittleEndian.Uint64(d[i:])); hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
		i += 8
	}
	for i+32 <= len(d) {
		b := d[i : i+32 : i+32]
		if special(binary.LittleEndian.Uint64(b))|special(binary.LittleEndian.Uint64(b[8:]))|
			special(binary.LittleEndian.Uint64(b[16:]))|special(binary.LittleEndian.Uint64(b[24:])) != 0 {
			break
		}
		i += 32
	}
	for i+8 <= len(d) {
		if hit := special(binary.LittleEndian.Uint64(d[i:])); hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
		i += 8
	}
	for i < len(d) && d[i] >= ' ' && d[i] != '"' && d[i] != '\\' {
		i++
	}
	return i
}

// escapeEnd returns the index after the escape sequence that begins at i, or -1.
func escapeEnd(d []byte, i int) int {
	if i+1 >= len(d) {
		return -1
	}
	switch d[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(d) {
			return -1
		}
		for _, c := range d[i+2 : i+6] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return -1
			}
		}
		return i + 6
	}
	return -1
}
