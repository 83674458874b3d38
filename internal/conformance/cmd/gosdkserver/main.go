// Command gosdkserver is a small server on the official Go SDK, in each of the
// forms that the SDK has, for the conformance tests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	mode := flag.String("mode", "stateful", "stateful, json, stateless, sse or stdio")
	addr := flag.String("addr", "127.0.0.1:0", "address of the HTTP modes; the URL is printed")
	flag.Parse()
	if err := run(*mode, *addr); err != nil {
		log.Fatalf("gosdkserver: %v", err)
	}
}

func run(mode, addr string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := newServer()
	options := &mcp.StreamableHTTPOptions{}
	switch mode {
	case "stdio":
		if err := server.Run(ctx, &mcp.StdioTransport{}); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	case "sse":
		return listen(ctx, addr, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil))
	case "stateful":
	case "json":
		options.JSONResponse = true
	case "stateless":
		options.Stateless = true
	default:
		return fmt.Errorf("unknown mode %q", mode)
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)
	return listen(ctx, addr, handler)
}

// listen prints the URL, so that the caller may ask for port 0, and serves
// until ctx ends.
func listen(ctx context.Context, addr string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(os.Stdout, "http://%s/mcp\n", listener.Addr()); err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
