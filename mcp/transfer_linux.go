//go:build !race

package mcp

import (
	"syscall"
	"unsafe"
)

// transfer reads or writes once. The socket does not block, so that the runtime
// need not be told of the call.
func transfer(trap, fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(trap, fd,
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), //nolint:gosec // converted in the call, as package unsafe demands
		uintptr(len(b)))
	return int(n), errno
}
