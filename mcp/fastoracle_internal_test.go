package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// canned is a connection whose peer says what it was given, in pieces, and ends.
type canned struct {
	net.Conn // nil: no other method is called
	r        io.Reader
}

func (c *canned) Read(b []byte) (int, error)  { return c.r.Read(b) }
func (c *canned) Write(b []byte) (int, error) { return len(b), nil }
func (c *canned) Close() error                { return nil }
func (c *canned) SetDeadline(time.Time) error { return nil }

// parsed is what came of a response.
type parsed struct {
	status int
	header [len(keptHeaders)]string
	body   string
	last   bool // the connection must not be used again
}

// again is a connection whose peer says the same after each request.
type again struct {
	canned
	data  []byte
	piece int
}

func (c *again) Write(b []byte) (int, error) {
	c.r = &pieces{r: bytes.NewReader(c.data), size: c.piece}
	return len(b), nil
}

// parseFast reads the bytes with our engine. size is that of the pieces read. A
// connection that can be used again is: the same bytes must mean the same then.
func parseFast(t *testing.T, data []byte, piece int) (parsed, error) {
	t.Helper()
	o := Options{}.withDefaults()
	s := &Streamable{URL: "http://test/", DialContext: func(context.Context, string, string) (net.Conn, error) {
		return &again{data: data, piece: piece}, nil
	}}
	u, err := parseURL(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	e := newFastEngine(u, http.Header{}, s, &o)
	defer e.close()
	first, err := exchangeFast(t, e)
	if err != nil {
		return parsed{}, err
	}
	if second, err := exchangeFast(t, e); err != nil || second != first {
		t.Errorf("the same response again: %+v, %v\nfirst %+v", second, err, first)
	}
	return first, nil
}

func exchangeFast(t *testing.T, e *fastEngine) (parsed, error) {
	t.Helper()
	resp, err := e.do(t.Context(), &httpRequest{method: "POST", body: []byte("{}")}, new(stamps))
	if err != nil {
		return parsed{}, err
	}
	defer closeBody(resp)
	body, err := io.ReadAll(resp)
	if err != nil {
		return parsed{}, resp.fault(err)
	}
	p := parsed{status: resp.status(), body: string(body)}
	for i, name := range keptHeaders {
		p.header[i] = resp.header(name)
	}
	if c, ok := resp.(*fastConn); ok {
		p.last = c.framing.last
	}
	return p, nil
}

// parseStd reads the bytes with net/http, as its Transport does.
func parseStd(data []byte) (parsed, error) {
	r := bufio.NewReader(bytes.NewReader(data))
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return parsed{}, err
		}
		if resp.StatusCode/100 == 1 && resp.StatusCode != 101 {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return parsed{}, err
		}
		if err := resp.Body.Close(); err != nil {
			return parsed{}, err
		}
		p := parsed{status: resp.StatusCode, body: string(body), last: resp.Close}
		for i, name := range keptHeaders {
			p.header[i] = resp.Header.Get(name)
		}
		return p, nil
	}
}

// pieces gives at most size bytes a read.
type pieces struct {
	r    io.Reader
	size int
}

func (p *pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.size)]) }

var (
	statusLines   = regexp.MustCompile(`(?m)^HTTP/(\S+) +(\S*)`)
	spacedName    = regexp.MustCompile(`(?m)^[^:\n]* [^:\n]*:`)
	encodedHeader = regexp.MustCompile(`(?im)^transfer-encoding:`)
	lengthHeader  = regexp.MustCompile(`(?im)^content-length:\s*0*(\d+)\s*$`)
)

// stricter tells why our engine refuses what net/http accepts; "" when nothing
// explains it.
func stricter(data []byte, err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "is ambiguous") && encodedHeader.Match(data):
		// RFC 9112, section 6.1 and 6.3: chunked beside Content-Length "ought to be
		// handled as an error"; in HTTP/1.0 the framing is faulty.
		return "Transfer-Encoding beside Content-Length, or in HTTP/1.0"
	case strings.Contains(text, "malformed status line"):
		for _, m := range statusLines.FindAllSubmatch(data, -1) {
			if !bytes.HasPrefix(m[1], []byte("1.")) {
				return "a version other than HTTP/1.x (net/http takes any X.Y)"
			}
			if bytes.ContainsAny(m[2], "+-") {
				return "a sign in the status code (net/http parses a number)"
			}
		}
	case strings.Contains(text, "malformed header"), strings.Contains(text, "malformed trailer"):
		if spacedName.Match(data) {
			return "a space in a field name (RFC 9112, section 5.1: no whitespace before the colon)"
		}
	}
	return ""
}

// laxer tells why our engine accepts what net/http refuses.
func laxer(data []byte, err error) string {
	text := err.Error()
	if strings.Contains(text, "multiple Content-Length") && len(lengthHeader.FindAll(data, -1)) > 1 {
		return "the same length written twice, once with leading zeros"
	}
	if strings.Contains(text, "railer key") {
		return "a Trailer field that announces forbidden trailers, all of which we ignore"
	}
	return ""
}

// FuzzResponse: the same bytes have the same outcome with our engine and with
// net/http, whatever the pieces they arrive in. Every difference is explained by
// stricter or laxer.
func FuzzResponse(f *testing.F) {
	for _, s := range responseSeeds {
		f.Add([]byte(s), uint8(200))
		f.Add([]byte(s), uint8(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, piece uint8) {
		got, gotErr := parseFast(t, data, int(piece)+1)
		want, wantErr := parseStd(data)
		switch {
		case gotErr != nil && wantErr != nil:
			return
		case gotErr != nil:
			if stricter(data, gotErr) == "" {
				t.Fatalf("refused by us only: %v", gotErr)
			}
			return
		case wantErr != nil:
			if laxer(data, wantErr) == "" {
				t.Fatalf("refused by net/http only: %v", wantErr)
			}
			return
		}
		for i := range want.header {
			// Lines that continue a field: net/http joins them with one space.
			want.header[i] = strings.Join(strings.Fields(want.header[i]), " ")
			got.header[i] = strings.Join(strings.Fields(got.header[i]), " ")
		}
		if want.last && !got.last {
			t.Error("the connection would be used again")
		}
		got.last, want.last = false, false
		if got != want {
			t.Errorf("got %+v\nnet/http %+v", got, want)
		}
	})
}

var responseSeeds = []string{
	"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n8\r\ndata: x\n\r\n1\r\n\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1;a=b;c=\"d\"\r\nx\r\n00\r\nX-Sum: 1\r\nY: 2\r\n\r\n",
	"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\nx\r\n0\r\n\r\n",
	"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nbad trailer\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 05\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end",
	"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\n{}",
	"HTTP/1.0 200\r\n\r\nold",
	"HTTP/1.1 200 OK\r\nConnection: x, close\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 204 No Content\r\n\r\n",
	"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc",
	"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nwhatever",
	"HTTP/1.1 404 Not Found\r\nmcp-SESSION-id:  s1 \r\nMCP-Session-Id: s2\r\nWWW-Authenticate: Bearer\r\n realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\nContent-Length: 1\n\nx",
	"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx",
	"HTTP/1.1 200 OK\r\n Content-Length: 1\r\n\r\nx",
	"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\n: empty\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n",
	"HTTP/1.1 200 OK\r\nA: \xff\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nA\xff: b\r\n\r\n",
	"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1  200  OK\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.x 200 OK\r\n\r\n", "http/1.1 200 OK\r\n\r\n", "garbage\r\n\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n", "", "HTTP/1.1 200 OK\r\nA: b",
}

// A response that arrives byte by byte, a header longer than the read buffer, and
// chunks larger than it.
func TestFastLongParts(t *testing.T) {
	long := strings.Repeat("x", 3*bufferBytes)
	text := "HTTP/1.1 200 OK\r\nX: " + long + "\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"3000\r\n" + long + "\r\n1\r\ny\r\n0\r\nX: " + long + "\r\n\r\n"
	for _, piece := range []int{1, 7, bufferBytes, 1 << 20} {
		got, err := parseFast(t, []byte(text), piece)
		if err != nil || got.body != long+"y" || got.header[0] != "a/b" || got.last {
			t.Errorf("pieces of %d: %d bytes, %v", piece, len(got.body), err)
		}
	}
	// The end of the data together with its error, as some readers report it.
	r := iotest.DataErrReader(strings.NewReader("HTTP/1.1 200 OK\r\n\r\nold"))
	c := &fastConn{engine: &fastEngine{now: func() time.Duration { return 0 }, limits: Limits{}.withDefaults()}}
	c.wire = wire{Conn: &canned{r: r}, now: c.engine.now}
	c.stream = &c.wire
	c.buf = takeBuffers()
	if err := c.readHead(new(stamps)); err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(c); err != nil || string(body) != "old" {
		t.Errorf("body %q, %v", body, err)
	}
}

// What breaks a limit or the framing is told as such.
func TestFastFaults(t *testing.T) {
	for text, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n":                                   "bad_http",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx":                                                    "bad_http",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx":                                                                   "bad_http",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("e", maxChunkLine) + "\r\nx":                 "bad_http",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("e", 4000)+"\r\nx\r\n", 5): "mostly extensions",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20):                                                                   "header_bytes",
		strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100_000):                                                                "header_bytes",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + strings.Repeat("x", 2<<20):                            "header_bytes",
		"SSH-2.0-OpenSSH\r\n":                                         "malformed status line",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nx":               "read: unexpected EOF",
		"HTTP/1.1 200 OK\r\nContent-Le":                               "read: unexpected EOF",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx": "read: unexpected EOF",
		"": "read: EOF",
	} {
		_, err := parseFast(t, []byte(text), 1<<20)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: error %v, want %q", text, err, want)
		}
	}
}

// The deadline of the socket moves only when a tenth of the limit has passed, or
// when the limit comes earlier or much later.
func TestWireDeadlineMovesLazily(t *testing.T) {
	now := time.Duration(0)
	socket := &deadlines{}
	w := wire{Conn: socket, now: func() time.Duration { return now }}
	for range 1000 {
		now += time.Millisecond
		if err := w.limit(now+time.Second, now); err != nil {
			t.Fatal(err)
		}
	}
	if socket.set < 9 || socket.set > 12 {
		t.Errorf("the deadline was set %d times in a second of limits of a second, want about 10", socket.set)
	}
	for _, until := range []time.Duration{now + time.Millisecond, now + time.Hour, 0} {
		before := socket.set
		if err := w.limit(until, now); err != nil {
			t.Fatal(err)
		}
		if moved := socket.set > before; moved != (until != 0) {
			t.Errorf("limit %v: moved %v", until, moved)
		}
	}
	if w.expired(errors.New("other")) || w.early(io.EOF) {
		t.Error("an error of another sort counts as a deadline")
	}
}

// deadlines counts how often its deadline is set.
type deadlines struct {
	net.Conn
	set int
}

func (d *deadlines) SetDeadline(time.Time) error {
	d.set++
	return nil
}
