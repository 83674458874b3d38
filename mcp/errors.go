package mcp

import (
	"encoding/json"
	"errors"
)

// RPCError is a well-formed JSON-RPC error.
type RPCError struct {
	Code       int64
	Message    string
	Data       json.RawMessage
	HTTPStatus int // 0 on stdio
}

// HTTPError is an answer outside 2xx without a JSON-RPC error in its body.
// Lost tells that it means the server session is gone.
type HTTPError struct {
	Status int
	Body   string // excerpt
	Header string // WWW-Authenticate, Retry-After or Location, when telling
	Lost   bool
}

// ProtocolError is bytes that break the rules of JSON, JSON-RPC, SSE, HTTP or MCP.
type ProtocolError struct {
	Kind   ProtocolFault
	Detail string
	Err    error
}

// ProtocolFault enumerates protocol errors; its value is the error_code column.
type ProtocolFault int32

// LimitError is an answer beyond a configured limit.
type LimitError struct {
	Limit LimitKind
	Max   int64
}

// LimitKind enumerates limits; its value is the error_code column.
type LimitKind int32

// TransportError is a connection that failed before the whole answer arrived.
type TransportError struct {
	Op  string // dial, tls, write, read
	Err error
}

// ExitError is a stdio server that ended while a request was in flight.
type ExitError struct {
	Code   int    // exit code, -1 when killed by a signal
	Signal int    // signal number, or 0
	Stderr string // tail
}

// TimeoutError is a limit that ran out.
type TimeoutError struct {
	Limit TimeoutKind
}

// TimeoutKind enumerates time limits; its value is the error_code column.
type TimeoutKind int32

// VersionError is a peer that speaks no version that we may use.
type VersionError struct {
	Asked   Version
	Answer  string   // version in the server's initialize result, or ""
	Offered []string // versions the server listed, if it did
}

// SessionLost reports whether err means that the session is of no further use
// and must be opened anew: the server session is gone, the process ended, the
// pipe is closed.
func SessionLost(err error) bool { return errors.Is(err, errLost) }

var errLost = errors.New("session lost")
