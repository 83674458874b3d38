package driver_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// canned is a connection whose server answers within Write, so that what is
// left to measure is the client's own work: no system call, no wake-up.
type canned struct {
	net.Conn // never used
	answer   []byte
	id       int // where in answer the sixteen bytes of the id are
	left     []byte
}

const (
	cannedBody = `{"jsonrpc":"2.0","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},` +
		`"serverInfo":{"name":"canned","version":"1"},"content":[{"type":"text","text":"0123456789"}],"isError":false},"id":0000000000000000}`
	cannedHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Tue, 01 Dec 2026 00:00:00 GMT\r\nContent-Length: 218\r\n\r\n"
	accepted   = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
)

func newCanned(sse bool) *canned {
	answer := []byte(cannedHead + cannedBody)
	if sse {
		event := "event: message\ndata: " + cannedBody + "\n\n"
		answer = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"%x\r\n%s\r\n0\r\n\r\n", len(event), event)
	}
	return &canned{answer: answer, id: bytes.Index(answer, []byte("0000000000000000"))}
}

func (c *canned) Write(b []byte) (int, error) {
	const before = `"id":`
	i := bytes.Index(b, []byte(before))
	if i < 0 {
		c.left = []byte(accepted)
		return len(b), nil
	}
	i += len(before)
	copy(c.answer[c.id:], "                ")
	copy(c.answer[c.id:], b[i:i+bytes.IndexByte(b[i:], ',')])
	c.left = c.answer
	return len(b), nil
}

func (c *canned) Read(b []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.left)
	c.left = c.left[n:]
	return n, nil
}

func (c *canned) Close() error                { return nil }
func (c *canned) SetDeadline(time.Time) error { return nil }

// BenchmarkIteration measures an iteration of one step over HTTP, recorded, with
// everything but the system calls.
func BenchmarkIteration(b *testing.B) {
	b.Run("json", func(b *testing.B) { benchmarkIteration(b, false) })
	b.Run("sse", func(b *testing.B) { benchmarkIteration(b, true) })
}

func benchmarkIteration(b *testing.B, sse bool) {
	b.Helper()
	if n := len(cannedBody); n != 218 {
		b.Fatalf("the body has %d bytes", n)
	}
	transport := &mcp.Streamable{
		URL:         "http://canned.test/mcp",
		Engine:      mcp.EngineFast,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return newCanned(sse), nil },
	}
	dial := func(ctx context.Context, _ int, o mcp.Options) (driver.Session, error) {
		return mcp.Connect(ctx, transport, o)
	}
	quick, err := scenarios.Quick(scenarios.QuickConfig{URL: transport.URL, Tool: "echo", Args: []byte(`{"message":"0123456789"}`)})
	if err != nil {
		b.Fatal(err)
	}
	p, err := quick.Compile()
	if err != nil {
		b.Fatal(err)
	}
	p.Groups[0].Sessions, p.Groups[0].Iterations, p.Groups[0].Duration = 1, int64(b.N), 0
	plan, err := driver.NewPlan(p, 1, func(int) driver.Dial { return dial })
	if err != nil {
		b.Fatal(err)
	}
	c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog})
	r := driver.New(plan, c, nopLog())
	b.ReportAllocs()
	b.ResetTimer()
	if err := r.Run(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if err := r.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
