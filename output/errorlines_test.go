package output_test

import (
	"strings"
	"testing"

	"mcpbench/metrics"
	"mcpbench/output"
)

// Digits are masked in messages, but the status of a failure is known: it is told
// once, and as a number.
func TestStatusIsToldOnce(t *testing.T) {
	for message, want := range map[string]string{
		"HTTP status #":                   "HTTP 500 ×3",
		"nope":                            "HTTP 500: nope ×3",
		"HTTP status #, Location: /other": "HTTP 500, Location: /other ×3",
		"initialize: HTTP status #":       "initialize: HTTP 500 ×3",
		"neither A (HTTP status #) nor B (HTTP status #)": "neither A (HTTP 500) nor B (HTTP status #) ×3",
	} {
		s := okRun()
		s.Errors = []metrics.ErrorSummary{{Outcome: "http_error", Code: 500, Message: message, Count: 3}}
		var b strings.Builder
		if err := output.RenderText(&b, s, output.TextOptions{Width: 120}); err != nil {
			t.Fatal(err)
		}
		if line := "  ERRORS  " + want + "\n"; !strings.Contains(b.String(), line) {
			t.Errorf("%s: want %q in\n%s", message, line, b.String())
		}
	}
}
