package grammar_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"mcpbench/scenarios/internal/grammar"
)

// TestEveryKeyIsDocumented looks each key of the language up in
// docs/scenario-format.md: delivered ones with their default before the list
// of what is not supported yet, the others in it.
func TestEveryKeyIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../../docs/scenario-format.md")
	if err != nil {
		t.Fatal(err)
	}
	delivered, later, ok := strings.Cut(string(data), "## Not supported yet")
	if !ok {
		t.Fatal("no list of what is not supported yet")
	}
	seen := map[reflect.Type]bool{}
	walk(reflect.TypeFor[grammar.File](), seen, func(typ reflect.Type, f reflect.StructField, key string) {
		where, text := "delivered", delivered
		if f.Type == reflect.TypeFor[grammar.Later]() || f.Type == reflect.TypeFor[*grammar.Task]() {
			where, text = "later", later
		}
		if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, key+":") && !strings.Contains(text, key+"}") && !strings.Contains(text, "{"+key) {
			t.Errorf("%s.%s: key %q is not in the %s part of docs/scenario-format.md", typ.Name(), f.Name, key, where)
		}
	})
	for typ := range seen {
		for _, d := range grammar.Defaults(typ) {
			if !documented(delivered, d) {
				t.Errorf("%s: the default %s of %q is not in docs/scenario-format.md", typ.Name(), d.Value, d.Key)
			}
		}
	}
}

// walk calls visit for each key of a type and of the types below it.
func walk(typ reflect.Type, seen map[reflect.Type]bool, visit func(reflect.Type, reflect.StructField, string)) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Map || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || seen[typ] || typ.PkgPath() != reflect.TypeFor[grammar.File]().PkgPath() {
		return
	}
	seen[typ] = true
	for f := range typ.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key != "" && key != "-" {
			visit(typ, f, key)
			walk(f.Type, seen, visit)
		}
	}
}

// documented tells that a line names the key with its default.
func documented(text string, d grammar.Default) bool {
	for line := range strings.SplitSeq(text, "\n") {
		inTable := strings.Contains(line, "| `"+d.Value+"` |") || strings.Contains(line, "| "+d.Value+" |")
		if strings.Contains(line, "`"+d.Key+"`") && inTable ||
			strings.Contains(line, "`"+d.Key+": ") && strings.Contains(line, "default `"+d.Value+"`") {
			return true
		}
	}
	return false
}
