// Package mcp is a Model Context Protocol client made for measuring: it speaks
// five protocol versions over stdio, Streamable HTTP and HTTP+SSE, stamps each
// exchange, and reports every breach by the peer as a typed error.
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
	// Wants are what only some requests ask for; nil is none of it.
	Wants *Wants
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
	Progress      int // progress notifications among them, told by their token, those in order
	// More is what only some replies have; nil is none of it.
	More *More

	scanned             bool // the two below are known
	isError, resultType span // of the values in Result, empty when absent
}

// Wants are what a request asks for beside its answer. It is not changed and may
// be shared.
type Wants struct {
	// Progress asks for progress notifications: the session adds a token of its own,
	// unless Params has one. Running requests should not have equal ones.
	Progress bool
	// IdleTimeout, unless 0, bounds the silence: it counts from the send and anew
	// from each progress notification of the request, for which it asks as Progress
	// does. Request.Timeout bounds the whole all the same (specification 2025-11-25,
	// basic/lifecycle, timeouts).
	IdleTimeout time.Duration
	// CancelAfter, unless 0, is when after the send the request is cancelled on
	// purpose, as the version and the transport demand; initialize never is. The
	// error is then a *CancelledError, unless the answer came before, a limit ran
	// out, or the session was lost. Where a notification cancels, the call goes on
	// until the server shows that it stopped, at most for 2 s and within the limit.
	CancelAfter time.Duration
	// LogLevel, unless empty, is the level from which on the server may send log
	// messages for this request. Only 2026-07-28 has it; others ignore it.
	LogLevel string

	listen *listening // the request opens a subscription
}

// More is what some requests bring beside their answer.
type More struct {
	// First and Last are when progress notifications came, offsets since
	// Options.Base; 0 when there were none or none were asked for.
	First, Last time.Duration
	// Gaps are the times between them, at most MaxGaps.
	Gaps []time.Duration
	// Trips are the exchanges of a request that took several, in order. Reply.Timing
	// is then from the first send to the last answer, its FirstByte that of the last.
	Trips []Timing
}

// MaxGaps bounds More.Gaps; progress beyond is counted, not timed.
const MaxGaps = 256

// Timing holds offsets since Options.Base on the monotonic clock.
// Start ≤ FirstByte ≤ End; FirstByte equals End when nothing arrived.
type Timing struct {
	Start     time.Duration // just before the first byte of the message is written
	FirstByte time.Duration // first byte of the answer, or first SSE event with data
	End       time.Duration // the full answer was read, or the exchange failed
	Connect   time.Duration // time spent opening a new connection; 0 when one was reused
}

// Transport opens connections to one server. Implementations: *Stdio, *Streamable,
// *LegacySSE.
// Safe for concurrent use; each Dial gives an independent Conn.
type Transport interface {
	Dial(ctx context.Context, o Options) (Conn, error)
	// Kind is the transport column: stdio, http or sse.
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
	// Answers answers what the server asks of the client: roots/list,
	// sampling/createMessage, elicitation/create. Nil answers nothing: each is
	// refused with -32601. What Capabilities does not declare is refused too.
	Answers Answerer
	// OnAsked, if set, is told of each request of the server, ping included, and of
	// each entry of inputRequests, just before the answer or the refusal is sent. It
	// may be called from any goroutine and must not block.
	OnAsked func(Asked)
	// MaxRounds bounds the exchanges of one request whose answers ask for input
	// (2026-07-28). 0: 10.
	MaxRounds int
	// ParamHeaders, unless nil, makes the headers that a server of 2026-07-28 wants
	// from the arguments of its tools. The sessions of one server share it.
	ParamHeaders *ParamHeaders
	// Watch are the notifications, by method, that the session keeps for Await: the
	// newest 64 of each.
	Watch []string
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

	post *post // of the session, nil when there is none
}

// Implementation names a client or server.
type Implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Info describes an open session.
type Info struct {
	Transport     string  // stdio, http or sse
	Requested     Version // "" when not pinned
	Version       Version // negotiated
	Server        Implementation
	Capabilities  json.RawMessage // server's
	Instructions  string
	Supported     []Version     // 2026-07-28: what server/discover listed
	ServerSession string        // Mcp-Session-Id, "" when there is none
	Start, End    time.Duration // of the dialling, since Options.Base
	Spawn         time.Duration // stdio: process start
	Engine        Engine        // http, sse: the engine in use
	TCP, TLS      time.Duration // http, sse: of the first connection
	Handshake     time.Duration // initialize and initialized, or server/discover; sse: the endpoint event too
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
	if o.OnAsked == nil {
		o.OnAsked = func(Asked) {}
	}
	o.MaxRounds = cmp.Or(o.MaxRounds, defaultRounds)
	o.Limits = o.Limits.withDefaults()
	return o
}

func (o *Options) now() time.Duration { return time.Since(o.Base) }
