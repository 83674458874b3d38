package expect_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbench/scenarios/internal/expect"
)

// value draws a small JSON value; few names and scalars, so that two are often
// alike.
func value(r *rand.Rand, depth int) any {
	kind := r.IntN(7)
	if depth == 0 {
		kind %= 5
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return float64(r.IntN(3)) / 4
	case 3:
		return []string{"", "a", "b"}[r.IntN(3)]
	case 4:
		return float64(r.IntN(2))
	case 5:
		list := make([]any, r.IntN(3))
		for i := range list {
			list[i] = value(r, depth-1)
		}
		return list
	}
	return object(r, depth)
}

func object(r *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for range r.IntN(3) {
		out[[]string{"a", "b", "c/d"}[r.IntN(3)]] = value(r, depth-1)
	}
	return out
}

// changed is v with small changes here and there.
func changed(r *rand.Rand, v any) any {
	if r.IntN(10) == 0 {
		return value(r, 1)
	}
	switch v := v.(type) {
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, changed(r, item))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			if r.IntN(20) > 0 {
				out[name] = changed(r, member)
			}
		}
		return out
	}
	return v
}

// text writes v as JSON, numbers in one of several ways.
func text(r *rand.Rand, v any) string {
	switch v := v.(type) {
	case float64:
		return fmt.Sprintf([]string{"%g", "%.2f", "%.3e", "%E"}[r.IntN(4)], v)
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, text(r, item))
		}
		return "[" + strings.Join(items, " ,") + "]"
	case map[string]any: // in the random order of the map
		var members []string
		for name, member := range v {
			members = append(members, fmt.Sprintf("%q: %s", name, text(r, member)))
		}
		return "{" + strings.Join(members, ",\n") + "}"
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// without is v without the members a of its objects' members c/d, and without
// its own member b.
func without(v any) any {
	root, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for name, member := range root {
		if name == "b" {
			continue
		}
		if object, ok := member.(map[string]any); ok {
			kept := map[string]any{}
			for name, v := range object {
				if name != "c/d" {
					kept[name] = v
				}
			}
			member = kept
		}
		out[name] = member
	}
	return out
}

func TestGoldenAgainstCmp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	counts := map[bool]int{}
	for range 20_000 {
		want := value(r, 4)
		got := changed(r, want)
		for _, ignore := range [][]string{nil, {"/b", "/*/c~1d"}} {
			a, b := want, got
			if ignore != nil {
				a, b = without(want), without(got)
				if isList(want) || isList(got) { // a star means items too; without knows of members alone
					continue
				}
			}
			e, err := expect.CompileGolden([]byte(text(r, want)), ignore)
			if err != nil {
				t.Fatal(err)
			}
			failure := e.Test([]byte(text(r, got)))
			same := cmp.Equal(a, b)
			if (failure == "") != same {
				t.Fatalf("%v and %v, ignoring %q: %q, cmp says %v", want, got, ignore, failure, cmp.Diff(a, b))
			}
			counts[same]++
		}
	}
	t.Logf("%d alike, %d not", counts[true], counts[false])
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// Whatever is cut out of a value, the value contains it.
func TestAValueContainsItsParts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		whole := object(r, 4)
		part := thinned(r, whole)
		e, err := expect.CompileContains([]byte(text(r, part)))
		if err != nil {
			t.Fatal(err)
		}
		if failure := e.Test([]byte(text(r, whole))); failure != "" {
			t.Fatalf("%v in %v: %s", part, whole, failure)
		}
	}
}

func thinned(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case []any:
		out := []any{}
		for _, item := range v {
			if r.IntN(3) > 0 {
				out = append(out, thinned(r, item))
			}
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			if r.IntN(3) > 0 {
				out[name] = thinned(r, member)
			}
		}
		return out
	}
	return v
}

func TestExpectationsAreSafeForConcurrentUse(t *testing.T) {
	golden, err := expect.CompileGolden([]byte(toolResult), []string{"/content/*/text"})
	if err != nil {
		t.Fatal(err)
	}
	contains, err := expect.CompileText("second")
	if err != nil {
		t.Fatal(err)
	}
	output, err := expect.CompileOutput([]byte(`{"type":"object","required":["city"]}`))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				for _, e := range []*expect.Expectation{golden, contains, output} {
					if failure := e.Test([]byte(toolResult)); failure != "" {
						t.Error(failure)
					}
				}
			}
		})
	}
	all.Wait()
}

func FuzzExpect(f *testing.F) {
	f.Add(toolResult, toolResult, "/content/*/text")
	f.Add(`{"minimum":1,"properties":{"a":{"multipleOf":0.1}}}`, `{"a":1e-300}`, "/a~0/*")
	f.Add(`{"a":[{"b":1}]}`, `{"a":[{"b":1.0},2],"content":[{"text":"\ud800"}]}`, "/")
	f.Add(`{"type":"object"}`, `{"structuredContent":`, "x")
	f.Fuzz(func(t *testing.T, want, result, ignore string) {
		var all []*expect.Expectation
		keep := func(e *expect.Expectation, err error) {
			if err == nil {
				all = append(all, e)
			}
		}
		golden, err := expect.CompileGolden([]byte(want), []string{ignore})
		keep(golden, err)
		if err == nil {
			if failure := golden.Test([]byte(want)); failure != "" {
				t.Errorf("a value differs from itself: %s", failure)
			}
		}
		keep(expect.CompileSchema([]byte(want)))
		keep(expect.CompileOutput([]byte(want)))
		keep(expect.CompileText(want))
		keep(expect.CompileMatches(want))
		contains, err := expect.CompileContains([]byte(want))
		keep(contains, err)
		if err == nil {
			if failure := contains.Test([]byte(want)); failure != "" {
				t.Errorf("a value does not contain itself: %s", failure)
			}
		}
		for _, e := range all {
			if failure := e.Test([]byte(result)); len(failure) > 500 || strings.ContainsAny(failure, "\n") {
				t.Errorf("failure of %d bytes: %.300q", len(failure), failure)
			}
		}
	})
}

func BenchmarkTest(b *testing.B) {
	list := `{"content":[{"type":"text","text":"` + strings.Repeat("a line of text\\n", 60) + `"}],"structuredContent":{"items":[` +
		strings.TrimSuffix(strings.Repeat(`{"id":"item-17","title":"A title","price":12.5,"tags":["a","b"]},`, 20), ",") + `]}}`
	must := func(e *expect.Expectation, err error) *expect.Expectation {
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	outputSchema := []byte(`{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"type":"object","required":["id","title"],"properties":{"id":{"type":"string","pattern":"^item-"},"title":{"type":"string","minLength":1},"price":{"type":"number","minimum":0},"tags":{"type":"array","items":{"type":"string"}}}}}}}`)
	for _, bb := range []struct {
		name   string
		e      *expect.Expectation
		result string
	}{
		{"output", must(expect.CompileOutput(outputSchema)), list},
		{"golden/same bytes", must(expect.CompileGolden([]byte(list), nil)), list},
		{"golden", must(expect.CompileGolden([]byte(list), []string{"/structuredContent/items/*/id"})), list + " "},
		{"contains", must(expect.CompileContains([]byte(`{"structuredContent":{"items":[{"id":"item-17","price":12.5}]}}`))), list},
		{"text", must(expect.CompileText("line of text\na line")), list},
		{"matches", must(expect.CompileMatches(`a line of \w+`)), list},
	} {
		b.Run(bb.name, func(b *testing.B) {
			result := []byte(bb.result)
			b.SetBytes(int64(len(result)))
			b.ReportAllocs()
			for b.Loop() {
				if failure := bb.e.Test(result); failure != "" {
					b.Fatal(failure)
				}
			}
		})
	}
}
