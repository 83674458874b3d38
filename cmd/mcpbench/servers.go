package main

import (
	"errors"

	"mcpbench/driver"
	"mcpbench/internal/outgoing"
	"mcpbench/mcp"
	"mcpbench/output"
	"mcpbench/scenarios"
)

// shared is what all sessions of one server have in common.
type shared struct {
	params      mcp.ParamHeaders
	process     *mcp.Shared      // stdio with one process for all; nil: each has its own
	connections *mcp.Connections // HTTP with a pool; nil: each has its own
	outgoing    outgoing.Dialer  // HTTP
}

// share prepares what sessions have in common. The demo target runs.
func (e *execution) share() {
	e.shared = make([]shared, len(e.program.Servers))
	for i := range e.shared {
		s := &e.program.Servers[i]
		e.shared[i].outgoing.Sources = e.flags.sources
		if s.SharedProcess {
			e.shared[i].process = &mcp.Shared{Transport: stdio(s)}
		}
		if s.Connections > 0 {
			e.shared[i].connections = mcp.NewConnections(s.Connections)
		}
	}
}

// dialerOf returns the way of a group to its server.
func (e *execution) dialerOf(group int) driver.Dial {
	p := e.program
	server := p.Groups[group].Server
	d := &dialer{
		server: &p.Servers[server], seed: e.flags.seed,
		getStream: e.flags.getStream == "always" || e.flags.getStream == "auto" && p.NeedsStream(group),
		group:     group, client: &p.Client,
		engine: mcp.Engine(e.flags.engine), limits: wireLimits(p), shared: &e.shared[server],
		outgoing: &e.shared[server].outgoing,
	}
	e.dialers = append(e.dialers, d)
	return d.dial
}

// stdio returns the transport to a stdio server.
func stdio(s *scenarios.Server) *mcp.Stdio {
	return &mcp.Stdio{Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir}
}

// wireLimits are the limits of a program as far as the client keeps them.
func wireLimits(p *scenarios.Program) mcp.Limits {
	return mcp.Limits{MessageBytes: p.Limits.ResponseBytes, HeaderBytes: p.Limits.HeaderBytes}
}

// openings is how many requests it took to open so many sessions: one each, but for
// those that have a process in common.
func (e *execution) openings(sessions int64) int64 {
	for i := range e.shared {
		if h := e.shared[i].process; h != nil {
			sessions -= h.Joined()
		}
	}
	return sessions
}

// watch has what goes on beside the results kept: the frames of --frames, and
// what stdio servers print on stderr.
func (e *execution) watch() {
	mask := e.scenario.Masker()
	stdio := make([]string, len(e.program.Servers))
	for i := range stdio {
		if s := &e.program.Servers[i]; s.Transport == "stdio" {
			stdio[i] = s.Name
		}
	}
	keep := output.ServerLogKeep{Head: int(e.program.Limits.StderrHead), Tail: int(e.program.Limits.StderrTail)}
	e.logs = e.folder.NewServerLogs(stdio, keep, mask)
	e.plan.Watch = func(group int, session uint32, o *mcp.Options) {
		server := e.program.Groups[group].Server
		if l := e.logs[server]; l != nil {
			o.Stderr = l.Session(session)
		}
		e.frames.watch(e.program.Servers[server].Name, session, o)
	}
}

// closeLogs closes what was kept beside the results. The sessions are closed.
func (e *execution) closeLogs() error {
	err := e.frames.close()
	for _, l := range e.logs {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}
