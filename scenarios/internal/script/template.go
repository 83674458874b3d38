package script

import (
	"fmt"
	"reflect"
	"strings"

	"mcpbench/scenarios/internal/syntax"
)

// Part is a piece of a text: literal text, or an expression.
type Part struct {
	Text   string      // literal, when Expr is nil
	Expr   *Expression // else
	Source string      // text of the expression
}

// Parse splits a text at its ${{ }} expressions and compiles these. $${{ stands
// for a plain ${{. Expressions that are constant become literal text, except
// when the whole text is one expression. Errors carry the offset into text.
func Parse(text string, compile func(source string) (*Expression, error)) ([]Part, []*Error) {
	if !strings.Contains(text, "${{") {
		return []Part{{Text: text}}, nil
	}
	var parts []Part
	var faults []*Error
	literal := ""
	flush := func() {
		if literal != "" {
			parts = append(parts, Part{Text: literal})
			literal = ""
		}
	}
	for i := 0; i < len(text); {
		at := strings.Index(text[i:], "${{")
		if at < 0 {
			literal += text[i:]
			break
		}
		at += i
		if at > i && text[at-1] == '$' {
			literal += text[i:at-1] + "${{"
			i = at + 3
			continue
		}
		literal += text[i:at]
		end, closed := syntax.ExpressionEnd(text, at+3)
		if !closed {
			return nil, append(faults, &Error{Offset: at, Message: "${{ has no }} to end it"})
		}
		inner := text[at+3 : end-2]
		source := strings.TrimSpace(inner)
		whole := at == 0 && end == len(text)
		start := at + 3 + len(inner) - len(strings.TrimLeft(inner, " \t\r\n"))
		i = end
		e, err := compilePart(source, whole, compile)
		switch {
		case err != nil:
			faults = append(faults, &Error{Offset: start + err.Offset, Message: err.Message, NotYet: err.NotYet})
		case e.isConstant && !whole:
			plain, err := appendText(nil, e.constant)
			if err != nil {
				faults = append(faults, &Error{Offset: start, Message: err.Error()})
			}
			literal += string(plain)
		default:
			flush()
			parts = append(parts, Part{Expr: e, Source: source})
		}
	}
	flush()
	return parts, faults
}

func compilePart(source string, whole bool, compile func(source string) (*Expression, error)) (*Expression, *Error) {
	if source == "" {
		return nil, &Error{Message: "${{ }} holds no expression"}
	}
	e, err := compile(source)
	if err != nil {
		if fault, ok := err.(*Error); ok { //nolint:errorlint // compile returns it as it is
			return nil, fault
		}
		return nil, &Error{Message: err.Error()}
	}
	kind := e.ResultKind()
	if !whole && (kind == reflect.Map || kind == reflect.Slice || kind == reflect.Struct) {
		return nil, &Error{Message: "inside a text an expression must give text, a number or true or false; " +
			"this is a " + map[reflect.Kind]string{reflect.Slice: "list"}[kind] + map[reflect.Kind]string{reflect.Map: "map", reflect.Struct: "map"}[kind]}
	}
	return e, nil
}

// evalError is an expression that failed at run time.
type evalError struct {
	source string
	err    error
}

func (e *evalError) Error() string { return fmt.Sprintf("expression %s: %v", e.source, e.err) }

func (e *evalError) Unwrap() error { return e.err }
