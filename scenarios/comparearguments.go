package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/schemas"
	"mcpbench/scenarios/internal/syntax"
)

// toolSchema is the input schema of a tool.
type toolSchema struct {
	*jsonschema.Schema // nil when it does not compile, which is the server's fault
	// conditional tells that values decide which parts of it apply.
	conditional bool
}

func (c *comparison) schema(tool string, text []byte) *toolSchema {
	if s, known := c.schemas[tool]; known {
		return s
	}
	s := &toolSchema{}
	if compiled, err := schemas.Compile(text, schemas.IgnoreFormats); err == nil {
		s.Schema = compiled
		s.conditional = slices.ContainsFunc(schemas.Reachable(compiled), func(s *jsonschema.Schema) bool { return s.If != nil })
	}
	c.schemas[tool] = s
	return s
}

const maxArgumentFaults = 10 // of one call

// arguments validates what is written out of the arguments of a call.
func (c *comparison) arguments(tool string, text []byte, call *grammar.ToolCall, path string) {
	schema := c.schema(tool, text)
	if schema.Schema == nil {
		return
	}
	given := call.Arguments.Node
	if given != nil && given.Kind != syntax.Map && given.Kind != syntax.Null {
		return
	}
	if given == nil || given.Kind == syntax.Null {
		given = &syntax.Node{Kind: syntax.Map}
	}
	a := &givenArguments{open: map[string]bool{}, schema: schema}
	a.misspelt(c, tool, given, path)
	value := a.value(given, nil)
	err, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(value))
	if !ok || len(a.open) > 0 && schema.conditional {
		return
	}
	a.judge(err)
	for i, e := range a.failures {
		if i == maxArgumentFaults {
			break
		}
		at := a.place(given, e)
		if at == nil || at.Line == 0 && at.Origin == "" {
			if at = call.Node.Key("arguments"); at == nil {
				at = call.Name.Node
			}
		}
		said := strings.ReplaceAll(schemas.Failure(e), "at '': ", "")
		c.fault(at, path+".arguments", "tool %q: %s%s", tool, said, a.hint(e))
	}
}

// givenArguments are those of one call while they are judged.
type givenArguments struct {
	schema *toolSchema
	// open are the places that hold an expression, and all that they lie in. The
	// value says whether the place is the expression itself.
	open     map[string]bool
	failures []*jsonschema.ValidationError
}

// spot is a location in the arguments as the key of a map.
func spot(location []string) string {
	var b strings.Builder
	for _, step := range location {
		b.WriteString(step + "\x00")
	}
	return b.String()
}

// value turns a tree into what the validator takes; expressions become texts.
func (a *givenArguments) value(n *syntax.Node, at []string) any {
	switch n.Kind {
	case syntax.Null:
		return nil
	case syntax.Bool:
		return n.True()
	case syntax.Int, syntax.Float:
		return numberOf(n)
	case syntax.String:
		text, literal := literalText(n)
		if !literal {
			a.open[spot(at)] = true
			for i := range at {
				a.open[spot(at[:i])] = false
			}
		}
		return text
	case syntax.Seq:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = a.value(item, append(slices.Clip(at), strconv.Itoa(i)))
		}
		return list
	case syntax.Map:
		m := make(map[string]any, len(n.Pairs))
		for _, p := range n.Pairs {
			m[p.Key.Text] = a.value(p.Value, append(slices.Clip(at), p.Key.Text))
		}
		return m
	}
	return nil
}

func numberOf(n *syntax.Node) json.Number {
	if v, ok := n.Integer(); ok && n.Kind == syntax.Int {
		return json.Number(strconv.FormatInt(v, 10))
	}
	v, _ := n.Number()
	return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
}

// judge collects the failures that no value of an expression could take away.
func (a *givenArguments) judge(e *jsonschema.ValidationError) {
	self, open := a.open[spot(e.InstanceLocation)]
	switch e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range e.Causes {
			a.judge(cause)
		}
		return
	case *kind.Required, *kind.AdditionalProperties, *kind.DependentRequired, *kind.Dependency, *kind.PropertyNames,
		*kind.MinProperties, *kind.MaxProperties, *kind.MinItems, *kind.MaxItems, *kind.Type:
		open = self // names, counts and the kinds of lists and maps are known
	}
	if !open {
		a.failures = append(a.failures, e)
	}
}

// misspelt warns of arguments that the schema does not know but allows, when their
// names are near to one that it knows and that is not given.
func (a *givenArguments) misspelt(c *comparison, tool string, given *syntax.Node, path string) {
	if closed, _ := a.schema.AdditionalProperties.(bool); a.schema.AdditionalProperties != nil && !closed {
		return // it does not allow them
	}
	for _, p := range given.Pairs {
		if _, known := a.schema.Properties[p.Key.Text]; known {
			continue
		}
		near := nearest.Name(p.Key.Text, slices.Sorted(maps.Keys(a.schema.Properties)))
		if near != "" && given.Lookup(near) == nil {
			c.warn(p.Key, path+".arguments."+p.Key.Text, "tool %q has no argument %q (did you mean %q?)", tool, p.Key.Text, near)
		}
	}
}

// place is the key or the value that a failure is about.
func (a *givenArguments) place(n *syntax.Node, e *jsonschema.ValidationError) *syntax.Node {
	for _, step := range e.InstanceLocation {
		if n != nil && n.Kind == syntax.Seq {
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(n.Items) {
				return nil
			}
			n = n.Items[i]
			continue
		}
		n = n.Lookup(step)
	}
	if extra, ok := e.ErrorKind.(*kind.AdditionalProperties); ok && len(extra.Properties) > 0 {
		return n.Key(extra.Properties[0])
	}
	if len(e.InstanceLocation) == 0 {
		return nil
	}
	return n
}

// hint names the argument that was probably meant.
func (a *givenArguments) hint(e *jsonschema.ValidationError) string {
	extra, ok := e.ErrorKind.(*kind.AdditionalProperties)
	if !ok || len(e.InstanceLocation) > 0 || len(extra.Properties) != 1 {
		return ""
	}
	known := slices.Sorted(maps.Keys(a.schema.Properties))
	if near := nearest.DidYouMean(extra.Properties[0], known); near != "" {
		return near
	}
	if len(known) == 0 {
		return "; it has no arguments"
	}
	return fmt.Sprintf("; it has %s", strings.Join(known[:min(len(known), namesShown)], ", "))
}
