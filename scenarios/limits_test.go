package scenarios_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpbench/scenarios"
)

// TestLargeFilesAreBounded loads files of the size limit, of shapes that a
// parser could take out of proportion.
func TestLargeFilesAreBounded(t *testing.T) {
	const size = 10 << 20
	fillTo := func(size int, head, unit, tail string) string {
		return head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail
	}
	fill := func(head, unit, tail string) string { return fillTo(size, head, unit, tail) }
	// Shapes that are read to the end; the time grows with the size.
	some := func(head, unit, tail string) string { return fillTo(1<<20, head, unit, tail) }
	var keys strings.Builder
	for i := range 30_000 {
		keys.WriteString("k" + strings.Repeat("x", i%50) + strings.Repeat("y", i/50) + ": v\n")
	}
	for _, tt := range []struct{ name, text, want string }{
		{"too many bytes", strings.Repeat("a", size+1), "10 MiB at most"},
		{"many brackets", fill("", "[", ""), "too many values"},
		{"many tags", fill("a: ", "!!str ", "x"), "too many values"},
		{"brackets", strings.Repeat("[", 100_000), "nested more than 100 levels"},
		{"braces", strings.Repeat("{", 100_000), "nested more than 100 levels"},
		{"dashes", strings.Repeat("- ", 100_000) + "x", "nested more than 100 levels"},
		{"question marks", strings.Repeat("? ", 100_000) + "x", "nested more than 100 levels"},
		{"tags", "a: " + strings.Repeat("!!str ", 90_000) + "x", "nested more than 100 levels"},
		{"keys of one map", keys.String(), "more than 20000 keys"},
		{"list", fill("a:\n", "- x\n", ""), "too many values"},
		{"long text", some("version: 1\nname: \"", "x", "\"\n"), "load: is missing"},
		{"long plain text", some("version: 1\nname: x", " x", "\n"), "load: is missing"},
		{"comment", some("version: 1\n# ", "x", "\n"), "load: is missing"},
		{"block text", some("version: 1\nname: |\n", "  x\n", ""), "load: is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			_, err := scenarios.Load("b.yaml", []byte(tt.text), scenarios.LoadOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %.300v; want %q", err, tt.want)
			}
			if n := len(err.Error()); n > 10_000 {
				t.Errorf("the error has %d bytes", n)
			}
			t.Log(time.Since(start).Round(time.Millisecond))
		})
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	text := "version: 1\nload: {groups: {main: }}\nflows: {f: {steps: [{ping: }]}}\n"
	for i := range 250 {
		text += strings.Repeat("q", i+1) + ": 1\n"
	}
	_, err := scenarios.Load("b.yaml", []byte(text), scenarios.LoadOptions{})
	ps := problemsOf(t, err)
	if last := ps[len(ps)-1]; len(ps) != 101 || last.Message != "150 more problems not shown" {
		t.Errorf("%d problems, last %q", len(ps), last.Message)
	}
}

func TestTooManyChecksAndGroups(t *testing.T) {
	checks, groups := "", ""
	for i := range 33 {
		checks += fmt.Sprintf("a%d: true\n            ", i)
	}
	for i := range 256 {
		groups += fmt.Sprintf("    g%d: {}\n", i)
	}
	text := "version: 1\nservers: {s: {url: http://h/}}\nload:\n  groups:\n" + groups + "flows:\n  f:\n    steps:\n      - tools/list: {}\n        check:\n            " + checks + "\n"
	_, err := scenarios.Load("b.yaml", []byte(text), scenarios.LoadOptions{})
	for _, want := range []string{"a step has at most 32 checks", "more than 255 groups"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %.500v; want %q", err, want)
		}
	}
}
