package mcp

import (
	"errors"
	"net"
	"os"
	"time"
)

// lookAgain is how long a swapper may wait without having looked at the socket, half
// of a limit if that is less: what came before it began to wait, such as the end of
// the peer's side, wakes nobody.
const lookAgain = time.Second

// wire is a socket with a time limit that costs little to move. The deadline
// that the socket itself has may come before the limit; when it strikes, it is
// moved and the work goes on. So it need not be set for each request, the limit is
// kept exactly all the same, and TLS above the wire, which no deadline may
// interrupt, never sees one that came too early. Used by one goroutine at a time,
// except that any may close it.
type wire struct {
	net.Conn
	now   func() time.Duration
	until time.Duration // the limit, 0: none
	armed time.Duration // the socket's deadline, 0: none
	// bounds, unless nil, say when the limit is over; until is then the next moment
	// at which they are to be asked.
	bounds *bounds

	swapper *swapper // nil: the connection is no socket
	failed  error    // of a read that Read has not reported yet
}

// limit sets the limit to until, 0 for none. now is the present.
func (w *wire) limit(until, now time.Duration) error {
	w.until = until
	if w.swapper != nil {
		return w.armToLook(now)
	}
	if until == 0 || w.armed != 0 && w.armed <= until && w.armed >= until-(until-now)/10 {
		return nil
	}
	return w.arm(now)
}

// armToLook sets the socket's deadline to when a swapper must have looked, unless it
// is about there.
func (w *wire) armToLook(now time.Duration) error {
	look := lookAgain
	if w.until != 0 {
		look = min(look, max(w.until-now, 2)/2)
	}
	if w.armed > now+look/2 && w.armed <= now+look {
		return nil
	}
	w.armed = now + look
	return w.SetDeadline(time.Now().Add(look))
}

// arm sets the socket's deadline to the limit.
func (w *wire) arm(now time.Duration) error {
	w.armed = w.until
	if w.until == 0 {
		return w.SetDeadline(time.Time{})
	}
	return w.SetDeadline(time.Now().Add(w.until - now))
}

// expired reports whether the limit is over, given an error of the socket.
func (w *wire) expired(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && w.until != 0 && w.now() >= w.until
}

// early reports whether err is the deadline before the limit, and moves it then.
func (w *wire) early(err error) bool {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return false
	case w.bounds != nil:
		next, over := w.bounds.strike(w.now())
		if over != nil || next == 0 && w.expired(err) {
			return false
		}
		if next != 0 {
			w.until = next
		}
	case w.expired(err):
		return false
	}
	return w.arm(w.now()) == nil
}

// swap writes out and reads into in what comes first; wrote and read say how far
// it got, and Write and Read go on from there. err is that of a write.
func (w *wire) swap(out, in []byte) (wrote, read int, err error) {
	wrote, read, err = w.swapper.swap(out, in)
	if err == nil {
		return max(wrote, 0), read, nil
	}
	local, remote := w.LocalAddr(), w.RemoteAddr()
	op := &net.OpError{Op: "write", Net: remote.Network(), Source: local, Addr: remote, Err: err}
	if wrote < len(out) {
		return wrote, 0, op
	}
	op.Op = "read"
	w.failed = op
	return wrote, 0, nil
}

// Read implements net.Conn.
func (w *wire) Read(b []byte) (int, error) {
	if err := w.failed; err != nil {
		w.failed = nil
		return 0, err
	}
	for {
		n, err := w.Conn.Read(b)
		if n > 0 || err == nil || !w.early(err) {
			return n, err
		}
	}
}

// Write implements net.Conn.
func (w *wire) Write(b []byte) (int, error) {
	done := 0
	for {
		n, err := w.Conn.Write(b[done:])
		done += n
		if err == nil || !w.early(err) {
			return done, err
		}
	}
}
