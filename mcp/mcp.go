// Package mcp is a Model Context Protocol client made for measuring: it speaks
// five protocol versions over stdio and Streamable HTTP, stamps each exchange,
// and reports every breach by the peer as a typed error.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"time"
)

// Request is one JSON-RPC request to send. Params is a JSON object, or nil for
// none; the session adds the id and whatever the protocol version demands
// (_meta, headers). Params is not retained after the call returns.
type Request struct {
	Method string
	Params []byte
	// Name is the value for the Mcp-Name header (2026-07-28) when the caller
	// knows it; empty: the session reads it from Params.
	Name string
	// Timeout bounds the exchange from the send to the full answer; 0 is none.
	// When it ends the request is cancelled as the version demands and the
	// error is a *TimeoutError.
	Timeout time.Duration
	// ResultBuf, unless nil, is where the result goes if its capacity suffices:
	// Reply.Result then shares its memory, and is valid until the caller uses
	// ResultBuf again. A caller that hands the Result of one call to the next as
	// ResultBuf[:0] saves an allocation each.
	ResultBuf []byte
}

// Reply is what came of one request. Timing and the counts are valid also when
// the call returned an error, as far as the exchange got.
type Reply struct {
	Result        json.RawMessage // nil unless a result arrived
	ToolError     bool            // the result carried isError: true
	Timing        Timing
	BytesOut      int // of the JSON-RPC message sent
	BytesIn       int // of the JSON-RPC messages received for it
	HTTPStatus    int // 0 on stdio, or when no status line arrived
	Rounds        int // exchanges made, normally 1
	Notifications int // received for this request
	Progress      int // progress notifications among them (stdio: told by their token)

	scanned             bool // the two below are known
	isError, resultType span // of the values in Result, empty when absent
}

// Timing holds offsets since Options.Base on the monotonic clock.
// Start ≤ FirstByte ≤ End; FirstByte equals End when nothing arrived.
type Timing struct {
	Start     time.Duration // just before the first byte of the message is written
	FirstByte time.Duration // first byte of the answer, or first SSE event with data
	End       time.Duration // the full answer was read, or the exchange failed
	Connect   time.Duration // time spent opening a new connection; 0 when one was reused
}

// Transport opens connections to one server. Implementations: *Stdio, *Streamable.
// Safe for concurrent use; each Dial gives an independent Conn.
type Transport interface {
	Dial(ctx context.Context, o Options) (Conn, error)
	// Kind is the transport column: stdio or http.
	Kind() string
}

// Conn carries exchanges over one connection of one simulated client. RoundTrip
// and Notify may be called concurrently. Answers are judged as JSON-RPC only;
// what a result means is the Session's business. Close ends the server session
// if there is one, fails what is in flight, waits for the Conn's own goroutines,
// and is bounded by ctx.
type Conn interface {
	RoundTrip(ctx context.Context, req Request) (Reply, error)
	Notify(ctx context.Context, method string, params json.RawMessage) error
	// SetVersion tells the Conn what was negotiated, before any further request.
	SetVersion(v Version)
	Close(ctx context.Context) error
}

// Options configure a session. The zero value asks for the newest legacy
// version, declares no capability and opens no GET stream.
type Options struct {
	// Version pins the protocol version. Empty: initialize asks for
	// 2025-11-25 and takes whatever known version the server answers.
	Version Version
	// Client is sent as clientInfo; empty Name means mcpbench.
	Client Implementation
	// Capabilities is the client capabilities object; nil means {}.
	Capabilities json.RawMessage
	// GetStream opens the standalone GET stream (legacy Streamable HTTP).
	GetStream bool
	// Base is the instant from which all Timing offsets count.
	Base time.Time
	// Limits bound what one answer may take; zero fields have defaults.
	Limits Limits
	// OnAnomaly, if set, is told of each legal oddity or harmless breach. It
	// may be called from any goroutine and must not block.
	OnAnomaly func(kind Anomaly, detail string)
	// OnFrame, if set, is shown everything that goes over the wire, for debugging.
	// It may be called from any goroutine, one call at a time for each exchange
	// but not for each session, and must not block.
	OnFrame func(Frame)
	// Stderr, if set, gets what the process of a stdio server writes to its
	// stderr, from one goroutine. It must not block: that would stop the process.
	// After the end a method Flush() is called, if there is one.
	Stderr io.Writer
}

// Implementation names a client or server.
type Implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Info describes an open session.
type Info struct {
	Transport     string  // stdio or http
	Requested     Version // "" when not pinned
	Version       Version // negotiated
	Server        Implementation
	Capabilities  json.RawMessage // server's
	Instructions  string
	Supported     []Version     // 2026-07-28: what server/discover listed
	ServerSession string        // Mcp-Session-Id, "" when there is none
	Start, End    time.Duration // of the dialling, since Options.Base
	Spawn         time.Duration // stdio: process start
	Engine        Engine        // http: the engine in use
	TCP, TLS      time.Duration // http: of the first connection
	Handshake     time.Duration // initialize and initialized, or server/discover
}

// Limits bound what a peer may make us hold. Beyond one of them the request
// fails with a *LimitError and the session goes on.
type Limits struct {
	// MessageBytes bounds one JSON-RPC message: a body, an SSE event, a line. 0: 16 MiB.
	MessageBytes int64
	// HeaderBytes bounds the header of an HTTP response. 0: 1 MiB.
	HeaderBytes int64
}

func (l Limits) withDefaults() Limits {
	l.MessageBytes = cmp.Or(l.MessageBytes, 16<<20)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 1<<20)
	return l
}

// withDefaults fills what the zero value leaves open, so that a Conn and its
// Session count from the same instant and name the same client.
func (o Options) withDefaults() Options {
	if o.Base.IsZero() {
		o.Base = time.Now()
	}
	o.Client.Name = cmp.Or(o.Client.Name, "mcpbench")
	o.Client.Version = cmp.Or(o.Client.Version, "dev")
	if len(o.Capabilities) == 0 {
		o.Capabilities = json.RawMessage("{}")
	}
	if o.OnAnomaly == nil {
		o.OnAnomaly = func(Anomaly, string) {}
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

func (o *Options) now() time.Duration { return time.Since(o.Base) }
