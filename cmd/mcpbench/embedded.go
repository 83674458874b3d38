package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"mcpbench/internal/target"
	"mcpbench/scenarios"
)

// embedded is the demo target as far as a program needs it: an HTTP server in
// this process, and this program again as the command of stdio servers.
type embedded struct {
	http     *target.Server
	statsDir string
}

// startEmbedded fills in where the program's embedded servers are to be found
// and starts what they need. It returns nil when there are none.
func startEmbedded(ctx context.Context, p *scenarios.Program) (*embedded, error) {
	var e *embedded
	for i := range p.Servers {
		server := &p.Servers[i]
		if !server.Embedded {
			continue
		}
		if e == nil {
			dir, err := os.MkdirTemp("", "mcpbench-target-")
			if err != nil {
				return nil, fmt.Errorf("start the demo target: %w", err)
			}
			e = &embedded{statsDir: dir}
		}
		if err := e.provide(ctx, server); err != nil {
			_, closeErr := e.close()
			return nil, errors.Join(err, closeErr)
		}
	}
	return e, nil
}

func (e *embedded) provide(ctx context.Context, server *scenarios.Server) error {
	if server.Transport == "stdio" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("start the demo target: find this program: %w", err)
		}
		server.Command = self
		server.Args = []string{"serve", "--stdio", "--stats-dir", e.statsDir}
		return nil
	}
	if e.http == nil {
		var err error
		e.http, err = target.New(target.Config{StatsDir: e.statsDir, Version: version}).Listen(ctx, "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("start the demo target: %w", err)
		}
	}
	server.URL = e.http.URL
	return nil
}

// discard ends the target, if there is one, without a look at its counters.
func (e *embedded) discard() error {
	if e == nil {
		return nil
	}
	_, err := e.close()
	return err
}

// close ends the target and returns what its processes counted.
func (e *embedded) close() (target.Stats, error) {
	var err error
	if e.http != nil {
		err = e.http.Close()
		e.http = nil
	}
	stats, _, readErr := target.ReadStats(e.statsDir)
	return stats, errors.Join(err, readErr, os.RemoveAll(e.statsDir))
}
