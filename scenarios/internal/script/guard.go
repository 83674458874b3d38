package script

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"
)

// Bounds of one evaluation. Expr itself bounds the lists that are made; loops
// and texts it does not.
const (
	maxSource = 4096    // bytes of an expression
	maxNodes  = 500     // of its syntax tree
	maxMade   = 200_000 // list elements made
	maxTurns  = 200_000 // turns of loops
	maxText   = 16 << 20

	maxTime = time.Second
	// timedTurns is after how many turns of loops the time is looked at: what one
	// turn does is bounded by the size of texts.
	timedTurns = 16
)

var (
	errTurns = errors.New("the expression loops more than 200,000 times")
	errText  = errors.New("the expression makes a text of more than 16 MiB")
	errMade  = errors.New("the expression makes more than 200,000 elements of lists, or letters by repeat(), in all")
	errTime  = errors.New("the expression takes longer than a second: let its loops do less, or make texts of many parts with join")
)

// turns counts the turns of all loops of one evaluation, and the values that its
// paths look at.
type turns struct {
	n, visits int
	began     time.Time // of the time that is looked at
}

// next counts a turn, or as many visits as it is given. It has the one signature
// that expr calls without reflection.
func (t *turns) next(visits ...any) (any, error) {
	if len(visits) > 0 {
		n, _ := visits[0].(int)
		if t.visits += n; t.visits > maxVisits {
			return nil, errVisits
		}
		return nil, nil //nolint:nilnil // the value is dropped
	}
	if t.n++; t.n > maxTurns {
		return nil, errTurns
	}
	if t.n%timedTurns == 0 {
		if now := time.Now(); t.began.IsZero() {
			t.began = now
		} else if now.Sub(t.began) > maxTime {
			return nil, errTime
		}
	}
	return nil, nil //nolint:nilnil // the value is dropped
}

// loopGuard makes each turn of a loop count itself.
type loopGuard struct{}

func (loopGuard) Visit(node *ast.Node) {
	p, ok := (*node).(*ast.PredicateNode)
	if !ok {
		return
	}
	count := &ast.CallNode{Callee: &ast.IdentifierNode{Value: "__turn"}}
	count.SetLocation(p.Location())
	count.Callee.SetLocation(p.Location())
	both := &ast.SequenceNode{Nodes: []ast.Node{count, p.Node}}
	both.SetLocation(p.Node.Location())
	p.Node = both
}

// sumGuard bounds texts made by +, which could otherwise double at each use.
type sumGuard struct{}

func (sumGuard) Visit(node *ast.Node) {
	sum, ok := (*node).(*ast.BinaryNode)
	if !ok || sum.Operator != "+" {
		return
	}
	left, right := kindOf(sum.Left), kindOf(sum.Right)
	var name string
	switch {
	case left == reflect.String && right == reflect.String:
		name = "__join"
	case (left == reflect.String || left == reflect.Interface) && (right == reflect.String || right == reflect.Interface):
		name = "__add"
	default:
		return
	}
	callee := &ast.IdentifierNode{Value: name}
	callee.SetLocation(sum.Location())
	ast.Patch(node, &ast.CallNode{Callee: callee, Arguments: []ast.Node{sum.Left, sum.Right}})
}

func kindOf(n ast.Node) reflect.Kind {
	t := n.Type()
	if t == nil {
		return reflect.Interface
	}
	return t.Kind()
}

// guards are the options that bound an evaluation.
func guards() []expr.Option {
	options := []expr.Option{
		expr.MaxNodes(maxNodes),
		expr.Patch(loopGuard{}),
		expr.Patch(visitGuard{}),
		expr.Patch(sumGuard{}),
		expr.Function("__join", join2, new(func(string, string) string)),
		expr.Function("__add", add, new(func(any, any) any)),
	}
	for _, f := range builtin.Builtins {
		switch f.Name {
		case "join", "replace", "toJSON", "string", "toBase64":
			options = append(options, expr.DisableBuiltin(f.Name), bounded(f))
		case "uniq":
			options = append(options, expr.DisableBuiltin(f.Name), expr.Function(f.Name, few(f), new(func(any) []any)))
		}
	}
	return options
}

// maxCompared is of how many elements each is compared with all others.
const maxCompared = 3000

// few is a builtin whose time grows with the square of its list.
func few(f *builtin.Function) func(...any) (any, error) {
	return func(args ...any) (any, error) {
		if v := reflect.ValueOf(args[0]); (v.Kind() == reflect.Slice || v.Kind() == reflect.Array) && v.Len() > maxCompared {
			return nil, fmt.Errorf("%s takes lists of at most %d elements; this one has %d", f.Name, maxCompared, v.Len())
		}
		return f.Func(args...)
	}
}

// bounded returns the builtin with a bound on the text that goes in and out.
func bounded(f *builtin.Function) expr.Option {
	types := make([]any, len(f.Types))
	for i, t := range f.Types {
		types[i] = reflect.New(t).Interface()
	}
	if len(types) == 0 {
		types = []any{new(func(any) string)}
	}
	return expr.Function(f.Name, func(args ...any) (any, error) {
		if weight(reflect.ValueOf(args), maxText) > maxText || replaced(f.Name, args) > maxText {
			return nil, errText
		}
		if f.Func == nil {
			return f.Fast(args[0]), nil
		}
		return f.Func(args...)
	}, types...)
}

// replaced is how long the outcome of replace could be.
func replaced(name string, args []any) int {
	if name != "replace" || len(args) < 3 {
		return 0
	}
	text, from, to := asText(args[0]), asText(args[1]), asText(args[2])
	return len(text) + strings.Count(text, from)*len(to)
}

func asText(v any) string {
	s, _ := v.(string)
	return s
}

// weight adds up the text and the values in v; it stops soon after limit.
func weight(v reflect.Value, limit int) int {
	sum := 1
	switch v.Kind() { //nolint:exhaustive // the kinds that hold others
	case reflect.String:
		return v.Len()
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			return weight(v.Elem(), limit)
		}
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && sum <= limit; i++ {
			sum += weight(v.Index(i), limit-sum)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && sum <= limit; i++ {
			sum += weight(v.Field(i), limit-sum)
		}
	case reflect.Map:
		for it := v.MapRange(); sum <= limit && it.Next(); {
			sum += weight(it.Key(), limit-sum) + weight(it.Value(), limit-sum)
		}
	}
	return sum
}

func join2(args ...any) (any, error) {
	a, b := asText(args[0]), asText(args[1])
	if len(a)+len(b) > maxText {
		return nil, errText
	}
	return a + b, nil
}

func add(args ...any) (any, error) {
	a, aText := args[0].(string)
	b, bText := args[1].(string)
	if aText && bText {
		return join2(a, b)
	}
	if !addable(args[0]) || !addable(args[1]) || aText != bText {
		return nil, fmt.Errorf("cannot add %s and %s", typeName(args[0]), typeName(args[1]))
	}
	return runtime.Add(args[0], args[1]), nil
}

// addable tells what runtime.Add takes without a panic, given two of a kind.
func addable(v any) bool {
	kind := reflect.ValueOf(v).Kind()
	if kind == reflect.Int64 {
		return reflect.TypeOf(v) == reflect.TypeFor[int64]() // no duration
	}
	return kind == reflect.String || kind >= reflect.Int && kind <= reflect.Uint64 || kind == reflect.Float32 || kind == reflect.Float64
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return fmt.Sprintf("%T", v)
}
