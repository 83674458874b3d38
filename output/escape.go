package output

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns s fit for one line of a terminal: control characters,
// characters that change the direction of writing, line separators and bytes
// that are no UTF-8 are replaced by escapes such as \n, \x1b and \u202e. Text
// that a server gave must go through it before it is printed anywhere.
func Escape(s string) string {
	if !strings.ContainsFunc(s, unsafeRune) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unsafeRune(r) && r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unsafeRune(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// unsafeRune tells characters that act on a terminal instead of showing: C0
// and C1 controls, DEL, line and paragraph separators, and the bidirectional
// controls (Unicode Standard Annex 9, section 2).
func unsafeRune(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// escapeLog is Escape for log output: it keeps newlines, tabs and the
// sequences that set colours (ECMA-48 SGR), which a log encoder writes itself.
func escapeLog(b []byte) []byte {
	if !bytes.ContainsFunc(b, escapedInLog) {
		return b
	}
	out := make([]byte, 0, len(b)+32)
	for len(b) > 0 {
		if n := colourSequence(b); n > 0 {
			out, b = append(out, b[:n]...), b[n:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		if escapedInLog(r) {
			out = append(out, Escape(string(b[:n]))...)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

func escapedInLog(r rune) bool {
	return r == utf8.RuneError || (unsafeRune(r) && r != '\n' && r != '\t')
}

// colourSequence returns the length of the sequence ESC [ digits… m that b
// begins with, or 0.
func colourSequence(b []byte) int {
	if len(b) < 3 || b[0] != 0x1b || b[1] != '[' {
		return 0
	}
	for i, c := range b[2:] {
		if c == 'm' {
			return i + 3
		}
		if c != ';' && (c < '0' || c > '9') {
			return 0
		}
	}
	return 0
}
