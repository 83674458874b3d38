//go:build unix

package mcp

import (
	"net"
	"syscall"
)

// alive reports whether an idle connection can still be used, as far as the
// socket knows: its peer has neither closed it nor sent anything. Under TLS there
// may be bytes, namely a session ticket that came after the handshake.
func alive(c net.Conn, secure bool) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	var b [1]byte
	open := false
	err = raw.Read(func(fd uintptr) bool {
		n, _, e := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		open = n > 0 && secure || e == syscall.EAGAIN || e == syscall.EINTR
		return true
	})
	return err == nil && open
}
