//go:build unix

package mcp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// A session that opens its connection anew resumes its TLS session; sessions of
// different clients do not share any.
func TestTLSResumption(t *testing.T) {
	for _, engine := range engines {
		t.Run(string(engine), func(t *testing.T) {
			mcptest.NoLeaks(t)
			var mu sync.Mutex
			var resumed []bool
			// Each connection carries one answer.
			p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Result: echoed, Header: map[string]string{"Connection": "close"}})
			server := httptest.NewUnstartedServer(p)
			server.TLS = &tls.Config{VerifyConnection: func(s tls.ConnectionState) error {
				mu.Lock()
				defer mu.Unlock()
				resumed = append(resumed, s.DidResume)
				return nil
			}}
			server.StartTLS()
			t.Cleanup(server.Close)
			roots := x509.NewCertPool()
			roots.AddCert(server.Certificate())
			tr := &mcp.Streamable{URL: server.URL, TLS: &tls.Config{RootCAs: roots}, Engine: engine}
			for range 2 {
				s := connect(t, tr, mcp.Options{})
				for range 3 {
					if r, err := s.Call(t.Context(), echo); err != nil {
						t.Errorf("got %+v, %v", r, err)
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if want := "[false true true false true true]"; fmt.Sprint(resumed) != want {
				t.Errorf("resumed %v, want %v", resumed, want)
			}
		})
	}
}

// HTTP/2 when the configuration asks for it.
func TestHTTP2(t *testing.T) {
	mcptest.NoLeaks(t)
	server := httptest.NewUnstartedServer(&mcptest.Peer{SessionID: "s"})
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	tr := &mcp.Streamable{URL: server.URL, TLS: &tls.Config{RootCAs: roots, NextProtos: []string{"h2", "http/1.1"}}}
	s := connect(t, tr, mcp.Options{})
	if r, err := s.Call(t.Context(), echo); err != nil || s.Info().Engine != mcp.EngineStd {
		t.Errorf("got %+v, %v over %s", r, err, s.Info().Engine)
	}
	tr.Engine = mcp.EngineFast
	_, err := mcp.Connect(t.Context(), tr, mcp.Options{})
	contains(t, err, "HTTP/2 needs engine std")
}

// A connection that the server closed while it was idle is found out before
// anything is sent, so that nothing is sent twice.
func TestIdleConnectionClosed(t *testing.T) {
	mcptest.NoLeaks(t)
	p := &mcptest.Peer{}
	server := httptest.NewUnstartedServer(p)
	server.Config.IdleTimeout = 20 * time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	var a mcptest.Anomalies
	s := connect(t, &mcp.Streamable{URL: server.URL, Engine: mcp.EngineFast}, mcp.Options{OnAnomaly: a.Tell})
	time.Sleep(500 * time.Millisecond) // real sockets know no virtual time
	r, err := s.Call(t.Context(), echo)
	if err != nil || r.Timing.Connect == 0 || len(a.Texts()) != 0 {
		t.Errorf("got %+v, %v, anomalies %v", r, err, a.Texts())
	}
}

// However calls end, no descriptor stays behind.
func TestNoDescriptorsLeak(t *testing.T) {
	mcptest.NoLeaks(t)
	p := (&mcptest.Peer{}).On("tools/call",
		mcptest.Answer{Result: echoed}, mcptest.Answer{Silent: true}, mcptest.Answer{Cut: true},
		mcptest.Answer{SSE: true, Result: echoed, Hold: true}, mcptest.Answer{Status: 500},
		mcptest.Answer{Raw: "{"}, mcptest.Answer{Silent: true}, mcptest.Answer{Result: echoed})
	server := httptest.NewServer(p)
	before := -1
	for range 3 {
		s, err := mcp.Connect(t.Context(), &mcp.Streamable{URL: server.URL, Engine: mcp.EngineFast}, mcp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			req := echo
			req.Timeout = 50 * time.Millisecond
			if _, err := s.Call(t.Context(), req); err != nil && errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		closeSession(t, s)
		if before < 0 {
			before = descriptors(t) // without the server's own
		}
	}
	server.Close()
	deadline := time.Now().Add(5 * time.Second)
	for descriptors(t) > before && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond) // the server's ends close after ours
	}
	if got := descriptors(t); got > before {
		t.Errorf("%d descriptors, %d before", got, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip("no /dev/fd here: ", err)
	}
	return len(open)
}
