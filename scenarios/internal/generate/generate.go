// Package generate makes the arguments of a tool from its inputSchema: values
// that the schema allows, and values that it must refuse.
//
// Both are validated before they are returned. Everything is bounded: a schema
// that is too much to read or to satisfy is an error of Compile, never a hang.
package generate

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbench/scenarios/internal/schemas"
)

const (
	attempts = 6 // at a value before one that is known is used
	known    = 4 // values kept for that
	trials   = 16
)

// ErrAllowsAll says that a schema allows every object, or that none it refuses
// was found.
var ErrAllowsAll = errors.New("no object was found that the input schema refuses")

var (
	errNoObject = errors.New("it asks for no object")
	errEndless  = errors.New("it allows no value that is nested less than 32 deep")
)

// Generator makes arguments for one schema. It is immutable and safe for
// concurrent use, each caller with a source of its own.
type Generator struct {
	root    *node
	strict  *jsonschema.Schema // with formats: for what is to be accepted
	lax     *jsonschema.Schema // without: for what is to be refused
	least   []byte
	valid   [][]byte // known, never empty
	invalid []refused
}

type refused struct {
	value []byte
	how   string
}

// Compile reads a JSON Schema (draft 2020-12 unless $schema says otherwise) and
// makes a few values, so that Append can always return one. An error says what
// stands in the way, the schema being "it": it is broken, reaches outside
// itself, is beyond the limits, or no object was found that it allows.
func Compile(schema []byte) (*Generator, error) {
	strict, err := schemas.Compile(schema, schemas.AssertFormats)
	if err != nil {
		return nil, err
	}
	g := &Generator{strict: strict, lax: strict, root: plan(strict)}
	if slices.ContainsFunc(schemas.Reachable(strict), func(s *jsonschema.Schema) bool { return s.Format != nil }) {
		if g.lax, err = schemas.Compile(schema, schemas.IgnoreFormats); err != nil {
			return nil, err
		}
	}
	switch {
	case g.root.kinds&objectKind == 0:
		return nil, errNoObject
	case g.root.height > maxDepth:
		return nil, errEndless
	}
	if err := g.learn(); err != nil {
		return nil, err
	}
	return g, nil
}

// learn makes the values that are fallen back on.
func (g *Generator) learn() error {
	var last error
	for i := range trials { // the first takes the first of alternatives, later ones others
		m := maker{r: rand.New(rand.NewPCG(0, uint64(i))), plain: true, first: i == 0, lean: true}
		b, err := g.attempt(nil, &m)
		if err == nil {
			g.least = b
			g.valid = append(g.valid, b)
			break
		}
		if last == nil || errors.Is(last, errNothing) {
			last = err
		}
	}
	r := rand.New(rand.NewPCG(1, 0))
	for i := 0; i < trials && len(g.valid) < known; i++ {
		b, err := g.attempt(nil, &maker{r: r, lean: i >= trials/2})
		if err != nil {
			continue
		}
		if g.least == nil || i == 0 && len(g.valid) == 0 {
			g.least = b
		}
		if !slices.ContainsFunc(g.valid, func(v []byte) bool { return string(v) == string(b) }) {
			g.valid = append(g.valid, b)
		}
	}
	if len(g.valid) == 0 {
		return last
	}
	for i := 0; i < trials && len(g.invalid) < known; i++ {
		if v, how, ok := g.spoilt(r); ok {
			g.invalid = append(g.invalid, refused{appendJSON(nil, v), how})
		}
	}
	return nil
}

var errNothing = errors.New("no object was found that it allows")

// attempt makes one value, validates it and appends it.
func (g *Generator) attempt(dst []byte, m *maker) ([]byte, error) {
	v, err := g.try(m)
	if err != nil {
		return dst, err
	}
	n := len(dst)
	if dst = appendJSON(dst, v); len(dst)-n > maxBytes {
		return dst[:n], errNothing
	}
	return dst, nil
}

func (g *Generator) try(m *maker) (map[string]any, error) {
	m.steps = maxSteps
	v, ok := m.value([]*node{g.root}, "", 0)
	object, isObject := v.(map[string]any)
	if !ok || !isObject {
		return nil, errNothing
	}
	if err := g.strict.Validate(v); err != nil {
		return nil, fmt.Errorf("%w (%s)", errNothing, schemas.Failure(err))
	}
	return object, nil
}

// Append appends arguments that the schema allows: a JSON object of at most 64
// KiB, formats heeded, with members in order of their names. What r returns
// decides them.
func (g *Generator) Append(dst []byte, r *rand.Rand) []byte {
	for i := range attempts {
		out, err := g.attempt(dst, &maker{r: r, lean: i >= attempts/2})
		if err == nil {
			return out
		}
	}
	return append(dst, g.valid[r.IntN(len(g.valid))]...)
}

// AppendLeast appends the plainest arguments that the schema allows, always the
// same: required members only, each by its const, default, the first of its
// examples or enum, else a plain value of its type.
func (g *Generator) AppendLeast(dst []byte) []byte { return append(dst, g.least...) }

// AppendInvalid appends a JSON object that every validator refuses, one that
// ignores formats too, and says what is wrong with it, as "missing required
// member /city". The error is ErrAllowsAll, always or never; CanBeInvalid tells
// it ahead.
func (g *Generator) AppendInvalid(dst []byte, r *rand.Rand) (out []byte, how string, err error) {
	if !g.CanBeInvalid() {
		return dst, "", ErrAllowsAll
	}
	for range attempts {
		n := len(dst)
		if v, how, ok := g.spoilt(r); ok {
			if dst = appendJSON(dst, v); len(dst)-n <= maxBytes {
				return dst, how, nil
			}
			dst = dst[:n]
		}
	}
	one := g.invalid[r.IntN(len(g.invalid))]
	return append(dst, one.value...), one.how, nil
}

// CanBeInvalid tells whether AppendInvalid has something to append.
func (g *Generator) CanBeInvalid() bool { return len(g.invalid) > 0 }

// appendJSON appends a decoded value, members in order of their names.
func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return fmt.Append(dst, v)
	case string:
		return appendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, name), ':')
			dst = appendJSON(dst, v[name])
		}
		return append(dst, '}')
	}
	return fmt.Append(dst, v) // json.Number
}

func appendString(dst []byte, s string) []byte {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil { // bytes that are no UTF-8 are replaced: texts here have none
		return append(dst, `""`...)
	}
	return out
}
