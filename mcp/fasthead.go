package mcp

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// framing tells where the body of a response ends (RFC 9112, section 6.3).
type framing struct {
	chunked bool
	inside  bool  // chunked: a chunk was begun, its CRLF is still to come
	left    int64 // of the body, or of the chunk; -1: up to the end of the connection
	whole   int64 // the declared length, -1 without one
	excess  int64 // chunked: see maxExcess
	done    bool  // the body was read to its end
	last    bool  // the connection must not be used again
}

// head is what is gathered while the fields of a header are read.
type head struct {
	minor             int   // of HTTP/1
	length            int64 // Content-Length, -1 when there is none
	codings           int   // Transfer-Encoding fields
	chunked           bool
	closes, keepAlive bool // tokens of Connection
}

func badHTTP(what string, text []byte) error {
	return &ProtocolError{Kind: FaultBadHTTP, Detail: fmt.Sprintf("%s: %q", what, excerpt(text))}
}

// readHead reads up to the end of the header of the final response; informational
// ones before it are skipped.
func (c *fastConn) readHead(t *stamps) error {
	if c.r == c.w {
		if err := c.fillHead(t); err != nil {
			return err
		}
	}
	if c.sameHead() {
		return nil
	}
	left := c.engine.limits.HeaderBytes
	for {
		size, err := c.headSize(left, t)
		if err != nil {
			return err
		}
		left -= int64(size)
		block := c.buf.in[c.r : c.r+size]
		c.r += size
		c.last.text = c.last.text[:0]
		if size <= maxKeptHead {
			c.last.text = append(c.last.text, block...) // before parse, which may change it
		}
		var h head
		if err := c.parse(block, &h); err != nil {
			c.last.text = c.last.text[:0]
			return err
		}
		if err := c.frame(&h); err != nil || c.code/100 != 1 || c.code == 101 {
			c.keepHead(err == nil)
			return err
		}
		c.framing = framing{}
	}
}

// maxKeptHead bounds the header that is remembered.
const maxKeptHead = 512

// keepHead remembers the header that was just read, if it was good and the
// connection lives on.
func (c *fastConn) keepHead(good bool) {
	if !good || c.framing.last {
		c.last.text = c.last.text[:0]
		return
	}
	c.last.code, c.last.present, c.last.framing = c.code, c.present, c.framing
}

// sameHead consumes a header that is the same as the one before.
func (c *fastConn) sameHead() bool {
	l := &c.last
	if len(l.text) == 0 || !bytes.HasPrefix(c.buf.in[c.r:c.w], l.text) {
		return false
	}
	c.r += len(l.text)
	c.code, c.present, c.framing = l.code, l.present, l.framing
	return true
}

// headSize waits for a whole header and returns its length with the blank line.
// What is no HTTP is refused as soon as the first line is there.
func (c *fastConn) headSize(limit int64, t *stamps) (int, error) {
	seen := 0 // bytes of whole lines
	for {
		b := c.buf.in[c.r:c.w]
		for int64(seen) <= limit {
			n := bytes.IndexByte(b[seen:], '\n')
			if n < 0 {
				break
			}
			line := b[seen : seen+n+1]
			seen += n + 1
			if n+1 == seen { // the first one
				if _, err := c.statusLine(trimLine(line)); err != nil {
					return 0, err
				}
			} else if len(trimLine(line)) == 0 {
				return seen, nil
			}
		}
		if int64(len(b)) > limit {
			return 0, &LimitError{Limit: LimitHeader, Max: c.engine.limits.HeaderBytes}
		}
		if err := c.fillHead(t); err != nil {
			return 0, err
		}
	}
}

// fillHead reads more of a header.
func (c *fastConn) fillHead(t *stamps) error {
	if err := c.fill(); err != nil {
		if c.answered {
			return cut(err)
		}
		return err
	}
	c.arrived(t)
	return nil
}

func trimLine(line []byte) []byte {
	line, _ = bytes.CutSuffix(line, []byte{'\n'})
	line, _ = bytes.CutSuffix(line, []byte{'\r'})
	return line
}

// statusLine reads HTTP/1.x, a code of three digits and whatever reason. It
// returns x.
func (c *fastConn) statusLine(line []byte) (minor int, err error) {
	const proto = "HTTP/1."
	if len(line) < len(proto)+5 || string(line[:len(proto)]) != proto || line[len(proto)+1] != ' ' {
		return 0, badHTTP("malformed status line", line)
	}
	d := line[len(proto)]
	rest := bytes.TrimLeft(line[len(proto)+1:], " ")
	if d < '0' || d > '9' || len(rest) < 3 || len(rest) > 3 && rest[3] != ' ' {
		return 0, badHTTP("malformed status line", line)
	}
	c.code = 0
	for _, digit := range rest[:3] {
		if digit < '0' || digit > '9' {
			return 0, badHTTP("malformed status line", line)
		}
		c.code = 10*c.code + int(digit-'0')
	}
	return int(d - '0'), nil
}

// parse reads the fields of a whole header.
func (c *fastConn) parse(block []byte, h *head) error {
	n := bytes.IndexByte(block, '\n')
	minor, err := c.statusLine(trimLine(block[:n+1]))
	if err != nil {
		return err
	}
	*h = head{minor: minor, length: -1}
	c.present = 0
	block = block[n+1:]
	if block[0] == ' ' || block[0] == '\t' {
		return badHTTP("malformed header", block)
	}
	for {
		var line []byte
		line, block = nextLine(block)
		if len(line) == 0 {
			return nil
		}
		name, value, err := splitHeader(line)
		if err != nil {
			return err
		}
		if err := c.field(name, value, h); err != nil {
			return err
		}
	}
}

// nextLine cuts the next line off a header, with the lines that continue it, whose
// breaks become spaces (RFC 9112, section 5.2).
func nextLine(block []byte) (line, rest []byte) {
	end := bytes.IndexByte(block, '\n')
	for end+1 < len(block) && end > 1 && (block[end+1] == ' ' || block[end+1] == '\t') {
		block[end] = ' '
		if block[end-1] == '\r' {
			block[end-1] = ' '
		}
		end += 1 + bytes.IndexByte(block[end+1:], '\n')
	}
	return trimLine(block[:end+1]), block[end+1:]
}

// splitHeader splits a field into name and value, without the spaces around it.
func splitHeader(line []byte) (name, value []byte, err error) {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok || len(name) == 0 {
		return nil, nil, badHTTP("malformed header", line)
	}
	for _, b := range name {
		if !tokenByte[b] {
			return nil, nil, badHTTP("malformed header", line)
		}
	}
	for _, b := range value {
		if b < ' ' && b != '\t' || b == 0x7f {
			return nil, nil, badHTTP("malformed header", line)
		}
	}
	return name, bytes.Trim(value, " \t"), nil
}

// tokenByte tells which bytes a token may have (RFC 9110, section 5.6.2).
var tokenByte = func() (table [256]bool) {
	for b := range table {
		table[b] = isToken(string(rune(b))) && b < 0x80
	}
	return table
}()

// field takes over what a field says about the connection, the body or the message.
func (c *fastConn) field(name, value []byte, h *head) error {
	switch len(name) {
	case len("Connection"):
		if equalFold(name, "Connection") {
			h.connection(value)
			return nil
		}
	case len("Content-Length"):
		if equalFold(name, "Content-Length") {
			return h.contentLength(value)
		}
	case len("Transfer-Encoding"):
		if equalFold(name, "Transfer-Encoding") {
			h.codings++
			h.chunked = equalFold(value, "chunked")
			return nil
		}
	}
	for i, kept := range keptHeaders {
		if len(kept) == len(name) && c.present&(1<<i) == 0 && equalFold(name, kept) {
			c.present |= 1 << i
			if c.values[i] != string(value) {
				c.values[i] = string(value)
			}
		}
	}
	return nil
}

// equalFold compares bytes with an ASCII text, whatever the case of letters.
func equalFold(b []byte, text string) bool {
	if len(b) != len(text) {
		return false
	}
	for i, x := range b {
		y := text[i]
		if x != y && (x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z') {
			return false
		}
	}
	return true
}

// connection reads a list of tokens.
func (h *head) connection(value []byte) {
	for len(value) > 0 {
		var token []byte
		token, value, _ = bytes.Cut(value, []byte{','})
		token = bytes.Trim(token, " \t")
		h.closes = h.closes || equalFold(token, "close")
		h.keepAlive = h.keepAlive || equalFold(token, "keep-alive")
	}
}

func (h *head) contentLength(value []byte) error {
	n := int64(0)
	for _, d := range value {
		if d < '0' || d > '9' || n > (math.MaxInt64-9)/10 {
			return badHTTP("bad Content-Length", value)
		}
		n = 10*n + int64(d-'0')
	}
	if len(value) == 0 || h.length >= 0 && h.length != n {
		return badHTTP("bad or contradicting Content-Length", value)
	}
	h.length = n
	return nil
}

// frame decides how the body ends (RFC 9112, section 6.3).
func (c *fastConn) frame(h *head) error {
	f := &c.framing
	f.whole = -1
	f.last = f.last || h.closes || h.minor == 0 && !h.keepAlive
	if h.codings > 0 && (h.minor == 0 || h.codings > 1 || !h.chunked || h.length >= 0) {
		return &ProtocolError{Kind: FaultBadHTTP, Detail: "the length of the body is ambiguous: Transfer-Encoding of " +
			strconv.Itoa(h.codings) + " fields, HTTP/1." + strconv.Itoa(h.minor) + ", Content-Length " + strconv.FormatInt(h.length, 10)}
	}
	switch {
	case c.code/100 == 1 || c.code == 204 || c.code == 304:
		f.done = true
		f.whole = 0
		// A server that announces a body here may well send it.
		f.last = f.last || c.code == 101 || h.codings > 0 || h.length > 0
	case h.codings > 0:
		f.chunked = true
	case h.length >= 0:
		f.left, f.whole, f.done = h.length, h.length, h.length == 0
	default:
		f.left, f.last = -1, true
	}
	return nil
}
