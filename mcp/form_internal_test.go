package mcp

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// What is filled in for one property of a requested schema; "" leaves it out.
func TestFill(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"default", `{"type":"string","default":"d"}`, `"d"`},
		{"default of a number", `{"type":"number","default":1.50}`, `1.50`},
		{"default before enum", `{"type":"string","enum":["a","b"],"default":"b"}`, `"b"`},
		{"default of a list", `{"type":"array","items":{"type":"string","enum":["a","b"]},"default":["b"]}`, `["b"]`},
		{"string", `{"type":"string"}`, `"x"`},
		{"string of some length", `{"type":"string","minLength":3,"maxLength":5}`, `"xxx"`},
		{"string of no length", `{"type":"string","maxLength":0}`, `""`},
		{"string of impossible length", `{"type":"string","minLength":3,"maxLength":2}`, ``},
		{"string without end", `{"type":"string","minLength":1e12}`, ``},
		{"string with a pattern", `{"type":"string","pattern":"^[A-Z]{2}$","minLength":2}`, `"XX"`},
		{"string of digits", `{"type":"string","pattern":"^[0-9]+$"}`, `"0"`},
		{"string with a pattern beyond us", `{"type":"string","pattern":"^a+b+c$"}`, ``},
		{"string with a pattern of another dialect", `{"type":"string","pattern":"(?=x)"}`, ``},
		{"email", `{"type":"string","format":"email"}`, `"user@example.com"`},
		{"long email", `{"type":"string","format":"email","minLength":20}`, `"xxxxuser@example.com"`},
		{"email that does not fit", `{"type":"string","format":"email","maxLength":5}`, ``},
		{"uri", `{"type":"string","format":"uri"}`, `"https://example.com/"`},
		{"long uri", `{"type":"string","format":"uri","minLength":22}`, `"https://example.com/xx"`},
		{"date", `{"type":"string","format":"date"}`, `"2025-01-01"`},
		{"date-time", `{"type":"string","format":"date-time"}`, `"2025-01-01T00:00:00Z"`},
		{"date that does not fit", `{"type":"string","format":"date","minLength":11}`, ``},
		{"unknown format", `{"type":"string","format":"uuid"}`, `"x"`},
		{"number", `{"type":"number"}`, `0`},
		{"number from", `{"type":"number","minimum":18.5}`, `18.5`},
		{"number above", `{"type":"number","exclusiveMinimum":18.5}`, `19`},
		{"number up to", `{"type":"number","maximum":-2.5}`, `-2.5`},
		{"number below", `{"type":"number","exclusiveMaximum":-2}`, `-3`},
		{"large number", `{"type":"number","minimum":1e300}`, `1e+300`},
		{"no number", `{"type":"number","minimum":3,"maximum":2}`, ``},
		{"integer", `{"type":"integer"}`, `0`},
		{"integer from", `{"type":"integer","minimum":1.5,"maximum":2}`, `2`},
		{"integer up to", `{"type":"integer","maximum":-0.5}`, `-1`},
		{"no integer", `{"type":"integer","minimum":1.2,"maximum":1.8}`, ``},
		{"boolean", `{"type":"boolean"}`, `false`},
		{"enum", `{"type":"string","enum":["Red","Green"],"enumNames":["r","g"]}`, `"Red"`},
		{"enum without a type", `{"enum":[7]}`, `7`},
		{"empty enum", `{"type":"string","enum":[]}`, `"x"`},
		{"titled enum", `{"type":"string","oneOf":[{"title":"none"},{"const":"#F00","title":"Red"}]}`, `"#F00"`},
		{"const", `{"const":"c"}`, `"c"`},
		{"list", `{"type":"array","items":{"type":"string","enum":["a","b","c"]}}`, `[]`},
		{"list of at least two", `{"type":"array","minItems":2,"items":{"type":"string","enum":["a","b","c"]}}`, `["a","b"]`},
		{"titled list", `{"type":"array","minItems":1,"items":{"anyOf":[{"const":"a","title":"A"},{"const":"b"}]}}`, `["a"]`},
		{"list with fewer values", `{"type":"array","minItems":3,"items":{"enum":["a"]}}`, `["a","a","a"]`},
		{"list of numbers", `{"type":"array","minItems":2,"items":{"type":"integer","minimum":3}}`, `[3,3]`},
		{"list of nothing", `{"type":"array","minItems":2}`, ``},
		{"list without end", `{"type":"array","minItems":100000,"items":{"type":"boolean"}}`, ``},
		{"list of lists", `{"type":"array","minItems":9999,"items":{"type":"array","minItems":9999,"items":{"type":"boolean"}}}`, ``},
		{"list of long texts", `{"type":"array","minItems":9999,"items":{"type":"string","minLength":9999}}`, ``},
		{"object", `{"type":"object"}`, ``},
		{"several types", `{"type":["string","null"]}`, ``},
		{"no object", `7`, ``},
	}
	for _, tt := range tests {
		want := `{}`
		if tt.want != "" {
			want = `{"p":` + tt.want + `}`
		}
		if got := string(appendForm(nil, []byte(`{}`), []byte(`{"properties":{"p":`+tt.schema+`}}`))); got != want {
			t.Errorf("%s: %s, want %s", tt.name, got, want)
		}
	}
}

// What the user fixed comes first and is never replaced; a schema that is none
// adds nothing.
func TestFillBesideFixedContent(t *testing.T) {
	tests := []struct{ content, schema, want string }{
		{`{"a":1}`, `{"properties":{"a":{"type":"boolean"},"b":{"type":"boolean"}}}`, `{"a":1,"b":false}`},
		{` { "\u0061" : [ 1 ] , "z":2} `, `{"properties":{"a":{"type":"boolean"}}}`, `{"\u0061":[ 1 ],"z":2}`},
		{`{}`, `{"properties":{"a\"b":{"type":"boolean"},"a\u0022b":{"type":"string"}}}`, `{"a\"b":false}`},
		{`{"a":1}`, ``, `{"a":1}`},
		{`{"a":1}`, `null`, `{"a":1}`},
		{`{}`, `{"properties":[{}]}`, `{}`},
	}
	for _, tt := range tests {
		if got := string(appendForm(nil, []byte(tt.content), []byte(tt.schema))); got != tt.want {
			t.Errorf("%s with %s: %s, want %s", tt.content, tt.schema, got, tt.want)
		}
	}
	properties := make([]string, 1000)
	for i := range properties {
		properties[i] = fmt.Sprintf(`"p%d":{"type":"string","minLength":9999}`, i)
	}
	many := `{"properties":{` + strings.Join(properties, ",") + `}}`
	if n := len(appendForm(nil, []byte(`{}`), []byte(many))); n < maxForm || n > maxForm+maxFill+100 {
		t.Errorf("%d bytes", n)
	}
}

// FuzzFill: whatever schema comes, the form is a JSON object of bounded size that
// holds what was fixed, and its values keep the simple limits of the schema.
func FuzzFill(f *testing.F) {
	for _, s := range []string{
		`{"properties":{"n":{"type":"string","minLength":2},"a":{"type":"integer","minimum":-3,"maximum":7},"e":{"enum":[1,{"x":[]}]}}}`,
		`{"properties":{"l":{"type":"array","minItems":3,"items":{"type":"number","exclusiveMinimum":1e308}}}}`,
		`{"properties":{"p":{"type":"string","pattern":"^[0-9]{3}$","minLength":3},"u":{"type":"string","format":"uri"}}}`,
		`{"properties":{"\u0066ixed":{"type":"string"},"":{"type":"boolean"}},"properties":{"x":{"oneOf":[{"const":1}]}}}`,
		`{"properties":7}`, `[]`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		if !json.Valid(schema) || len(schema) > 10_000 {
			return
		}
		form := appendForm(nil, []byte(`{"fixed":[7]}`), schema)
		var got map[string]any
		if err := json.Unmarshal(form, &got); err != nil {
			t.Fatalf("%v in %s", err, form)
		}
		if len(form) > 2*maxForm+len(schema)+100 {
			t.Errorf("%d bytes", len(form))
		}
		if fixed, ok := got["fixed"].([]any); !ok || len(fixed) != 1 {
			t.Errorf("fixed is %v", got["fixed"])
		}
		var read struct{ Properties map[string]map[string]any }
		if json.Unmarshal(schema, &read) != nil {
			return
		}
		for name, p := range read.Properties {
			if value, ok := got[name].(float64); ok && name != "fixed" && !withinLimits(value, p) {
				t.Errorf("%s is %v with %s", name, value, schema)
			}
		}
	})
}

// withinLimits reports whether a number has the limits of its schema, unless the
// schema gives it by a value.
func withinLimits(value float64, schema map[string]any) bool {
	for _, given := range []string{"default", "enum", "const", "oneOf", "anyOf"} {
		if schema[given] != nil {
			return true
		}
	}
	low, bounded := schema["minimum"].(float64)
	high, limited := schema["maximum"].(float64)
	return (!bounded || value >= low) && (!limited || value <= high) && (schema["type"] != "integer" || value == math.Trunc(value))
}
