package mcp

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxFill bounds what one property of a schema can make us write: characters of
	// a text, items of a list.
	maxFill = 10_000
	// maxForm is after how many bytes no further property is added to a form.
	maxForm = 1 << 20
)

// appendForm appends the object content, and after its own members each property
// that the schema of an elicitation has and content has not (specification
// 2025-11-25, client/elicitation, requested schema). A property for which no
// valid value is found is left out.
func appendForm(dst, content, schema []byte) []byte {
	dst = append(dst, '{')
	first := len(dst)
	add := func(key, value []byte) {
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), key...), `":`...)
		dst = append(dst, value...)
	}
	given := make(map[string]bool)
	s := scanObject(content)
	for m, ok := s.next(); ok; m, ok = s.next() {
		given[string(m.unescaped())] = true
		add(m.key, content[m.start:m.end])
	}
	properties := lookup(schema, "properties")
	s = scanObject(properties)
	for m, ok := s.next(); ok && len(dst) < maxForm; m, ok = s.next() {
		if key := string(m.unescaped()); !given[key] {
			given[key] = true
			if value := smallest(properties[m.start:m.end]); value != nil {
				add(m.key, value)
			}
		}
	}
	return append(dst, '}')
}

// smallest returns a value for a property: its default, the first of those it
// lists, or the smallest that is valid; nil when there is none.
func smallest(schema json.RawMessage) json.RawMessage {
	if value := lookup(schema, "default"); value != nil {
		return value
	}
	if values := listed(schema, 1); len(values) > 0 {
		return values[0]
	}
	switch kind, _ := lookupString(schema, "type"); kind {
	case "string":
		return smallestText(schema)
	case "number":
		return smallestNumber(schema, false)
	case "integer":
		return smallestNumber(schema, true)
	case "boolean":
		return json.RawMessage("false")
	case "array":
		return smallestList(schema)
	}
	return nil
}

// listed returns the first most of the values that a schema enumerates: by const,
// enum, or the const of each alternative.
func listed(schema json.RawMessage, most int) []json.RawMessage {
	if value := lookup(schema, "const"); value != nil {
		return []json.RawMessage{value}
	}
	var values, alternatives []json.RawMessage
	if json.Unmarshal(lookup(schema, "enum"), &values) == nil && len(values) > 0 {
		return values[:min(most, len(values))]
	}
	for _, name := range []string{"oneOf", "anyOf"} {
		if json.Unmarshal(lookup(schema, name), &alternatives) != nil {
			continue
		}
		for _, one := range alternatives {
			if value := lookup(one, "const"); value != nil && len(values) < most {
				values = append(values, value)
			}
		}
	}
	return values
}

// number returns a member that is a number.
func number(schema json.RawMessage, name string) (float64, bool) {
	f, err := strconv.ParseFloat(string(lookup(schema, name)), 64)
	return f, err == nil
}

// size returns a member that is a count, at most limit, or other when there is none.
func size(schema json.RawMessage, name string, other int) int {
	f, ok := number(schema, name)
	if !ok || f < 0 {
		return other
	}
	return int(min(f, maxFill+1))
}

// formats are texts of the formats that an elicitation may ask for.
var formats = map[string]string{
	"email": "user@example.com", "uri": "https://example.com/", "date": "2025-01-01", "date-time": "2025-01-01T00:00:00Z",
}

func smallestText(schema json.RawMessage) json.RawMessage {
	least, most := size(schema, "minLength", 0), size(schema, "maxLength", maxFill)
	format, _ := lookupString(schema, "format")
	say := formats[format]
	missing := max(0, least-utf8.RuneCountInString(say))
	if missing > maxFill {
		return nil
	}
	fits := func(s string) bool { n := utf8.RuneCountInString(s); return least <= n && n <= most }
	switch format {
	case "email":
		say = strings.Repeat("x", missing) + say
	case "uri":
		say += strings.Repeat("x", missing)
	case "date", "date-time":
	default:
		pattern, has := lookupString(schema, "pattern")
		return matching(pattern, has, max(least, min(1, most)), fits)
	}
	if !fits(say) {
		return nil
	}
	return appendString(nil, say)
}

// matching returns a text of n equal characters that matches the pattern, if there
// is one.
func matching(pattern string, has bool, n int, fits func(string) bool) json.RawMessage {
	var p *regexp.Regexp
	if has {
		var err error
		if p, err = regexp.Compile(pattern); err != nil {
			return nil
		}
	}
	for _, c := range []string{"x", "X", "0", "-"} {
		if s := strings.Repeat(c, n); fits(s) && (p == nil || p.MatchString(s)) {
			return appendString(nil, s)
		}
	}
	return nil
}

func smallestNumber(schema json.RawMessage, integer bool) json.RawMessage {
	low, bounded := number(schema, "minimum")
	if above, ok := number(schema, "exclusiveMinimum"); ok && (!bounded || above >= low) {
		low, bounded = math.Floor(above)+1, true
	}
	high, limited := number(schema, "maximum")
	if below, ok := number(schema, "exclusiveMaximum"); ok && (!limited || below <= high) {
		high, limited = math.Ceil(below)-1, true
	}
	if integer {
		low, high = math.Ceil(low), math.Floor(high)
	}
	value := 0.0
	switch {
	case bounded:
		value = low
	case limited:
		value = min(0, high)
	}
	if limited && value > high || math.IsInf(value, 0) {
		return nil
	}
	format := byte('g')
	if math.Abs(value) < 1e15 {
		format = 'f'
	}
	return strconv.AppendFloat(nil, value, format, -1, 64)
}

// smallestList lists as many values as there must be, each of those that the items
// enumerate at most once, as long as there are any.
func smallestList(schema json.RawMessage) json.RawMessage {
	least := size(schema, "minItems", 0)
	if least > maxFill {
		return nil
	}
	items := lookup(schema, "items")
	values := listed(items, least)
	if more := least - len(values); more > 0 {
		if kind, _ := lookupString(items, "type"); kind == "array" {
			return nil // a form has no lists of lists
		}
		one := smallest(items)
		if one == nil || more*len(one) > maxForm {
			return nil
		}
		values = append(values, slices.Repeat([]json.RawMessage{one}, more)...)
	}
	return append(append([]byte{'['}, bytes.Join(raws(values), []byte{','})...), ']')
}

func raws(values []json.RawMessage) [][]byte {
	all := make([][]byte, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}
