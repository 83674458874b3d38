package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"mcpbench/scenarios/internal/grammar"
)

const grammarPath = "mcpbench/scenarios/internal/grammar"

// generate returns the schema. source is the folder of the grammar package.
func generate(source string) ([]byte, error) {
	r := &jsonschema.Reflector{
		Anonymous:                  true,
		ExpandedStruct:             true,
		RequiredFromJSONSchemaTags: true,
		Mapper:                     mapped,
	}
	if err := r.AddGoComments(grammarPath, source); err != nil {
		return nil, fmt.Errorf("read the comments of %s: %w", source, err)
	}
	// The package's folder does not tell its import path, so the comments are
	// filed again under the one that reflection gives.
	for key, text := range r.CommentMap {
		name := key[strings.LastIndex(key, "/")+1:]
		if _, rest, ok := strings.Cut(name, "."); ok {
			r.CommentMap[grammarPath+"."+rest] = text
		}
	}
	schema := r.Reflect(&grammar.File{})
	schema.Title = "mcpbench scenario"
	schema.Description = "A load or an evaluation of MCP servers, for mcpbench run."
	if schema.Definitions == nil {
		return nil, fmt.Errorf("the schema has no definitions")
	}
	schema.Definitions["variable"] = &jsonschema.Schema{
		Type: "string", Pattern: `\$\{`, Description: "A value with ${VARIABLE} in it, replaced when the scenario is loaded.",
	}
	finish(schema)
	for _, d := range schema.Definitions {
		finish(d)
	}
	oneOperation(schema.Definitions["Step"])
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(schema); err != nil {
		return nil, fmt.Errorf("encode the schema: %w", err)
	}
	return out.Bytes(), nil
}

// finish allows x- keys and, wherever a value is not free text, a variable. What
// a map with a use lacks, another file may have.
func finish(s *jsonschema.Schema) {
	if s.Properties == nil {
		return
	}
	s.PatternProperties = map[string]*jsonschema.Schema{"^x-": jsonschema.TrueSchema}
	if len(s.Required) == 0 && s.Type == "object" {
		s.Type = ""
		s.Extras = map[string]any{"type": []string{"object", "null"}}
	}
	if _, uses := s.Properties.Get("use"); uses && len(s.Required) > 0 {
		s.AnyOf = []*jsonschema.Schema{{Required: []string{"use"}}, {Required: s.Required}}
		s.Required = nil
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		v := p.Value
		if v.Type != "integer" && v.Type != "boolean" && len(v.Enum) == 0 {
			continue
		}
		strict := *v
		strict.Description, strict.Default = "", nil
		p.Value = &jsonschema.Schema{
			Description: v.Description, Default: v.Default,
			AnyOf: []*jsonschema.Schema{&strict, reference("variable")},
		}
	}
}

func reference(name string) *jsonschema.Schema { return &jsonschema.Schema{Ref: "#/$defs/" + name} }

// oneOperation makes a step have exactly one of the keys that name an operation.
func oneOperation(step *jsonschema.Schema) {
	t := reflect.TypeFor[grammar.Step]()
	for f := range t.Fields() {
		if f.Tag.Get("bench") == "op" {
			name := f.Tag.Get("json")
			step.OneOf = append(step.OneOf, &jsonschema.Schema{Required: []string{name}})
		}
	}
}

var (
	text     = &jsonschema.Schema{Type: "string"}
	scalar   = union("string", "number", "boolean")
	duration = &jsonschema.Schema{
		Type: "string", Pattern: `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$|\$\{`,
		Examples: []any{"250ms", "5s", "1m30s"},
	}
	rate = &jsonschema.Schema{
		Type: "string", Pattern: `^[0-9]*\.?[0-9]+ */ *(s|m|min|h)$|\$\{`, Examples: []any{"200/s", "30/m"},
	}
	size = &jsonschema.Schema{
		Type: "string", Pattern: `^[0-9]+(\.[0-9]+)?([KMG]iB|[kK]B|MB|GB)$|\$\{`, Examples: []any{"8MiB", "64kB"},
	}
	keep = &jsonschema.Schema{
		Type: "string", Pattern: `^ *keep-(head|tail):[0-9.]+[A-Za-z]+( +keep-(head|tail):[0-9.]+[A-Za-z]+)? *$|\$\{`,
		Examples: []any{"keep-tail:64KiB", "keep-head:64KiB keep-tail:1MiB"},
	}
	connections = &jsonschema.Schema{
		Type: "string", Pattern: `^(per-session|shared:[1-9][0-9]*)$|\$\{`, Examples: []any{"per-session", "shared:8"},
	}
)

func union(types ...string) *jsonschema.Schema {
	return &jsonschema.Schema{Extras: map[string]any{"type": types}}
}

func whole(minimum string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: json.Number(minimum)}
}

func number(maximum string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "number", Minimum: "0", Maximum: json.Number(maximum)}
}

// object is a map with the given members, in pairs of name and schema.
func object(required string, members ...any) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	s.PatternProperties = map[string]*jsonschema.Schema{"^x-": jsonschema.TrueSchema}
	if required != "" {
		s.Required = []string{required}
	}
	for pair := range slices.Chunk(members, 2) {
		name, _ := pair[0].(string)
		member, _ := pair[1].(*jsonschema.Schema)
		s.Properties.Set(name, member)
	}
	return s
}

func either(schemas ...*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: schemas}
}

// mapped gives the schemas of the types that decode themselves.
func mapped(t reflect.Type) *jsonschema.Schema {
	anything := func() *jsonschema.Schema { return &jsonschema.Schema{} }
	variable := reference("variable")
	switch t {
	case reflect.TypeFor[grammar.Later](), reflect.TypeFor[grammar.Value]():
		return anything()
	case reflect.TypeFor[grammar.Values]():
		return &jsonschema.Schema{Type: "object"}
	case reflect.TypeFor[grammar.Text](), reflect.TypeFor[grammar.Label](), reflect.TypeFor[grammar.Template]():
		return clone(scalar)
	case reflect.TypeFor[grammar.Expr]():
		return union("string", "boolean")
	case reflect.TypeFor[grammar.Duration]():
		return clone(duration)
	case reflect.TypeFor[grammar.Rate]():
		return clone(rate)
	case reflect.TypeFor[grammar.Warmup]():
		return either(duration, object("",
			"duration", duration, "iterations", either(whole("1"), variable), "max", duration,
			"stable", object("", "window", duration, "within", either(number("1"), variable)),
		))
	case reflect.TypeFor[grammar.Threshold]():
		abort := either(&jsonschema.Schema{Type: "boolean"}, variable, object("", "after", duration, "window", duration))
		return either(text, object("expr", "expr", text, "abort", abort))
	case reflect.TypeFor[grammar.Sessions]():
		count := either(whole("0"), variable)
		return either(whole("1"), variable, object("", "count", count, "stages", &jsonschema.Schema{
			Type: "array", Items: object("", "to", count, "over", duration, "hold", duration),
		}))
	case reflect.TypeFor[grammar.RateStages]():
		return &jsonschema.Schema{Type: "array", Items: object("", "rate", rate, "over", duration, "hold", duration)}
	case reflect.TypeFor[grammar.Iterations]():
		count := either(whole("1"), variable)
		return either(whole("1"), variable, object("", "total", count, "per_session", count, "each", anything()))
	case reflect.TypeFor[grammar.Task]():
		return object("", "poll", &jsonschema.Schema{Type: "string", Enum: []any{"server", "fixed"}}, "every", duration, "timeout", duration)
	case reflect.TypeFor[grammar.Names]():
		return either(text, &jsonschema.Schema{Type: "array", Items: text})
	case reflect.TypeFor[grammar.Files]():
		return either(text, &jsonschema.Schema{Type: "array", Items: text})
	case reflect.TypeFor[grammar.Call]():
		return either(text, object("name", "name", text, "args", &jsonschema.Schema{Type: "object"}))
	case reflect.TypeFor[grammar.Save]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: anything()}
	case reflect.TypeFor[grammar.Share]():
		return either(number("1"), variable)
	case reflect.TypeFor[grammar.Weight]():
		return either(number("1e9"), variable)
	case reflect.TypeFor[grammar.Exponent]():
		return either(&jsonschema.Schema{Type: "number", ExclusiveMinimum: "0", Maximum: "20"}, variable)
	case reflect.TypeFor[grammar.Spread]():
		return spread()
	case reflect.TypeFor[grammar.Size]():
		return clone(size)
	case reflect.TypeFor[grammar.Keep]():
		return clone(keep)
	case reflect.TypeFor[grammar.Connections]():
		return clone(connections)
	case reflect.TypeFor[grammar.HTTPVersion]():
		return clone(scalar)
	}
	return nil
}

// spread is a duration or a distribution of them.
func spread() *jsonschema.Schema {
	two := uint64(2)
	pair := &jsonschema.Schema{Type: "array", Items: clone(duration), MinItems: &two, MaxItems: &two}
	percentiles := &jsonschema.Schema{
		Type: "object", MinProperties: &two, MaxProperties: &two, AdditionalProperties: jsonschema.FalseSchema,
		PatternProperties: map[string]*jsonschema.Schema{`^p[0-9]+(\.[0-9]+)?$`: clone(duration)},
	}
	return either(duration, object("",
		"constant", duration, "uniform", pair, "exponential", duration,
		"normal", object("mean", "mean", duration, "sd", duration), "lognormal", percentiles,
		"pareto", object("scale", "scale", duration, "shape", number("1e9")),
		"empirical", object("file", "file", text, "column", text),
		"min", duration, "max", duration,
	))
}

func clone(s *jsonschema.Schema) *jsonschema.Schema {
	c := *s
	return &c
}
