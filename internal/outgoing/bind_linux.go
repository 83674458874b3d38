package outgoing

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// bindLate has the kernel choose the port when the target is known
// (IP_BIND_ADDRESS_NO_PORT, ip(7)). Else one source address has no more ports for
// all targets together than for one. A kernel that does not know it binds as ever.
func bindLate(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
}
