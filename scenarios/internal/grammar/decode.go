package grammar

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/syntax"
)

// Decode fills a File from the tree. Faults go to src. later lists the keys of
// the tree that this version does not do yet.
func Decode(src *syntax.Source, root *syntax.Node) (f *File, later syntax.Problems) {
	f = &File{}
	d := decoder{src: src}
	if root.Kind == syntax.Null {
		d.fault(root, "", "the scenario is empty; it starts with version: 1")
		return f, nil
	}
	d.value(root, "", f)
	return f, d.later
}

type decoder struct {
	src   *syntax.Source
	later syntax.Problems
}

// custom is a type that decodes itself.
type custom interface {
	decode(d *decoder, n *syntax.Node, path string)
}

func (d *decoder) fault(n *syntax.Node, path, format string, args ...any) {
	d.src.Fault(n, -1, path, format, args...)
}

func (d *decoder) scalar(n *syntax.Node, path string) bool {
	switch n.Kind {
	case syntax.String, syntax.Int, syntax.Float, syntax.Bool:
		return true
	case syntax.Null, syntax.Seq, syntax.Map:
	}
	d.fault(n, path, "wants text; this is %s", n.Kind)
	return false
}

// integer returns the value of a whole number that is at least least.
func (d *decoder) integer(n *syntax.Node, path string, least int64) int64 {
	n = n.Typed()
	if n.Kind != syntax.Int {
		d.fault(n, path, "wants a whole number; this is %s", kindOf(n))
		return least
	}
	v, ok := n.Integer()
	switch {
	case !ok || v > math.MaxInt32 && v > 1<<53:
		d.fault(n, path, "%s is too large", n.Text)
		return least
	case v < least:
		d.fault(n, path, "must be at least %d", least)
		return least
	}
	return v
}

func kindOf(n *syntax.Node) string {
	if n.Kind == syntax.Float {
		return "a number with a fraction"
	}
	return n.Kind.String()
}

// value decodes n into what target points to.
func (d *decoder) value(n *syntax.Node, path string, target any) {
	d.reflected(n, path, reflect.ValueOf(target).Elem(), field{})
}

func (d *decoder) reflected(n *syntax.Node, path string, v reflect.Value, f field) {
	if c, ok := reflect.TypeAssert[custom](v.Addr()); ok {
		c.decode(d, n, path)
		return
	}
	switch v.Kind() { //nolint:exhaustive // the kinds that the grammar uses
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.reflected(n, path, v.Elem(), f)
	case reflect.Struct:
		d.object(n, path, v)
	case reflect.Map:
		d.table(n, path, v)
	case reflect.Slice:
		if n.Kind != syntax.Seq {
			d.fault(n, path, "wants a list; this is %s", n.Kind)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
		for i, item := range n.Items {
			d.reflected(item, path+"["+strconv.Itoa(i)+"]", v.Index(i), field{})
		}
	case reflect.Int:
		v.SetInt(d.bounded(n, path, f))
	case reflect.Bool:
		if n = n.Typed(); n.Kind != syntax.Bool {
			d.fault(n, path, "wants true or false; this is %s", n.Kind)
			return
		}
		v.SetBool(n.True())
	case reflect.String:
		d.text(n, path, v, f)
	default:
		panic("grammar: no decoder for " + v.Type().String()) // a fault of the types, found by the first test
	}
}

func (d *decoder) bounded(n *syntax.Node, path string, f field) int64 {
	v := d.integer(n, path, f.minimum)
	if f.name == "version" && v > f.maximum {
		d.fault(n, path, "version %d is newer than this mcpbench, which reads version: %d; install a newer mcpbench", v, f.maximum)
		return v
	}
	if f.maximum > 0 && v > f.maximum {
		d.fault(n, path, "must be at most %d", f.maximum)
	}
	return min(v, math.MaxInt32)
}

func (d *decoder) text(n *syntax.Node, path string, v reflect.Value, f field) {
	if n.Kind != syntax.String {
		hint := ""
		if n.Kind != syntax.Seq && n.Kind != syntax.Map && n.Kind != syntax.Null {
			hint = "; put it in quotes"
		}
		d.fault(n, path, "wants text; this is %s%s", n.Kind, hint)
		return
	}
	if len(f.enum) > 0 && !slices.Contains(f.enum, n.Text) {
		d.fault(n, path, "%q is not one of %s%s", n.Text, strings.Join(f.enum, ", "), nearest.DidYouMean(n.Text, f.enum))
		return
	}
	if f.name != "description" {
		d.plain(n, path)
	}
	v.SetString(n.Text)
}

// plain reports whether a text that is taken as it is written looks like one; what
// looks like an expression would be sent, or not found, as it stands.
func (d *decoder) plain(n *syntax.Node, path string) bool {
	if n.Kind == syntax.String && n.Origin == "" && strings.Contains(n.Text, "${{") {
		d.fault(n, path, "holds no expressions: ${{ }} would be taken as it is written")
		return false
	}
	return true
}

// table decodes a map with names of the user's choice.
func (d *decoder) table(n *syntax.Node, path string, v reflect.Value) {
	if n.Kind != syntax.Map {
		d.fault(n, path, "wants a map; this is %s", n.Kind)
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range n.Pairs {
		if p.Key.Text == "" {
			d.fault(p.Key, path, "a name must not be empty")
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.reflected(p.Value, syntax.Join(path, p.Key.Text), item, field{})
		v.SetMapIndex(reflect.ValueOf(p.Key.Text), item)
	}
}

func (d *decoder) object(n *syntax.Node, path string, v reflect.Value) {
	fields := fieldsOf(v.Type())
	if place := v.FieldByName("Place"); place.IsValid() {
		place.Set(reflect.ValueOf(Place{Node: n, Path: path}))
	}
	if n.Kind == syntax.Null && !slices.ContainsFunc(fields, func(f field) bool { return f.required }) {
		return
	}
	if n.Kind != syntax.Map {
		d.fault(n, path, "wants a map; this is %s", n.Kind)
		return
	}
	for _, p := range n.Pairs {
		d.member(p, path, v, fields)
	}
	for _, f := range fields {
		if f.required && n.Lookup(f.name) == nil {
			d.fault(n, path, "%s", missing(f.name, path))
		}
	}
	if v.Type() == reflect.TypeFor[Step]() && known(n, fields) {
		d.oneOperation(n, path, fields)
	}
}

// known tells that every key of n is one of the fields.
func known(n *syntax.Node, fields []field) bool {
	return !slices.ContainsFunc(n.Pairs, func(p syntax.Pair) bool {
		name := p.Key.Text
		return !strings.HasPrefix(name, "x-") && !slices.ContainsFunc(fields, func(f field) bool { return f.name == name })
	})
}

func missing(name, path string) string {
	switch {
	case name == "version" && path == "":
		return "version: 1 is missing"
	case path == "":
		return name + ": is missing"
	}
	return path + " wants a key " + strconv.Quote(name)
}

// member decodes one key of an object.
func (d *decoder) member(p syntax.Pair, path string, v reflect.Value, fields []field) {
	name := p.Key.Text
	if strings.HasPrefix(name, "x-") {
		return
	}
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		names := make([]string, len(fields))
		for k, f := range fields {
			names[k] = f.name
		}
		d.fault(p.Key, syntax.Join(path, name), "unknown key %q%s", name, nearest.DidYouMean(name, names))
		return
	}
	at := syntax.Join(path, name)
	if fields[i].later {
		d.postpone(p.Key, at, at)
		return
	}
	d.reflected(p.Value, at, v.FieldByIndex(fields[i].index), fields[i])
}

// postpone records a key or value that is known but not done yet.
func (d *decoder) postpone(n *syntax.Node, path, what string) {
	d.later = append(d.later, d.src.Problem(n, -1, path, "not supported yet: "+what))
}

func (d *decoder) oneOperation(n *syntax.Node, path string, fields []field) {
	var found []*syntax.Node
	for _, p := range n.Pairs {
		if slices.ContainsFunc(fields, func(f field) bool { return f.op && f.name == p.Key.Text }) {
			found = append(found, p.Key)
		}
	}
	switch {
	case len(found) == 0:
		d.fault(n, path, "a step wants an operation, such as tools/call or ping")
	case len(found) > 1:
		d.fault(found[1], path, "a step has one operation; %s and %s are two steps", found[0].Text, found[1].Text)
	}
}
