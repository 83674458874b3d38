package grammar

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"mcpbench/scenarios/internal/syntax"
)

// Later is a key of the language that this version does not do yet.
type Later struct{}

// Duration is a time with a unit, such as 250ms or 1m30s.
type Duration struct {
	D   time.Duration
	Set bool
}

// Rate is a number of arrivals with a unit, such as 200/s, 30/m or 10/h.
type Rate struct {
	PerSecond float64
	Set       bool
}

// Text is a scalar taken as it is written; numbers and true or false need no quotes.
type Text struct {
	Node *syntax.Node
}

// Label is a Text that is no place for expressions.
type Label struct {
	Text
}

func (v *Label) decode(d *decoder, n *syntax.Node, path string) {
	if d.plain(n, path) {
		v.Text.decode(d, n, path)
	}
}

// Template is a text that may hold ${{ }} expressions.
type Template struct {
	Node *syntax.Node
}

// Expr is an expression without ${{ }}.
type Expr struct {
	Node *syntax.Node
}

// Value is any value: text, number, true or false, list or map. Texts in it may
// hold ${{ }} expressions.
type Value struct {
	Node *syntax.Node
}

// Values is a map of any values.
type Values struct {
	Node *syntax.Node
}

// Files are names of files; the keys that have them are resolved before the file
// is decoded.
type Files struct{}

func (*Files) decode(*decoder, *syntax.Node, string) {}

// Threshold is a threshold's text with where it stands.
type Threshold struct {
	Node  *syntax.Node // of the text
	Path  string
	Abort Abort
}

// ParseDuration reads a duration with a unit; the error says what to write.
func ParseDuration(text string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fmt.Errorf("durations carry units, e.g. 5s")
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no duration; write a number with ms, s, m or h, e.g. 5s", text)
	case d < 0:
		return 0, fmt.Errorf("a duration must not be negative")
	}
	return d, nil
}

// MaxRate is the most arrivals per second that are paced.
const MaxRate = 1_000_000

// ParseRate reads a number of arrivals per s, m or h and returns it per second.
// A number without a unit counts per second when bare is set.
func ParseRate(text string, bare bool) (float64, error) {
	number, unit, found := strings.Cut(text, "/")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil || math.IsInf(v, 0) || math.IsNaN(v):
		return 0, fmt.Errorf("%q is no rate; write a number with /s, /m or /h, e.g. 200/s", text)
	case !found && !bare:
		return 0, fmt.Errorf("rates carry units, e.g. 200/s")
	case v <= 0:
		return 0, fmt.Errorf("a rate must be more than 0")
	case v > MaxRate:
		return 0, fmt.Errorf("a rate must be at most %d/s", MaxRate)
	}
	switch strings.TrimSpace(unit) {
	case "s", "":
		if found && strings.TrimSpace(unit) == "" {
			break
		}
		return v, nil
	case "m", "min":
		return v / 60, nil
	case "h":
		return v / 3600, nil
	}
	return 0, fmt.Errorf("%q is no unit of a rate; write /s, /m or /h, e.g. 200/s", "/"+unit)
}

func (v *Duration) decode(d *decoder, n *syntax.Node, path string) {
	switch n.Kind {
	case syntax.String:
		parsed, err := ParseDuration(n.Text)
		if err != nil {
			d.fault(n, path, "%s", err)
			return
		}
		*v = Duration{D: parsed, Set: true}
	case syntax.Int, syntax.Float:
		d.fault(n, path, "durations carry units, e.g. 5s")
	case syntax.Null, syntax.Bool, syntax.Seq, syntax.Map:
		d.fault(n, path, "wants a duration, e.g. 5s; this is %s", n.Kind)
	}
}

func (v *Rate) decode(d *decoder, n *syntax.Node, path string) {
	switch n.Kind {
	case syntax.String, syntax.Int, syntax.Float:
		parsed, err := ParseRate(n.Text, false)
		if err != nil {
			d.fault(n, path, "%s", err)
			return
		}
		*v = Rate{PerSecond: parsed, Set: true}
	case syntax.Null, syntax.Bool, syntax.Seq, syntax.Map:
		d.fault(n, path, "wants a rate, e.g. 200/s; this is %s", n.Kind)
	}
}

func (v *Text) decode(d *decoder, n *syntax.Node, path string) {
	if d.scalar(n, path) {
		v.Node = n
	}
}

func (v *Template) decode(d *decoder, n *syntax.Node, path string) {
	if d.scalar(n, path) {
		v.Node = n
	}
}

func (v *Expr) decode(d *decoder, n *syntax.Node, path string) {
	if n.Kind != syntax.String && n.Kind != syntax.Bool {
		d.fault(n, path, "wants an expression such as not result.isError; this is %s", n.Kind)
		return
	}
	v.Node = n
}

func (v *Value) decode(_ *decoder, n *syntax.Node, _ string) { v.Node = n }

func (v *Values) decode(d *decoder, n *syntax.Node, path string) {
	if n.Kind != syntax.Map {
		d.fault(n, path, "wants a map; this is %s", n.Kind)
		return
	}
	v.Node = n
}

func (v *Threshold) decode(d *decoder, n *syntax.Node, path string) {
	switch n.Kind {
	case syntax.String:
		*v = Threshold{Node: n, Path: path}
	case syntax.Map:
		var long struct {
			Place
			Expr  Expr  `json:"expr" jsonschema:"required"`
			Abort Abort `json:"abort"`
		}
		d.value(n, path, &long)
		*v = Threshold{Node: long.Expr.Node, Path: path, Abort: long.Abort}
	case syntax.Null, syntax.Bool, syntax.Int, syntax.Float, syntax.Seq:
		d.fault(n, path, "wants a threshold such as p99(latency) < 250ms; this is %s", n.Kind)
	}
}
