package syntax

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Problem is one fault in a file: where it is and what to do. Line and Column
// count from 1, columns in characters; both are 0 when the fault has no place
// in a file, and File may then name a flag.
type Problem struct {
	File         string
	Line, Column int
	Path         string // dotted path of the key, such as load.groups.browse.sessions
	Message      string
	Excerpt      string // numbered lines with a caret, each ended by a newline, or ""
	More         int    // how many further problems it stands for
}

// Place returns file:line:column as far as they are known.
func (p Problem) Place() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// String returns the place and the message, and the excerpt on the lines after.
func (p Problem) String() string {
	line := p.Message
	if place := p.Place(); place != "" {
		line = place + ": " + p.Message
	}
	if p.Excerpt == "" {
		return line
	}
	return line + "\n" + strings.TrimSuffix(p.Excerpt, "\n")
}

// Problems are all the faults of a file, in the order of their places.
type Problems []Problem //nolint:errname // a list first, an error second

// Error prints every problem, one after the other.
func (ps Problems) Error() string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		parts[i] = p.String()
	}
	return strings.Join(parts, "\n")
}

// Sort puts the problems in the order of their places and drops repeated ones.
func (ps Problems) Sort() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.File != b.File && a.Line > 0 && b.Line > 0 {
			return strings.Compare(a.File, b.File)
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return slices.CompactFunc(ps, func(a, b Problem) bool {
		return a.Place() == b.Place() && a.Message == b.Message
	})
}

const (
	contextLines = 2
	excerptWidth = 160
)

// Excerpt returns the numbered lines before and with line, and a caret under
// column; "" when there is no such line.
func (s *Source) Excerpt(line, column int) string {
	if line < 1 || line > len(s.lines) {
		return ""
	}
	var b strings.Builder
	first := max(1, line-contextLines)
	width := max(4, len(fmt.Sprint(line)))
	start := 0 // characters cut off at the left of a very long line
	if column > excerptWidth {
		start = column - excerptWidth/2
	}
	for i := first; i <= line; i++ {
		mark := ' '
		if i == line {
			mark = '>'
		}
		text := visible(s.lines[i-1], start)
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(fmt.Sprintf("%c%*d | %s", mark, width, i, text), " "))
	}
	if column > 0 {
		fmt.Fprintf(&b, "%s^\n", strings.Repeat(" ", width+4+column-1-start))
	}
	return b.String()
}

// printable replaces what would break a line or a terminal; messages repeat
// names out of files.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == ' ' {
			return r
		}
		return '�'
	}, text)
}

// visible returns a part of line in which each character takes one column.
func visible(line string, start int) string {
	var b strings.Builder
	n := 0
	for _, r := range line {
		n++
		switch {
		case n <= start:
			continue
		case n > start+excerptWidth:
			return b.String() + "…"
		case r == '\t':
			r = ' '
		case !unicode.IsPrint(r):
			r = '�'
		}
		b.WriteRune(r)
	}
	return b.String()
}
