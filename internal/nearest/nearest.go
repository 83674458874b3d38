// Package nearest finds the known name that an unknown one was probably meant to be.
package nearest

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Name returns the candidate that differs least from name by Levenshtein
// distance with swaps, letters of either case being equal; "" when none is near.
func Name(name string, candidates []string) string {
	const longest = 100
	if utf8.RuneCountInString(name) > longest {
		return ""
	}
	best, bestDistance := "", allowed(utf8.RuneCountInString(name))+1
	for _, c := range candidates {
		if len(c) > 4*longest {
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// allowed is how many changes still leave a name of n characters recognizable.
func allowed(n int) int {
	switch {
	case n <= 3:
		return 1
	case n <= 6:
		return 2
	}
	return n / 3
}

// DidYouMean returns ` (did you mean "x"?)` for the nearest candidate, or "".
func DidYouMean(name string, candidates []string) string {
	if near := Name(name, candidates); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// DidYouMeanOf is DidYouMean, and where nothing is near it lists the candidates,
// each once and at most listed of them: ` (there are: a, b, …)`; "" when there are
// none.
func DidYouMeanOf(name string, candidates []string) string {
	if hint := DidYouMean(name, candidates); hint != "" {
		return hint
	}
	var known []string
	for _, c := range candidates {
		switch {
		case c == "" || slices.Contains(known, c):
			continue
		case len(known) == listed:
			return fmt.Sprintf(" (there are: %s, …)", strings.Join(known, ", "))
		}
		known = append(known, c)
	}
	if len(known) == 0 {
		return ""
	}
	return fmt.Sprintf(" (there are: %s)", strings.Join(known, ", "))
}

// listed bounds the names in one message.
const listed = 8

// distance is the number of characters to insert, delete, change or swap with
// the next one.
func distance(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	before := make([]int, len(rb)+1) // the row before last
	last := make([]int, len(rb)+1)
	row := make([]int, len(rb)+1)
	for j := range last {
		last[j] = j
	}
	for i, ca := range ra {
		row[0] = i + 1
		for j, cb := range rb {
			change := last[j]
			if ca != cb {
				change++
			}
			row[j+1] = min(change, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && ca == rb[j-1] && cb == ra[i-1] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(rb)]
}
