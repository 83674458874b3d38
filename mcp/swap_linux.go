package mcp

import (
	"net"
	"os"
	"syscall"
)

// swapper writes a request and reads the beginning of its response in one turn.
// The ordinary way looks for the response at once, finds nothing, since the
// server was only just asked, and waits then: a system call for nothing with each
// request. A swapper arms the poller, writes, and waits without looking.
// Used by one goroutine at a time.
type swapper struct {
	raw  syscall.RawConn
	turn func(fd uintptr) bool // pass, made a func once

	out, in     []byte
	asked       bool // a write was tried
	wrote, read int
	op          string // what failed with errno
	errno       syscall.Errno
}

// newSwapper returns a swapper for c, nil when c is no socket. It looks through
// what a dial function has put around a socket, if that has Socket.
func newSwapper(c net.Conn) *swapper {
	if around, ok := c.(interface{ Socket() *net.TCPConn }); ok {
		c = around.Socket()
	}
	var raw syscall.RawConn
	var err error
	switch c := c.(type) {
	case *net.TCPConn:
		raw, err = c.SyscallConn()
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	s := &swapper{raw: raw}
	s.turn = s.pass
	return s
}

// swap writes out and, if all of it went, waits for bytes to read into in. What
// it could not do (wrote < len(out), or nothing read) is left to the caller's
// ordinary calls, which also report why: only a failed system call is an error here.
func (s *swapper) swap(out, in []byte) (wrote, read int, err error) {
	s.out, s.in = out, in
	s.asked, s.wrote, s.read, s.errno = false, 0, 0, 0
	if s.raw.Read(s.turn) != nil {
		s.read = 0 // a limit or the end of the connection came while it waited
	}
	s.out, s.in = nil, nil
	if s.errno != 0 {
		err = os.NewSyscallError(s.op, s.errno)
	}
	return s.wrote, s.read, err
}

// pass is called when the poller is armed and then whenever the socket may have
// become readable. It returns whether it need not be called again.
func (s *swapper) pass(fd uintptr) bool {
	if !s.asked {
		s.asked = true
		s.wrote = s.call("write", syscall.SYS_WRITE, fd, s.out)
		return s.wrote < len(s.out)
	}
	s.read = s.call("read", syscall.SYS_READ, fd, s.in)
	return s.read >= 0
}

// call makes one system call and returns how many bytes it moved, negative if
// the socket was not ready.
func (s *swapper) call(op string, trap, fd uintptr, b []byte) int {
	for {
		n, errno := transfer(trap, fd, b)
		switch {
		case errno == 0:
			return n
		case errno == syscall.EAGAIN:
			return -1
		case errno != syscall.EINTR:
			s.op, s.errno = op, errno
			return 0
		}
	}
}
