package expect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mcpbench/scenarios/internal/schemas"
)

const maxDifferences = 5 // told of one comparison

// CompileGolden expects the JSON value in file, but for what the pointers in
// ignore lead to, whether it is there or not. The order of members and how
// numbers are written do not matter.
func CompileGolden(file []byte, ignore []string) (*Expectation, error) {
	want, err := schemas.Decode(file)
	if err != nil {
		return nil, &PartError{Part: "golden", Reason: err.Error()}
	}
	skip, err := compileIgnore(ignore)
	if err != nil {
		return nil, err
	}
	file = bytes.TrimSpace(bytes.Clone(file))
	return &Expectation{func(result []byte) string {
		if bytes.Equal(result, file) {
			return ""
		}
		got, err := schemas.Decode(result)
		if err != nil {
			return "result: " + err.Error()
		}
		var d differences
		d.compare(want, got, []*ignored{skip}, nil)
		return d.String()
	}}, nil
}

// CompileContains expects a result that has at least what the JSON object in
// want has: each of its members, contained in the same way; of lists each item
// in any one of the result's; other values as they are.
func CompileContains(want []byte) (*Expectation, error) {
	part, err := schemas.Decode(want)
	if err != nil {
		return nil, &PartError{Part: "contains", Reason: err.Error()}
	}
	if _, ok := part.(map[string]any); !ok {
		return nil, &PartError{Part: "contains", Reason: "it is neither a text nor an object"}
	}
	return &Expectation{func(result []byte) string {
		got, err := schemas.Decode(result)
		if err != nil {
			return "result: " + err.Error()
		}
		var d differences
		d.contain(part, got, nil)
		return d.String()
	}}, nil
}

// differences collects the first of them as text.
type differences struct {
	told  []string
	bytes int
	more  int
}

func (d *differences) add(at *place, format string, args ...any) {
	if len(d.told) < maxDifferences && d.bytes < maxFailure-2*maxValue || len(d.told) == 0 {
		line := schemas.Cut(at.String(), maxValue) + ": " + fmt.Sprintf(format, args...)
		d.told, d.bytes = append(d.told, line), d.bytes+len(line)
		return
	}
	d.more++
}

func (d *differences) String() string {
	text := strings.Join(d.told, "; ")
	if d.more > 0 {
		text += fmt.Sprintf("; %d more", d.more)
	}
	return text
}

func (d *differences) compare(want, got any, skip []*ignored, at *place) {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			d.objects(want, got, skip, at)
			return
		}
	case []any:
		if got, ok := got.([]any); ok {
			d.arrays(want, got, skip, at)
			return
		}
	case string:
		if got, ok := got.(string); ok && want != got {
			d.texts(want, got, at)
			return
		}
	}
	if !sameScalar(want, got) {
		d.add(at, "want %s, got %s", show(want), show(got))
	}
}

func (d *differences) objects(want, got map[string]any, skip []*ignored, at *place) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		next, whole := step(skip, name)
		if whole {
			continue
		}
		here := &place{up: at, token: name}
		if v, ok := got[name]; ok {
			d.compare(want[name], v, next, here)
		} else {
			d.add(here, "want %s, got nothing", show(want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, known := want[name]; known {
			continue
		}
		if _, whole := step(skip, name); !whole {
			d.add(&place{up: at, token: name}, "want nothing, got %s", show(got[name]))
		}
	}
}

func (d *differences) arrays(want, got []any, skip []*ignored, at *place) {
	for i := range max(len(want), len(got)) {
		next, whole := skip, false
		if len(skip) > 0 {
			next, whole = step(skip, strconv.Itoa(i))
		}
		if whole {
			continue
		}
		here := &place{up: at, index: i, item: true}
		switch {
		case i >= len(got):
			d.add(here, "want %s, got nothing", show(want[i]))
		case i >= len(want):
			d.add(here, "want nothing, got %s", show(got[i]))
		default:
			d.compare(want[i], got[i], next, here)
		}
	}
}

// texts shows two texts from shortly before they differ.
func (d *differences) texts(want, got string, at *place) {
	same := 0
	for same < min(len(want), len(got)) && want[same] == got[same] {
		same++
	}
	from, mark := 0, ""
	const before = 20
	if same > maxValue/2 {
		from, mark = same-before, "…"
	}
	d.add(at, "want %s, got %s", quote(mark+strings.ToValidUTF8(want[from:], "")), quote(mark+strings.ToValidUTF8(got[from:], "")))
}

// contain adds what want has and got lacks.
func (d *differences) contain(want, got any, at *place) {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(want)) {
				here := &place{up: at, token: name}
				if v, ok := got[name]; ok {
					d.contain(want[name], v, here)
				} else {
					d.add(here, "want %s, got nothing", show(want[name]))
				}
			}
			return
		}
	case []any:
		if got, ok := got.([]any); ok {
			for _, item := range want {
				if !slices.ContainsFunc(got, func(v any) bool { return contains(item, v) }) {
					d.add(at, "want an item with %s, got none in %d items", show(item), len(got))
				}
			}
			return
		}
	case string:
		if got, ok := got.(string); ok && want != got {
			d.texts(want, got, at)
			return
		}
	}
	if !sameScalar(want, got) {
		d.add(at, "want %s, got %s", show(want), show(got))
	}
}

// contains is contain without a report.
func contains(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for name, v := range want {
			if w, ok := got[name]; !ok || !contains(v, w) {
				return false
			}
		}
		return true
	case []any:
		got, ok := got.([]any)
		if !ok {
			return false
		}
		for _, item := range want {
			if !slices.ContainsFunc(got, func(v any) bool { return contains(item, v) }) {
				return false
			}
		}
		return true
	}
	return sameScalar(want, got)
}

// sameScalar compares what is neither an object nor an array; those differ.
func sameScalar(want, got any) bool {
	switch want := want.(type) {
	case nil:
		return got == nil
	case bool:
		got, ok := got.(bool)
		return ok && want == got
	case string:
		got, ok := got.(string)
		return ok && want == got
	case json.Number:
		got, ok := got.(json.Number)
		return ok && sameNumber(want.String(), got.String())
	}
	return false
}

// sameNumber compares the values of two JSON numbers, exactly.
func sameNumber(a, b string) bool { return a == b || decimal(a) == decimal(b) }

// number is ±0.digits times ten to the power exponent, digits without zeros at
// either end.
type number struct {
	negative bool
	digits   string
	exponent int
}

func decimal(text string) (n number) {
	text, n.negative = strings.CutPrefix(text, "-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	// The decoder has bounded the exponent; without one it is 0.
	n.exponent, _ = strconv.Atoi(exponent)
	whole, fraction, _ := strings.Cut(mantissa, ".")
	n.exponent += len(whole)
	n.digits = whole + fraction
	trimmed := strings.TrimLeft(n.digits, "0")
	n.exponent -= len(n.digits) - len(trimmed)
	if n.digits = strings.TrimRight(trimmed, "0"); n.digits == "" {
		return number{}
	}
	return n
}

// show returns a value as JSON, cut short.
func show(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		return schemas.Cut(fmt.Sprintf("an object of %d: %s", len(v), strings.Join(names[:min(len(names), 5)], ", ")), maxValue)
	case nil:
		return "null"
	}
	return schemas.Cut(fmt.Sprint(v), maxValue)
}
