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

// TestNamesAreListedWhenNoneIsNear, each once and not too many.
func TestNamesAreListedWhenNoneIsNear(t *testing.T) {
	many := strings.Split("a1 b2 c3 d4 e5 f6 g7 h8 i9", " ")
	tests := []struct {
		known []string
		want  string
	}{
		{nil, ""},
		{[]string{"", ""}, ""},
		{[]string{"checkuot"}, ` (did you mean "checkuot"?)`},
		{[]string{"a", "", "b", "a"}, " (there are: a, b)"},
		{many[:8], " (there are: a1, b2, c3, d4, e5, f6, g7, h8)"},
		{many, " (there are: a1, b2, c3, d4, e5, f6, g7, h8, …)"},
	}
	for _, tt := range tests {
		if got := nearest.DidYouMeanOf("checkout", tt.known); got != tt.want {
			t.Errorf("of %q: %q, want %q", tt.known, got, tt.want)
		}
	}
}
