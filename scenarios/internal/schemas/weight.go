package schemas

import (
	"errors"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxWeight bounds how many schemas may apply to one place of a value. Two
// references on each of thirty levels would make it 2^30, and the validator
// cannot be interrupted.
const maxWeight = 2000

var (
	errCircle = errors.New("its references go in a circle")
	errHeavy  = errors.New("it combines too many schemas")
)

// Reachable returns root and every schema that validation against it can come
// to, root first.
func Reachable(root *jsonschema.Schema) []*jsonschema.Schema {
	seen := map[*jsonschema.Schema]bool{root: true}
	all := []*jsonschema.Schema{root}
	for i := 0; i < len(all); i++ {
		next := InPlace(all[i])
		below := below(all[i])
		next = slices.Concat(next, below.members, below.items)
		for _, s := range below.named {
			next = append(next, s)
		}
		for _, s := range next {
			if s != nil && !seen[s] {
				seen[s] = true
				all = append(all, s)
			}
		}
	}
	return all
}

// InPlace returns the schemas that s applies to the very value it is applied to.
func InPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else})
	if s.DynamicRef != nil {
		out = append(out, s.DynamicRef.Ref)
	}
	for _, d := range s.Dependencies {
		if d, ok := d.(*jsonschema.Schema); ok {
			out = append(out, d)
		}
	}
	for _, d := range s.DependentSchemas {
		out = append(out, d)
	}
	return slices.DeleteFunc(out, func(s *jsonschema.Schema) bool { return s == nil })
}

// inner are the schemas that one schema applies below: to members by name, to
// any member or name, and to any item.
type inner struct {
	named   map[string]*jsonschema.Schema
	members []*jsonschema.Schema
	items   []*jsonschema.Schema
}

func below(s *jsonschema.Schema) inner {
	in := inner{named: s.Properties}
	some := func(list []*jsonschema.Schema, more ...any) []*jsonschema.Schema {
		for _, v := range more {
			switch v := v.(type) {
			case *jsonschema.Schema:
				list = append(list, v)
			case []*jsonschema.Schema:
				list = append(list, v...)
			}
		}
		return slices.DeleteFunc(list, func(s *jsonschema.Schema) bool { return s == nil })
	}
	for _, p := range s.PatternProperties {
		in.members = append(in.members, p)
	}
	in.members = some(in.members, s.AdditionalProperties, s.PropertyNames, s.UnevaluatedProperties, s.ContentSchema)
	in.items = some(nil, s.Items, s.AdditionalItems, s.Items2020, s.PrefixItems, s.Contains, s.UnevaluatedItems)
	return in
}

// weigher counts schemas applied to one place. weight[i] is an upper bound for
// any place at most d levels below a value that schema i is applied to, d
// growing with each round.
type weigher struct {
	index   map[*jsonschema.Schema]int
	closure []map[int]int // the schemas applied in place, with how often
	entries int
}

// checkWeight refuses schemas that go in a circle without a step into the
// value, and those past maxWeight.
func checkWeight(all []*jsonschema.Schema) error {
	w := weigher{index: map[*jsonschema.Schema]int{}, closure: make([]map[int]int, len(all))}
	for i, s := range all {
		w.index[s] = i
	}
	state := make([]uint8, len(all))
	for i := range all {
		if err := w.close(all, state, i); err != nil {
			return err
		}
	}
	inners := make([]inner, len(all))
	for i, s := range all {
		inners[i] = below(s)
	}
	weight := make([]int, len(all))
	for range maxDepth / 8 {
		next, changed := make([]int, len(all)), false
		for i := range all {
			next[i] = w.round(inners, weight, i)
			if next[i] > maxWeight {
				return errHeavy
			}
			changed = changed || next[i] != weight[i]
		}
		weight = next
		if !changed {
			return nil
		}
	}
	return nil
}

// close fills closure[i]; state is 1 for schemas on the way down, 2 when done.
func (w *weigher) close(all []*jsonschema.Schema, state []uint8, i int) error {
	switch state[i] {
	case 1:
		return errCircle
	case 2:
		return nil
	}
	state[i] = 1
	closure := map[int]int{i: 1}
	total := 1
	for _, s := range InPlace(all[i]) {
		k := w.index[s]
		if err := w.close(all, state, k); err != nil {
			return err
		}
		for member, times := range w.closure[k] {
			closure[member] += times
			total += times
		}
		if total > maxWeight {
			return errHeavy
		}
	}
	if w.entries += len(closure); w.entries > 1_000_000 {
		return errHeavy
	}
	w.closure[i], state[i] = closure, 2
	return nil
}

func (w *weigher) round(inners []inner, weight []int, i int) int {
	own, members, items := 0, 0, 0
	var names map[string]int
	for member, times := range w.closure[i] {
		own += times
		in := &inners[member]
		for name, s := range in.named {
			if names == nil {
				names = map[string]int{}
			}
			names[name] += times * weight[w.index[s]]
		}
		for _, s := range in.members {
			members += times * weight[w.index[s]]
		}
		for _, s := range in.items {
			items += times * weight[w.index[s]]
		}
	}
	most := 0
	for _, n := range names {
		most = max(most, n)
	}
	return max(own, most+members, items)
}
