//go:build race

package expect_test

const raceEnabled = true // the pool drops readers at random
