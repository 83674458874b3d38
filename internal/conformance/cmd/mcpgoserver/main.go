// Command mcpgoserver is a small server on mark3labs/mcp-go for the
// conformance tests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/server"
)

func main() {
	mode := flag.String("mode", "http", "http, sse or stdio")
	addr := flag.String("addr", "127.0.0.1:0", "address of the HTTP modes; the URL is printed")
	flag.Parse()
	if err := run(*mode, *addr); err != nil {
		log.Fatalf("mcpgoserver: %v", err)
	}
}

func run(mode, addr string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := newServer()
	switch mode {
	case "stdio":
		err := server.NewStdioServer(s).Listen(ctx, os.Stdin, os.Stdout)
		if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	case "http":
		return listen(ctx, addr, "/mcp", server.NewStreamableHTTPServer(s))
	case "sse":
		return listen(ctx, addr, "/sse", server.NewSSEServer(s))
	default:
		return fmt.Errorf("unknown mode %q", mode)
	}
}

// listen prints the URL, so that the caller may ask for port 0, and serves
// until ctx ends.
func listen(ctx context.Context, addr, path string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(os.Stdout, "http://%s%s\n", listener.Addr(), path); err != nil {
		return err
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
