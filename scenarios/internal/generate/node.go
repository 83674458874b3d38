package generate

import (
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbench/scenarios/internal/schemas"
)

// kind is a set of JSON types. An integer is a number too.
type kind uint8

const (
	stringKind kind = 1 << iota
	integerKind
	numberKind
	booleanKind
	arrayKind
	objectKind
	nullKind
	anyKind kind = 1<<iota - 1
)

var kindNames = map[string]kind{
	"string": stringKind, "integer": integerKind, "number": numberKind | integerKind, "boolean": booleanKind,
	"array": arrayKind, "object": objectKind, "null": nullKind,
}

// maxChecked is how many values that one schema offers are validated up front.
const maxChecked = 64

// endless is the height of what has no finite value.
const endless = math.MaxInt32

// node is what one schema asks for, read once.
type node struct {
	schema *jsonschema.Schema
	never  bool // the schema false
	kinds  kind
	likely kind // what the keywords speak of when no type is named
	closed bool // no further members
	hard   bool // a value made piece by piece may still fail
	height int  // levels of nesting that its least value needs

	all        []*node // $ref, allOf: always
	choices    [][]*node
	cond       *condition
	props      []property // by name
	byName     map[string]*node
	patterns   []patternMember
	additional *node // for members not named; nil: anything
	names      *node
	dependents []dependents
	prefix     []*node
	items      *node
	contains   *node

	only     []any // const and enum: what else is wrong
	samples  []any // default, then examples
	low      bound
	high     bound
	multiple *big.Rat
	shape    *shape // of pattern
}

type property struct {
	name string
	node *node
}

type patternMember struct {
	re    *schemas.Pattern
	shape *shape
	node  *node
}

// dependents is what the presence of a member asks for.
type dependents struct {
	name     string
	required []string
	node     *node
}

type condition struct{ then, otherwise []*node }

type bound struct {
	value *big.Rat
	open  bool
}

// plan reads every schema that root reaches. The outcome is never written again.
func plan(root *jsonschema.Schema) *node {
	all := schemas.Reachable(root)
	p := planner{nodes: make(map[*jsonschema.Schema]*node, len(all))}
	for _, s := range all {
		p.nodes[s] = &node{schema: s, height: endless}
	}
	list := make([]*node, len(all))
	for i, s := range all {
		list[i] = p.nodes[s]
		p.fill(list[i])
	}
	setHeights(list)
	return p.nodes[root]
}

type planner struct {
	nodes map[*jsonschema.Schema]*node
}

func (p *planner) of(s *jsonschema.Schema) *node {
	if s == nil {
		return nil
	}
	return p.nodes[s]
}

func (p *planner) list(schemas ...*jsonschema.Schema) []*node {
	out := make([]*node, 0, len(schemas))
	for _, s := range schemas {
		if s != nil {
			out = append(out, p.nodes[s])
		}
	}
	return out
}

func (p *planner) fill(n *node) {
	s := n.schema
	n.kinds, n.likely = anyKind, likely(s)
	if s.Bool != nil {
		n.never = !*s.Bool
		return
	}
	if s.Types != nil && !s.Types.IsEmpty() {
		n.kinds = 0
		for _, name := range s.Types.ToStrings() {
			n.kinds |= kindNames[name]
		}
	}
	n.all = p.list(append([]*jsonschema.Schema{s.Ref, s.RecursiveRef}, s.AllOf...)...)
	if s.DynamicRef != nil {
		n.all = append(n.all, p.of(s.DynamicRef.Ref))
	}
	for _, branches := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if len(branches) > 0 {
			n.choices = append(n.choices, p.list(branches...))
		}
	}
	if s.If != nil {
		n.cond = &condition{p.list(s.If, s.Then), p.list(s.Else)}
	}
	n.hard = s.Not != nil || len(s.OneOf) > 0 || s.If != nil || s.Contains != nil || s.PropertyNames != nil ||
		s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil || s.UniqueItems
	p.object(n)
	p.array(n)
	n.low = tighter(bound{s.Minimum, false}, bound{s.ExclusiveMinimum, true}, 1)
	n.high = tighter(bound{s.Maximum, false}, bound{s.ExclusiveMaximum, true}, -1)
	n.multiple = s.MultipleOf
	if re, ok := s.Pattern.(*schemas.Pattern); ok {
		n.shape = shapeOf(re)
	}
	n.constants()
}

func (p *planner) object(n *node) {
	s := n.schema
	n.byName = make(map[string]*node, len(s.Properties))
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		n.byName[name] = p.of(s.Properties[name])
		n.props = append(n.props, property{name, n.byName[name]})
	}
	for re, member := range s.PatternProperties {
		if re, ok := re.(*schemas.Pattern); ok {
			n.patterns = append(n.patterns, patternMember{re, shapeOf(re), p.of(member)})
		}
	}
	slices.SortFunc(n.patterns, func(a, b patternMember) int { return strings.Compare(a.re.String(), b.re.String()) })
	switch v := s.AdditionalProperties.(type) {
	case bool:
		n.closed = !v
	case *jsonschema.Schema:
		n.additional = p.of(v)
		n.closed = v.Bool != nil && !*v.Bool
	}
	if u := s.UnevaluatedProperties; u != nil && u.Bool != nil && !*u.Bool {
		n.hard = true
	}
	n.names = p.of(s.PropertyNames)
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		switch d := s.Dependencies[name].(type) {
		case []string:
			n.dependents = append(n.dependents, dependents{name: name, required: d})
		case *jsonschema.Schema:
			n.dependents = append(n.dependents, dependents{name: name, node: p.of(d)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		n.dependents = append(n.dependents, dependents{name: name, node: p.of(s.DependentSchemas[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentRequired)) {
		n.dependents = append(n.dependents, dependents{name: name, required: s.DependentRequired[name]})
	}
}

func (p *planner) array(n *node) {
	s := n.schema
	n.prefix, n.items, n.contains = p.list(s.PrefixItems...), p.of(s.Items2020), p.of(s.Contains)
	switch v := s.Items.(type) { // drafts before 2020-12
	case *jsonschema.Schema:
		n.items = p.of(v)
	case []*jsonschema.Schema:
		n.prefix = p.list(v...)
		switch more := s.AdditionalItems.(type) {
		case bool:
			if !more {
				n.items = &node{never: true, height: endless}
			}
		case *jsonschema.Schema:
			n.items = p.of(more)
		}
	}
}

// constants keeps the values that the schema itself offers and allows.
func (n *node) constants() {
	s := n.schema
	allowed := func(values []any) []any {
		var out []any
		for _, v := range values {
			// Looking up each value of a long enum in that enum would take the square.
			if kindOf(v)&n.kinds != 0 && (len(values) > maxChecked || s.Validate(v) == nil) {
				out = append(out, v)
			}
		}
		return out
	}
	switch {
	case s.Const != nil:
		n.only = allowed([]any{*s.Const})
	case s.Enum != nil:
		n.only = allowed(s.Enum.Values)
	}
	n.never = n.never || (s.Const != nil || s.Enum != nil) && len(n.only) == 0
	if s.Default != nil {
		n.samples = append(n.samples, *s.Default)
	}
	n.samples = append(n.samples, s.Examples...)
	n.samples = allowed(n.samples[:min(len(n.samples), maxChecked)])
}

// tighter returns the narrower of two bounds; sign is 1 for lower ones, -1 for
// upper ones.
func tighter(a, b bound, sign int) bound {
	switch {
	case a.value == nil:
		return b
	case b.value == nil:
		return a
	}
	if c := b.value.Cmp(a.value) * sign; c > 0 || c == 0 && b.open {
		return b
	}
	return a
}

// likely is what a schema without a type speaks of; 0 when of nothing.
func likely(s *jsonschema.Schema) kind {
	switch {
	case len(s.Properties) > 0, len(s.Required) > 0, s.AdditionalProperties != nil, len(s.PatternProperties) > 0, s.MinProperties != nil:
		return objectKind
	case s.Items != nil, s.Items2020 != nil, len(s.PrefixItems) > 0, s.MinItems != nil, s.Contains != nil:
		return arrayKind
	case s.MinLength != nil, s.MaxLength != nil, s.Format != nil, s.Pattern != nil:
		return stringKind
	case s.Minimum != nil, s.Maximum != nil, s.ExclusiveMinimum != nil, s.ExclusiveMaximum != nil, s.MultipleOf != nil:
		return numberKind | integerKind
	}
	return 0
}

// setHeights finds how deep the least value of each node is: what recursion
// must be left by. It starts from endless and falls until nothing changes.
func setHeights(list []*node) {
	for range maxDepth + 1 {
		changed := false
		for _, n := range slices.Backward(list) { // schemas further down come later
			if h := n.least(); h < n.height {
				n.height, changed = h, true
			}
		}
		if !changed {
			return
		}
	}
}

func (n *node) least() int {
	if n.never {
		return endless
	}
	h := 0
	if len(n.only) == 0 {
		h = n.ownHeight()
	}
	for _, part := range n.all {
		h = max(h, part.height)
	}
	for _, branches := range n.choices {
		least := endless
		for _, b := range branches {
			least = min(least, b.height)
		}
		h = max(h, least)
	}
	return h
}

// ownHeight is the height that the members or items it asks for need.
func (n *node) ownHeight() int {
	kinds := n.kinds
	if n.likely != 0 && kinds&n.likely != 0 {
		kinds &= n.likely
	}
	if kinds&^(arrayKind|objectKind) != 0 {
		return 0
	}
	object, array := 0, 0
	for _, name := range n.schema.Required {
		if member := n.byName[name]; member != nil {
			object = max(object, above(member.height))
		} else if n.additional != nil {
			object = max(object, above(n.additional.height))
		}
	}
	if n.schema.MinItems != nil {
		for i := range min(*n.schema.MinItems, len(n.prefix)+1) {
			if item := n.item(i); item != nil {
				array = max(array, above(item.height))
			}
		}
	}
	switch {
	case kinds&objectKind == 0:
		return array
	case kinds&arrayKind == 0:
		return object
	}
	return min(array, object)
}

// kindOf is the kind of a decoded value.
func kindOf(v any) kind {
	switch v := v.(type) {
	case nil:
		return nullKind
	case bool:
		return booleanKind
	case string:
		return stringKind
	case []any:
		return arrayKind
	case map[string]any:
		return objectKind
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok && r.IsInt() {
			return integerKind
		}
	}
	return numberKind
}

func above(height int) int { return min(height, endless-1) + 1 }

// item is the node of item i, nil for anything.
func (n *node) item(i int) *node {
	if i < len(n.prefix) {
		return n.prefix[i]
	}
	return n.items
}
