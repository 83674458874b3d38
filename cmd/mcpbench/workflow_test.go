package main

import (
	"bytes"
	"io"
	"testing"
)

// TestServerTextGivesNoWorkflowCommand: what would be a command to GitHub Actions is
// escaped, wherever a write ends, and all other text stays as it is.
func TestServerTextGivesNoWorkflowCommand(t *testing.T) {
	tests := []struct{ text, want string }{
		{"::error::x\n", `:\u003aerror::x` + "\n"},
		{"a\n::error::x", "a\n" + `:\u003aerror::x`},
		{"a\r::error::x", "a\r" + `:\u003aerror::x`},
		{" \t  ::error::x", " \t  " + `:\u003aerror::x`},
		{"\u00a0\u3000::error::x", "\u00a0\u3000" + `:\u003aerror::x`},
		{"a ##[set-env]x", `a ##\u005bset-env]x`},
		{"a ###[set-env]x", `a ###\u005bset-env]x`},
		{"a ::b:: # #[ [##\n: :\n:\n:\n", "a ::b:: # #[ [##\n: :\n:\n:\n"},
		{"", ""},
	}
	for _, tt := range tests {
		for at := range len(tt.text) + 1 {
			var out bytes.Buffer
			g := &workflowGuard{to: &out}
			for _, part := range []string{tt.text[:at], tt.text[at:]} {
				if n, err := io.WriteString(g, part); n != len(part) || err != nil {
					t.Fatalf("wrote %d of %d: %v", n, len(part), err)
				}
			}
			got := out.String()
			// Each write is taken for the begin of a line, so more may be escaped.
			if at == 0 && got != tt.want || bytes.Contains(out.Bytes(), []byte("##[")) {
				t.Errorf("%q cut at %d: %q, want %q", tt.text, at, got, tt.want)
			}
			for line := range bytes.SplitSeq(bytes.ReplaceAll(out.Bytes(), []byte("\r"), []byte("\n")), []byte("\n")) {
				if bytes.HasPrefix(bytes.TrimSpace(line), []byte("::")) {
					t.Errorf("%q cut at %d gives the command %q", tt.text, at, line)
				}
			}
		}
	}
}
