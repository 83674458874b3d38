package scenarios_test

import (
	"strings"
	"testing"

	"mcpbench/scenarios"
)

func TestSampleArguments(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"empty", `{"type":"object"}`, `{}`},
		{"optional left out", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{}`},
		{
			"each type", `{"type":"object","required":["s","i","n","b","a","o","z"],"properties":{"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"a":{"type":"array","items":{"type":"string"}},"o":{"type":"object"},"z":{"type":"null"}}}`,
			`{"a":[],"b":true,"i":1,"n":1,"o":{},"s":"test","z":null}`,
		},
		{
			"const default examples enum", `{"type":"object","required":["c","d","x","e"],"properties":{"c":{"const":5},"d":{"type":"string","default":"dd"},"x":{"type":"string","examples":["ex"]},"e":{"enum":["first","second"]}}}`,
			`{"c":5,"d":"dd","e":"first","x":"ex"}`,
		},
		{
			"bounds", `{"type":"object","required":["a","b","c","d","e"],"properties":{"a":{"type":"integer","minimum":10},"b":{"type":"integer","maximum":-3},"c":{"type":"number","exclusiveMinimum":1},"d":{"type":"integer","multipleOf":7,"minimum":8},"e":{"type":"number","minimum":0.5,"maximum":0.75}}}`,
			`{"a":10,"b":-3,"c":2,"d":14,"e":0.75}`,
		},
		{
			"lengths", `{"type":"object","required":["a","b","c"],"properties":{"a":{"type":"string","minLength":6},"b":{"type":"string","maxLength":2},"c":{"type":"array","minItems":2,"items":{"type":"integer"}}}}`,
			`{"a":"testxx","b":"te","c":[1,1]}`,
		},
		{
			"formats", `{"type":"object","required":["a","b","c","d"],"properties":{"a":{"type":"string","format":"date-time"},"b":{"type":"string","format":"uri"},"c":{"type":"string","format":"email"},"d":{"type":"string","format":"uuid"}}}`,
			`{"a":"2026-01-01T00:00:00Z","b":"https://example.com/alpha","c":"ada@example.com","d":"00000000-0000-4000-8000-000000000000"}`,
		},
		{"local ref", `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/x~1y"}},"$defs":{"x/y":{"type":"integer","minimum":4}}}`, `{"a":4}`},
		{"allOf", `{"allOf":[{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}},{"required":["b"],"properties":{"b":{"type":"integer"}}}]}`, `{"a":"test","b":1}`},
		{"anyOf", `{"type":"object","required":["a"],"properties":{"a":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}`, `{"a":1}`},
		{"oneOf with const", `{"type":"object","oneOf":[{"required":["kind"],"properties":{"kind":{"const":"x"}}},{"required":["other"]}]}`, `{"kind":"x"}`},
		{"type list", `{"type":"object","required":["a"],"properties":{"a":{"type":["null","string"]}}}`, `{"a":"test"}`},
		{"nested", `{"type":"object","required":["o"],"properties":{"o":{"type":"object","required":["p"],"properties":{"p":{"type":"array","minItems":1,"prefixItems":[{"type":"boolean"}]}}}}}`, `{"o":{"p":[true]}}`},
		{"pattern", `{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^[0-9]{5}$"}}}`, `{"a":"00000"}`},
		{"no schema for a required one", `{"type":"object","required":["a"]}`, `{"a":"x"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := scenarios.SampleArguments([]byte(tt.schema))
			if err != nil || string(got) != tt.want {
				t.Errorf("arguments %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestSampleArgumentsGivesUp(t *testing.T) {
	for name, schema := range map[string]string{
		"pattern":        `{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^(a)\\1$"}}}`,
		"contradiction":  `{"type":"object","required":["a"],"properties":{"a":{"type":"integer","minimum":5,"maximum":3}}}`,
		"endless":        `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`,
		"circle":         `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"remote":         `{"type":"object","required":["a"],"properties":{"a":{"$ref":"http://example.com/x.json"}}}`,
		"nowhere":        `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/none"}}}`,
		"too long":       `{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":100000000}}}`,
		"no object":      `{"type":"string"}`,
		"broken":         `{`,
		"impossible":     `{"type":"object","required":["a"],"properties":{"a":false}}`,
		"broken keyword": `{"type":"object","required":"a"}`,
		"not a schema":   `5`,
	} {
		got, err := scenarios.SampleArguments([]byte(schema))
		if err == nil || !strings.HasSuffix(err.Error(), "give the arguments with -a") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %s, error %v; want one line that says to pass -a", name, got, err)
		}
	}
}
