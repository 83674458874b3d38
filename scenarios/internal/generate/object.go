package generate

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// members plans the members of one object.
type members struct {
	m           *maker
	flat        []*node
	lean        bool
	required    map[string]bool
	present     map[string]bool
	least, most int
}

func (m *maker) object(flat []*node, depth int, lean bool) (any, bool) {
	p := members{m: m, flat: flat, lean: lean, required: map[string]bool{}, present: map[string]bool{}, most: math.MaxInt}
	for _, n := range flat {
		p.demand(n)
	}
	if p.least > maxSteps || len(p.required) > maxSteps {
		return nil, false
	}
	p.draw()
	p.invent()
	if !p.complete() {
		return nil, false
	}
	out := make(map[string]any, len(p.present))
	for _, name := range slices.Sorted(maps.Keys(p.present)) {
		want, open := nodesOf(p.flat, name)
		if open {
			if v, ok := m.value(want, name, depth+1); ok {
				out[name] = v
				m.size += len(name)
				continue
			}
		}
		if p.required[name] || len(p.present) <= p.least {
			return nil, false
		}
		delete(p.present, name)
	}
	return out, true
}

// demand adds what one schema asks of the object.
func (p *members) demand(n *node) {
	for _, name := range n.schema.Required {
		p.required[name], p.present[name] = true, true
	}
	if n.schema.MinProperties != nil {
		p.least = max(p.least, *n.schema.MinProperties)
	}
	if n.schema.MaxProperties != nil {
		p.most = min(p.most, *n.schema.MaxProperties)
	}
}

// draw adds named members that may be left out: about half of a few, about 12
// of many, and as many as the least number of members asks for.
func (p *members) draw() {
	var optional []string
	for _, n := range p.flat {
		for _, member := range n.props {
			if !p.required[member.name] && !member.node.never && member.node.height < endless {
				optional = append(optional, member.name)
			}
		}
	}
	if p.lean && len(p.required) >= p.least || len(optional) == 0 {
		return
	}
	slices.Sort(optional)
	optional = slices.Compact(optional)
	if !p.m.plain {
		p.m.r.Shuffle(len(optional), func(i, j int) { optional[i], optional[j] = optional[j], optional[i] })
	}
	share := min(0.5, 12/float64(len(optional)))
	for _, name := range optional {
		if len(p.present) >= p.most {
			return
		}
		if len(p.present) < p.least || !p.lean && p.m.r.Float64() < share {
			p.present[name] = true
		}
	}
}

// invent adds members with made-up names: those that a dictionary is for, and
// as many as the least number of members asks for.
func (p *members) invent() {
	wish := p.least
	dictionary := !slices.ContainsFunc(p.flat, func(n *node) bool { return len(n.props) > 0 }) &&
		slices.ContainsFunc(p.flat, func(n *node) bool { return n.additional != nil || len(n.patterns) > 0 })
	if dictionary && !p.lean {
		wish = max(wish, len(p.present)+1+p.m.r.IntN(3))
	}
	wish = min(wish, p.most)
	for try := 0; len(p.present) < wish && try < 4*wish+retries; try++ {
		name, ok := p.name(try)
		if !ok || p.present[name] {
			continue
		}
		if _, open := nodesOf(p.flat, name); open {
			p.present[name] = true
		}
	}
}

// name makes up the name of a member.
func (p *members) name(try int) (string, bool) {
	var patterns []patternMember
	var names []*node
	for _, n := range p.flat {
		patterns = append(patterns, n.patterns...)
		if n.names != nil {
			names = append(names, n.names)
		}
	}
	var name string
	switch {
	case len(patterns) > 0 && try%2 == 0:
		shape := patterns[p.m.pick(len(patterns))].shape
		spare := 3 + try/8
		b, ok := p.m.appendShape(nil, shape.tree, &spare)
		if !ok || !shape.re.MatchString(string(b)) {
			return "", false
		}
		name = string(b)
	case len(names) > 0:
		v, ok := p.m.value(names, "", 1)
		if !ok {
			return "", false
		}
		name, _ = v.(string)
	default:
		if name = p.m.word(); try >= len(words) || p.m.plain {
			name += fmt.Sprint(try)
		}
	}
	for _, n := range names {
		if n.schema.Validate(name) != nil {
			return "", false
		}
	}
	return name, len(name) < maxBytes
}

// complete adds what the members present ask for in turn.
func (p *members) complete() bool {
	for range retries {
		changed := false
		for i := 0; i < len(p.flat); i++ { // it grows
			for _, d := range p.flat[i].dependents {
				more, ok := p.follow(d)
				if !ok {
					return false
				}
				changed = changed || more
			}
		}
		if !changed {
			break
		}
	}
	return len(p.present) <= maxSteps
}

// follow adds what d asks for when its member is present; changed: something
// was added.
func (p *members) follow(d dependents) (changed, ok bool) {
	if !p.present[d.name] {
		return false, true
	}
	for _, name := range d.required {
		changed = changed || !p.present[name]
		p.required[name], p.present[name] = true, true
	}
	if d.node == nil || slices.Contains(p.flat, d.node) {
		return changed, true
	}
	at := len(p.flat)
	if p.flat, ok = p.m.flatten(p.flat, []*node{d.node}, p.lean); !ok {
		return false, false
	}
	for _, n := range p.flat[at:] {
		p.demand(n)
	}
	return true, true
}

// nodesOf are the schemas of the member name. open is false when one of flat
// allows no such member.
func nodesOf(flat []*node, name string) (want []*node, open bool) {
	for _, n := range flat {
		known := false
		if member := n.byName[name]; member != nil {
			want, known = append(want, member), true
		}
		for _, p := range n.patterns {
			if p.re.MatchString(name) {
				want, known = append(want, p.node), true
			}
		}
		if known {
			continue
		}
		if n.closed {
			return nil, false
		}
		if n.additional != nil {
			want = append(want, n.additional)
		}
	}
	return want, true
}

func (m *maker) array(flat []*node, name string, depth int, lean bool) (any, bool) {
	least, most, contained, unique := 0, math.MaxInt, 0, false
	var contains []*node
	for _, n := range flat {
		s := n.schema
		if s.MinItems != nil {
			least = max(least, *s.MinItems)
		}
		if s.MaxItems != nil {
			most = min(most, *s.MaxItems)
		}
		if n.contains != nil {
			contains = append(contains, n.contains)
			contained = max(contained, 1)
			if s.MinContains != nil {
				contained = max(contained, *s.MinContains)
			}
		}
		unique = unique || s.UniqueItems
	}
	least = max(least, contained)
	if least > most || least > maxSteps {
		return nil, false
	}
	n := least
	if !lean {
		n += m.r.IntN(min(most-least, 3) + 1)
	}
	out := make([]any, 0, n)
	seen := map[string]bool{}
	for i := range n {
		want, ok := itemsOf(flat, i)
		if i < contained {
			want = append(want, contains...)
		}
		var v any
		if ok {
			v, ok = m.item(want, name, depth, unique, seen)
		}
		if !ok {
			return out, i >= least
		}
		out = append(out, v)
	}
	return out, true
}

// item makes an item, when unique one that has not been seen.
func (m *maker) item(want []*node, name string, depth int, unique bool, seen map[string]bool) (any, bool) {
	plain := m.plain
	defer func() { m.plain = plain }()
	for range 2 * retries {
		v, ok := m.value(want, name, depth+1)
		if !ok || !unique {
			return v, ok
		}
		if key := string(appendJSON(nil, v)); !seen[key] {
			seen[key] = true
			return v, true
		}
		m.plain = false // the plainest has been there
	}
	return nil, false
}

func itemsOf(flat []*node, i int) (want []*node, open bool) {
	for _, n := range flat {
		if item := n.item(i); item != nil {
			if item.never {
				return nil, false
			}
			want = append(want, item)
		}
	}
	return want, true
}
