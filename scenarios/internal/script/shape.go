package script

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Shape is the type that one operation's result has in expressions.
type Shape struct {
	index int
	env   func() checkEnv
}

// checkEnv is what the expressions of a check see.
type checkEnv interface {
	decode(result []byte) error
	set(in Inputs, elapsed time.Duration, turns *turns)
}

// environment holds the variables of checks on a result of type R. Expr reads
// its fields by their tags.
type environment[R any] struct {
	Vars      map[string]any            `expr:"vars"`
	Session   Session                   `expr:"session"`
	Iteration Iteration                 `expr:"iteration"`
	Protocol  string                    `expr:"protocol"`
	Saved     map[string]any            `expr:"saved"`
	Args      map[string]any            `expr:"args"`
	Data      map[string]any            `expr:"data"`
	Loop      Loop                      `expr:"loop"`
	Result    R                         `expr:"result"`
	Elapsed   time.Duration             `expr:"elapsed"`
	Turn      func(...any) (any, error) `expr:"__turn"`
}

func (e *environment[R]) decode(result []byte) error {
	var fresh R
	err := json.Unmarshal(result, &fresh, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	e.Result = fresh
	return err
}

func (e *environment[R]) set(in Inputs, elapsed time.Duration, turns *turns) {
	e.Vars = in.Vars
	e.Session.Index, e.Iteration.Index = in.Session, int(in.Iteration) //nolint:gosec // an arrival index never comes near 1<<63
	e.Protocol = in.Protocol
	e.Saved, e.Args, e.Data, e.Loop.Index = in.Saved, in.Args, in.Data, in.Repeat
	e.Elapsed = elapsed
	if e.Turn == nil {
		e.Turn = turns.next
	}
}

func shape[R any](index int) *Shape {
	return &Shape{index: index, env: func() checkEnv { return &environment[R]{} }}
}

// numShapes is one more than the largest index below.
const numShapes = 11

var (
	emptyShape = shape[EmptyResult](0)
	shapes     = map[string]*Shape{
		"ping":                     emptyShape,
		"logging/setLevel":         emptyShape,
		"resources/subscribe":      emptyShape,
		"resources/unsubscribe":    emptyShape,
		"tools/call":               shape[ToolsCall](1),
		"resources/read":           shape[ResourcesRead](2),
		"prompts/get":              shape[PromptsGet](3),
		"tools/list":               shape[ToolsList](4),
		"resources/list":           shape[ResourcesList](5),
		"resources/templates/list": shape[ResourceTemplatesList](6),
		"prompts/list":             shape[PromptsList](7),
		"completion/complete":      shape[CompletionComplete](8),
		"server/discover":          shape[ServerDiscover](9),
	}
)

// AnyShape is the shape of a result that nothing is known of.
var AnyShape = shape[any](10)

// ShapeOf returns the shape of a method's result: any value for a method that
// is not in the table.
func ShapeOf(method string) *Shape {
	if s := shapes[method]; s != nil {
		return s
	}
	return AnyShape
}
