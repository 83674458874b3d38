package nearest_test

import (
	"strings"
	"testing"

	"mcpbench/internal/nearest"
)

func TestName(t *testing.T) {
	known := []string{"arguments", "name", "timeout", "check"}
	for _, tc := range []struct{ name, want string }{
		{"argumnets", "arguments"},
		{"NAME", "name"},
		{"tmeout", "timeout"},
		{"nothing-like-it", ""},
		{"", ""},
		{strings.Repeat("x", 1000), ""},
	} {
		if got := nearest.Name(tc.name, known); got != tc.want {
			t.Errorf("Name(%q) = %q, want %q", tc.name, got, tc.want)
		}
	}
	if got := nearest.DidYouMean("chekc", known); got != ` (did you mean "check"?)` {
		t.Errorf("DidYouMean = %q", got)
	}
	if got := nearest.DidYouMean("zzzz", nil); got != "" {
		t.Errorf("DidYouMean without candidates = %q", got)
	}
}
