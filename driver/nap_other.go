//go:build !linux

package driver

import "time"

// HasPrecisePacer says that PacerPrecise exists on this system.
const HasPrecisePacer = false

const longestNap = time.Millisecond

// nap is never called where there is no precise pacer.
func nap(d time.Duration) { time.Sleep(d) }
