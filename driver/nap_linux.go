package driver

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HasPrecisePacer says that PacerPrecise exists on this system.
const HasPrecisePacer = true

// longestNap bounds one nap. The thread keeps its place in the scheduler while
// it naps, so a nap holds up a garbage collection's stop for as long: a quarter
// of a millisecond is the price of not being late by a whole one.
const longestNap = 250 * time.Microsecond

// nap sleeps on the calling thread. It goes past the scheduler on purpose:
// through it a wake-up would cost the hand-over of the processor and up to a
// millisecond. A signal may cut it short; the caller looks at the clock again.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&t)), 0, 0, 0) //nolint:gosec // the call takes a pointer
}
