package scenarios

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/script"
	"mcpbench/scenarios/internal/syntax"
)

// scope is what the expressions at one place of the scenario may read.
type scope struct {
	unknown map[string]string   // variables that have no value here, with the reason
	saved   []string            // names that steps save
	args    *argUses            // of the flow; nil outside of flows
	feeds   func(string)        // is told of each feeder that is read; may be nil
	columns map[string][]string // of each feeder, nil when they are not known
}

// argUses are the arguments that a flow reads, with where it first does.
type argUses struct {
	first map[string]use
}

type use struct {
	n      *syntax.Node
	offset int
	path   string
}

func (a *argUses) add(name string, u use) {
	if a.first == nil {
		a.first = map[string]use{}
	}
	if _, known := a.first[name]; !known {
		a.first[name] = u
	}
}

// without returns a scope in which more variables have no value.
func (s *scope) without(more map[string]string) *scope {
	out := *s
	out.unknown = maps.Clone(s.unknown)
	if out.unknown == nil {
		out.unknown = map[string]string{}
	}
	maps.Copy(out.unknown, more)
	return &out
}

// known refuses the names that have no value where an expression stands, which
// is at offset in n's text.
func (c *compiler) known(e *script.Expression, n *syntax.Node, offset int, path string, s *scope) {
	for _, name := range slices.Sorted(maps.Keys(s.unknown)) {
		if e.Uses(name) {
			c.src.Fault(n, offset, path, "%s has no value here: %s", name, s.unknown[name])
		}
	}
	for _, ref := range e.Refs() {
		at, name := offset+ref.Offset, ref.Names[0]
		if s.unknown[ref.Root] != "" {
			continue
		}
		switch ref.Root {
		case "saved":
			if !slices.Contains(s.saved, name) {
				c.src.Fault(n, at, path, "no step of this flow saves %q%s", name, nearest.DidYouMean(name, s.saved))
			}
		case "args":
			if s.args != nil {
				s.args.add(name, use{n: n, offset: at, path: path})
			}
		case "data":
			c.knownData(n, at, path, ref.Names, s)
		}
	}
}

func (c *compiler) knownData(n *syntax.Node, at int, path string, names []string, s *scope) {
	feeders := slices.Sorted(maps.Keys(s.columns))
	columns, ok := s.columns[names[0]]
	switch {
	case !ok && len(names) == 1:
		hint := nearest.DidYouMean(names[0], feeders)
		if hint == "" && len(feeders) > 0 {
			hint = "; there are: " + strings.Join(feeders, ", ")
		}
		c.src.Fault(n, at, path, "data has no feeder %q%s", names[0], hint)
		return
	case !ok:
		c.src.Fault(n, at, path, "data has no feeder %q%s", names[0], nearest.DidYouMean(names[0], feeders))
		return
	}
	if s.feeds != nil {
		s.feeds(names[0])
	}
	if len(names) == 2 && columns != nil && !slices.Contains(columns, names[1]) {
		hint := nearest.DidYouMean(names[1], columns)
		if hint == "" {
			hint = "; there are: " + strings.Join(columns[:min(len(columns), 20)], ", ")
		}
		c.src.Fault(n, at, path, "the rows of %q have no column %q%s", names[0], names[1], hint)
	}
}

// savedNames returns the names that the steps save, also those within others.
func savedNames(lists ...[]*grammar.Step) []string {
	var out []string
	for s := range nested(lists...) {
		for _, name := range s.Save.Node.Keys() {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// nested goes through steps and the steps within them, in the order of the file.
func nested(lists ...[]*grammar.Step) iter.Seq[*grammar.Step] {
	return func(yield func(*grammar.Step) bool) { visit(lists, yield) }
}

// visit calls yield for each step until it says no, which visit then returns.
func visit(lists [][]*grammar.Step, yield func(*grammar.Step) bool) bool {
	for _, s := range slices.Concat(lists...) {
		if s != nil && (!yield(s) || !visit(inner(s), yield)) {
			return false
		}
	}
	return true
}

// inner returns the lists of steps within a step.
func inner(s *grammar.Step) [][]*grammar.Step {
	out := [][]*grammar.Step{s.Parallel}
	if s.Repeat != nil {
		out = append(out, s.Repeat.Steps)
	}
	for _, b := range s.Random {
		if b != nil {
			out = append(out, b.Steps)
		}
	}
	return out
}
