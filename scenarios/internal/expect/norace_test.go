//go:build !race

package expect_test

const raceEnabled = false
