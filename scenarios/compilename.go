package scenarios

import (
	"cmp"
	"fmt"

	"mcpbench/scenarios/internal/syntax"
)

// nameSteps gives each step without an id one of its own: the operation with
// what it names, and #2, #3 … when that is taken.
func (c *compiler) nameSteps(steps []compiled) {
	taken, next := map[string]int{}, map[string]int{}
	for _, s := range steps {
		if n := s.from.Node.Lookup("id"); n != nil && n.Kind == syntax.String && n.Text == "" {
			c.fault(n, s.from.Path+".id", "must not be empty; leave it out to have one made")
		}
		if s.from.ID == "" || s.prefix != "" {
			continue
		}
		n := s.from.Node.Lookup("id")
		if line, twice := taken[s.from.ID]; twice {
			c.fault(n, s.from.Path+".id", "step id %q stands twice in this flow (first on line %d)", s.from.ID, line)
			continue
		}
		taken[s.from.ID] = n.Line
	}
	for _, s := range steps {
		if s.ID = s.from.ID; s.ID != "" && s.prefix == "" {
			continue
		}
		base := s.prefix + cmp.Or(s.from.ID, s.baseName())
		s.ID = base
		for i := max(next[base], 2); ; i++ { // those below are taken
			if _, used := taken[s.ID]; !used {
				break
			}
			s.ID = fmt.Sprintf("%s#%d", base, i)
			next[base] = i
		}
		taken[s.ID] = s.from.Node.Line
	}
}

func (s *Step) baseName() string {
	switch {
	case s.generate != nil:
		return "generate " + s.generate.tool
	case s.Kind == StepSubscribe:
		return "subscribe"
	case s.Kind == StepUnsubscribe:
		return "unsubscribe " + s.Handle
	case s.Kind == StepWait, s.Method == "tools/call":
		return s.Method + " " + s.Name
	}
	return s.Method
}
