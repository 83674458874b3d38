package script

import (
	"errors"
	"regexp"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"
)

// maxVisits bounds the values that the paths of one evaluation look at: a path of a
// few characters can ask for each value of a deep result together with all that
// it lies in, which grows with the square of the result or faster.
const maxVisits = 1_000_000

var (
	errVisits    = errors.New("jsonpath looks at more than 1,000,000 values")
	errUncounted = errors.New("jsonpath is called without what counts its visits") // visitGuard gives it
	errFound     = errors.New("jsonpath finds more than 200,000 values")
)

// textPerVisit is how many bytes of text that a filter may read count as one value.
const textPerVisit = 64

// visitGuard replaces each call of jsonpath by one that is given what counts its visits.
type visitGuard struct{}

func (visitGuard) Visit(node *ast.Node) {
	call, ok := (*node).(*ast.CallNode)
	if !ok || len(call.Arguments) != 2 {
		return
	}
	if callee, ok := call.Callee.(*ast.IdentifierNode); !ok || callee.Value != "jsonpath" {
		return
	}
	count := &ast.IdentifierNode{Value: "__turn"}
	count.SetLocation(call.Location())
	counted := &ast.IdentifierNode{Value: "__jsonpath"}
	counted.SetLocation(call.Callee.Location())
	ast.Patch(node, &ast.CallNode{Callee: counted, Arguments: []ast.Node{call.Arguments[0], call.Arguments[1], count}})
}

// search is one call of jsonpath. The library's own walk has no bounds, so the
// segments of a path are walked here and only their selectors are the library's.
type search struct {
	root    any
	charge  func(visits int) error
	filters map[*spec.FilterSelector]filterCost
}

// find returns what the path finds.
func (s *search) find(path *jsonpath.Path) ([]any, error) {
	found := []any{s.root}
	for _, segment := range path.Query().Segments() {
		var next []any
		for _, v := range found {
			var err error
			if next, err = s.segment(next, segment, v); err != nil {
				return nil, err
			}
		}
		found = next
	}
	if found == nil {
		found = []any{}
	}
	return found, nil
}

// segment appends what a segment finds from one value (RFC 9535, section 2.5).
func (s *search) segment(dst []any, segment *spec.Segment, v any) ([]any, error) {
	for _, selector := range segment.Selectors() {
		if err := s.selector(selector, v); err != nil {
			return nil, err
		}
		if dst = append(dst, selector.Select(v, s.root)...); len(dst) > maxMade {
			return nil, errFound
		}
	}
	if !segment.IsDescendant() {
		return dst, nil
	}
	var err error
	children(v, func(child any) bool {
		dst, err = s.segment(dst, segment, child)
		return err == nil
	})
	return dst, err
}

// selector charges what a selector is going to look at.
func (s *search) selector(selector spec.Selector, v any) error {
	switch f := selector.(type) {
	case spec.Name, spec.Index:
		return s.charge(1)
	case *spec.FilterSelector:
		return s.filter(f, v)
	}
	n := 1
	children(v, func(any) bool { n++; return true })
	return s.charge(n)
}

// filterCost is what one decision of a filter may look at.
type filterCost struct {
	plain int // values, whatever the value at hand
	many  int // queries within it that look at more than one value each, one in the other at worst
	texts bool
	whole bool // they begin at the root
}

var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// costOf takes the cost of a filter from its text.
func costOf(f *spec.FilterSelector) filterCost {
	text := quotedText.ReplaceAllString(f.String(), "")
	c := filterCost{plain: 1 + len(text)/16, many: -1} // its own question mark
	for _, more := range []string{"..", "*", "?", ":"} {
		c.many += strings.Count(text, more)
	}
	c.texts, c.whole = strings.ContainsRune(text, '('), strings.ContainsRune(text, '$')
	return c
}

// filter charges the decisions of a filter on the children of v.
func (s *search) filter(f *spec.FilterSelector, v any) error {
	c, known := s.filters[f]
	if !known {
		if s.filters == nil {
			s.filters = map[*spec.FilterSelector]filterCost{}
		}
		c = costOf(f)
		s.filters[f] = c
	}
	var err error
	children(v, func(child any) bool {
		visits := c.plain
		if c.many > 0 || c.texts {
			if c.whole {
				child = s.root
			}
			values, text, depth := measure(child, maxVisits)
			visits += values
			if c.many > 0 { // the library copies what it found at each level on the way up
				values *= depth
				visits += values
			}
			if c.texts {
				visits += text / textPerVisit
			}
			all := values
			for range c.many - 1 {
				if all *= values; all > maxVisits {
					break
				}
				visits += all
			}
		}
		err = s.charge(visits)
		return err == nil
	})
	return err
}

// children calls yield for each item or member value of v until it says no.
func children(v any, yield func(any) bool) {
	switch v := v.(type) {
	case []any:
		for _, child := range v {
			if !yield(child) {
				return
			}
		}
	case map[string]any:
		for _, child := range v {
			if !yield(child) {
				return
			}
		}
	}
}

// measure counts the values in v, the bytes of their text and the levels, and stops
// soon after limit values.
func measure(v any, limit int) (values, text, depth int) {
	values = 1
	if s, ok := v.(string); ok {
		return values, len(s), 1
	}
	children(v, func(child any) bool {
		n, t, d := measure(child, limit-values)
		values, text, depth = values+n, text+t, max(depth, d)
		return values <= limit
	})
	return values, text, depth + 1
}

// path is the function jsonpath of expressions: the value, the path, and what counts.
func (c *Compiler) path(args ...any) (any, error) {
	path, err := c.paths.get(asText(args[1]), jsonpath.Parse)
	if err != nil {
		return nil, err
	}
	count, ok := args[2].(func(...any) (any, error))
	if !ok || count == nil {
		return nil, errUncounted
	}
	charge := func(visits int) error {
		_, err := count(visits)
		return err
	}
	value, size, err := generic(args[0])
	if err == nil {
		err = charge(size / textPerVisit)
	}
	if err != nil {
		return nil, err
	}
	s := &search{root: value, charge: charge}
	return s.find(path)
}
