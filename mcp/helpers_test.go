package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

func TestMain(m *testing.M) { os.Exit(mcptest.Main(m)) }

// over is a test over one of the transports.
type over struct {
	*testing.T
	peer      *mcptest.Peer
	transport mcp.Transport
}

// engines are those that every test over HTTP runs with.
var engines = []mcp.Engine{mcp.EngineFast, mcp.EngineStd}

// onHTTP is a test over HTTP with one of the engines.
type onHTTP struct {
	*testing.T
	engine mcp.Engine
}

// overHTTP runs f with each HTTP engine, each in a bubble.
func overHTTP(t *testing.T, f func(h onHTTP)) {
	t.Helper()
	for _, engine := range engines {
		t.Run(string(engine), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(onHTTP{t, engine}) })
		})
	}
}

// serveHTTP returns the transport to a peer, with that engine.
func serveHTTP(tb testing.TB, p *mcptest.Peer, engine mcp.Engine) *mcp.Streamable {
	tb.Helper()
	tr := p.HTTP(tb)
	tr.Engine = engine
	return tr
}

// serveSSE returns the transport of HTTP+SSE to a peer, with that engine.
func serveSSE(tb testing.TB, p *mcptest.Peer, engine mcp.Engine) *mcp.LegacySSE {
	tb.Helper()
	tr := p.SSE(tb)
	tr.Engine = engine
	return tr
}

// overAll is overBoth and HTTP+SSE with each engine.
func overAll(t *testing.T, peer func() *mcptest.Peer, f func(o over)) {
	t.Helper()
	overBoth(t, peer, f)
	for _, engine := range engines {
		t.Run("sse "+string(engine), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := peer()
				f(over{t, p, serveSSE(t, p, engine)})
			})
		})
	}
}

// carries reports whether version v is spoken over tr: HTTP+SSE has no 2026-07-28.
func carries(tr mcp.Transport, v mcp.Version) bool { return tr.Kind() != "sse" || v != mcp.V20260728 }

// overBoth runs f over HTTP with each engine and over stdio, each in a bubble.
func overBoth(t *testing.T, peer func() *mcptest.Peer, f func(o over)) {
	t.Helper()
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := peer()
		f(over{t, p, serveHTTP(t, p, engine)})
	})
	t.Run("stdio", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := peer()
			f(over{t, p, p.Stdio(t)})
		})
	})
}

// connect opens a session that is closed when the test ends.
func connect(t *testing.T, tr mcp.Transport, o mcp.Options) *mcp.Session {
	t.Helper()
	s, err := mcp.Connect(t.Context(), tr, o)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { closeSession(t, s) })
	return s
}

func closeSession(t *testing.T, s *mcp.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

var echo = mcp.Request{Method: "tools/call", Params: []byte(`{"name":"echo","arguments":{"message":"hi"}}`)}

const echoed = `{"content":[{"type":"text","text":"ok"}]}`

// wantFault fails unless err is a *ProtocolError of that kind.
func wantFault(t *testing.T, err error, kind mcp.ProtocolFault) {
	t.Helper()
	if e, ok := errors.AsType[*mcp.ProtocolError](err); !ok || e.Kind != kind {
		t.Errorf("error %v, want protocol error %v", err, kind)
	}
}

// wantOrder fails unless the timing keeps its order.
func wantOrder(t *testing.T, r mcp.Reply) {
	t.Helper()
	if tm := r.Timing; tm.Start > tm.FirstByte || tm.FirstByte > tm.End || tm.Start < 0 {
		t.Errorf("timing out of order: %+v", tm)
	}
}

func contains(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q lacks %q", err, w)
		}
	}
}

func containsText(err error, word string) bool { return strings.Contains(err.Error(), word) }

// stuckServer is a stdio server that answers initialize, takes initialized and
// then reads no more.
type stuckServer struct {
	done chan struct{}
	says string // then
}

func (*stuckServer) Kind() string { return "stdio" }

func (l *stuckServer) Dial(_ context.Context, o mcp.Options) (mcp.Conn, error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() {
		lines := bufio.NewScanner(inR)
		lines.Scan()
		_, _ = io.WriteString(outW, `{"jsonrpc":"2.0","id":1,"result":`+new(mcptest.Peer).InitializeResult("2025-11-25")+"}\n")
		lines.Scan()
		_, _ = io.WriteString(outW, l.says)
		<-l.done
	}()
	return mcp.NewPipe(outR, inW, o), nil
}

// rawCursor returns the cursor in params as JSON text, "-" when there is none.
func rawCursor(params string) string {
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(params), &m) != nil || m["cursor"] == nil {
		return "-"
	}
	return string(m["cursor"])
}

// slowDials makes each connection of tr take so long to open, and counts them.
func slowDials(tr *mcp.Streamable, d time.Duration) *int {
	dials, dial := new(int), tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		*dials++
		time.Sleep(d) // virtual
		return dial(ctx, network, addr)
	}
	return dials
}

// watchedConns are the connections of a transport.
type watchedConns struct {
	mu   sync.Mutex
	gone int
}

// watchConns counts the connections of tr that its client closes.
func watchConns(tr *mcp.Streamable) *watchedConns {
	w, dial := &watchedConns{}, tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return &watchedConn{Conn: c, of: w}, err
	}
	return w
}

func (w *watchedConns) closed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone
}

type watchedConn struct {
	net.Conn
	of   *watchedConns
	once sync.Once
}

func (c *watchedConn) Close() error {
	c.once.Do(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.of.gone++
	})
	return c.Conn.Close()
}
