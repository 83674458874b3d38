package syntax

import (
	"regexp"
	"strconv"
)

var (
	intText   = regexp.MustCompile(`^[-+]?[0-9]+$|^0o[0-7]+$|^0x[0-9a-fA-F]+$`)
	floatText = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$`)
)

// resolve gives the kind of a plain scalar (YAML 1.2.2 §10.3.2, core schema).
func resolve(text string) Kind {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return Null
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return Bool
	}
	switch {
	case intText.MatchString(text):
		return Int
	case floatText.MatchString(text):
		return Float
	}
	return String
}

// True tells whether a Bool node is true.
func (n *Node) True() bool { return n.Kind == Bool && (n.Text[0] == 't' || n.Text[0] == 'T') }

// Integer returns the value of an Int node; ok is false when it does not fit
// into 64 bits.
func (n *Node) Integer() (v int64, ok bool) {
	text, base := n.Text, 10
	if len(text) > 2 && text[0] == '0' && (text[1] == 'o' || text[1] == 'x') {
		base = map[byte]int{'o': 8, 'x': 16}[text[1]]
		text = text[2:]
	}
	v, err := strconv.ParseInt(text, base, 64)
	return v, err == nil
}

// Number returns the value of an Int or Float node; ok is false for infinity,
// not-a-number and what is too large.
func (n *Node) Number() (v float64, ok bool) {
	if n.Kind == Int {
		if i, ok := n.Integer(); ok {
			return float64(i), true
		}
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	return v, err == nil && v-v == 0
}
