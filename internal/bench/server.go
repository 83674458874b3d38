package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// serve is the cheapest MCP server that there is: it reads HTTP/1.1 requests,
// takes the id out of the body and answers by a template. It validates nothing.
func serve(l net.Listener, sse bool) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = conn.Close() }()
			_ = answerAll(conn, sse) // the client has gone
		}()
	}
}

const (
	initialized = `{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}}`
	called      = `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"0123456789012345678901234567890123456789"}],"isError":false}}`
)

func answerAll(conn net.Conn, sse bool) error {
	r := bufio.NewReaderSize(conn, 8<<10)
	var body, out []byte
	for {
		length := 0
		for first := true; ; first = false {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return err
			}
			if len(line) <= 2 {
				break
			}
			if first && bytes.HasPrefix(line, []byte("DELETE")) {
				length = 0
				continue
			}
			if name, value, ok := bytes.Cut(line, []byte(":")); ok && len(name) == 14 && strings.EqualFold(string(name), "Content-Length") {
				if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
					return err
				}
			}
		}
		if cap(body) < length {
			body = make([]byte, length)
		}
		body = body[:length]
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		out = appendAnswer(out[:0], body, sse)
		if _, err := conn.Write(out); err != nil {
			return err
		}
	}
}

func appendAnswer(out, body []byte, sse bool) []byte {
	id, template, ok := parse(body)
	if !ok {
		return append(out, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"...)
	}
	end := len(strconv.FormatInt(id, 10))
	if !sse {
		size := len(template) - 2 + end
		out = fmt.Appendf(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
		return fmt.Appendf(out, template, id)
	}
	size := len("event: message\ndata: \n\n") + len(template) - 2 + end
	out = fmt.Appendf(out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\nevent: message\ndata: ", size)
	out = fmt.Appendf(out, template, id)
	return append(out, "\n\n\r\n0\r\n\r\n"...)
}

// serveLines is the same server over stdio: what was read at once is answered at once.
func serveLines(in io.Reader, w io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var out []byte
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if id, template, ok := parse(line); ok {
			out = append(fmt.Appendf(out, template, id), '\n')
		}
		if r.Buffered() > 0 {
			continue
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		out = out[:0]
	}
}

// parse takes the id out of a request and chooses its answer; ok is false for a notification.
func parse(body []byte) (id int64, template string, ok bool) {
	_, after, ok := bytes.Cut(body, []byte(`"id":`))
	if !ok {
		return 0, "", false
	}
	for _, d := range after {
		if d < '0' || d > '9' {
			break
		}
		id = 10*id + int64(d-'0')
	}
	if bytes.Contains(body, []byte(`"initialize"`)) {
		return id, initialized, true
	}
	return id, called, true
}
