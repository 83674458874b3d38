package generate

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
)

const (
	maxDepth  = 32       // of nesting in a value
	softDepth = 4        // below it only what is required is made
	maxBytes  = 64 << 10 // of a value as JSON
	softBytes = 8 << 10  // past it only what is required is made
	maxSteps  = 4000     // values made in one attempt, those thrown away too
	maxFlat   = 256      // schemas looked at for one value
	retries   = 8        // of a value that turns out wrong once it is whole
)

// maker makes one value. It is used by one goroutine.
type maker struct {
	r     *rand.Rand
	plain bool // the plainest values
	first bool // and the first of alternatives
	lean  bool // only what is required

	steps int // left
	size  int // bytes made so far, about
}

// pick draws from 0 to n-1; the plainest is 0.
func (m *maker) pick(n int) int {
	if m.plain {
		return 0
	}
	return m.r.IntN(n)
}

// value makes a value that all of want allow. name is the member it is for. It
// may be wrong where schemas exclude each other in ways not looked at here:
// the whole is validated at the end.
func (m *maker) value(want []*node, name string, depth int) (any, bool) {
	if depth > maxDepth {
		return nil, false
	}
	for try := range retries {
		if m.steps--; m.steps < 0 || m.size > maxBytes {
			return nil, false
		}
		shallow := depth > softDepth || m.size > softBytes || try >= retries/2
		first, size := m.first, m.size
		m.first = first && try == 0
		flat, ok := m.flatten(nil, want, shallow)
		var v any
		if ok {
			v, ok = m.build(flat, name, depth, m.lean || shallow)
		}
		m.first = first
		if ok && holds(flat, v) {
			return v, true
		}
		m.size = size
		if !slices.ContainsFunc(flat, func(n *node) bool { return n.hard || len(n.choices) > 0 }) {
			return nil, false // it would fail again
		}
	}
	return nil, false
}

// holds validates what a value built piece by piece may break.
func holds(flat []*node, v any) bool {
	for _, n := range flat {
		if n.hard && n.schema.Validate(v) != nil {
			return false
		}
	}
	return true
}

// flatten adds to flat the schemas that apply to one value when want do: what
// they refer to, and one of each group of alternatives. False: they exclude
// each other.
func (m *maker) flatten(flat, want []*node, shallow bool) ([]*node, bool) {
	kinds := anyKind
	for _, n := range flat {
		kinds &= n.kinds
	}
	queue := slices.Clone(want)
	var choices [][]*node
	for len(queue) > 0 || len(choices) > 0 {
		if len(queue) == 0 {
			branches := choices[0]
			choices = choices[1:]
			chosen, ok := m.branch(branches, kinds, shallow)
			if !ok {
				return flat, false
			}
			queue = append(queue, chosen)
			continue
		}
		n := queue[0]
		queue = queue[1:]
		if slices.Contains(flat, n) {
			continue
		}
		flat = append(flat, n)
		kinds &= n.kinds
		if n.never || kinds == 0 || len(flat) > maxFlat {
			return flat, false
		}
		queue = append(queue, n.all...)
		choices = append(choices, n.choices...)
		if n.cond != nil {
			if m.first || m.r.IntN(2) == 0 {
				queue = append(queue, n.cond.otherwise...)
			} else {
				queue = append(queue, n.cond.then...)
			}
		}
	}
	return flat, true
}

// branch chooses one of some alternatives: one of the kinds wanted, and when
// shallow one that is nested least.
func (m *maker) branch(branches []*node, kinds kind, shallow bool) (*node, bool) {
	least := endless
	for _, b := range branches {
		if b.kinds&kinds != 0 {
			least = min(least, b.height)
		}
	}
	limit := endless - 1
	if shallow {
		limit = least
	}
	fits := func(b *node) bool { return b.kinds&kinds != 0 && !b.never && b.height <= limit }
	count := 0
	for _, b := range branches {
		if fits(b) {
			count++
		}
	}
	if count == 0 {
		return nil, false
	}
	k := 0
	if !m.first {
		k = m.r.IntN(count)
	}
	for _, b := range branches {
		if fits(b) {
			if k == 0 {
				return b, true
			}
			k--
		}
	}
	return nil, false
}

func (m *maker) build(flat []*node, name string, depth int, lean bool) (any, bool) {
	kinds, hinted := anyKind, kind(0)
	for _, n := range flat {
		kinds &= n.kinds
		hinted |= n.likely
	}
	if depth == 0 {
		kinds &= objectKind
	}
	if v, decided, ok := m.offered(flat); decided {
		return v, ok && (depth > 0 || kindOf(v) == objectKind)
	}
	if kinds&hinted != 0 {
		kinds &= hinted
	}
	m.size += 8
	switch m.choose(kinds) {
	case objectKind:
		return m.object(flat, depth, lean)
	case arrayKind:
		return m.array(flat, name, depth, lean)
	case stringKind:
		if m.plain && kinds == anyKind && hinted == 0 {
			return "x", true
		}
		return m.text(flat, name)
	case integerKind:
		return m.number(flat, true)
	case numberKind:
		return m.number(flat, false)
	case booleanKind:
		return m.pick(2) == 0, true
	case nullKind:
		return nil, true
	case anyKind: // never chosen: no single kind
	}
	return nil, false
}

// choose draws one kind of a set.
func (m *maker) choose(kinds kind) kind {
	if kinds&numberKind != 0 {
		kinds &^= integerKind // whole numbers are drawn among the others
	}
	order := [...]kind{stringKind, integerKind, numberKind, booleanKind, arrayKind, objectKind, nullKind}
	if !m.plain && kinds&(kinds-1) != 0 { // null is of little use to a load
		if kinds != nullKind && m.r.IntN(8) > 0 {
			kinds &^= nullKind
		}
		if kinds|nullKind == anyKind&^integerKind { // anything at all
			kinds = stringKind | numberKind | booleanKind
		}
		start := m.r.IntN(len(order))
		for i := range order {
			if k := order[(start+i)%len(order)]; kinds&k != 0 {
				return k
			}
		}
	}
	for _, k := range order {
		if kinds&k != 0 {
			return k
		}
	}
	return 0
}

// offered returns a value that a schema itself offers. decided: it must be one
// of them, or it was drawn; ok: there is one that all of flat allow.
func (m *maker) offered(flat []*node) (v any, decided, ok bool) {
	for _, n := range flat {
		if len(n.only) > 0 {
			start := 0
			if !m.plain {
				start = m.r.IntN(len(n.only))
			} else if len(n.samples) > 0 && allowedBy(flat, n, n.samples[0]) {
				return n.samples[0], true, true
			}
			for i := range min(len(n.only), maxChecked) {
				if v := n.only[(start+i)%len(n.only)]; allowedBy(flat, n, v) {
					m.size += sizeOf(v)
					return v, true, true
				}
			}
			return nil, true, false
		}
	}
	for _, n := range flat {
		if len(n.samples) > 0 && (m.plain || m.r.IntN(3) == 0) {
			if v := n.samples[m.pick(len(n.samples))]; allowedBy(flat, n, v) {
				m.size += sizeOf(v)
				return v, true, true
			}
		}
	}
	return nil, false, false
}

// allowedBy tells that all of flat but owner allow v, which owner does.
func allowedBy(flat []*node, owner *node, v any) bool {
	for _, n := range flat {
		if n != owner && n.schema.Validate(v) != nil {
			return false
		}
	}
	return true
}

// sizeOf is about how long a value is as JSON.
func sizeOf(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case json.Number:
		return len(v)
	case []any, map[string]any:
		return len(appendJSON(nil, v))
	}
	return 4
}
