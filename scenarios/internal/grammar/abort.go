package grammar

import "mcpbench/scenarios/internal/syntax"

// Abort says that a threshold ends the run when it does not hold over the last
// seconds; true stands for the defaults.
type Abort struct {
	Place
	Set           bool
	After, Window Duration
}

func (v *Abort) decode(d *decoder, n *syntax.Node, path string) {
	switch n := n.Typed(); n.Kind {
	case syntax.Bool:
		*v = Abort{Place: Place{Node: n, Path: path}, Set: n.True()}
	case syntax.Map:
		var long struct {
			Place
			After  Duration `json:"after"`
			Window Duration `json:"window"`
		}
		d.value(n, path, &long)
		*v = Abort{Place: long.Place, Set: true, After: long.After, Window: long.Window}
	case syntax.Null, syntax.Int, syntax.Float, syntax.String, syntax.Seq:
		d.fault(n, path, "wants true, or {after: 30s, window: 10s}; this is %s", n.Kind)
	}
}
