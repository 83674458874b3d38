package mcptest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"mcpbench/mcp"
)

// LeanResult is the result that a Lean gives to every request: it will do for
// initialize and for a tool's answer.
const LeanResult = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"lean","version":"1"},` +
	`"content":[{"type":"text","text":"ok"}],"isError":false}`

// Lean is about the cheapest server there is, for measurements: it looks at
// nothing but the id and allocates nothing in the steady state. It understands
// only what this module's client sends.
type Lean struct {
	SSE bool // answer with an event stream
}

// HTTP serves on the loopback interface until the test ends and returns the
// transport that reaches it. Sessions must be closed before.
func (l Lean) HTTP(tb testing.TB) *mcp.Streamable {
	tb.Helper()
	return &mcp.Streamable{URL: "http://" + listenLean(tb, l.serve) + "/mcp"}
}

// listenLean serves each connection on the loopback interface until the test ends.
func listenLean(tb testing.TB, serve func(conn io.ReadWriter)) (address string) {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(tb.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			serving.Go(func() {
				serve(conn)
				_ = conn.Close() // the client went
			})
		}
	})
	tb.Cleanup(func() {
		if err := listener.Close(); err != nil {
			tb.Error(err)
		}
		serving.Wait()
	})
	return listener.Addr().String()
}

func (l Lean) serve(conn io.ReadWriter) {
	in := make([]byte, 64<<10)
	var out, message []byte
	n := 0
	for {
		size := messageSize(in[:n])
		for size > n || size == 0 {
			m, err := conn.Read(in[n:])
			if err != nil {
				return
			}
			n += m
			size = messageSize(in[:n])
		}
		out = out[:0]
		if id := leanID(in[:size]); id == nil {
			out = append(out, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"...)
		} else {
			message = appendLean(message[:0], id)
			out = l.appendResponse(out, message)
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
		n = copy(in, in[size:n])
	}
}

func (l Lean) appendResponse(out, message []byte) []byte {
	if !l.SSE {
		out = append(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
		out = strconv.AppendInt(out, int64(len(message)), 10)
		return append(append(out, "\r\n\r\n"...), message...)
	}
	const before, after = "event: message\ndata: ", "\n\n"
	out = append(out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"...)
	out = strconv.AppendInt(out, int64(len(before)+len(message)+len(after)), 16)
	out = append(append(append(out, "\r\n"+before...), message...), after+"\r\n0\r\n\r\n"...)
	return out
}

// ServePipe answers each line that has an id until the input ends.
func (l Lean) ServePipe(in io.Reader, out io.Writer) error {
	buf := make([]byte, 64<<10)
	var answers []byte
	n := 0
	for {
		m, err := in.Read(buf[n:])
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		n += m
		rest := buf[:n]
		answers = answers[:0]
		for {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				break
			}
			if id := leanID(rest[:end]); id != nil {
				answers = append(appendLean(answers, id), '\n')
			}
			rest = rest[end+1:]
		}
		n = copy(buf, rest)
		if len(answers) == 0 {
			continue
		}
		if _, err := out.Write(answers); err != nil {
			return err
		}
	}
}

func appendLean(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	return append(append(dst, `,"result":`+LeanResult...), '}')
}

// messageSize returns the length of the first HTTP request in b, 0 when its
// header is not there yet.
func messageSize(b []byte) int {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0
	}
	const name = "\r\nContent-Length: "
	i := bytes.Index(b[:end], []byte(name))
	size := 0
	for i >= 0 && b[i+len(name)] != '\r' {
		size = 10*size + int(b[i+len(name)]-'0')
		i++
	}
	return end + 4 + size
}

// leanID returns the id of a request, nil when there is none.
func leanID(b []byte) []byte {
	const prefix = `{"jsonrpc":"2.0","id":`
	i := bytes.Index(b, []byte(prefix))
	if i < 0 {
		return nil
	}
	b = b[i+len(prefix):]
	return b[:bytes.IndexByte(b, ',')]
}
