package output

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// PrettyJSON returns a JSON text as lines of about width columns: a value that
// fits into a line is not broken. Only strings make lines longer. What acts on a
// terminal is escaped. ok is false when the text is no JSON.
func PrettyJSON(source string, width int) (lines []string, ok bool) {
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(source)) != nil {
		return nil, false
	}
	p := prettyPrinter{source: compact.String(), width: width}
	p.findEnds()
	p.value(0, 0, "", "")
	return p.lines, true
}

// prettyPrinter lays out a compact JSON text.
type prettyPrinter struct {
	source string
	ends   []int32 // for each bracket that opens, where it closes; else 0
	width  int
	lines  []string
}

func (p *prettyPrinter) findEnds() {
	p.ends = make([]int32, len(p.source))
	var open []int
	for i := 0; i < len(p.source); i++ {
		switch p.source[i] {
		case '"':
			i = p.stringEnd(i) - 1
		case '{', '[':
			open = append(open, i)
		case '}', ']':
			last := len(open) - 1
			p.ends[open[last]] = int32(i)
			open = open[:last]
		}
	}
}

// stringEnd returns the index behind the string that begins at i.
func (p *prettyPrinter) stringEnd(i int) int {
	for i++; p.source[i] != '"'; i++ {
		if p.source[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// end returns the index behind the value that begins at i.
func (p *prettyPrinter) end(i int) int {
	switch p.source[i] {
	case '"':
		return p.stringEnd(i)
	case '{', '[':
		return int(p.ends[i]) + 1
	}
	for i < len(p.source) && strings.IndexByte(",]}", p.source[i]) < 0 {
		i++
	}
	return i
}

// value lays out the value that begins at i, between key and comma, and returns
// the index behind it.
func (p *prettyPrinter) value(i, depth int, key, comma string) int {
	end := p.end(i)
	indent := strings.Repeat("  ", min(depth, 50)) // deeper ones no longer move
	container := p.source[i] == '{' || p.source[i] == '['
	if !container || end-i == 2 || end-i <= p.width {
		line := indent + key + p.spaced(p.source[i:end]) + comma
		if !container || end-i == 2 || text.StringWidthWithoutEscSequences(line) <= p.width {
			p.lines = append(p.lines, Escape(line))
			return end
		}
	}
	p.lines = append(p.lines, Escape(indent+key+p.source[i:i+1]))
	object := p.source[i] == '{'
	for i++; i < end-1; {
		name := ""
		if object {
			at := p.stringEnd(i)
			name = p.source[i:at] + ": "
			i = at + 1
		}
		after := ""
		if p.end(i) < end-1 {
			after = ","
		}
		i = p.value(i, depth+1, name, after) + len(after)
	}
	p.lines = append(p.lines, indent+p.source[end-1:end]+comma)
	return end
}

// spaced puts spaces behind the commas and colons of a compact text.
func (p *prettyPrinter) spaced(source string) string {
	var b strings.Builder
	inString := false
	for i := 0; i < len(source); i++ {
		b.WriteByte(source[i])
		switch {
		case inString && source[i] == '\\':
			i++
			b.WriteByte(source[i])
		case source[i] == '"':
			inString = !inString
		case !inString && (source[i] == ',' || source[i] == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}
