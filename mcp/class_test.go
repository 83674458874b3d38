//go:build unix

package mcp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

func TestClass(t *testing.T) {
	sys := func(e syscall.Errno) error {
		return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", e)}
	}
	tests := []struct {
		op    string
		err   error
		class mcp.TransportClass
		ours  bool
	}{
		{"dial", sys(syscall.ECONNREFUSED), mcp.ClassRefused, false},
		{"read", sys(syscall.ECONNRESET), mcp.ClassReset, false},
		{"dial", sys(syscall.EHOSTUNREACH), mcp.ClassUnreachable, false},
		{"write", sys(syscall.EPIPE), mcp.ClassPipe, false},
		{"dial", sys(syscall.ETIMEDOUT), mcp.ClassNetTimeout, false},
		{"dial", sys(syscall.EMFILE), mcp.ClassDescriptors, true},
		{"spawn", fmt.Errorf("start: %w", syscall.ENFILE), mcp.ClassDescriptors, true},
		{"dial", sys(syscall.EADDRNOTAVAIL), mcp.ClassPorts, true},
		{"write", sys(syscall.ENOBUFS), mcp.ClassMemory, true},
		{"write", sys(syscall.ENOMEM), mcp.ClassMemory, true},
		{"dial", &net.DNSError{Err: "no such host", Name: "nobody.invalid"}, mcp.ClassDNS, false},
		{"spawn", &exec.Error{Name: "x", Err: exec.ErrNotFound}, mcp.ClassSpawn, false},
		{"spawn", &os.PathError{Op: "fork/exec", Err: syscall.ENOEXEC}, mcp.ClassSpawn, false},
		{"read", io.EOF, mcp.ClassEOF, false},
		{"read", fmt.Errorf("transport connection broken: %w", io.ErrUnexpectedEOF), mcp.ClassEOF, false},
		{"read", errors.New("http: server closed idle connection"), mcp.ClassStale, false},
		{"read", net.ErrClosed, mcp.ClassClosed, false},
		{"write", io.ErrClosedPipe, mcp.ClassPipe, false},
		{"read", os.ErrDeadlineExceeded, mcp.ClassNetTimeout, false},
		{"tls", errors.New("handshake failure"), mcp.ClassTLS, false},
		{"tls", x509.UnknownAuthorityError{}, mcp.ClassTLS, false},
		{"read", tls.AlertError(42), mcp.ClassTLS, false},
		{"read", errors.New("something else"), mcp.ClassOther, false},
	}
	for _, tt := range tests {
		e := &mcp.TransportError{Op: tt.op, Err: tt.err}
		if got := e.Class(); got != tt.class || e.ClientFault() != tt.ours {
			t.Errorf("%v: class %v, our fault %v; want %v, %v", e, got, e.ClientFault(), tt.class, tt.ours)
		}
	}
}

// Real sockets: what each failure looks like from each engine.
func TestRealFailures(t *testing.T) {
	mcptest.NoLeaks(t)
	secure := httptest.NewUnstartedServer(&mcptest.Peer{})
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains about the handshakes
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(&mcptest.Peer{})
	defer plain.Close()
	tests := []struct {
		name, url string
		op        string
		class     mcp.TransportClass
	}{
		{"nobody listens", "http://" + unusedAddress(t) + "/", "dial", mcp.ClassRefused},
		{"unknown certificate", secure.URL, "tls", mcp.ClassTLS},
		{"https to an http server", "https" + plain.URL[len("http"):], "tls", mcp.ClassTLS},
		{"closes at once", rawServer(t, ""), "read", mcp.ClassEOF},
	}
	for _, tt := range tests {
		for _, engine := range engines {
			t.Run(tt.name+" "+string(engine), func(t *testing.T) {
				_, err := mcp.Connect(t.Context(), &mcp.Streamable{URL: tt.url, Engine: engine}, mcp.Options{})
				e, ok := errors.AsType[*mcp.TransportError](err)
				if !ok || e.Op != tt.op || e.Class() != tt.class {
					t.Errorf("error %v", err)
				}
			})
		}
	}
}

func TestRealTLS(t *testing.T) {
	mcptest.NoLeaks(t)
	secure := httptest.NewTLSServer(&mcptest.Peer{SessionID: "s"})
	t.Cleanup(secure.Close)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	for _, engine := range engines {
		s := connect(t, &mcp.Streamable{URL: secure.URL, TLS: &tls.Config{RootCAs: roots}, Engine: engine}, mcp.Options{})
		i := s.Info()
		if i.TCP <= 0 || i.TLS <= 0 || i.Handshake <= 0 || i.TCP+i.TLS+i.Handshake > i.End-i.Start || i.Engine != engine {
			t.Errorf("%s: phases %+v", engine, i)
		}
	}
}

func TestMalformedHTTP(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, answer := range []string{
		"garbage\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		for _, engine := range engines {
			_, err := mcp.Connect(t.Context(), &mcp.Streamable{URL: rawServer(t, answer), Engine: engine}, mcp.Options{})
			wantFault(t, err, mcp.FaultBadHTTP)
		}
	}
}

// unusedAddress returns an address of this machine at which nobody listens.
func unusedAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

// rawServer answers each connection with the same bytes and closes it.
func rawServer(t *testing.T, answer string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close() // ends Accept
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, answer)
			_ = c.Close() // all was said
		}
	}()
	return "http://" + l.Addr().String() + "/"
}
