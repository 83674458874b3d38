//go:build linux

package mcp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// sockets returns both ends of a connection over the loopback interface.
func sockets(t *testing.T) (ours *wire, peer *net.TCPConn) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = accepted.Close()
	})
	base := time.Now()
	w := &wire{Conn: c, now: func() time.Duration { return time.Since(base) }, swapper: newSwapper(c)}
	peer, ok := accepted.(*net.TCPConn)
	if !ok || w.swapper == nil {
		t.Fatal("no sockets")
	}
	return w, peer
}

// answer reads what was asked and then acts.
func answer(t *testing.T, peer *net.TCPConn, asked int, act func()) (wait func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := io.CopyN(io.Discard, peer, int64(asked)); err != nil {
			t.Error(err)
		}
		act()
	}()
	return func() { <-done }
}

func say(t *testing.T, c io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Error(err)
	}
}

// A turn moves the request and the first bytes of the answer, many times over.
func TestSwapMovesBoth(t *testing.T) {
	w, peer := sockets(t)
	in := make([]byte, 64)
	for _, text := range []string{"first", "second, and longer", "x"} {
		wait := answer(t, peer, 3, func() { say(t, peer, text) })
		wrote, read, err := w.swap([]byte("ask"), in)
		wait()
		if wrote != 3 || string(in[:read]) != text || err != nil {
			t.Errorf("%d written, %q read, %v", wrote, in[:read], err)
		}
	}
}

// What the peer does instead of answering is known to the next Read.
func TestSwapWithoutAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(peer *net.TCPConn)
		want error
	}{
		"closed": {func(p *net.TCPConn) { _ = p.CloseWrite() }, io.EOF},
		"reset": {func(p *net.TCPConn) {
			_ = p.SetLinger(0)
			_ = p.Close()
		}, syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			w, peer := sockets(t)
			wait := answer(t, peer, 3, func() { test.act(peer) })
			wrote, read, err := w.swap([]byte("ask"), make([]byte, 64))
			wait()
			if wrote != 3 || read != 0 || err != nil {
				t.Fatalf("%d written, %d read, %v", wrote, read, err)
			}
			_, err = w.Read(make([]byte, 64))
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if op, ok := errors.AsType[*net.OpError](err); !errors.Is(test.want, io.EOF) && (!ok || op.Op != "read") {
				t.Errorf("the error is no *net.OpError of a read: %#v", err)
			}
		})
	}
}

// A peer that had answered and gone before it was asked does not make the turn
// wait for ever.
func TestSwapPeerHadGone(t *testing.T) {
	w, peer := sockets(t)
	say(t, peer, "too slow")
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond) // real sockets know no virtual time
	_, read, err := w.swap([]byte("ask"), make([]byte, 64))
	if read == 0 && err == nil {
		_, err = w.Read(make([]byte, 64))
		if err == nil {
			t.Error("neither an answer nor an error")
		}
	}
}

// The end of the peer's side that came before the turn wakes nobody who waits for
// it. With and without a limit of the request it is seen all the same.
func TestSwapPeerHadHalfGone(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{0, time.Minute} {
		t.Run(limit.String(), func(t *testing.T) {
			t.Parallel()
			w, peer := sockets(t)
			if err := peer.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond) // real sockets know no virtual time
			until := limit
			if limit > 0 {
				until += w.now()
			}
			if err := w.limit(until, w.now()); err != nil {
				t.Fatal(err)
			}
			began, in := time.Now(), make([]byte, 64)
			if wrote, read, err := w.swap([]byte("ask"), in); wrote != 3 || read != 0 || err != nil {
				t.Fatalf("%d written, %d read, %v", wrote, read, err)
			}
			if _, err := w.Read(in); !errors.Is(err, io.EOF) || time.Since(began) > 10*lookAgain {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if w.armed != w.until {
				t.Errorf("deadline %v, limit %v", w.armed, w.until)
			}
		})
	}
}

// A request that does not fit the socket goes as far as it can.
func TestSwapWritesPartly(t *testing.T) {
	w, peer := sockets(t)
	out := bytes.Repeat([]byte("x"), 32<<20)
	wrote, read, err := w.swap(out, make([]byte, 64))
	if wrote <= 0 || wrote >= len(out) || read != 0 || err != nil {
		t.Fatalf("%d of %d written, %d read, %v", wrote, len(out), read, err)
	}
	wait := answer(t, peer, len(out), func() { say(t, peer, "late") })
	if _, err := w.Write(out[wrote:]); err != nil {
		t.Fatal(err)
	}
	in := make([]byte, 64)
	n, err := w.Read(in)
	wait()
	if string(in[:n]) != "late" || err != nil {
		t.Errorf("%q, %v", in[:n], err)
	}
}

// A limit that strikes while the answer is awaited, and the end of the
// connection, end the turn; the next Read says which it was.
func TestSwapIsInterrupted(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(w *wire) error
		want error
	}{
		"limit": {func(w *wire) error { return w.limit(w.now()+20*time.Millisecond, w.now()) }, os.ErrDeadlineExceeded},
		"close": {func(w *wire) error {
			time.AfterFunc(20*time.Millisecond, func() { _ = w.Close() })
			return nil
		}, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := sockets(t)
			if err := test.act(w); err != nil {
				t.Fatal(err)
			}
			if wrote, read, err := w.swap([]byte("ask"), make([]byte, 64)); wrote != 3 || read != 0 || err != nil {
				t.Fatalf("%d written, %d read, %v", wrote, read, err)
			}
			if _, err := w.Read(make([]byte, 64)); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	// Before the turn: nothing is written.
	w, _ := sockets(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if wrote, _, _ := w.swap([]byte("ask"), make([]byte, 64)); wrote != 0 {
		t.Errorf("%d bytes written to a closed connection", wrote)
	}
}

// around is what a dial function may have put around a socket.
type around struct{ *net.TCPConn }

func (a around) Socket() *net.TCPConn { return a.TCPConn }

// TestSwapperLooksThroughWhatADialFunctionAdds: without it every request would
// cost a system call more.
func TestSwapperLooksThroughWhatADialFunctionAdds(t *testing.T) {
	ours, _ := sockets(t)
	socket, ok := ours.Conn.(*net.TCPConn)
	if !ok {
		t.Fatal("no socket")
	}
	if newSwapper(around{socket}) == nil {
		t.Error("no swapper for a socket with something around it")
	}
	if newSwapper(struct{ net.Conn }{socket}) != nil {
		t.Error("a swapper for what may change the data")
	}
}
