package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// maker makes values that a JSON Schema allows. Keywords are those of draft
// 2020-12 (json-schema.org/draft/2020-12); older spellings of references work too.
type maker struct {
	root any
}

func (m *maker) value(schema any, depth int) (any, error) {
	if depth > maxSampleDepth {
		return nil, fmt.Errorf("it is nested too deep")
	}
	s, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return nil, fmt.Errorf("it allows nothing")
		}
		return "x", nil // true allows anything
	}
	s, err := m.flat(s, depth)
	if err != nil {
		return nil, err
	}
	if v, ok := s["const"]; ok {
		return v, nil
	}
	if v, ok := s["default"]; ok {
		return v, nil
	}
	for _, key := range []string{"examples", "enum"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			return list[0], nil
		}
	}
	switch typeOf(s) {
	case "object":
		return m.object(s, depth)
	case "array":
		return m.array(s, depth)
	case "string":
		return text(s)
	case "integer":
		return number(s, true)
	case "number":
		return number(s, false)
	case "boolean":
		return true, nil
	case "null":
		return nil, nil //nolint:nilnil // null is the value
	}
	return "x", nil
}

// flat resolves $ref and merges allOf and the first of anyOf and oneOf into one
// schema. Members of s itself win, required lists and properties are joined.
func (m *maker) flat(s map[string]any, depth int) (map[string]any, error) {
	if depth > maxSampleDepth {
		return nil, fmt.Errorf("its references go in a circle")
	}
	var parts []any
	if ref, ok := s["$ref"].(string); ok {
		target, err := m.resolve(ref)
		if err != nil {
			return nil, err
		}
		parts = append(parts, target)
	}
	if all, ok := s["allOf"].([]any); ok {
		parts = append(parts, all...)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			parts = append(parts, list[0])
		}
	}
	if len(parts) == 0 {
		return s, nil
	}
	out := maps.Clone(s)
	for _, key := range []string{"$ref", "allOf", "anyOf", "oneOf"} {
		delete(out, key)
	}
	for _, p := range parts {
		part, ok := p.(map[string]any)
		if !ok {
			continue
		}
		part, err := m.flat(part, depth+1)
		if err != nil {
			return nil, err
		}
		merge(out, part)
	}
	return out, nil
}

func merge(out, part map[string]any) {
	for key, v := range part {
		switch have := out[key].(type) {
		case nil:
			if _, set := out[key]; !set {
				out[key] = v
			}
		case map[string]any:
			if more, ok := v.(map[string]any); ok && key == "properties" {
				joined := maps.Clone(more)
				maps.Copy(joined, have)
				out[key] = joined
			}
		case []any:
			if more, ok := v.([]any); ok && key == "required" {
				out[key] = slices.Concat(have, more)
			}
		}
	}
}

// resolve follows a reference within the schema (RFC 6901 pointer).
func (m *maker) resolve(ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("it refers to %s", ref)
	}
	at := m.root
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		next, ok := at.(map[string]any)[token]
		if !ok {
			return nil, fmt.Errorf("its reference %s leads nowhere", ref)
		}
		if _, ok := next.(map[string]any); !ok {
			return nil, fmt.Errorf("its reference %s leads to no schema", ref)
		}
		at = next
	}
	return at, nil
}

// typeOf is the type to make: the first named one that is not null, or what
// the other keywords speak of.
func typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		for _, item := range t {
			if name, ok := item.(string); ok && name != "null" {
				return name
			}
		}
		return "null"
	}
	for _, hint := range []struct{ keyword, kind string }{
		{"properties", "object"},
		{"required", "object"},
		{"items", "array"},
		{"minItems", "array"},
		{"minLength", "string"},
		{"format", "string"},
		{"pattern", "string"},
		{"minimum", "number"},
		{"maximum", "number"},
	} {
		if _, ok := s[hint.keyword]; ok {
			return hint.kind
		}
	}
	return ""
}

func (m *maker) object(s map[string]any, depth int) (any, error) {
	out := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, item := range required {
		name, ok := item.(string)
		if !ok {
			continue
		}
		property, known := properties[name]
		if !known {
			property = s["additionalProperties"]
			if property == nil {
				property = true
			}
		}
		v, err := m.value(property, depth+1)
		if err != nil {
			return nil, fmt.Errorf("property %q: %w", name, err)
		}
		out[name] = v
	}
	return out, nil
}

func (m *maker) array(s map[string]any, depth int) (any, error) {
	n, err := count(s, "minItems")
	if err != nil {
		return nil, err
	}
	prefix, _ := s["prefixItems"].([]any)
	out := make([]any, 0, n)
	for i := range n {
		item := s["items"]
		if i < len(prefix) {
			item = prefix[i]
		}
		if item == nil {
			item = true
		}
		v, err := m.value(item, depth+1)
		if err != nil {
			return nil, fmt.Errorf("an item: %w", err)
		}
		out = append(out, v)
	}
	return out, nil
}

func count(s map[string]any, key string) (int, error) {
	v, ok := numeric(s[key])
	if !ok {
		return 0, nil
	}
	if v > maxSampleItems {
		return 0, fmt.Errorf("it asks for a %s of %g", key, v)
	}
	return max(int(v), 0), nil
}

// numeric reads a number of a schema, which the validator's reader keeps as text.
func numeric(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// formats are values of the formats that tools use (JSON Schema 2020-12
// validation §7.3).
var formats = map[string]string{
	"date-time": "2026-01-01T00:00:00Z", "date": "2026-01-01", "time": "00:00:00Z", "duration": "PT1S",
	"email": "user@example.com", "idn-email": "user@example.com", "hostname": "example.com", "idn-hostname": "example.com",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uri": "https://example.com/", "iri": "https://example.com/",
	"url": "https://example.com/", "uri-reference": "/", "iri-reference": "/", "uri-template": "/{id}",
	"uuid": "00000000-0000-4000-8000-000000000000", "json-pointer": "/a", "relative-json-pointer": "0", "regex": ".*",
}

func text(s map[string]any) (any, error) {
	if format, ok := s["format"].(string); ok && formats[format] != "" {
		return formats[format], nil
	}
	shortest, err := count(s, "minLength")
	if err != nil {
		return nil, err
	}
	word := "test"
	if longest, ok := numeric(s["maxLength"]); ok && longest < float64(len(word)) {
		word = word[:max(int(longest), 0)]
	}
	if len(word) < shortest {
		word += strings.Repeat("x", shortest-len(word))
	}
	return word, nil
}

// number returns 1 moved into the bounds of the schema.
func number(s map[string]any, whole bool) (any, error) {
	step, stepped := numeric(s["multipleOf"])
	if !stepped || step <= 0 {
		step = 1
	}
	v := 1.0
	if stepped {
		v = step
	}
	if low, ok := numeric(s["minimum"]); ok && v < low {
		v = math.Ceil(low/step) * step
		if !whole && !stepped {
			v = low
		}
	}
	if low, ok := numeric(s["exclusiveMinimum"]); ok && v <= low {
		v = (math.Floor(low/step) + 1) * step
	}
	if high, ok := numeric(s["maximum"]); ok && v > high {
		v = math.Floor(high/step) * step
		if !whole && !stepped {
			v = high
		}
	}
	if high, ok := numeric(s["exclusiveMaximum"]); ok && v >= high {
		v = (math.Ceil(high/step) - 1) * step
		if low, bounded := numeric(s["minimum"]); bounded && v < low && !whole {
			v = low
		}
	}
	if whole && math.Abs(v) < 1<<53 {
		return json.Number(fmt.Sprintf("%.0f", v)), nil
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("it asks for a number that JSON does not have")
	}
	return json.Number(encoded), nil
}
