package generate

import (
	"encoding/json"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxFaults = 2000 // ways to break one value that are considered
	checks    = 16   // of them tried
	maxLonger = 8192 // of a text made too long
)

// fault is one way to break a value: set, or with remove take away, what stands
// at path.
type fault struct {
	what   string
	path   []any // string or int
	value  any
	remove bool
}

// spoilt breaks a valid value in one place, so that a validator that ignores
// formats refuses it.
func (g *Generator) spoilt(r *rand.Rand) (v any, how string, ok bool) {
	whole, err := g.try(&maker{r: r})
	if err != nil {
		if whole, err = g.try(&maker{r: r, lean: true}); err != nil {
			return nil, "", false
		}
	}
	f := faults{r: r}
	f.visit([]*node{g.root}, whole, nil)
	// A kind of fault first: a schema with many members has most faults in types.
	kinds := map[string][]fault{}
	for _, one := range f.list {
		kinds[one.what] = append(kinds[one.what], one)
	}
	names := slices.Sorted(maps.Keys(kinds))
	for range checks {
		if len(names) == 0 {
			return nil, "", false
		}
		k := r.IntN(len(names))
		list := kinds[names[k]]
		i := r.IntN(len(list))
		one := list[i]
		if broken := apply(whole, one, one.path); g.lax.Validate(broken) != nil {
			return broken, one.what + " " + pointer(one.path), true
		}
		if kinds[names[k]] = slices.Delete(list, i, i+1); len(list) == 1 {
			names = slices.Delete(names, k, k+1)
		}
	}
	return nil, "", false
}

// apply returns v with the fault in it; what is not on the path is shared.
func apply(v any, f fault, path []any) any {
	if len(path) == 0 {
		return f.value
	}
	switch at := path[0].(type) {
	case string:
		object, _ := v.(map[string]any)
		out := maps.Clone(object)
		if f.remove && len(path) == 1 {
			delete(out, at)
		} else {
			out[at] = apply(object[at], f, path[1:])
		}
		return out
	case int:
		array, _ := v.([]any)
		out := slices.Clone(array)
		out[at] = apply(array[at], f, path[1:])
		return out
	}
	return v
}

// pointer is a path as a JSON pointer (RFC 6901); the whole value is "/".
func pointer(path []any) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteByte('/')
		switch step := step.(type) {
		case string:
			b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
		case int:
			b.WriteString(strconv.Itoa(step))
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// faults collects ways to break a value.
type faults struct {
	r    *rand.Rand
	list []fault
}

func (f *faults) add(what string, path []any, value any) {
	if len(f.list) < maxFaults && len(path) > 0 { // arguments stay an object
		f.list = append(f.list, fault{what: what, path: slices.Clone(path), value: value})
	}
}

// visit looks at one value, for which all of want and some of their
// alternatives hold. Whether a fault is one is validated once it is drawn.
func (f *faults) visit(want []*node, v any, path []any) {
	if len(path) > maxDepth || len(f.list) >= maxFaults {
		return
	}
	flat := spread(want)
	for _, n := range flat {
		f.ofKind(n, path)
		switch v := v.(type) {
		case string:
			f.ofText(n, v, path)
		case json.Number:
			f.ofNumber(n, v, path)
		case []any:
			f.ofArray(n, v, path)
		case map[string]any:
			f.ofObject(n, v, path)
		}
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if want, _ := itemsOf(flat, i); len(want) > 0 {
				f.visit(want, item, append(path, i))
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if want, _ := nodesOf(flat, name); len(want) > 0 {
				f.visit(want, v[name], append(path, name))
			}
		}
	}
}

// spread returns want and every schema they apply to the same value, whichever
// alternative holds.
func spread(want []*node) []*node {
	flat := slices.Clone(want)
	for i := 0; i < len(flat) && len(flat) < maxFlat; i++ {
		next := slices.Clone(flat[i].all)
		for _, branches := range flat[i].choices {
			next = append(next, branches...)
		}
		if c := flat[i].cond; c != nil {
			next = append(append(next, c.then...), c.otherwise...)
		}
		for _, n := range next {
			if !slices.Contains(flat, n) {
				flat = append(flat, n)
			}
		}
	}
	return flat
}

// ofKind sets values of other types, and others than the schema lists.
func (f *faults) ofKind(n *node, path []any) {
	for _, v := range []any{"not of this type", json.Number("12345"), json.Number("0.5"), true, nil, []any{}, map[string]any{}} {
		if k := kindOf(v); n.kinds&k == 0 {
			f.add("wrong type at", path, v)
		}
	}
	if len(n.only) > 0 {
		f.add("none of the allowed values at", path, "none of the allowed values")
		f.add("none of the allowed values at", path, json.Number("-987654321"))
	}
}

func (f *faults) ofText(n *node, v string, path []any) {
	if least := n.schema.MinLength; least != nil && *least > 0 {
		runes := []rune(v)
		f.add("too short at", path, string(runes[:min(len(runes), *least-1)]))
	}
	if most := n.schema.MaxLength; most != nil && *most < maxLonger {
		f.add("too long at", path, v+strings.Repeat("x", *most+1-min(utf8.RuneCountInString(v), *most)))
	}
	if n.shape != nil {
		for _, text := range []string{"", "!", "not matching", "0", "~" + v, v + "~"} {
			if !n.shape.re.MatchString(text) {
				f.add("pattern not matched at", path, text)
			}
		}
	}
}

func (f *faults) ofNumber(n *node, v json.Number, path []any) {
	set := func(what string, r *big.Rat) {
		if digits, exact := r.FloatPrec(); exact {
			f.add(what, path, json.Number(r.FloatString(digits)))
		}
	}
	one := big.NewRat(1, 1)
	if n.low.value != nil {
		set("below the minimum at", new(big.Rat).Sub(n.low.value, one))
		if n.low.open {
			set("below the minimum at", n.low.value)
		}
	}
	if n.high.value != nil {
		set("above the maximum at", new(big.Rat).Add(n.high.value, one))
		if n.high.open {
			set("above the maximum at", n.high.value)
		}
	}
	if now, ok := new(big.Rat).SetString(v.String()); ok && n.multiple != nil {
		set("no multiple at", now.Add(now, new(big.Rat).Mul(n.multiple, big.NewRat(1, 2))))
	}
}

func (f *faults) ofArray(n *node, v []any, path []any) {
	if least := n.schema.MinItems; least != nil && *least > 0 {
		f.add("too few items at", path, v[:min(len(v), *least-1)])
	}
	if len(v) == 0 {
		return
	}
	last := v[len(v)-1]
	if most := n.schema.MaxItems; most != nil && *most < maxLonger {
		longer := slices.Clone(v)
		for len(longer) <= *most {
			longer = append(longer, last)
		}
		f.add("too many items at", path, longer)
	}
	if n.schema.UniqueItems {
		f.add("an item twice at", path, append(slices.Clone(v), last))
	}
}

// ofObject takes away and adds members.
func (f *faults) ofObject(n *node, v map[string]any, path []any) {
	at := func(name string) []any { return append(slices.Clone(path), name) }
	remove := func(what, name string) {
		if _, there := v[name]; there && len(f.list) < maxFaults {
			f.list = append(f.list, fault{what: what, path: at(name), remove: true})
		}
	}
	for _, name := range n.schema.Required {
		remove("missing required member", name)
	}
	for _, d := range n.dependents {
		for _, name := range d.required {
			if _, there := v[d.name]; there {
				remove("missing dependent member", name)
			}
		}
	}
	if n.schema.MinProperties != nil {
		for _, name := range slices.Sorted(maps.Keys(v)) {
			remove("too few members without", name)
		}
	}
	f.addMembers(n, v, path)
}

// addMembers adds members that may not be there. One that may gets a value of a
// wrong type, so that schemas whose members are all optional can be broken.
func (f *faults) addMembers(n *node, v map[string]any, path []any) {
	at := func(name string) []any { return append(slices.Clone(path), name) }
	if most := n.schema.MaxProperties; most != nil && *most < maxLonger {
		f.crowd(v, *most, path)
	}
	for _, name := range []string{"unexpectedMember", "Unexpected member!"} {
		if _, open := nodesOf([]*node{n}, name); !open || n.names != nil || n.schema.UnevaluatedProperties != nil {
			f.add("unexpected member", at(name), true)
		}
	}
	if n.additional != nil && !n.closed {
		f.ofKind(n.additional, at("unexpectedMember"))
	}
	for _, member := range n.props {
		if _, there := v[member.name]; !there && len(f.list) < maxFaults {
			for _, m := range spread([]*node{member.node}) {
				f.ofKind(m, at(member.name))
			}
		}
	}
}

// crowd adds members past the most allowed. The arguments themselves cannot be
// replaced as a whole, so they are only one over.
func (f *faults) crowd(v map[string]any, most int, path []any) {
	if len(v) == most {
		f.add("too many members with", append(slices.Clone(path), "oneTooMany"), true)
		return
	}
	more := maps.Clone(v)
	for i := 0; len(more) <= most; i++ {
		more["member"+strconv.Itoa(i)] = true
	}
	f.add("too many members at", path, more)
}
