// Package nearest finds the known name that an unknown one was probably meant to be.
package nearest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Name returns the candidate that differs least from name by Levenshtein
// distance, letters of either case being equal; "" when none is near.
func Name(name string, candidates []string) string {
	const longest = 100
	if utf8.RuneCountInString(name) > longest {
		return ""
	}
	best, bestDistance := "", utf8.RuneCountInString(name)/3+2
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

// DidYouMean returns ` (did you mean "x"?)` for the nearest candidate, or "".
func DidYouMean(name string, candidates []string) string {
	if near := Name(name, candidates); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// distance is the number of characters to insert, delete or change.
func distance(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	row := make([]int, len(rb)+1)
	for j := range row {
		row[j] = j
	}
	for i, ca := range ra {
		diagonal := row[0]
		row[0] = i + 1
		for j, cb := range rb {
			change := diagonal
			if ca != cb {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(rb)]
}
