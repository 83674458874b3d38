// Package target is the demo server that mcpbench brings along: a real MCP
// server, built on the official Go SDK, that speaks every protocol version
// over Streamable HTTP and stdio, misbehaves as it is told to, and counts what
// it received, so that a measurement can be compared with the truth.
package target

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Config says how the server behaves. The zero value is a fast server without faults.
type Config struct {
	// Delay is spent on each tools/call, resources/read, prompts/get and
	// completion/complete before it is answered.
	Delay Delay
	// ErrorRate and RPCErrorRate are the shares of tool calls, from 0 to 1,
	// that are answered with isError and with JSON-RPC error -32603. Together
	// at most 1.
	ErrorRate    float64
	RPCErrorRate float64
	// Freeze stops the whole server, all sessions together.
	Freeze Freeze
	// LeakBytes are kept for ever by each tool call.
	LeakBytes int

	// Stateless answers every request over HTTP without sessions. By default
	// only 2026-07-28 is served so, and the older versions have sessions.
	Stateless bool
	// JSONResponse answers over HTTP with application/json instead of text/event-stream.
	JSONResponse bool

	// MaxSessions is the number of live sessions past which initialize is
	// refused; 0 is no limit. It does not apply where there are no sessions.
	MaxSessions int
	// RefuseSessions refuses every initialize, and in 2026-07-28, which has no
	// sessions, every request.
	RefuseSessions bool

	// Seed of delays, errors and random bytes. The draws belong to the order in
	// which requests arrive, so they repeat exactly only without concurrency.
	Seed uint64

	// StatsDir is the folder into which the counters are written, as PID.json,
	// when a server ends; empty: nowhere.
	StatsDir string
	// AllowRemote lets Listen take an address that is not a loopback address.
	AllowRemote bool
	// Version is shown in serverInfo; empty: "devel".
	Version string
}

// Validate returns all faults of the configuration, joined.
func (c Config) Validate() error {
	var faults []error
	if err := c.Delay.validate(); err != nil {
		faults = append(faults, fmt.Errorf("delay: %w", err))
	}
	if !isShare(c.ErrorRate) || !isShare(c.RPCErrorRate) || c.ErrorRate+c.RPCErrorRate > 1 {
		faults = append(faults, fmt.Errorf("error rates %v and %v: each is a share from 0 to 1, together at most 1",
			c.ErrorRate, c.RPCErrorRate))
	}
	if err := c.Freeze.validate(); err != nil {
		faults = append(faults, err)
	}
	if c.LeakBytes < 0 {
		faults = append(faults, fmt.Errorf("leak %d: cannot be negative", c.LeakBytes))
	}
	if c.MaxSessions < 0 {
		faults = append(faults, fmt.Errorf("max sessions %d: cannot be negative", c.MaxSessions))
	}
	return errors.Join(faults...)
}

// Target is one demo server. Its counters, its faults and its freeze are
// shared by everything that it serves. Safe for concurrent use.
type Target struct {
	cfg     Config
	count   counters
	freezer freezer
	work    atomic.Uint64 // index of the next draw
	admit   sync.Mutex    // from the check of MaxSessions to the end of initialize

	leakMu sync.Mutex
	leaked [][]byte
}

// New makes a target that serves nothing yet. Listen and ServeStdio return the
// faults of c.
func New(c Config) *Target {
	t := &Target{cfg: c, freezer: freezer{rule: c.Freeze}}
	t.count.stats = newStats()
	return t
}

// Stats returns a copy of the counters. A request is counted as received when
// it arrives and as answered before its answer is written, so a client that
// has its answer finds it counted.
func (t *Target) Stats() Stats { return t.count.snapshot() }

// fate is what one request drew.
type fate struct {
	delay               time.Duration
	toolError, rpcError bool
}

func (t *Target) draw() fate {
	var pcg rand.PCG
	pcg.Seed(t.cfg.Seed, t.work.Add(1))
	r := rand.New(&pcg)
	f := fate{delay: t.cfg.Delay.draw(r)}
	u := r.Float64()
	f.rpcError = u < t.cfg.RPCErrorRate
	f.toolError = !f.rpcError && u < t.cfg.RPCErrorRate+t.cfg.ErrorRate
	return f
}

// leak keeps n bytes and writes to them, so that they are resident.
func (t *Target) leak(n int) {
	if n <= 0 {
		return
	}
	block := make([]byte, n)
	for i := range block {
		block[i] = 1
	}
	t.leakMu.Lock()
	defer t.leakMu.Unlock()
	t.leaked = append(t.leaked, block)
}

// freezer knows until when the server stands still.
type freezer struct {
	rule  Freeze
	mu    sync.Mutex
	calls int
	until time.Time
}

func (f *freezer) remaining() time.Duration {
	if f.rule.Every <= 0 {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Until(f.until)
}

// answered counts a tool call; the one that completes a round starts the freeze
// and is the last to get its answer before it.
func (f *freezer) answered() {
	if f.rule.Every <= 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.calls%f.rule.Every == 0 {
		f.until = time.Now().Add(f.rule.For)
	}
}

// surface is one way into the target: the HTTP handler or one stdio stream.
// stop ends the waits of its requests when it is closed.
type surface struct {
	*Target
	server      *mcp.Server
	stop        chan struct{}
	initialized atomic.Bool // an initialize was answered
}

func (t *Target) newSurface() *surface {
	version := t.cfg.Version
	if version == "" {
		version = "devel"
	}
	s := &surface{Target: t, stop: make(chan struct{})}
	s.server = mcp.NewServer(
		&mcp.Implementation{Name: "mcpbench-target", Version: version},
		&mcp.ServerOptions{
			Instructions:      "Demo server for load tests: every tool is harmless.",
			PageSize:          pageSize,
			CompletionHandler: complete,
		})
	s.addTools()
	s.addResources()
	s.addPrompts()
	s.server.AddReceivingMiddleware(s.receive)
	return s
}
