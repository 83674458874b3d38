package grammar

import (
	"time"

	"mcpbench/scenarios/internal/syntax"
)

// Spread is a time that may differ from one time to the next: a duration, or a
// distribution: {constant: D}, {uniform: [A, B]} or {exponential: D, max: D}.
type Spread struct {
	Node *syntax.Node // nil when it was left out
	// Zero tells that it is written as a constant of 0.
	Zero bool
	// Low and High are the ends of a constant (equal) or a uniform one.
	Low, High time.Duration
	// Mean, unless 0, makes it exponential.
	Mean time.Duration
	// Max, unless 0, bounds an exponential one.
	Max time.Duration
}

// Range is two durations, the first not more than the second.
type Range struct {
	Low, High time.Duration
}

func (v *Range) decode(d *decoder, n *syntax.Node, path string) {
	if n.Kind != syntax.Seq || len(n.Items) != 2 {
		d.fault(n, path, "wants two durations, e.g. [20ms, 80ms]")
		return
	}
	var ends [2]Duration
	for i := range ends {
		ends[i].decode(d, n.Items[i], path)
	}
	switch {
	case !ends[0].Set || !ends[1].Set:
	case ends[0].D > ends[1].D:
		d.fault(n.Items[1], path, "the second duration must not be less than the first")
	case ends[1].D == 0:
		d.fault(n.Items[1], path, "must be more than 0")
	}
	*v = Range{Low: ends[0].D, High: ends[1].D}
}

func (v *Spread) decode(d *decoder, n *syntax.Node, path string) {
	v.Node = n
	if n.Kind != syntax.Map {
		var constant Duration
		constant.decode(d, n, path)
		v.constant(constant)
		return
	}
	var long struct {
		Place
		Constant    Duration `json:"constant"`
		Uniform     *Range   `json:"uniform"`
		Exponential Duration `json:"exponential"`
		Max         Duration `json:"max"`
		Normal      Later    `json:"normal"`
		Lognormal   Later    `json:"lognormal"`
		Pareto      Later    `json:"pareto"`
		Empirical   Later    `json:"empirical"`
	}
	d.value(n, path, &long)
	var found []*syntax.Node
	odd := false // a key that was complained of
	for _, p := range n.Pairs {
		switch p.Key.Text {
		case "constant", "uniform", "exponential", "normal", "lognormal", "pareto", "empirical":
			found = append(found, p.Key)
		case "max":
		default:
			odd = true
		}
	}
	switch {
	case len(found) == 0 && !odd:
		d.fault(n, path, "wants a duration, e.g. 100ms, or a distribution: constant, uniform or exponential")
		return
	case len(found) > 1:
		d.fault(found[1], path, "%s and %s are two distributions; keep one", found[0].Text, found[1].Text)
		return
	case len(found) == 0:
		return
	}
	v.constant(long.Constant)
	if long.Uniform != nil {
		v.Low, v.High = long.Uniform.Low, long.Uniform.High
	}
	if v.Mean = long.Exponential.D; long.Exponential.Set && v.Mean == 0 {
		d.fault(n.Lookup("exponential"), syntax.Join(path, "exponential"), "must be more than 0")
	}
	v.setMax(d, n, path, long.Max, found[0].Text)
}

func (v *Spread) constant(d Duration) {
	v.Low, v.High, v.Zero = d.D, d.D, d.Set && d.D == 0
}

// setMax takes the bound of an exponential distribution.
func (v *Spread) setMax(d *decoder, n *syntax.Node, path string, bound Duration, distribution string) {
	at := n.Key("max")
	switch {
	case at == nil:
	case distribution == "constant" || distribution == "uniform":
		d.fault(at, syntax.Join(path, "max"), "max does not go with %s, which has an end", distribution)
	case bound.Set && bound.D < v.Mean:
		d.fault(at, syntax.Join(path, "max"), "max must not be less than the mean, %v", v.Mean)
	}
	v.Max = bound.D
}
