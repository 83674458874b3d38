package mcptest

import (
	"bytes"
	"io"
	"strconv"
	"sync"
	"testing"

	"mcpbench/mcp"
)

// LegacySSE is HTTP over HTTP+SSE: the answers come over the stream of a session.
func (l Lean) LegacySSE(tb testing.TB) *mcp.LegacySSE {
	tb.Helper()
	s := &leanStreams{}
	return &mcp.LegacySSE{URL: "http://" + listenLean(tb, s.serve) + "/sse"}
}

// leanStreams are the streams of a Lean's sessions, by their number.
type leanStreams struct {
	mu   sync.Mutex
	open []*leanStream
}

type leanStream struct {
	mu  sync.Mutex // orders events
	w   io.Writer
	out []byte
}

// event writes one event as a chunk.
func (s *leanStream) event(name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := len("event: \ndata: \n\n") + len(name) + len(data)
	s.out = append(strconv.AppendInt(s.out[:0], int64(size), 16), "\r\nevent: "...)
	s.out = append(append(s.out, name...), "\ndata: "...)
	s.out = append(append(s.out, data...), "\n\n\r\n"...)
	_, err := s.w.Write(s.out)
	return err
}

func (s *leanStreams) add(w io.Writer) (*leanStream, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &leanStream{w: w}
	s.open = append(s.open, st)
	return st, len(s.open) - 1
}

func (s *leanStreams) find(request []byte) *leanStream {
	_, rest, _ := bytes.Cut(request, []byte("?s="))
	n := 0
	for len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' {
		n, rest = 10*n+int(rest[0]-'0'), rest[1:]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[n]
}

var accepted = []byte("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

func (s *leanStreams) serve(conn io.ReadWriter) {
	in := make([]byte, 64<<10)
	var message []byte
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
		var err error
		if bytes.HasPrefix(in, []byte("GET ")) {
			err = s.begin(conn)
		} else {
			_, err = conn.Write(accepted)
		}
		if id := leanID(in[:size]); id != nil && err == nil {
			message = appendLean(message[:0], id)
			err = s.find(in[:size]).event("message", message)
		}
		if err != nil {
			return
		}
		n = copy(in, in[size:n])
	}
}

// begin makes conn the stream of a new session.
func (s *leanStreams) begin(conn io.Writer) error {
	_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	st, number := s.add(conn)
	if err != nil {
		return err
	}
	return st.event("endpoint", strconv.AppendInt([]byte("/m?s="), int64(number), 10))
}
