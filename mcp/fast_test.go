package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// rawConn is a connection of a raw server, the nth that it accepted, from 0.
type rawConn struct {
	net.Conn
	n  int
	in *bufio.Reader
}

// next reads a request and returns the id in its body, "" when it has none; ok is
// false when the client went.
func (c *rawConn) next() (id string, ok bool) {
	req, err := http.ReadRequest(c.in)
	if err != nil {
		return "", false
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return "", false
	}
	_, rest, found := strings.Cut(string(body), `"id":`)
	if !found {
		return "", true
	}
	id, _, _ = strings.Cut(rest, ",")
	return id, true
}

// say writes text with the id in place of $ID.
func (c *rawConn) say(text, id string) {
	_, _ = io.WriteString(c, strings.ReplaceAll(text, "$ID", id)) // a client that went shows at the next read
}

// answer says a whole JSON answer, or accepts what has no id.
func (c *rawConn) answer(id, extraHeader string) {
	if id == "" {
		c.say("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n"+extraHeader+"\r\n", id)
		return
	}
	body := `{"jsonrpc":"2.0","id":` + id + `,"result":` + new(mcptest.Peer).InitializeResult("2025-11-25") + `}`
	c.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", len(body), extraHeader, body), id)
}

// rawHTTP serves each connection with f, in memory, until the test ends.
func rawHTTP(t *testing.T, f func(c *rawConn)) *mcp.Streamable {
	t.Helper()
	l := mcptest.Listen()
	var serving sync.WaitGroup
	serving.Go(func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				f(&rawConn{Conn: conn, n: n, in: bufio.NewReader(conn)})
				_ = conn.Close() // a pipe
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // never fails
		serving.Wait()
	})
	return &mcp.Streamable{URL: "http://raw/", DialContext: l.DialContext}
}

// onRaw is a test against a raw server.
type onRaw struct {
	*testing.T
	transport *mcp.Streamable
}

// inBubble runs f with the fast engine in a bubble.
func inBubble(t *testing.T, serve func(c *rawConn), f func(o onRaw)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tr := rawHTTP(t, serve)
		tr.Engine = mcp.EngineFast
		f(onRaw{t, tr})
	})
}

// A kept connection that the server closed while it was idle is no failure: the
// request goes out once more over a new one, and that is recorded.
func TestStaleConnection(t *testing.T) {
	tests := []struct {
		name    string
		idle    time.Duration
		serve   func(c *rawConn)
		stale   int
		fails   bool
		dialled int
	}{
		{"closed while idle", time.Minute, func(c *rawConn) { c.serveUntil(2) }, 1, false, 2},
		{"closed as the request came", time.Minute, func(c *rawConn) { c.serveUntil(2); c.next() }, 1, false, 2},
		{"closed again and again", time.Minute, closesAlways, 1, true, 2},
		{"closed long after the request came", time.Minute, func(c *rawConn) { c.serveUntil(2); c.next(); time.Sleep(time.Second) }, 0, true, 1},
		{"closed in the middle of an answer", time.Minute, closesInTheMiddle, 0, true, 1},
		{"closed in steady use", 0, func(c *rawConn) { c.serveUntil(2); c.next() }, 0, true, 1},
		{"announced", time.Minute, announcesTheEnd, 0, false, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, tt.serve, func(o onRaw) {
				t := o.T
				dials := slowDials(o.transport, 0)
				var a mcptest.Anomalies
				s := connect(t, o.transport, mcp.Options{OnAnomaly: a.Tell})
				time.Sleep(tt.idle) // virtual
				r, err := s.Call(t.Context(), echo)
				e, ok := errors.AsType[*mcp.TransportError](err)
				if (err != nil) != tt.fails || tt.fails && (!ok || e.Class() != mcp.ClassEOF) {
					t.Errorf("error %v", err)
				}
				wantOrder(t, r)
				if got := a.Counts()[mcp.AnomalyStaleConnection]; got != tt.stale || len(a.Texts()) != got || *dials != tt.dialled {
					t.Errorf("%d connections, anomalies %v", *dials, a.Texts())
				}
			})
		})
	}
}

func closesAlways(c *rawConn) {
	if c.n == 0 {
		c.serveUntil(2)
	}
	c.next()
}

func closesInTheMiddle(c *rawConn) {
	c.serveUntil(2)
	if id, ok := c.next(); ok {
		c.say("HTTP/1.1 200", id)
	}
}

// announcesTheEnd ends a connection with its second answer, and says so.
func announcesTheEnd(c *rawConn) {
	for i := range 2 {
		id, ok := c.next()
		switch {
		case !ok:
			return
		case i == 1:
			c.answer(id, "Connection: Close\r\n")
		default:
			c.answer(id, "")
		}
	}
}

// serveUntil answers the first n requests of the first connection, and all of others.
func (c *rawConn) serveUntil(n int) {
	for i := 0; c.n > 0 || i < n; i++ {
		id, ok := c.next()
		if !ok {
			return
		}
		c.answer(id, "")
	}
}

// A body that trickles in ends by the limit, exactly, and by the end of the context.
func TestLimitWithinTheBody(t *testing.T) {
	const limit = 1550 * time.Millisecond
	cause := errors.New("over")
	call := func(o onRaw, byContext bool) {
		t := o.T
		s := connect(t, o.transport, mcp.Options{Version: mcp.V20251125})
		req, ctx := echo, t.Context()
		if byContext {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, limit, cause)
			defer cancel()
		} else {
			req.Timeout = limit
		}
		start := time.Now()
		_, err := s.Call(ctx, req)
		if took := time.Since(start); took != limit {
			t.Errorf("took %v", took)
		}
		if _, ok := errors.AsType[*mcp.TimeoutError](err); ok == byContext || byContext && !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
		time.Sleep(time.Second) // virtual: for the cancellation
	}
	for _, engine := range engines {
		for _, byContext := range []bool{false, true} {
			t.Run(fmt.Sprint(engine, byContext), func(t *testing.T) {
				inBubble(t, trickles, func(o onRaw) {
					o.transport.Engine = engine
					call(o, byContext)
				})
			})
		}
	}
}

// trickles answers the third request of a connection with a byte each 100 ms.
func trickles(c *rawConn) {
	c.n = 0
	c.serveUntil(2)
	id, ok := c.next()
	if !ok {
		return
	}
	c.say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n", id)
	for range 1000 {
		if _, err := io.WriteString(c, " "); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond) // virtual
	}
}

// Limits of all sizes one after the other over one connection are kept exactly,
// though the deadline moves only now and then.
func TestChangingLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func(d time.Duration) mcptest.Answer { return mcptest.Answer{Delay: d, Result: echoed} }
		sec := time.Second
		delays := []time.Duration{sec / 2, 3 * sec, 9 * sec, 0, 100 * sec, sec / 10, 9 * sec}
		limits := []time.Duration{10 * sec, 10 * sec, 10 * sec, sec, 0, sec / 5, 10 * sec}
		var answers []mcptest.Answer
		for _, d := range delays {
			answers = append(answers, answer(d))
		}
		p := (&mcptest.Peer{}).On("tools/call", append(answers, answer(time.Hour))...)
		tr := serveHTTP(t, p, mcp.EngineFast)
		dials := slowDials(tr, 0)
		s := connect(t, tr, mcp.Options{})
		for i, limit := range limits {
			req := echo
			req.Timeout = limit
			r, err := s.Call(t.Context(), req)
			if took := r.Timing.End - r.Timing.Start; err != nil || took != delays[i] {
				t.Errorf("call %d took %v: %v", i, took, err)
			}
		}
		if *dials != 1 {
			t.Errorf("%d connections", *dials)
		}
		req := echo
		req.Timeout = 10 * sec
		r, err := s.Call(t.Context(), req)
		if _, ok := errors.AsType[*mcp.TimeoutError](err); !ok || r.Timing.End-r.Timing.Start != 10*sec {
			t.Errorf("%v after %v", err, r.Timing.End-r.Timing.Start)
		}
	})
}

// The end of a context closes the connection only if a request of that context is
// on it.
func TestContextsOfKeptConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Delay: time.Second, Result: echoed})
		tr := serveHTTP(t, p, mcp.EngineFast)
		dials := slowDials(tr, 0)
		s := connect(t, tr, mcp.Options{Version: mcp.V20260728}) // no cancellation beside
		first, endFirst := context.WithCancel(t.Context())
		second, endSecond := context.WithCancel(t.Context())
		defer endSecond()
		for _, ctx := range []context.Context{first, first, second} {
			if _, err := s.Call(ctx, echo); err != nil {
				t.Error(err)
			}
			if ctx == second {
				break
			}
		}
		timer := time.AfterFunc(500*time.Millisecond, endFirst) // while the next is under way
		defer timer.Stop()
		if _, err := s.Call(second, echo); err != nil {
			t.Error(err)
		}
		if *dials != 1 {
			t.Errorf("%d connections", *dials)
		}
		end := time.AfterFunc(500*time.Millisecond, endSecond)
		defer end.Stop()
		start := time.Now()
		if _, err := s.Call(second, echo); !errors.Is(err, context.Canceled) || time.Since(start) != 500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := s.Call(t.Context(), echo); err != nil || *dials != 2 {
			t.Errorf("%d connections, %v", *dials, err)
		}
	})
}

// Answers that leave the connection fit for the next request, and those that do not.
func TestWhatKeepsAConnection(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":$ID,"result":{}}`
	const json = "Content-Type: application/json\r\n"
	const sse = "Content-Type: text/event-stream\r\n"
	chunk := func(text string) string {
		return fmt.Sprintf("%x\r\n%s\r\n", len(strings.ReplaceAll(text, "$ID", "3")), text)
	}
	tests := []struct {
		name  string
		raw   string
		dials int
	}{
		{"length", "HTTP/1.1 200 OK\r\n" + json + "Content-Length: 36\r\n\r\n" + answer, 1},
		{"chunked", "HTTP/1.1 200 OK\r\n" + json + "Transfer-Encoding: chunked\r\n\r\n" + chunk(answer) + "0\r\n\r\n", 1},
		{"stream with its end", "HTTP/1.1 200 OK\r\n" + sse + "Transfer-Encoding: chunked\r\n\r\n" + chunk("data: "+answer+"\n\n") + "0\r\nX: y\r\n\r\n", 1},
		{"stream without its end", "HTTP/1.1 200 OK\r\n" + sse + "Transfer-Encoding: chunked\r\n\r\n" + chunk("data: "+answer+"\n\n"), 2},
		{"informational first", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n" + json + "Content-Length: 36\r\n\r\n" + answer, 1},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n" + json + "Content-Length: 36\r\n\r\n" + answer, 2},
		{"HTTP/1.0 kept", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + json + "Content-Length: 36\r\n\r\n" + answer, 1},
		{"more than the length", "HTTP/1.1 200 OK\r\n" + json + "Content-Length: 36\r\n\r\n" + answer + "x", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			serve := func(c *rawConn) {
				for id, ok := c.next(); ok; id, ok = c.next() {
					if id == "3" {
						c.say(tt.raw, id)
					} else {
						c.answer(id, "")
					}
				}
			}
			inBubble(t, serve, func(o onRaw) {
				dials := slowDials(o.transport, 0)
				var a mcptest.Anomalies
				s := connect(o.T, o.transport, mcp.Options{OnAnomaly: a.Tell})
				for range 3 {
					if r, err := s.Call(o.Context(), echo); err != nil {
						o.Errorf("got %+v, %v", r, err)
					}
				}
				if *dials != tt.dials || len(a.Texts()) != 0 {
					o.Errorf("%d connections, anomalies %v", *dials, a.Texts())
				}
			})
		})
	}
}

// A body without length ends with the connection.
func TestBodyUntilTheEnd(t *testing.T) {
	serve := func(c *rawConn) {
		if id, ok := c.next(); ok {
			body := `{"jsonrpc":"2.0","id":` + id + `,"result":` + new(mcptest.Peer).InitializeResult("2025-11-25") + `}`
			if id == "" {
				c.answer(id, "Connection: close\r\n")
				return
			}
			c.say("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"+body, id)
		}
	}
	inBubble(t, serve, func(o onRaw) {
		dials := slowDials(o.transport, 0)
		s := connect(o.T, o.transport, mcp.Options{})
		if _, err := s.Call(o.Context(), echo); err != nil || *dials != 3 {
			o.Errorf("%d connections, %v", *dials, err)
		}
	})
}
