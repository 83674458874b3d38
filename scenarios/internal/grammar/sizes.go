package grammar

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"mcpbench/scenarios/internal/syntax"
)

// Size is a number of bytes with a unit, such as 8MiB.
type Size struct {
	Bytes int64
	Set   bool
}

// sizeUnits are the units of sizes with what they stand for.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
}

const sizeHint = "write a number with kB, MB, GB, KiB, MiB or GiB, e.g. 8MiB"

// ParseSize reads a number of bytes with a unit; the error says what to write.
// Units are told apart by their case, too: an m is no M.
func ParseSize(text string) (int64, error) {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fmt.Errorf("sizes carry units, e.g. 8MiB")
	}
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		whole, fraction, _ := strings.Cut(number, ".")
		if digits := whole + fraction; whole == "" || strings.Trim(digits, "0123456789") != "" || strings.HasSuffix(number, ".") {
			return 0, fmt.Errorf("%q is no size; %s", text, sizeHint)
		}
		v, err := strconv.ParseFloat(number, 64)
		v *= float64(u.bytes)
		switch {
		case err != nil || v >= math.MaxInt64:
			return 0, fmt.Errorf("%q is too large", text)
		case v != math.Trunc(v):
			return 0, fmt.Errorf("%q is no whole number of bytes", text)
		}
		return int64(v), nil
	}
	return 0, fmt.Errorf("%q is no size; %s", text, sizeHint)
}

func (v *Size) decode(d *decoder, n *syntax.Node, path string) {
	switch n.Kind {
	case syntax.String:
		parsed, err := ParseSize(n.Text)
		if err != nil {
			d.fault(n, path, "%s", err)
			return
		}
		*v = Size{Bytes: parsed, Set: true}
	case syntax.Int, syntax.Float:
		d.fault(n, path, "sizes carry units, e.g. 8MiB")
	case syntax.Null, syntax.Bool, syntax.Seq, syntax.Map:
		d.fault(n, path, "wants a size, e.g. 8MiB; this is %s", n.Kind)
	}
}

// Keep is how much of a text is kept: keep-head:SIZE of its beginning, keep-tail:SIZE
// of its end, or both with a blank between them. What is not named is not kept.
type Keep struct {
	Head, Tail int64
	Set        bool
}

func (v *Keep) decode(d *decoder, n *syntax.Node, path string) {
	const hint = "write keep-tail:SIZE, keep-head:SIZE or both, e.g. keep-head:64KiB keep-tail:1MiB"
	if n.Kind != syntax.String {
		d.fault(n, path, "wants how much to keep; %s", hint)
		return
	}
	var out Keep
	seen := map[string]bool{}
	for part := range strings.FieldsSeq(n.Text) {
		key, size, _ := strings.Cut(part, ":")
		if key != "keep-head" && key != "keep-tail" {
			d.fault(n, path, "%q is not known here; %s", part, hint)
			return
		}
		if seen[key] {
			d.fault(n, path, "%s is there twice", key)
			return
		}
		seen[key] = true
		bytes, err := ParseSize(size)
		if err != nil {
			d.fault(n, path, "%s: %s", key, err)
			return
		}
		if key == "keep-head" {
			out.Head = bytes
		} else {
			out.Tail = bytes
		}
	}
	if len(seen) == 0 {
		d.fault(n, path, "says nothing; %s", hint)
		return
	}
	out.Set = true
	*v = out
}
