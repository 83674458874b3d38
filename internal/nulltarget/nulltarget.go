// Package nulltarget answers MCP requests at the least cost, in this process: what
// is measured against it is the floor of the machine and of the load generator.
// It knows initialize and takes any other request for a call; it validates nothing.
package nulltarget

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
)

// Results, from behind the id to the end of the answer.
const (
	initialized = `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"null","version":"1"}}}`
	called      = `,"result":{"content":[{"type":"text","text":"0123456789012345678901234567890123456789"}],"isError":false}}`
	answerStart = `{"jsonrpc":"2.0","id":`
)

// Target answers over loopback HTTP at URL, and over the pipes that it makes.
type Target struct {
	URL string

	listener net.Listener
	served   sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	closed bool
	open   map[io.Closer]struct{}
}

// Start returns a target that listens on a free port.
func Start(ctx context.Context) (*Target, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the null target: %w", err)
	}
	t := &Target{URL: "http://" + l.Addr().String() + "/", listener: l, open: map[io.Closer]struct{}{}}
	t.served.Go(t.accept)
	return t, nil
}

// Close ends all connections and pipes and waits for who served them.
func (t *Target) Close() error {
	t.mu.Lock()
	t.closed = true
	err := t.listener.Close()
	for c := range t.open {
		_ = c.Close() // nothing on it is of interest any more
	}
	t.mu.Unlock()
	t.served.Wait()
	return err
}

// keep notes what Close has to close; false after Close.
func (t *Target) keep(c io.Closer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.open[c] = struct{}{}
	}
	return !t.closed
}

func (t *Target) drop(c io.Closer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c)
	_ = c.Close() // it has ended, or is of no interest any more
}

func (t *Target) accept() {
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			return // closed, or out of descriptors, which the clients see
		}
		if !t.keep(conn) {
			_ = conn.Close() // accepted as all ends
			return
		}
		t.served.Go(func() {
			defer t.drop(conn)
			_ = answerHTTP(conn) // the client has gone
		})
	}
}

// answerHTTP answers requests of HTTP/1.1 as mcpbench makes them until one fails.
func answerHTTP(conn io.ReadWriter) error {
	r := bufio.NewReaderSize(conn, 8<<10)
	var body, answer, out []byte
	for {
		length, err := readHeader(r)
		if err != nil {
			return err
		}
		if cap(body) < length {
			body = make([]byte, length)
		}
		body = body[:length]
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		if answer = appendAnswer(answer[:0], body); len(answer) == 0 {
			out = append(out[:0], "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"...)
		} else {
			out = append(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
			out = strconv.AppendInt(out, int64(len(answer)), 10)
			out = append(append(out, "\r\n\r\n"...), answer...)
		}
		if _, err := conn.Write(out); err != nil {
			return err
		}
	}
}

var (
	contentLength = []byte("content-length")
	idMember      = []byte(`"id":`)
	initialize    = []byte(`"initialize"`)
)

// readHeader reads the request line and the header and returns the body's length.
func readHeader(r *bufio.Reader) (length int, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) <= 2 {
			return length, nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if ok && len(name) == len(contentLength) && bytes.EqualFold(name, contentLength) {
			length = int(number(bytes.TrimSpace(value)))
		}
	}
}

// number reads the digits that b begins with.
func number(b []byte) (n int64) {
	for _, d := range b {
		if d < '0' || d > '9' {
			break
		}
		n = 10*n + int64(d-'0')
	}
	return n
}

// appendAnswer appends the answer to a message, nothing when it is none to answer.
func appendAnswer(dst, message []byte) []byte {
	_, after, ok := bytes.Cut(message, idMember)
	if !ok {
		return dst
	}
	dst = strconv.AppendInt(append(dst, answerStart...), number(after), 10)
	if bytes.Contains(message, initialize) {
		return append(dst, initialized...)
	}
	return append(dst, called...)
}

// Pipe returns the client's ends of two pipes of the operating system, of which
// the target serves the others: a stdio server without a process.
func (t *Target) Pipe() (out io.ReadCloser, in io.WriteCloser, err error) {
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start the null target: %w", err)
	}
	out, ours, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start the null target: %w", errors.Join(err, theirs.Close(), in.Close()))
	}
	both := pair{theirs, ours}
	if !t.keep(both) {
		return nil, nil, errors.Join(net.ErrClosed, both.Close(), in.Close(), out.Close())
	}
	t.served.Go(func() {
		defer t.drop(both)
		_ = answerLines(theirs, ours) // the client has gone
	})
	return out, in, nil
}

// pair is two files that are closed together.
type pair struct{ r, w *os.File }

// Close closes both.
func (p pair) Close() error { return errors.Join(p.r.Close(), p.w.Close()) }

// answerLines answers JSON-RPC lines: what was read at once is answered at once.
func answerLines(in io.Reader, w io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var out []byte
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		before := len(out)
		if out = appendAnswer(out, line); len(out) > before {
			out = append(out, '\n')
		}
		if r.Buffered() > 0 || len(out) == 0 {
			continue
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		out = out[:0]
	}
}
