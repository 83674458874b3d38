package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"mcpbench/internal/target"
)

func newServeCommand(s streams) *cobra.Command {
	var (
		c             target.Config
		listen        string
		stdio         bool
		delay, freeze string
	)
	cmd := &cobra.Command{
		Use:   "serve [--listen ADDR | --stdio]",
		Short: "Run the demo target: a real MCP server that misbehaves as told",
		Example: "  mcpbench serve --listen 127.0.0.1:8080 --delay exp:5ms\n" +
			"  mcpbench run -t echo -a '{\"message\":\"hi\"}' -- mcpbench serve --stdio",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if stdio && cmd.Flags().Changed("listen") {
				return usage("--stdio and --listen exclude each other")
			}
			if c.Delay, err = target.ParseDelay(delay); err != nil {
				return usage("--delay: %w", err)
			}
			if c.Freeze, err = target.ParseFreeze(freeze); err != nil {
				return usage("--freeze: %w", err)
			}
			if err := c.Validate(); err != nil {
				return usage("%w", err)
			}
			c.Version = version
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if stdio {
				return serveStdio(ctx, c, s)
			}
			return serveHTTP(ctx, c, listen, s)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&listen, "listen", "127.0.0.1:8080", "address for Streamable HTTP; port 0 takes a free one")
	fs.BoolVar(&stdio, "stdio", false, "serve one client on stdin and stdout")
	fs.StringVar(&delay, "delay", "0s", "time each call takes: 5ms, exp:5ms (mean) or bimodal:2ms,200ms,0.05")
	fs.StringVar(&freeze, "freeze", "", "stop the whole server, as in every=300,for=400ms")
	fs.Float64Var(&c.ErrorRate, "errors", 0, "share of tool calls answered with isError")
	fs.Float64Var(&c.RPCErrorRate, "rpc-errors", 0, "share of tool calls answered with JSON-RPC error -32603")
	fs.IntVar(&c.LeakBytes, "leak", 0, "bytes kept for ever by each tool call")
	fs.BoolVar(&c.Stateless, "stateless", false, "no server sessions in any version")
	fs.BoolVar(&c.JSONResponse, "json-response", false, "answer with application/json instead of text/event-stream")
	fs.IntVar(&c.MaxSessions, "max-sessions", 0, "refuse more live sessions than this")
	fs.BoolVar(&c.RefuseSessions, "refuse-sessions", false, "refuse every session")
	fs.Uint64Var(&c.Seed, "seed", 1, "seed of delays and errors")
	fs.StringVar(&c.StatsDir, "stats-dir", "", "folder for the server's own counters, PID.json, written at its end")
	return cmd
}

func serveStdio(ctx context.Context, c target.Config, s streams) error {
	if err := target.New(c).ServeStdio(ctx, s.in, s.out); err != nil && !errors.Is(err, context.Canceled) {
		return failure("serve --stdio: %w", err)
	}
	return nil
}

func serveHTTP(ctx context.Context, c target.Config, listen string, s streams) error {
	server, err := target.New(c).Listen(ctx, listen)
	if err != nil {
		return failure("%w", err)
	}
	if _, err := fmt.Fprintln(s.out, server.URL); err != nil {
		return errors.Join(failure("print the address: %w", err), server.Close())
	}
	select {
	case <-ctx.Done():
	case <-server.Done():
	}
	if err := server.Close(); err != nil {
		return failure("%w", err)
	}
	return nil
}
