package main

import (
	"context"
	"slices"

	"mcpbench/internal/outgoing"
	"mcpbench/scenarios"
)

// parseSources reads --source-ip and finds out whether the addresses are ours.
func (f *runFlags) parseSources(ctx context.Context) error {
	if f.sourceIP == "" {
		return nil
	}
	var err error
	if f.sources, err = outgoing.ParseAddresses(f.sourceIP); err != nil {
		return usage("--source-ip: %w", err)
	}
	if err := outgoing.CheckOurs(ctx, f.sources); err != nil {
		return usage("--source-ip: %w", err)
	}
	return nil
}

// checkSources refuses source addresses where nothing is dialled.
func (f *runFlags) checkSources(p *scenarios.Program) error {
	dials := slices.ContainsFunc(p.Groups, func(g scenarios.Group) bool { return p.Servers[g.Server].Transport != "stdio" })
	if len(f.sources) > 0 && !dials {
		return usage("--source-ip is for HTTP: all servers are reached over stdio")
	}
	return nil
}
