package generate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpbench/scenarios/internal/generate"
)

// Schemas of the corpus that allow every object, and the only ones from which
// no invalid arguments come.
var allowsAll = []string{
	"any object", "empty",
	"everything/get-env", "everything/get-tiny-image", "everything/toggle-simulated-logging", "everything/toggle-subscriber-updates",
	"filesystem/list_allowed_directories",
}

// corpus is the input schemas of two widely used servers (servers.json) and
// others in the style of common schema builders, or with one feature each.
func corpus(tb testing.TB) map[string]json.RawMessage {
	tb.Helper()
	all := map[string]json.RawMessage{}
	for _, name := range []string{"testdata/servers.json", "testdata/corpus.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		if err := json.Unmarshal(text, &all); err != nil {
			tb.Fatal(err)
		}
	}
	return all
}

// handMade says by hand what the patterns mean that package regexp lacks.
var handMade = map[string]func(string) bool{
	`^(?=.*[a-z])(?=.*\d).{4,16}$`: func(s string) bool {
		return len(s) >= 4 && len(s) <= 16 && strings.ContainsAny(s, "0123456789") && strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz")
	},
	`^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`: func(s string) bool {
		return !strings.HasPrefix(s, ".") && !strings.Contains(s, "..") &&
			regexp.MustCompile(`^([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`).MatchString(s)
	},
}

type predicate struct {
	text string
	f    func(string) bool
}

func (p predicate) String() string            { return p.text }
func (p predicate) MatchString(s string) bool { return p.f(s) }

// oracle validates with nothing but the library: formats are asserted, or none
// is known.
func oracle(tb testing.TB, schema []byte, formats bool) *jsonschema.Schema {
	tb.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		if f := handMade[s]; f != nil {
			return predicate{s, f}, nil
		}
		return regexp.Compile(s)
	})
	if formats {
		c.AssertFormat()
	}
	if err := c.AddResource("schema.json", document); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func decode(tb testing.TB, text []byte) any {
	tb.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestGeneratedValuesAgainstTheValidator(t *testing.T) {
	values := 1000
	if testing.Short() { // with the race detector
		values = 50
	}
	schemas := corpus(t)
	var open []string
	distinct := 0
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		g, err := generate.Compile(schemas[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		valid, invalid := oracle(t, schemas[name], true), oracle(t, schemas[name], false)
		if v := g.AppendLeast(nil); valid.Validate(decode(t, v)) != nil {
			t.Errorf("%s: the least is %s", name, v)
		}
		r := rand.New(rand.NewPCG(1, 2))
		seen := map[string]bool{}
		for range values {
			v := g.Append(nil, r)
			if err := valid.Validate(decode(t, v)); err != nil || v[0] != '{' {
				t.Fatalf("%s: %s: %v", name, v, err)
			}
			seen[string(v)] = true
		}
		distinct += len(seen)
		how := map[string]int{}
		for range values / 5 {
			v, what, err := g.AppendInvalid(nil, r)
			if errors.Is(err, generate.ErrAllowsAll) {
				open = append(open, name)
				break
			}
			if err != nil || invalid.Validate(decode(t, v)) == nil || v[0] != '{' || what == "" {
				t.Fatalf("%s: %s (%s) is valid, %v", name, v, what, err)
			}
			what, _, _ = strings.Cut(what, "/")
			how[what]++
		}
		t.Logf("%-40s %4d distinct, e.g. %.150s; faults %v", name, len(seen), g.Append(nil, r), how)
	}
	slices.Sort(allowsAll)
	if !slices.Equal(open, allowsAll) {
		t.Errorf("no invalid values from %q, want %q", open, allowsAll)
	}
	t.Logf("%d schemas, %d of %d values distinct", len(schemas), distinct, values*len(schemas))
}
