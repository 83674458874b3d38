package generate

import (
	"regexp/syntax"
	"unicode/utf8"

	"mcpbench/scenarios/internal/schemas"
)

// shape is a regular expression to make texts by.
type shape struct {
	re   *schemas.Pattern
	tree *syntax.Regexp
	min  int // least runes of a match
}

func shapeOf(re *schemas.Pattern) *shape {
	tree, err := syntax.Parse(re.Core(), syntax.Perl)
	if err != nil { // it has compiled before
		return &shape{re: re, tree: &syntax.Regexp{Op: syntax.OpNoMatch}}
	}
	return &shape{re: re, tree: tree, min: shortest(tree)}
}

// shortest is the least number of runes that tree matches, at most maxBytes.
func shortest(tree *syntax.Regexp) int {
	n := 0
	switch tree.Op {
	case syntax.OpNoMatch, syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpStar, syntax.OpQuest:
	case syntax.OpLiteral:
		n = len(tree.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		n = 1
	case syntax.OpCapture, syntax.OpPlus:
		n = shortest(tree.Sub[0])
	case syntax.OpRepeat:
		n = tree.Min * shortest(tree.Sub[0])
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			n += shortest(sub)
		}
	case syntax.OpAlternate:
		n = maxBytes
		for _, sub := range tree.Sub {
			n = min(n, shortest(sub))
		}
	}
	return min(n, maxBytes)
}

// appendShape appends a text that tree matches, assertions left aside. It
// spends about *spare runes more than the least. False: there is none, or it is
// too long.
func (m *maker) appendShape(dst []byte, tree *syntax.Regexp, spare *int) ([]byte, bool) {
	if len(dst) > maxBytes {
		return dst, false
	}
	switch tree.Op {
	case syntax.OpNoMatch:
		return dst, false
	case syntax.OpLiteral:
		for _, r := range tree.Rune {
			dst = utf8.AppendRune(dst, r)
		}
	case syntax.OpCharClass:
		r, ok := m.oneOf(tree.Rune)
		if !ok {
			return dst, false
		}
		dst = utf8.AppendRune(dst, r)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
		dst = append(dst, letters[m.pick(len(letters))])
	case syntax.OpCapture:
		return m.appendShape(dst, tree.Sub[0], spare)
	case syntax.OpStar:
		return m.repeat(dst, tree.Sub[0], 0, -1, spare)
	case syntax.OpPlus:
		return m.repeat(dst, tree.Sub[0], 1, -1, spare)
	case syntax.OpQuest:
		return m.repeat(dst, tree.Sub[0], 0, 1, spare)
	case syntax.OpRepeat:
		return m.repeat(dst, tree.Sub[0], tree.Min, tree.Max, spare)
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			var ok bool
			if dst, ok = m.appendShape(dst, sub, spare); !ok {
				return dst, false
			}
		}
	case syntax.OpAlternate:
		return m.appendShape(dst, tree.Sub[m.pick(len(tree.Sub))], spare)
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
	default:
		return dst, false
	}
	return dst, true
}

// repeat appends sub least times and, out of what is to spare, up to most
// times; most is -1 for any number.
func (m *maker) repeat(dst []byte, sub *syntax.Regexp, least, most int, spare *int) ([]byte, bool) {
	width := max(shortest(sub), 1)
	more := max(*spare, 0) / width
	if most >= 0 {
		more = min(more, most-least)
	}
	if more > 0 && m.r.IntN(2) == 0 { // half of the time all of it goes here
		more = m.r.IntN(more + 1)
	}
	*spare -= more * width
	for range least + more {
		var ok bool
		if dst, ok = m.appendShape(dst, sub, spare); !ok {
			return dst, false
		}
	}
	return dst, true
}

// oneOf draws a rune from ranges (pairs), a printable ASCII one where possible.
func (m *maker) oneOf(ranges []rune) (rune, bool) {
	clipped := func(i int) (low, high rune) {
		return max(ranges[i], ' '), min(ranges[i+1], '~')
	}
	total := 0
	for i := 0; i+1 < len(ranges) && ranges[i] <= '~'; i += 2 {
		low, high := clipped(i)
		total += max(int(high-low)+1, 0)
	}
	if total == 0 {
		if len(ranges) < 2 {
			return 0, false
		}
		i := 2 * m.pick(len(ranges)/2)
		r := ranges[i] + rune(m.pick(min(int(ranges[i+1]-ranges[i])+1, 1000))) //nolint:gosec // at most 1000
		return r, utf8.ValidRune(r)
	}
	k := m.pick(total)
	for i := 0; ; i += 2 {
		low, high := clipped(i)
		width := max(int(high-low)+1, 0)
		if k < width {
			return low + rune(k), true //nolint:gosec // less than the characters of ASCII
		}
		k -= width
	}
}
