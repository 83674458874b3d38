package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// Session is one simulated client's open connection to a server. It never
// re-opens itself: after an error for which SessionLost is true the owner closes
// it and connects anew. Safe for concurrent use.
type Session struct {
	conn       Conn
	o          Options
	info       Info
	dialled    time.Duration // the connection was there
	resultType bool          // results carry it in the version in use
	post       post
}

// Info describes the session as it was when Connect returned.
func (s *Session) Info() Info { return s.info }

// Call makes one request and waits for its answer. The reply's timing and counts
// are valid also when there is an error. Errors are *RPCError, *HTTPError,
// *ProtocolError, *LimitError, *TransportError, *ExitError, *TimeoutError,
// *CancelledError, *AnswerError, or wrap the cause of ctx. A tool's own failure is
// no error: see Reply.ToolError. When the answer asks for input, Options.Answers
// gives it and the request is made again, within the limits of the whole.
func (s *Session) Call(ctx context.Context, req Request) (Reply, error) {
	reply, err := s.conn.RoundTrip(ctx, req)
	if err != nil {
		if s.o.ParamHeaders != nil && headersRefused(err) {
			s.o.ParamHeaders.refused(s)
		}
		return reply, err
	}
	err = s.judge(req.Method, &reply)
	if err != nil && errors.Is(err, errAsksInput) {
		return s.goOn(ctx, req, reply)
	}
	return reply, err
}

// judge applies the rules of MCP to a well-formed result.
func (s *Session) judge(method string, reply *Reply) error {
	if !reply.scanned {
		// From a Conn that is none of ours.
		var m message
		m.resultValue(reply.Result, skipSpace(reply.Result, 0))
		reply.isError, reply.resultType = m.isError, m.resultType
	}
	if s.resultType {
		if err := checkResultType(reply.resultType.in(reply.Result)); err != nil {
			return err
		}
	}
	if method != "tools/call" {
		return nil
	}
	isError := reply.isError.in(reply.Result)
	switch string(isError) {
	case "", "false":
	case "true":
		reply.ToolError = true
	default:
		return &ProtocolError{Kind: FaultBadResult, Detail: "isError is " + excerpt(isError)}
	}
	return nil
}

// speak switches to version v, before any further request.
func (s *Session) speak(v Version) {
	s.conn.SetVersion(v)
	s.resultType = v.Features().ResultType
	s.post.speak(v.Features())
}

// checkResultType applies the rule that an absent resultType means complete and
// an unknown one is invalid (specification 2026-07-28, basic/index, results).
// errAsksInput stands for input_required. Tasks are not declared by this client, so
// that a server must not answer with one.
func checkResultType(raw []byte) error {
	if raw == nil || string(raw) == `"complete"` {
		return nil
	}
	var t string
	if err := json.Unmarshal(raw, &t); err != nil {
		return &ProtocolError{Kind: FaultResultType, Detail: excerpt(raw)}
	}
	switch t {
	case "complete":
		return nil
	case "input_required":
		return errAsksInput
	case "task":
		return &ProtocolError{Kind: FaultTask, Detail: "the client did not declare the tasks extension"}
	}
	return &ProtocolError{Kind: FaultResultType, Detail: strconv.Quote(t)}
}

// Ended reports whether the session is known to be of no more use: the process
// of its server has ended, or the server does not know it any more. A request
// would fail with an error for which SessionLost is true. Safe for concurrent use.
func (s *Session) Ended() bool {
	e, ok := s.conn.(interface{ isOver() bool })
	return ok && e.isOver()
}

// Notify sends a notification. Params is a JSON object or nil.
func (s *Session) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return s.conn.Notify(ctx, method, params)
}

// Close ends the session, the server session included, and waits for whatever
// the session runs by itself. Bounded by ctx. An error means that the end could
// not be made known to the server; the session is closed all the same. Whoever waits
// for a notification is told.
func (s *Session) Close(ctx context.Context) error {
	if c, ok := s.conn.(*share); ok {
		c.depart(ctx, s)
	}
	s.post.close(closedError())
	return s.conn.Close(ctx)
}
