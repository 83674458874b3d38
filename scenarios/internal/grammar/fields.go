package grammar

import (
	"reflect"
	"strconv"
	"strings"
)

// field is what the tags of a struct field say.
type field struct {
	name     string
	index    []int
	required bool
	later    bool // the language has the key, this version does not do it
	op       bool // names the operation of a step
	enum     []string
	minimum  int64
	maximum  int64 // 0 is none
	fallback string
}

func fieldsOf(t reflect.Type) []field {
	var fields []field
	for sf := range t.Fields() {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		f := field{
			name:  name,
			index: sf.Index,
			later: sf.Type == reflect.TypeFor[Later](),
			op:    sf.Tag.Get("bench") == "op",
		}
		for setting := range strings.SplitSeq(sf.Tag.Get("jsonschema"), ",") {
			key, value, _ := strings.Cut(setting, "=")
			switch key {
			case "required":
				f.required = true
			case "enum":
				f.enum = append(f.enum, value)
			case "default":
				f.fallback = value
			case "minimum":
				f.minimum, _ = strconv.ParseInt(value, 10, 64)
			case "maximum":
				f.maximum, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		fields = append(fields, f)
	}
	return fields
}

// Default is the value that a key has when it is left out.
type Default struct {
	Key, Value string
}

// Defaults returns the defaults of a struct type of this package, in the order
// of its fields.
func Defaults(t reflect.Type) []Default {
	var out []Default
	for _, f := range fieldsOf(t) {
		if f.fallback != "" {
			out = append(out, Default{Key: f.name, Value: f.fallback})
		}
	}
	return out
}
