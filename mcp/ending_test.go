package mcp_test

import (
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// endings tells how the connections that it accepts end.
type endings struct {
	net.Listener
	ends chan error
}

func (w *endings) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &endingConn{Conn: c, ends: w.ends}, nil
}

type endingConn struct {
	net.Conn
	ends chan error
	told bool
}

// Read is called by one goroutine at a time.
func (c *endingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	timeout, ok := errors.AsType[net.Error](err)
	if err != nil && !c.told && (!ok || !timeout.Timeout()) {
		c.told = true
		c.ends <- err
	}
	return n, err
}

// failing makes a call, and returns what waits for it to fail.
func failing(t *testing.T, s *mcp.Session, p *mcptest.Peer) (wait func()) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		_, err := s.Call(t.Context(), echo)
		failed <- err
	}()
	for len(p.Received("tools/call")) == 0 {
		time.Sleep(time.Millisecond) // real sockets know no virtual time
	}
	return func() {
		if _, ok := errors.AsType[*mcp.TransportError](<-failed); !ok {
			t.Error("the call in flight did not fail as a transport error")
		}
	}
}

// TestWaysToEndASession: a good client sends DELETE, a silent one only closes, one
// that is dropped resets its connections, and a call in flight fails at once.
func TestWaysToEndASession(t *testing.T) {
	for _, engine := range engines {
		for _, tt := range []struct {
			name    string
			as      mcp.Ending
			deletes int
			end     error
		}{
			{"orderly", mcp.EndOrderly, 1, io.EOF},
			{"silent", mcp.EndSilent, 0, io.EOF},
			{"drop", mcp.EndDrop, 0, syscall.ECONNRESET},
		} {
			t.Run(tt.name+" "+string(engine), func(t *testing.T) {
				mcptest.NoLeaks(t)
				p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Silent: true})
				p.On("DELETE", mcptest.Answer{Status: 200})
				server := httptest.NewUnstartedServer(p)
				w := &endings{Listener: server.Listener, ends: make(chan error, 10)}
				server.Listener = w
				server.Start()
				t.Cleanup(server.Close)
				s, err := mcp.Connect(t.Context(), &mcp.Streamable{URL: server.URL, Engine: engine}, mcp.Options{})
				if err != nil {
					t.Fatal(err)
				}
				wait := func() {}
				if tt.as == mcp.EndDrop {
					wait = failing(t, s, p)
				}
				defer wait()
				if err := errors.Join(s.CloseAs(t.Context(), tt.as), s.CloseAs(t.Context(), mcp.EndDrop)); err != nil {
					t.Error(err)
				}
				if err := <-w.ends; !errors.Is(err, tt.end) {
					t.Errorf("a connection ended with %v, want %v", err, tt.end)
				}
				if n := len(p.Received("DELETE")); n != tt.deletes {
					t.Errorf("%d times DELETE, want %d", n, tt.deletes)
				}
			})
		}
	}
}

// TestDroppedProcessIsKilled at once, which is no anomaly, for it was meant to be.
func TestDroppedProcessIsKilled(t *testing.T) {
	mcptest.NoLeaks(t)
	var a mcptest.Anomalies
	tr := mcptest.Process(t, mcptest.NeedsKill)
	tr.Grace = time.Minute
	s, err := mcp.Connect(t.Context(), tr, mcp.Options{OnAnomaly: a.Tell})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.CloseAs(t.Context(), mcp.EndDrop); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 20*time.Second || len(a.Texts()) != 0 {
		t.Errorf("took %v, anomalies %q", took, a.Texts())
	}
}

// TestDropLeavesOthersAlone: what sessions share outlives the one that is dropped.
func TestDropLeavesOthersAlone(t *testing.T) {
	mcptest.NoLeaks(t)
	p := &mcptest.Peer{}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	for _, engine := range engines {
		tr := &mcp.Streamable{URL: server.URL, Engine: engine, Connections: mcp.NewConnections(1)}
		first, err := mcp.Connect(t.Context(), tr, mcp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		second := connect(t, tr, mcp.Options{})
		if err := first.CloseAs(t.Context(), mcp.EndDrop); err != nil {
			t.Error(err)
		}
		if r, err := second.Call(t.Context(), echo); err != nil || r.Timing.Connect != 0 {
			t.Errorf("%s: %v, connected anew for %v", engine, err, r.Timing.Connect)
		}
	}
}
