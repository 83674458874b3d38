// Package upgrade takes the text of a scenario from one version of the language to a
// later one.
package upgrade

import "fmt"

// Step rewrites a whole file in the next version of the language. It keeps comments
// and whatever it does not have to change.
type Step func(data []byte) ([]byte, error)

// Steps are those that there are: the first takes version 1 to 2.
var Steps []Step

// Newest is the version that the last of steps leads to.
func Newest(steps []Step) int { return len(steps) + 1 }

// Run takes data from version from, which is at least 1 and at most Newest, to Newest.
func Run(steps []Step, from int, data []byte) ([]byte, error) {
	for i, step := range steps[from-1:] {
		var err error
		if data, err = step(data); err != nil {
			return nil, fmt.Errorf("from version %d to %d: %w", from+i, from+i+1, err)
		}
	}
	return data, nil
}
