package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// RPCError is a well-formed JSON-RPC error.
type RPCError struct {
	Code       int64
	Message    string
	Data       json.RawMessage
	HTTPStatus int // 0 on stdio

	lost bool // its text says that the server session is unknown
}

// Error gives code and message, and the URLs that a user would have to open first
// (-32042 of 2025-11-25).
func (e *RPCError) Error() string {
	if e.HTTPStatus >= 400 {
		return fmt.Sprintf("JSON-RPC error %d (HTTP %d): %s%s", e.Code, e.HTTPStatus, e.Message, e.hint())
	}
	return fmt.Sprintf("JSON-RPC error %d: %s%s", e.Code, e.Message, e.hint())
}

// Is makes SessionLost work.
func (e *RPCError) Is(target error) bool { return e.lost && target == errLost }

// HTTPError is an answer outside 2xx without a JSON-RPC error in its body.
// Lost tells that it means the server session is gone.
type HTTPError struct {
	Status int
	Body   string // excerpt
	Header string // WWW-Authenticate, Retry-After or Location, when telling
	Lost   bool
}

// Error gives the status and what the server said beside it.
func (e *HTTPError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP status %d", e.Status)
	if e.Lost {
		b.WriteString(" (the server session is gone)")
	}
	if e.Header != "" {
		b.WriteString(", " + e.Header)
	}
	if e.Body != "" {
		b.WriteString(": " + e.Body)
	}
	return b.String()
}

// Is makes SessionLost work.
func (e *HTTPError) Is(target error) bool { return e.Lost && target == errLost }

// ProtocolError is bytes that break the rules of JSON, JSON-RPC, SSE, HTTP or MCP.
type ProtocolError struct {
	Kind   ProtocolFault
	Detail string
	Err    error
}

// Error gives the kind and, when there is one, the detail.
func (e *ProtocolError) Error() string {
	s := "protocol error " + e.Kind.String()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause, or nil.
func (e *ProtocolError) Unwrap() error { return e.Err }

// LimitError is an answer beyond a configured limit.
type LimitError struct {
	Limit LimitKind
	Max   int64
}

// Error names the limit and its value.
func (e *LimitError) Error() string {
	return fmt.Sprintf("limit exceeded: %s over %d", e.Limit, e.Max)
}

// TransportError is a connection that failed before the whole answer arrived.
type TransportError struct {
	Op  string // spawn, dial, tls, write, read
	Err error

	lost bool // the connection cannot carry anything any more
}

// Error gives the operation and the cause.
func (e *TransportError) Error() string {
	cause := e.Err.Error()
	if strings.HasPrefix(cause, e.Op+" ") {
		return cause // of package net, which names the operation itself
	}
	return e.Op + ": " + cause
}

// Unwrap returns the cause.
func (e *TransportError) Unwrap() error { return e.Err }

// Is makes SessionLost work.
func (e *TransportError) Is(target error) bool { return e.lost && target == errLost }

// ExitError is a stdio server that ended while a request was in flight.
type ExitError struct {
	Code   int    // exit code, -1 when killed by a signal
	Signal int    // signal number, or 0
	Stderr string // tail
}

// Error tells how the process ended and the last lines of its stderr.
func (e *ExitError) Error() string {
	s := fmt.Sprintf("the server process exited with code %d", e.Code)
	if e.Signal != 0 {
		s = fmt.Sprintf("the server process was ended by signal %d (%s)", e.Signal, syscall.Signal(e.Signal))
	}
	if last := lastLines(e.Stderr, 5, 500); last != "" {
		s += "; stderr ends: " + last
	}
	return s
}

// Is makes SessionLost work.
func (*ExitError) Is(target error) bool { return target == errLost }

// lastLines returns the last non-empty lines of s joined by " | ", at most n
// lines and about size bytes.
func lastLines(s string, n, size int) string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	lines = lines[max(0, len(lines)-n):]
	text := strings.Join(lines, " | ")
	if len(text) > size {
		text = "…" + strings.ToValidUTF8(text[len(text)-size:], "")
	}
	return text
}

// TimeoutError is a limit that ran out.
type TimeoutError struct {
	Limit TimeoutKind
}

// Error names the limit.
func (e *TimeoutError) Error() string { return e.Limit.String() + " ran out" }

// Timeout makes it a timeout to callers that ask for the method.
func (*TimeoutError) Timeout() bool { return true }

// CancelledError is a request that was cancelled by Wants.CancelAfter.
type CancelledError struct {
	// Sent is when the cancellation was handed to the transport, since Options.Base.
	Sent time.Duration
	// Stopped is when the server was seen to have stopped, by an answer that came
	// too late or by the end of the stream; 0 when it gave no sign, or could give none
	// because the end of the stream was the cancellation.
	Stopped time.Duration
}

// Error says that it was on purpose.
func (*CancelledError) Error() string { return "cancelled on purpose" }

// VersionError is a peer that speaks no version that we may use.
type VersionError struct {
	Asked   Version
	Answer  string   // version in the server's initialize result, or ""
	Offered []string // versions the server listed, if it did
}

// Error names the version asked for and what the server has instead.
func (e *VersionError) Error() string {
	s := fmt.Sprintf("asked for protocol version %s", e.Asked)
	if e.Answer != "" {
		s += fmt.Sprintf(", the server answered %q", e.Answer)
	} else {
		s += ", which the server does not speak"
	}
	if len(e.Offered) > 0 {
		s += "; it offers " + joinVersions(e.Offered)
	}
	return s
}

// SessionLost reports whether err means that the session is of no further use
// and must be opened anew: the server session is gone, the process ended, the
// pipe is closed.
func SessionLost(err error) bool { return errors.Is(err, errLost) }

var (
	errLost   = errors.New("session lost")
	errClosed = errors.New("session is closed")
	// errTimeout is the cause of a context that ended by Request.Timeout.
	errTimeout = errors.New("request limit ran out")
)

// gaveUp is the error of a request whose context ended.
func gaveUp(ctx context.Context) error { return fmt.Errorf("gave up: %w", context.Cause(ctx)) }

func closedError() error { return &TransportError{Op: "write", Err: errClosed, lost: true} }
