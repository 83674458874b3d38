package syntax

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// position returns where byte offset at of n's text stands in the file.
func (s *Source) position(n *Node, at int) (line, column int) {
	if n.Line < 1 || n.Line > len(s.lines) {
		return n.Line, n.Column
	}
	original := n.Text
	for _, e := range slices.Backward(n.edits) {
		original = original[:e.to] + strings.Repeat("\x00", e.removed) + original[e.to+e.added:]
	}
	at = min(unedited(n.edits, at), len(original))
	w := walker{lines: s.lines, style: n.style}
	w.begin(n.Line, n.Column)
	for i := 0; i < at; {
		r, size := utf8.DecodeRuneInString(original[i:])
		if blank := r == ' ' || r == '\n' || r == '\t'; blank && w.lineEnds() {
			// A run of blanks and a line break with its indentation are one.
			i += len(original[i:]) - len(strings.TrimLeft(original[i:], " \n\t"))
			w.nextLine()
			continue
		}
		w.character()
		i += size
	}
	if at < len(original) && original[at] != '\n' && w.lineEnds() {
		w.nextLine()
	}
	return w.line, w.column
}

// CommentCut tells that a plain scalar of one line is followed by a comment,
// which may have been meant as a part of it.
func (s *Source) CommentCut(n *Node) bool {
	if n.From != nil {
		s = n.From
	}
	if !n.Plain || n.Line < 1 || n.Line > len(s.lines) {
		return false
	}
	w := walker{lines: s.lines}
	w.begin(n.Line, n.Column)
	after, ok := strings.CutPrefix(w.rest, n.Text)
	return ok && strings.HasPrefix(strings.TrimLeft(after, " \t"), "#")
}

// unedited turns an offset into the text with variables replaced into one of
// the text as it stands in the file.
func unedited(edits []edit, at int) int {
	shift := 0
	for _, e := range edits {
		if at < e.to {
			break
		}
		if at < e.to+e.added {
			return e.from
		}
		shift = e.from + e.removed - (e.to + e.added)
	}
	return at + shift
}

// walker goes through the source of one scalar, character by character.
type walker struct {
	lines        []string
	style        style
	line, column int    // column counts characters from 1
	rest         string // of the line, from column on
}

// begin goes to the first character of a scalar that starts at line and column.
func (w *walker) begin(line, column int) {
	w.line, w.column, w.rest = line, 1, w.lines[line-1]
	w.forward(column - 1)
	switch w.style {
	case styleSingle, styleDouble:
		w.forward(1)
	case styleBlock:
		w.nextLine()
	case stylePlain:
	}
}

func (w *walker) forward(characters int) {
	for ; characters > 0 && w.rest != ""; characters-- {
		_, size := utf8.DecodeRuneInString(w.rest)
		w.rest = w.rest[size:]
		w.column++
	}
}

// nextLine goes to the first character that is no blank of a later line.
func (w *walker) nextLine() {
	for w.line < len(w.lines) {
		w.line++
		text := w.lines[w.line-1]
		if trimmed := strings.TrimLeft(text, " \t"); trimmed != "" {
			w.rest, w.column = trimmed, len(text)-len(trimmed)+1
			return
		}
	}
}

func (w *walker) lineEnds() bool { return strings.TrimLeft(w.rest, " \t") == "" }

// character passes one character of the value.
func (w *walker) character() {
	switch {
	case w.style == styleSingle && strings.HasPrefix(w.rest, "''"):
		w.forward(2)
	case w.style == styleDouble && len(w.rest) > 1 && w.rest[0] == '\\':
		width := map[byte]int{'x': 4, 'u': 6, 'U': 10}[w.rest[1]]
		w.forward(max(width, 2))
	default:
		w.forward(1)
	}
}
