package grammar

import "mcpbench/scenarios/internal/syntax"

// Branch is one of the lists of steps that random chooses from.
type Branch struct {
	Place
	// Weight of the branch among the others.
	Weight Weight `json:"weight" jsonschema:"default=1"`
	// Steps of the branch.
	Steps []*Step `json:"steps" jsonschema:"required"`
}

// Repeat performs steps a number of times, or while an expression holds.
type Repeat struct {
	Place
	// Count of turns: a number, or a text that is one ${{ }} expression.
	Count Value `json:"count"`
	// While is evaluated before each turn.
	While Expr `json:"while"`
	// Max is the most turns; one more is a script_error.
	Max int `json:"max" jsonschema:"minimum=1,maximum=1000000,default=1000"`
	// Steps of a turn.
	Steps []*Step `json:"steps" jsonschema:"required"`
}

// Call performs the steps of another flow: its name, or {name, args}.
type Call struct {
	Node *syntax.Node
	Path string
	// Name of the flow.
	Name string
	// Args are what the flow's expressions read as args.NAME.
	Args Values
}

func (v *Call) decode(d *decoder, n *syntax.Node, path string) {
	v.Node, v.Path = n, path
	if n.Kind == syntax.String {
		v.Name = n.Text
		return
	}
	var long struct {
		Place
		Name string `json:"name" jsonschema:"required"`
		Args Values `json:"args"`
	}
	d.value(n, path, &long)
	v.Name, v.Args = long.Name, long.Args
}

// Save holds expressions on an answer, by the names that later steps read.
type Save struct {
	Node *syntax.Node
	Path string
}

func (v *Save) decode(d *decoder, n *syntax.Node, path string) {
	if n.Kind != syntax.Map {
		d.fault(n, path, "wants a map of names and expressions; this is %s", n.Kind)
		return
	}
	v.Node, v.Path = n, path
	for _, p := range n.Pairs {
		at := syntax.Join(path, p.Key.Text)
		switch {
		case p.Key.Text == "metric" && p.Value.Kind == syntax.Map:
			d.postpone(p.Key, at, at)
		case p.Key.Text == "":
			d.fault(p.Key, path, "a name must not be empty")
		default:
			var e Expr
			e.decode(d, p.Value, at)
		}
	}
}

// Task runs a call as a task. The grammar is there, and this version does not do it.
type Task struct{}

func (*Task) decode(d *decoder, n *syntax.Node, path string) {
	var long struct {
		Place
		Poll    string   `json:"poll" jsonschema:"enum=server,enum=fixed"`
		Every   Duration `json:"every"`
		Timeout Duration `json:"timeout"`
	}
	faults := len(d.src.Problems())
	if d.value(n, path, &long); len(d.src.Problems()) > faults {
		return
	}
	if every := n.Key("every"); (every != nil) != (long.Poll == "fixed") {
		d.fault(n, path, "every goes with poll: fixed; poll: server asks as often as the server says")
		return
	}
	d.postpone(n, path, path)
}

// Share is a number from 0 to 1.
type Share float64

func (v *Share) decode(d *decoder, n *syntax.Node, path string) {
	f, ok := d.number(n, path)
	if ok && (f < 0 || f > 1) {
		d.fault(n, path, "must be from 0 to 1")
		return
	}
	*v = Share(f)
}

// Weight is a number that is not negative.
type Weight struct {
	W   float64
	Set bool
}

func (v *Weight) decode(d *decoder, n *syntax.Node, path string) {
	const most = 1e9
	f, ok := d.number(n, path)
	if ok && (f < 0 || f > most) {
		d.fault(n, path, "must be from 0 to %.0f", most)
		return
	}
	*v = Weight{W: f, Set: true}
}

// number returns the value of a whole number or one with a fraction.
func (d *decoder) number(n *syntax.Node, path string) (float64, bool) {
	n = n.Typed()
	if n.Kind != syntax.Int && n.Kind != syntax.Float {
		d.fault(n, path, "wants a number; this is %s", n.Kind)
		return 0, false
	}
	f, ok := n.Number()
	if !ok {
		d.fault(n, path, "%s is too large", n.Text)
	}
	return f, ok
}
