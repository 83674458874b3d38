package generate_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbench/scenarios/internal/generate"
)

func compile(tb testing.TB, schema string) *generate.Generator {
	tb.Helper()
	g, err := generate.Compile([]byte(schema))
	if err != nil {
		tb.Fatalf("%.200s: %v", schema, err)
	}
	return g
}

func properties(n int, schema string) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i := range n {
		fmt.Fprintf(&b, `"p%d":%s,`, i, schema)
	}
	b.WriteString(`"last":{}}}`)
	return b.String()
}

// hostile are schemas that could take a generator or a validator very long.
var hostile = map[string]string{
	"recursive allOf":         `{"type":"object","allOf":[{"$ref":"#"},{"$ref":"#"}]}`,
	"doubling below":          `{"type":"object","properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`,
	"endless":                 `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`,
	"nearly endless":          `{"type":"object","required":["a","b"],"properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"},{"type":"null"}]}}}`,
	"a pattern too large":     `{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"(a{1000}){1000}"}}}`,
	"a pattern too long":      `{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^` + strings.Repeat("a{1000}", 100) + `$"}}}`,
	"nested repetition":       `{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^((((a*)*)*)+b)+$","minLength":5000}}}`,
	"a pattern of nothing":    `{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"a$b"}}}`,
	"half a million texts":    `{"type":"object","required":["a"],"properties":{"a":{"type":"array","minItems":500000,"items":{"type":"string"}}}}`,
	"a cube of arrays":        `{"type":"object","required":["a"],"properties":{"a":{"type":"array","minItems":1000,"items":{"type":"array","minItems":1000,"items":{"type":"array","minItems":1000}}}}}`,
	"long text":               `{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":100000000}}}`,
	"too long together":       `{"type":"object","required":["a"],"properties":{"a":{"type":"array","minItems":40,"items":{"type":"string","minLength":2000}}}}`,
	"4,900 members":           properties(4900, `{"type":"string"}`),
	"10,000 members":          properties(10_000, `{"type":"string"}`),
	"a million members":       `{"type":"object","minProperties":1000000}`,
	"contradictory bounds":    `{"type":"object","required":["a"],"properties":{"a":{"type":"integer","minimum":5,"maximum":3}}}`,
	"contradictory types":     `{"type":"object","required":["a"],"properties":{"a":{"allOf":[{"type":"integer"},{"type":"string"}]}}}`,
	"contradictory not":       `{"type":"object","required":["a"],"properties":{"a":{"not":{}}}}`,
	"contradictory at all":    `{"type":"object","not":{"type":"object"}}`,
	"contradictory members":   `{"type":"object","required":["a"],"additionalProperties":false}`,
	"unique of too few":       `{"type":"object","required":["a"],"properties":{"a":{"type":"array","minItems":3,"uniqueItems":true,"items":{"type":"boolean"}}}}`,
	"oneOf all the same":      `{"type":"object","oneOf":[{"required":["a"]},{"required":["a"]}],"required":["a"]}`,
	"no object":               `{"type":"string"}`,
	"false":                   `false`,
	"not a schema":            `5`,
	"broken":                  `{`,
	"remote":                  `{"type":"object","$ref":"http://example.com/x.json"}`,
	"number out of range":     `{"type":"object","required":["a"],"properties":{"a":{"type":"number","minimum":1e400}}}`,
	"tiny step":               `{"type":"object","required":["a"],"properties":{"a":{"type":"number","multipleOf":1e-399,"minimum":1e300}}}`,
	"deep in itself":          `{"type":"object","required":["a"],"properties":{"a":` + strings.Repeat(`{"type":"object","required":["a"],"properties":{"a":`, 60) + `{}` + strings.Repeat(`}}`, 60) + `}}`,
	"hard alternatives":       `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"oneOf":[{"type":"array","minItems":3,"items":{"$ref":"#/$defs/n"}},{"type":"array","minItems":2,"items":{"$ref":"#/$defs/n"}},{"type":"array","maxItems":0}]}}}`,
	"dependents in a circle":  `{"type":"object","dependentSchemas":{"a":{"required":["b"]},"b":{"required":["a"],"properties":{"a":{"type":"string"}}}},"required":["a"]}`,
	"5,000 in an enum":        `{"type":"object","required":["a"],"properties":{"a":{"enum":[` + strings.Repeat("1.25,", 5000) + `2]}}}`,
	"300 alternatives of 300": `{"type":"object","required":["a"],"properties":{"a":{"anyOf":[` + strings.Repeat(`{"$ref":"#/$defs/b"},`, 300) + `false]}},"$defs":{"b":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 300) + `false]}}}`,
}

func TestHostileSchemasEndSoon(t *testing.T) {
	for name, schema := range hostile {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			outcome := use(t, []byte(schema), 20)
			if took := time.Since(start); took > time.Minute { // a busy machine, the race detector
				t.Errorf("took %v", took)
			} else {
				t.Logf("%v: %.150s", took.Round(time.Millisecond), outcome)
			}
		})
	}
}

// use generates from a schema and checks whatever holds for each.
func use(t *testing.T, schema []byte, values int) (outcome string) {
	t.Helper()
	g, err := generate.Compile(schema)
	if err != nil {
		if strings.Contains(err.Error(), "\n") || len(err.Error()) > 700 {
			t.Errorf("error %q; want one short line", err)
		}
		return err.Error()
	}
	r := rand.New(rand.NewPCG(3, 4))
	least := g.AppendLeast(nil)
	for _, v := range [][]byte{least, g.AppendLeast(nil)} {
		if !bytes.Equal(v, least) || v[0] != '{' {
			t.Errorf("the least is %s", v)
		}
	}
	for range values {
		if v := g.Append(nil, r); v[0] != '{' || len(v) > 64<<10 {
			t.Fatalf("%d bytes: %.100s", len(v), v)
		}
		v, how, err := g.AppendInvalid(nil, r)
		if !g.CanBeInvalid() {
			if !errors.Is(err, generate.ErrAllowsAll) || len(v) > 0 {
				t.Fatalf("%q, %v; want nothing", v, err)
			}
			continue
		}
		if err != nil || v[0] != '{' || len(v) > 64<<10 || how == "" {
			t.Fatalf("%d bytes, %s, %v: %.100s", len(v), how, err, v)
		}
	}
	return string(least)
}

func FuzzGenerate(f *testing.F) {
	for _, schema := range corpus(f) {
		f.Add([]byte(schema))
	}
	for _, schema := range hostile {
		if len(schema) < 4096 {
			f.Add([]byte(schema))
		}
	}
	f.Fuzz(func(t *testing.T, schema []byte) { use(t, schema, 5) })
}

// Who runs one seed twice gets the same requests, whatever else uses the
// generator, and from a generator compiled anew.
func TestOneStateGivesOneSequence(t *testing.T) {
	for name, schema := range corpus(t) {
		sequence := func(g *generate.Generator) []byte {
			r := rand.New(rand.NewPCG(5, 6))
			var out []byte
			for range 20 {
				out = append(g.Append(out, r), '\n')
				out, _, _ = g.AppendInvalid(out, r)
			}
			return out
		}
		g := compile(t, string(schema))
		want := sequence(g)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				mine := g
				if i%2 == 0 {
					mine, _ = generate.Compile(schema)
				}
				if got := sequence(mine); !bytes.Equal(got, want) {
					t.Errorf("%s: %s, then %s", name, want, got)
				}
			})
		}
		all.Wait()
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	g := compile(t, `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`)
	r := rand.New(rand.NewPCG(1, 1))
	invalid, _, _ := g.AppendInvalid([]byte("x"), r)
	for _, out := range [][]byte{g.Append([]byte("x"), r), g.AppendLeast([]byte("x")), invalid} {
		if !bytes.HasPrefix(out, []byte("x{")) {
			t.Errorf("%s", out)
		}
	}
}

// Integers that say no more than "any integer" ask for no absurd ones.
func TestIntegersAreModest(t *testing.T) {
	g := compile(t, `{"type":"object","properties":{"ms":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}},"required":["ms"]}`)
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		if v := g.Append(nil, r); len(v) > len(`{"ms":100}`) {
			t.Fatalf("%s", v)
		}
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{`{"type":"object","required":["a/b"]}`, "missing required member /a~1b"},
		{`{"type":"object","additionalProperties":false}`, "unexpected member /"},
		{`{"type":"object","maxProperties":0}`, "too many members with /oneTooMany"},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, "wrong type at /a"},
		{`{"type":"object","properties":{"a":{"enum":[1]}}}`, "none of the allowed values at /a"},
	} {
		_, how, err := compile(t, tt.schema).AppendInvalid(nil, rand.New(rand.NewPCG(1, 1)))
		if err != nil || !strings.HasPrefix(how, tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.schema, how, err, tt.want)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, name := range []string{"filesystem/read_file", "weather", "issue tracker", "pydantic nested", "patterns", "formats", "any JSON", "if then else"} {
		schema := string(corpus(b)[name])
		b.Run(name, func(b *testing.B) {
			g := compile(b, schema)
			r := rand.New(rand.NewPCG(1, 1))
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = g.Append(buf[:0], r)
			}
		})
		b.Run(name+"/invalid", func(b *testing.B) {
			g := compile(b, schema)
			r := rand.New(rand.NewPCG(1, 1))
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf, _, _ = g.AppendInvalid(buf[:0], r)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	schema := corpus(b)["pydantic nested"]
	for b.Loop() {
		if _, err := generate.Compile(schema); err != nil {
			b.Fatal(err)
		}
	}
}
