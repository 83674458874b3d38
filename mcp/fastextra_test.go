package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// An answer that nobody asked for, on a connection in steady use, is taken for
// that to the next request. It must not put all that follow one request late.
func TestAnExtraAnswerCostsOneCall(t *testing.T) {
	for name, extra := range map[string]func(c *rawConn, id string){
		"a result": func(c *rawConn, id string) { c.answer(id, "") },
		"an error": func(c *rawConn, id string) {
			const body = `{"jsonrpc":"2.0","id":2,"error":{"code":7,"message":""}}`
			c.say(fmt.Sprintf("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body), id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(c *rawConn) {
				if c.n == 0 {
					c.serveUntil(2)
					id, _ := c.next()
					c.answer(id, "")
					extra(c, id)
				}
				for id, ok := c.next(); ok; id, ok = c.next() {
					c.answer(id, "")
				}
			}, func(o onRaw) {
				t := o.T
				keepUnread(o.transport)
				dials := slowDials(o.transport, 0)
				var a mcptest.Anomalies
				s := connect(t, o.transport, mcp.Options{OnAnomaly: a.Tell})
				failed := 0
				for range 5 {
					if _, err := s.Call(t.Context(), echo); err != nil {
						failed++
					}
					synctest.Wait() // until it is there
				}
				if failed != 1 || *dials != 2 || a.Counts()[mcp.AnomalyUnknownID] != 1 {
					t.Errorf("%d calls failed, %d connections, anomalies %v", failed, *dials, a.Texts())
				}
			})
		})
	}
}

// What a stream brings after the answer may end like a body and be none. The wait
// for the end has its bound all the same.
func TestAStreamThatSeemsToEndHoldsNobodyUp(t *testing.T) {
	inBubble(t, func(c *rawConn) {
		c.serveUntil(2)
		id, ok := c.next()
		if !ok {
			return
		}
		const event = "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n"
		c.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n100\r\n: 10\r\n\r\n",
			len(event), event), id)
		c.next() // until the client goes
	}, func(o onRaw) {
		t := o.T
		s := connect(t, o.transport, mcp.Options{})
		req, began := echo, time.Now()
		req.Timeout = time.Minute
		if _, err := s.Call(t.Context(), req); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// keepUnread makes each connection of tr keep what its peer sent before anybody
// reads, as a socket does and a pipe does not. They have no deadlines for reading.
func keepUnread(tr *mcp.Streamable) {
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := &bufferedConn{Conn: conn, parts: make(chan []byte, 16)}
		go func() { // ends with the connection
			defer close(c.parts)
			for {
				b := make([]byte, 4096)
				n, err := conn.Read(b)
				if err != nil {
					return
				}
				c.parts <- b[:n]
			}
		}()
		return c, nil
	}
}

type bufferedConn struct {
	net.Conn
	parts chan []byte
	rest  []byte
}

func (c *bufferedConn) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		part, ok := <-c.parts
		if !ok {
			return 0, io.EOF
		}
		c.rest = part
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
