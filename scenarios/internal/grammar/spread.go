package grammar

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mcpbench/scenarios/internal/dist"
	"mcpbench/scenarios/internal/syntax"
)

// Spread is a time that may differ from one time to the next: a duration, or a
// distribution such as {uniform: [A, B]}.
type Spread struct {
	Node *syntax.Node // nil when it was left out
	// Zero tells that it is written as a constant of 0.
	Zero bool
	Dist dist.Dist
	// Text says it in words.
	Text string
	// Empirical, unless nil, names the file of the values; Dist is then not set.
	Empirical *Empirical
	Bounds    dist.Bounds
}

// Empirical names a column of durations.
type Empirical struct {
	Place
	// File of comma-separated values with a line of names.
	File string `json:"file" jsonschema:"required"`
	// Column of the file; may be left out when there is only one.
	Column string `json:"column"`
}

// Normal is the bell's shape around a mean; what would be negative is drawn again.
type Normal struct {
	Place
	// Mean of the times.
	Mean Duration `json:"mean" jsonschema:"required"`
	// SD is the standard deviation.
	SD Duration `json:"sd" jsonschema:"required"`
}

// Pareto has a smallest value and a heavy tail.
type Pareto struct {
	Place
	// Scale is the smallest value.
	Scale Duration `json:"scale" jsonschema:"required"`
	// Shape: the smaller, the heavier the tail.
	Shape Weight `json:"shape" jsonschema:"required"`
}

// Percentiles are two percentiles of a distribution: {p50: D, p99: D}.
type Percentiles struct {
	Node *syntax.Node
	List []dist.Percentile
}

func (v *Percentiles) decode(d *decoder, n *syntax.Node, path string) {
	v.Node = n
	if n.Kind != syntax.Map || len(n.Pairs) != 2 {
		d.fault(n, path, "wants two percentiles, e.g. {p50: 200ms, p99: 1s}")
		return
	}
	for _, p := range n.Pairs {
		at := syntax.Join(path, p.Key.Text)
		digits, ok := strings.CutPrefix(p.Key.Text, "p")
		percent, err := strconv.ParseFloat(digits, 64)
		var value Duration
		value.decode(d, p.Value, at)
		switch {
		case !ok || err != nil:
			d.fault(p.Key, at, "%q is no percentile; write p50, p99 or p99.9", p.Key.Text)
		case value.Set:
			v.List = append(v.List, dist.Percentile{P: percent, Value: value.D})
		}
	}
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

// distribution is the long form of a Spread.
type distribution struct {
	Place
	Constant    Duration     `json:"constant"`
	Uniform     *Range       `json:"uniform"`
	Exponential Duration     `json:"exponential"`
	Normal      *Normal      `json:"normal"`
	Lognormal   *Percentiles `json:"lognormal"`
	Pareto      *Pareto      `json:"pareto"`
	Empirical   *Empirical   `json:"empirical"`
	Min         Duration     `json:"min"`
	Max         Duration     `json:"max"`
}

// Distributions are the names of the distributions that a Spread may have.
var Distributions = []string{"constant", "uniform", "exponential", "normal", "lognormal", "pareto", "empirical"}

func (v *Spread) decode(d *decoder, n *syntax.Node, path string) {
	v.Node = n
	if n.Kind != syntax.Map {
		var constant Duration
		constant.decode(d, n, path)
		v.constant(constant)
		return
	}
	var long distribution
	faults := len(d.src.Problems())
	d.value(n, path, &long)
	var found []*syntax.Node
	for _, p := range n.Pairs {
		for _, name := range Distributions {
			if p.Key.Text == name {
				found = append(found, p.Key)
			}
		}
	}
	switch {
	case len(d.src.Problems()) > faults: // nothing else follows from it
	case len(found) == 0:
		d.fault(n, path, "wants a duration, e.g. 100ms, or a distribution: %s", strings.Join(Distributions, ", "))
	case len(found) > 1:
		d.fault(found[1], path, "%s and %s are two distributions; keep one", found[0].Text, found[1].Text)
	default:
		v.make(d, n, path, &long, found[0].Text)
	}
}

func (v *Spread) constant(c Duration) {
	v.Zero = c.Set && c.D == 0
	v.Text = c.D.String()
	v.Dist, _ = dist.Constant(c.D) // not negative
}

// make builds the distribution of the given name.
func (v *Spread) make(d *decoder, n *syntax.Node, path string, long *distribution, name string) {
	v.Bounds = dist.Bounds{Min: long.Min.D, Max: long.Max.D}
	for _, key := range []string{"min", "max"} {
		if at := n.Key(key); at != nil && (name == "constant" || name == "uniform") {
			d.fault(at, syntax.Join(path, key), "%s does not go with %s, which has an end", key, name)
			return
		}
	}
	var err error
	switch name {
	case "constant":
		v.constant(long.Constant)
		return
	case "uniform":
		v.Dist, err = dist.Uniform(long.Uniform.Low, long.Uniform.High)
		v.Text = fmt.Sprintf("uniform %v to %v", long.Uniform.Low, long.Uniform.High)
	case "exponential":
		v.Dist, err = dist.Exponential(long.Exponential.D, v.Bounds)
		v.Text = fmt.Sprintf("exponential %v", long.Exponential.D)
	case "normal":
		v.Dist, err = dist.Normal(long.Normal.Mean.D, long.Normal.SD.D, v.Bounds)
		v.Text = fmt.Sprintf("normal %v ± %v", long.Normal.Mean.D, long.Normal.SD.D)
	case "lognormal":
		p := long.Lognormal.List
		v.Dist, err = dist.Lognormal(p[0], p[1], v.Bounds)
		v.Text = fmt.Sprintf("lognormal p%g %v, p%g %v", p[0].P, p[0].Value, p[1].P, p[1].Value)
	case "pareto":
		v.Dist, err = dist.Pareto(long.Pareto.Scale.D, long.Pareto.Shape.W, v.Bounds)
		v.Text = fmt.Sprintf("pareto %v, shape %g", long.Pareto.Scale.D, long.Pareto.Shape.W)
	case "empirical":
		v.Empirical = long.Empirical
		v.Text = "empirical " + long.Empirical.File
	}
	if err != nil {
		d.fault(n.Lookup(name), syntax.Join(path, name), "%s", err)
	}
	if v.Bounds.Min > 0 {
		v.Text += fmt.Sprintf(", at least %v", v.Bounds.Min)
	}
	if v.Bounds.Max > 0 {
		v.Text += fmt.Sprintf(", at most %v", v.Bounds.Max)
	}
}
