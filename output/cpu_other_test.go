//go:build !unix

package output_test

import (
	"testing"
	"time"
)

var began = time.Now()

// cpuTime is wall time where the system does not tell the process's own.
func cpuTime(testing.TB) time.Duration { return time.Since(began) }
