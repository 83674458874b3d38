package script

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/go-json-experiment/json"
	"github.com/theory/jsonpath"
)

// functions are those of every expression, beside what the expression library
// has: base64, sha256, jsonpath, capture and env.
func (c *Compiler) functions() []expr.Option {
	return []expr.Option{
		expr.Function("base64", func(args ...any) (any, error) {
			return base64.StdEncoding.EncodeToString([]byte(asText(args[0]))), nil
		}, new(func(string) string)),
		expr.Function("sha256", func(args ...any) (any, error) {
			sum := sha256.Sum256([]byte(asText(args[0])))
			return hex.EncodeToString(sum[:]), nil
		}, new(func(string) string)),
		expr.Function("jsonpath", func(...any) (any, error) { return nil, errUncounted }, new(func(any, string) []any)),
		expr.Function("__jsonpath", c.path, new(func(any, string, func(...any) (any, error)) []any)),
		expr.Function("capture", func(args ...any) (any, error) {
			pattern, err := c.patterns.get(asText(args[1]), regexp.Compile)
			if err != nil {
				return nil, err
			}
			return capture(pattern, asText(args[0])), nil
		}, new(func(string, string) any)),
		expr.Function("env", func(...any) (any, error) {
			return nil, errors.New("env wants a text in quotes")
		}, new(func(string) string)),
	}
}

// generic is a value as JSON has it: the results of the protocol's methods are
// structs in expressions. size is the bytes of text that went into it.
func generic(v any) (out any, size int, err error) {
	switch v.(type) {
	case nil, map[string]any, []any, string, float64, bool:
		return v, 0, nil
	}
	text, err := appendValue(nil, v)
	if err != nil {
		return nil, 0, err
	}
	err = json.Unmarshal(text, &out)
	return out, len(text), err
}

// capture returns what the first group of the pattern has in text, or the whole
// match when it has no group; nil when nothing matches.
func capture(pattern *regexp.Regexp, text string) any {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	return found[min(1, len(found)-1)]
}

// maxKept bounds how many compiled texts are kept: expressions could make
// others without end.
const maxKept = 1000

// kept keeps what was compiled from texts. Safe for concurrent use.
type kept[T any] struct {
	mu  sync.Mutex // guards all
	all map[string]T
}

func (k *kept[T]) get(text string, compile func(string) (T, error)) (T, error) {
	k.mu.Lock()
	v, ok := k.all[text]
	k.mu.Unlock()
	if ok {
		return v, nil
	}
	v, err := compile(text)
	if err != nil {
		return v, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[string]T{}
	}
	if len(k.all) < maxKept {
		k.all[text] = v
	}
	return v, nil
}

// known replaces env("NAME") by the variable's value and finds faults of
// patterns and paths that are written out.
type known struct {
	c      *Compiler
	source string
	err    error
}

func (k *known) Visit(node *ast.Node) {
	call, ok := (*node).(*ast.CallNode)
	if !ok {
		return
	}
	callee, ok := call.Callee.(*ast.IdentifierNode)
	if !ok || len(call.Arguments) == 0 {
		return
	}
	text, isText := call.Arguments[min(1, len(call.Arguments)-1)].(*ast.StringNode)
	if !isText {
		if callee.Value == "env" && k.err == nil {
			k.err = &Error{Offset: byteOffset(k.source, call.Location().From), Message: "env wants the name of a variable in quotes: it is read when the file is loaded"}
		}
		return
	}
	var err error
	switch callee.Value {
	case "env":
		value, found := "", false
		if k.c.lookup != nil {
			value, found = k.c.lookup(text.Value)
		}
		if !found {
			err = fmt.Errorf("the environment has no variable %s", text.Value)
			break
		}
		if k.c.Env == nil {
			k.c.Env = map[string]string{}
		}
		k.c.Env[text.Value] = value
		ast.Patch(node, &ast.StringNode{Value: value})
	case "capture":
		_, err = k.c.patterns.get(text.Value, regexp.Compile)
	case "jsonpath":
		_, err = k.c.paths.get(text.Value, jsonpath.Parse)
	}
	if err != nil && k.err == nil {
		k.err = &Error{Offset: byteOffset(k.source, text.Location().From), Message: err.Error()}
	}
}
