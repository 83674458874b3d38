package script

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"

	"mcpbench/internal/nearest"
)

var (
	fieldFault = regexp.MustCompile(`^type (.+) has no (?:field|method) (\S+)$`)
	nameFault  = regexp.MustCompile(`^unknown name (\S+)$`)
	ourTypes   = regexp.MustCompile(`\*?script\.(?:environment\[[^\]]*\]|\w+)`)
)

// explain turns an error of the expression library into ours: with the byte
// where it is, in words of the scenario language.
func explain(source string, err error, env any, vars map[string]any) *Error {
	var at *file.Error
	if !errors.As(err, &at) {
		message := err.Error()
		if got, found := strings.CutPrefix(message, "expected bool, but got "); found {
			what := "a check"
			if _, before := env.(*valueEnv); before {
				what = "a condition"
			}
			message = what + " must be true or false; this is " + plainType(got)
		}
		return &Error{Message: plainType(message)}
	}
	offset := byteOffset(source, at.From)
	message := at.Message
	if m := fieldFault.FindStringSubmatch(message); m != nil {
		return &Error{Offset: offset, Message: noField(source, offset, m[2], fieldsNamed(m[1], env, vars))}
	}
	if m := nameFault.FindStringSubmatch(message); m != nil {
		return &Error{Offset: offset, Message: fmt.Sprintf("unknown name %q%s", m[1], nameHint(source, offset, m[1], env))}
	}
	if strings.HasPrefix(message, "unexpected token EOF") {
		message = "the expression ends too early"
	}
	return &Error{Offset: offset, Message: strings.TrimSpace(plainType(message))}
}

// nameHint says what an unknown name may have been meant to be: a known one, or a
// text, whose quotes YAML takes for its own.
func nameHint(source string, offset int, name string, env any) string {
	near := nearest.DidYouMean(name, topNames(env))
	switch env.(type) {
	case *valueEnv, *headerEnv: // the expression may stand within ${{ }}
	default:
		if strings.TrimSpace(source) == name {
			return fmt.Sprintf(`%s; a text has quotes within those of YAML: '"%s"'`, near, name)
		}
	}
	used := offset+len(name) < len(source) && strings.IndexByte("(.[", source[offset+len(name)]) >= 0
	if near == "" && !used { // what is called or looked into was meant as no text
		return fmt.Sprintf("; a text stands in quotes: %q", name)
	}
	return near
}

// plainType replaces names of Go types by words.
func plainType(message string) string {
	message = strings.NewReplacer("map[string]interface {}", "map", "[]interface {}", "list",
		"interface {}", "any value", "time.Duration", "duration").Replace(message)
	return ourTypes.ReplaceAllStringFunc(message, func(t string) string {
		return strings.TrimPrefix(strings.TrimPrefix(t, "*"), "script.")
	})
}

func byteOffset(source string, runes int) int {
	at := 0
	for range runes {
		_, size := utf8.DecodeRuneInString(source[at:])
		at += size
	}
	return at
}

// noField says that what stands before offset has no such field.
func noField(source string, offset int, name string, known []string) string {
	owner := before(source, offset)
	if owner == "" {
		owner = "the value"
	}
	return fmt.Sprintf("%s has no field %q%s", owner, name, nearest.DidYouMean(name, known))
}

// before returns the chain of names, calls and indexes that ends before the
// field at offset, such as result.content[0].
func before(source string, offset int) string {
	end := len(strings.TrimRight(source[:offset], " ?.[\"'"))
	start, depth := end, 0
	for start > 0 {
		c := source[start-1]
		switch {
		case c == ']' || c == ')':
			depth++
		case c == '[' || c == '(':
			if depth == 0 {
				return source[start:end]
			}
			depth--
		case depth == 0 && !strings.ContainsRune("_.?#", rune(c)) &&
			(c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z'):
			return source[start:end]
		}
		start--
	}
	return source[start:end]
}

// fieldsNamed returns the names of the fields of the type whose name stands in
// a message.
func fieldsNamed(name string, env any, vars map[string]any) []string {
	if name == "map[string]interface {}" {
		return keys(vars)
	}
	seen := map[reflect.Type]bool{}
	var search func(t reflect.Type) []string
	search = func(t reflect.Type) []string {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return nil
		}
		seen[t] = true
		if t.String() == name {
			return names(t)
		}
		for f := range t.Fields() {
			if found := search(f.Type); found != nil {
				return found
			}
		}
		return nil
	}
	return search(reflect.TypeOf(env))
}

func names(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		if name := f.Tag.Get("expr"); name != "" && !strings.HasPrefix(name, "__") {
			out = append(out, name)
		}
	}
	return out
}

// topNames returns the variables and functions of an environment and a few
// functions that every expression has.
func topNames(env any) []string {
	return slices.Concat(names(reflect.TypeOf(env).Elem()),
		[]string{"now", "env", "base64", "sha256", "jsonpath", "capture", "len", "all", "any", "none", "one", "filter", "map", "count", "duration", "string", "int", "float", "fromJSON", "toJSON", "split", "trim", "lower", "upper"})
}
