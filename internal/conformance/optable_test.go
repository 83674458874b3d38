package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// operationsTable is printed after all tests.
var operationsTable string

// table shows a line for each session and a letter for each operation, and says what
// is behind the letters.
func table(rows []*row) string {
	var b strings.Builder
	b.WriteString("\nOPERATIONS: . ok, - skipped, o odd (known), X FAILED\n")
	for i, o := range operations {
		fmt.Fprintf(&b, "  %c %s", column(i), o.name)
		if i%7 == 6 {
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "  ! anomalies\n\n%-18s %-6s %-6s %-10s ", "SERVER", "OVER", "ENGINE", "VERSION")
	for i := range operations {
		b.WriteByte(column(i))
	}
	b.WriteString("!\n")
	reasons, count := map[string][]string{}, map[byte]int{}
	for _, r := range rows {
		fmt.Fprintf(&b, "%-18s %-6s %-6s %s ", r.server.name, r.transport, r.engine, r.version)
		for _, name := range append(operationNames(), "anomaly") {
			letter := r.letter(name, reasons)
			count[letter]++
			b.WriteByte(letter)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d ok, %d skipped, %d odd, %d failed\n\nREASONS\n", count['.'], count['-'], count['o'], count['X'])
	texts := make([]string, 0, len(reasons))
	for text, where := range reasons {
		texts = append(texts, fmt.Sprintf("%s [%d: %s]\n", text, len(where), strings.Join(shorten(where), "; ")))
	}
	slices.Sort(texts)
	b.WriteString(strings.Join(texts, ""))
	return b.String()
}

// letter is what came of an operation; its reason is added to reasons.
func (r *row) letter(operation string, reasons map[string][]string) byte {
	letter := byte('.')
	for _, res := range r.results {
		if res.operation != operation || res.err == nil {
			continue
		}
		_, skipped := errors.AsType[skip](res.err)
		text := ""
		switch {
		case skipped:
			letter, text = '-', fmt.Sprintf("- %s: %v", operation, res.err)
		case res.odd != "":
			letter, text = 'o', fmt.Sprintf("o %s: %s", operation, res.odd)
		default:
			letter, text = 'X', fmt.Sprintf("X %s: %v", operation, res.err)
		}
		reasons[text] = append(reasons[text], r.name())
	}
	if !slices.ContainsFunc(r.results, func(res result) bool { return res.operation == operation }) && operation != "anomaly" {
		return ' ' // nothing beyond the refusal of the version
	}
	return letter
}

func operationNames() []string {
	names := make([]string, 0, len(operations)+1)
	for _, o := range operations {
		names = append(names, o.name)
	}
	return names
}

// column is the letter above a column: a to z, then A.
func column(i int) byte {
	if i < 26 {
		return byte('a' + i)
	}
	return byte('A' + i - 26)
}

// shorten keeps the first few of many places.
func shorten(where []string) []string {
	if len(where) > 2 {
		return append(slices.Clone(where[:2]), "…")
	}
	return where
}
