//go:build unix

package self

import (
	"math"
	"os"
	"runtime"
	"syscall"
	"time"
)

// CPU returns the user and system time of this process so far.
func CPU() (user, system time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}

// descriptors counts the open ones. Linux tells the number as the size of the
// folder since 6.2, which needs no descriptor: at the limit there is none left.
func descriptors() int64 {
	if runtime.GOOS != "linux" {
		return entries("/dev/fd")
	}
	info, err := os.Stat("/proc/self/fd")
	if err != nil {
		return 0
	}
	if n := info.Size(); n > 0 {
		return n
	}
	return entries("/proc/self/fd")
}

func maxDescriptors() int64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return limited(uint64(l.Cur)) //nolint:unconvert // signed on some systems
}

// limited is a limit as Limits have it: one that is none is 0.
func limited(n uint64) int64 {
	if n > math.MaxInt32 {
		return 0
	}
	return int64(n)
}
