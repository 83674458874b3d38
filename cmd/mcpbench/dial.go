package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"mcpbench/driver"
	"mcpbench/internal/outgoing"
	"mcpbench/mcp"
	"mcpbench/scenarios"
)

// dialer opens sessions to one server of a program.
type dialer struct {
	server    *scenarios.Server
	getStream bool
	engine    mcp.Engine // "" is auto
	seed      uint64
	group     int               // index into the program's groups
	client    *scenarios.Client // nil declares nothing
	limits    mcp.Limits
	shared    *shared          // by all who dial this server; nil: nothing is
	outgoing  *outgoing.Dialer // nil: the system chooses the source address
	feeds     *scenarios.Feeds // rows for the headers; nil: none
	failed    error            // why it is not known what the server speaks
	sse       atomic.Bool      // the server was found to speak only HTTP+SSE
}

// dial implements driver.Dial.
func (d *dialer) dial(ctx context.Context, slot int, o mcp.Options) (driver.Session, error) {
	if errors.Is(d.failed, errStopped) {
		<-ctx.Done() // the run is about to end
		return nil, context.Cause(ctx)
	}
	if d.failed != nil {
		return nil, d.failed
	}
	o.Version, o.Limits = mcp.Version(d.server.Protocol), d.limits
	o.Client = mcp.Implementation{Name: "mcpbench", Version: version}
	o.GetStream = d.getStream
	if err := d.declare(&o, slot); err != nil {
		return nil, err
	}
	if d.shared != nil && d.shared.process != nil {
		session, err := d.shared.process.Connect(ctx, o)
		if err != nil {
			return nil, err
		}
		return session, nil
	}
	transport, fallback, err := d.transport(ctx, slot)
	if err != nil {
		return nil, err
	}
	if d.shared != nil {
		o.ParamHeaders = &d.shared.params
	}
	session, decision, err := mcp.Negotiate(ctx, transport, fallback, o)
	if err != nil { // a nil *mcp.Session in the interface would not be nil
		return nil, err
	}
	if decision.Transport == fallback && fallback != nil {
		d.sse.Store(true)
	}
	return session, nil
}

// transport returns the way to the server, and what may take its place when the
// server refuses it; nil when nothing may.
func (d *dialer) transport(ctx context.Context, slot int) (transport, fallback mcp.Transport, err error) {
	s := d.server
	if s.Transport == "stdio" {
		return stdio(s), nil, nil
	}
	header := http.Header{}
	env := &scenarios.Env{Seed: d.seed, Session: slot, Protocol: s.Protocol}
	if err := d.feeds.Fill(ctx, env, uint64(slot)); err != nil { //nolint:gosec // a place in a group
		return nil, nil, fmt.Errorf("headers of server %s: %w", s.Name, err)
	}
	for _, h := range s.Headers {
		value, err := h.Value.Render(env)
		if err != nil {
			return nil, nil, fmt.Errorf("header %s of server %s: %w", h.Name, s.Name, err)
		}
		header.Add(h.Name, value)
	}
	http := &mcp.Streamable{URL: s.URL, Header: header, Engine: d.engine}
	if d.shared != nil {
		http.Connections = d.shared.connections
	}
	if d.outgoing != nil {
		http.DialContext = d.outgoing.Slot(slot)
	}
	sse := mcp.LegacySSE(*http)
	switch {
	case s.Transport == "sse" || d.sse.Load():
		return &sse, nil, nil
	case s.AnyHTTP:
		return http, &sse, nil
	}
	return http, nil, nil
}

// bearer returns the Authorization header for a token in a variable.
func (s streams) bearer(variable string) (string, error) {
	token, ok := s.env(variable)
	if !ok || strings.TrimSpace(token) == "" {
		return "", usage("--bearer-env %s: the variable is not set", variable)
	}
	return "Bearer " + strings.TrimSpace(token), nil
}

// readInput reads a file, or standard input for "-".
func (s streams) readInput(name string) ([]byte, error) {
	if name == "-" {
		return readAll(s.in, "standard input")
	}
	f, err := os.Open(name) //nolint:gosec // reading the files that the user names is the job
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what and where
	}
	data, err := readAll(f, name)
	return data, errors.Join(err, f.Close())
}
