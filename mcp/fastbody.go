package mcp

import (
	"bytes"
	"errors"
	"io"
)

const (
	// maxChunkLine bounds the line that begins a chunk, extensions included.
	maxChunkLine = 4096
	// maxExcess bounds what a chunked body may have beside its data: 16 bytes a
	// chunk and twice the data are free, what exceeds them adds up.
	maxExcess = 16 << 10
)

// length implements response.
func (c *fastConn) length() int64 { return c.framing.whole }

// Read implements response: it returns body bytes as soon as there are any.
func (c *fastConn) Read(p []byte) (int, error) {
	f := &c.framing
	if c.r == c.w && f.left != 0 && !f.done && len(p) >= bufferBytes {
		// Large bodies need not go through the buffer.
		if f.left > 0 && f.left < int64(len(p)) {
			p = p[:f.left]
		}
		c.later = true
		n, err := c.stream.Read(p)
		c.took(n)
		if n > 0 {
			return n, nil
		}
		return 0, c.bodyEnds(err)
	}
	part, err := c.part()
	if err != nil {
		return 0, err
	}
	n := copy(p, part)
	c.r += n
	c.took(n)
	return n, nil
}

// part returns body bytes that are in the buffer, after reading some if need be.
func (c *fastConn) part() ([]byte, error) {
	f := &c.framing
	for !f.done {
		if f.chunked && f.left == 0 {
			if err := c.nextChunk(); err != nil {
				return nil, err
			}
			continue
		}
		if c.r == c.w {
			if err := c.fill(); err != nil {
				if err = c.bodyEnds(err); err != nil {
					return nil, err
				}
			}
			continue
		}
		b := c.buf.in[c.r:c.w]
		if f.left >= 0 && int64(len(b)) > f.left {
			b = b[:f.left]
		}
		return b, nil
	}
	return nil, io.EOF
}

// took counts body bytes that were consumed.
func (c *fastConn) took(n int) {
	f := &c.framing
	if f.left < 0 {
		return
	}
	f.left -= int64(n)
	if f.left == 0 && !f.chunked {
		f.done = true
	}
}

// bodyEnds judges an error of the connection within the body: its end is the end
// of a body that has no other.
func (c *fastConn) bodyEnds(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	if c.framing.left < 0 {
		c.framing.done = true
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}

// nextChunk reads what stands between two chunks: the end of the one before, the
// size of the next, and after the last one the trailers (RFC 9112, section 7.1).
func (c *fastConn) nextChunk() error {
	f := &c.framing
	if f.inside {
		if err := c.need(2); err != nil {
			return err
		}
		if c.buf.in[c.r] != '\r' || c.buf.in[c.r+1] != '\n' {
			return badHTTP("malformed end of a chunk", c.buf.in[c.r:c.r+2])
		}
		c.r += 2
		f.inside = false
	}
	line, err := c.chunkLine()
	if err != nil {
		return err
	}
	size, err := chunkSize(line)
	if err != nil {
		return err
	}
	f.excess = max(0, f.excess+int64(len(line))+2-16-2*min(size, maxExcess))
	if f.excess > maxExcess {
		return badHTTP("the chunks are mostly extensions", line)
	}
	if size == 0 {
		return c.trailers()
	}
	f.left, f.inside = size, true
	return nil
}

// need waits until n bytes are in the buffer.
func (c *fastConn) need(n int) error {
	for c.w-c.r < n {
		if err := c.fill(); err != nil {
			return cut(err)
		}
	}
	return nil
}

// cut makes the end of the connection an unexpected one.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// chunkLine returns the line that begins a chunk, without its CRLF. A bare LF is
// no line end here, unlike in the header.
func (c *fastConn) chunkLine() ([]byte, error) {
	for {
		b := c.buf.in[c.r:c.w]
		n := bytes.IndexByte(b, '\n')
		if n >= 0 {
			line, ok := bytes.CutSuffix(b[:n], []byte{'\r'})
			if !ok || bytes.IndexByte(line, '\r') >= 0 || len(line) >= maxChunkLine {
				return nil, badHTTP("malformed chunk size", b[:n])
			}
			c.r += n + 1
			return line, nil
		}
		if len(b) > maxChunkLine {
			return nil, badHTTP("malformed chunk size", b)
		}
		if err := c.fill(); err != nil {
			return nil, cut(err)
		}
	}
}

// chunkSize reads the number of a chunk's line and ignores its extensions.
func chunkSize(line []byte) (int64, error) {
	digits, _, _ := bytes.Cut(bytes.TrimRight(line, " \t"), []byte{';'})
	n := int64(0)
	for i, d := range digits {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d|0x20 >= 'a' && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, badHTTP("malformed chunk size", line)
		}
		if i == 15 {
			return 0, badHTTP("malformed chunk size", line)
		}
		n = n<<4 | int64(d)
	}
	if len(digits) == 0 {
		return 0, badHTTP("malformed chunk size", line)
	}
	return n, nil
}

// trailers reads what follows the last chunk: fields, of which none matters here,
// and a blank line.
func (c *fastConn) trailers() error {
	if err := c.need(2); err != nil {
		return err
	}
	size := 2
	for string(c.buf.in[c.r:c.r+2]) != "\r\n" {
		b := c.buf.in[c.r:c.w]
		if n := bytes.Index(b, []byte("\r\n\r\n")); n >= 0 {
			size = n + 4
			if err := checkTrailers(b[:size]); err != nil {
				return err
			}
			break
		}
		if int64(len(b)) > c.engine.limits.HeaderBytes {
			return &LimitError{Limit: LimitHeader, Max: c.engine.limits.HeaderBytes}
		}
		if err := c.fill(); err != nil {
			return cut(err)
		}
	}
	c.r += size
	c.framing.done = true
	return nil
}

func checkTrailers(block []byte) error {
	if block[0] == ' ' || block[0] == '\t' {
		return badHTTP("malformed trailer", block)
	}
	for {
		var line []byte
		line, block = nextLine(block)
		if len(line) == 0 {
			return nil
		}
		if _, _, err := splitHeader(line); err != nil {
			return err
		}
	}
}
