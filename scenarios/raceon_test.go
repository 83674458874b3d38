//go:build race

package scenarios_test

// underRace tells that the race detector is on, which makes these tests ten times slower.
const underRace = true
