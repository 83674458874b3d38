//go:build race

package mcp

import (
	"errors"
	"syscall"
)

// transfer reads or writes once, by the calls of which the race detector knows
// that what was written before one happened before what is read after the other.
func transfer(trap, fd uintptr, b []byte) (n int, errno syscall.Errno) {
	var err error
	if trap == syscall.SYS_READ {
		n, err = syscall.Read(int(fd), b)
	} else {
		n, err = syscall.Write(int(fd), b)
	}
	errors.As(err, &errno)
	return n, errno
}
