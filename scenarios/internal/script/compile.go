// Package script compiles and runs the expressions of scenarios: checks on
// answers and the ${{ }} parts of texts. Expressions are typed when they are
// compiled, and each evaluation is bounded in time and memory.
package script

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
	"github.com/theory/jsonpath"
)

// Error is a fault of an expression's text.
type Error struct {
	Offset  int // bytes from the start of the expression
	Message string
	NotYet  string // a variable that the language has and this version does not do, or ""
}

func (e *Error) Error() string { return e.Message }

// Expression is a compiled expression. It is immutable and safe for concurrent use.
type Expression struct {
	source  string
	program *vm.Program
	// constant is the value of an expression that reads nothing but constants.
	constant   any
	isConstant bool
	uses       []string // variables and functions that the value depends on
	refs       []Ref
}

// Compiler compiles the expressions of one scenario.
type Compiler struct {
	// Env are the variables of the environment that went into expressions.
	Env map[string]string

	vars     map[string]any
	lookup   func(string) (string, bool)
	options  []expr.Option
	patterns kept[*regexp.Regexp]
	paths    kept[*jsonpath.Path]
}

// NewCompiler returns a compiler that knows the scenario's vars and looks up the
// variables of the environment; lookup may be nil.
func NewCompiler(vars map[string]any, lookup func(string) (string, bool)) *Compiler {
	c := &Compiler{vars: vars, lookup: lookup}
	c.options = append(guards(), c.functions()...)
	return c
}

// Check compiles a check on results of the given shape.
func (c *Compiler) Check(source string, s *Shape) (*Expression, error) {
	e, err := c.compile(source, s.env(), expr.AsBool())
	if err != nil {
		return nil, err
	}
	e.isConstant = false // even a constant check counts as evaluated
	return e, nil
}

// Save compiles an expression whose value of a result of the given shape is kept.
func (c *Compiler) Save(source string, s *Shape) (*Expression, error) {
	return c.compile(source, s.env())
}

// Condition compiles what is decided before a step: when, while.
func (c *Compiler) Condition(source string) (*Expression, error) {
	return c.compile(source, &valueEnv{}, expr.AsBool())
}

// Value compiles the inside of a ${{ }} of a step.
func (c *Compiler) Value(source string) (*Expression, error) {
	return c.compile(source, &valueEnv{}, expr.DisableBuiltin("keys"), expr.DisableBuiltin("values"), expr.DisableBuiltin("toPairs"))
}

// Header compiles the inside of a ${{ }} of a header.
func (c *Compiler) Header(source string) (*Expression, error) {
	return c.compile(source, &headerEnv{})
}

func (c *Compiler) compile(source string, env any, more ...expr.Option) (*Expression, error) {
	if len(source) > maxSource {
		return nil, &Error{Message: fmt.Sprintf("the expression has %d bytes; %d are the most", len(source), maxSource)}
	}
	constants, known := &constants{vars: c.vars, source: source}, &known{c: c, source: source}
	options := slices.Concat([]expr.Option{expr.Env(env), expr.Patch(constants), expr.Patch(known)}, c.options, more)
	program, err := expr.Compile(source, options...)
	if fault := cmp.Or(constants.err, known.err); fault != nil {
		return nil, fault
	}
	if err != nil {
		return nil, explain(source, err, env, c.vars)
	}
	found := identifiers(program.Node())
	out := &Expression{source: source, program: program, uses: found, refs: references(program.Node(), source)}
	if len(found) == 0 {
		out.constant, err = expr.Run(program, env)
		if err != nil {
			return nil, explain(source, err, env, c.vars)
		}
		out.isConstant = true
	}
	return out, nil
}

// Source returns the expression's text.
func (e *Expression) Source() string { return e.source }

// Uses tells that the value depends on the variable or function of that name.
func (e *Expression) Uses(name string) bool { return slices.Contains(e.uses, name) }

// Refs are the names of the scenario's own that the expression reads.
func (e *Expression) Refs() []Ref { return e.refs }

// ResultKind is the kind of value the expression gives; reflect.Interface when
// that is known only at run time.
func (e *Expression) ResultKind() reflect.Kind {
	if e.isConstant {
		return reflect.ValueOf(e.constant).Kind()
	}
	return kindOf(e.program.Node())
}

// constants puts the values of vars.NAME into the tree, so that they are typed.
type constants struct {
	vars   map[string]any
	source string
	err    error
}

func (c *constants) Visit(node *ast.Node) {
	member, ok := (*node).(*ast.MemberNode)
	if !ok {
		return
	}
	name, ok := member.Property.(*ast.StringNode)
	if !ok {
		return
	}
	from, isConstant := c.vars, false
	switch base := member.Node.(type) {
	case *ast.IdentifierNode:
		isConstant = base.Value == "vars"
	case *ast.ConstantNode:
		from, isConstant = base.Value.(map[string]any)
	}
	if !isConstant {
		return
	}
	value, known := from[name.Value]
	if !known {
		if !member.Optional && c.err == nil {
			at := byteOffset(c.source, name.Location().From)
			c.err = &Error{Offset: at, Message: noField(c.source, at, name.Value, keys(from))}
		}
		return
	}
	ast.Patch(node, constant(value))
}

func constant(value any) ast.Node {
	switch v := value.(type) {
	case nil:
		return &ast.NilNode{}
	case string:
		return &ast.StringNode{Value: v}
	case int:
		return &ast.IntegerNode{Value: v}
	case float64:
		return &ast.FloatNode{Value: v}
	case bool:
		return &ast.BoolNode{Value: v}
	}
	return &ast.ConstantNode{Value: value}
}

func keys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// identifiers returns the variables and functions that the value depends on;
// without any it is the same at each evaluation.
func identifiers(root ast.Node) []string {
	var f finder
	ast.Walk(&root, &f)
	return f
}

type finder []string

func (f *finder) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value != "__join" && n.Value != "__add" {
			*f = append(*f, n.Value)
		}
	case *ast.BuiltinNode:
		if n.Name == "now" { // the one builtin whose value is not the same each time
			*f = append(*f, n.Name)
		}
	}
}
