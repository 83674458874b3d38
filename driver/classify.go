package driver

import (
	"context"
	"errors"

	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/pool"
)

// Causes of cancelled contexts, read back with context.Cause.
var (
	errScheduleEnd = errors.New("the scheduled end of the load")
	errGraceOver   = errors.New("the grace period is over")
	// errStepTime and errIterationTime end what takes longer than it may.
	errStepTime      = errors.New("the step has used up its time")
	errIterationTime = errors.New("the iteration has used up its time")
)

// Numbers for the error_code of timeouts, beside mcp.TimeoutKind for requests.
const (
	// TimeoutConnect is a dial that ran out of its limit.
	TimeoutConnect int32 = 100
	// TimeoutWait is a wait whose notification did not come in time.
	TimeoutWait int32 = 101
	// TimeoutStep is a step whose time was over.
	TimeoutStep int32 = 102
	// TimeoutIteration is a step at which the time of the iteration was over.
	TimeoutIteration int32 = 103
)

var errNotCome = errors.New("the notification did not come in time")

// Classify gives the outcome of one exchange or dial and the number for its
// error_code column. ctx is the context of the work: when it has ended and err
// comes from that, the work was interrupted. First match wins, in the order of
// the table of outcomes.
func Classify(ctx context.Context, r mcp.Reply, err error) (metrics.Outcome, int32) {
	if err == nil {
		if r.ToolError {
			return metrics.ToolError, 0
		}
		return metrics.OK, 0
	}
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, cause) || errors.Is(err, ctx.Err())) {
		switch {
		case errors.Is(cause, pool.ErrDialTimeout):
			return metrics.Timeout, TimeoutConnect
		case errors.Is(cause, errStepTime):
			return metrics.Timeout, TimeoutStep
		case errors.Is(cause, errIterationTime):
			return metrics.Timeout, TimeoutIteration
		}
		return metrics.Interrupted, 0
	}
	if errors.Is(err, pool.ErrDialTimeout) { // of a probe, which all dials fail with
		return metrics.Timeout, TimeoutConnect
	}
	if o, code, ok := classifyTransport(err); ok {
		return o, code
	}
	if e, ok := errors.AsType[*mcp.HTTPError](err); ok {
		return metrics.HTTPError, int32(e.Status) //nolint:gosec // a status has three digits
	}
	if e, ok := errors.AsType[*mcp.LimitError](err); ok {
		return metrics.LimitExceeded, int32(e.Limit)
	}
	if e, ok := errors.AsType[*mcp.ProtocolError](err); ok {
		return metrics.ProtocolError, int32(e.Kind)
	}
	if e, ok := errors.AsType[*mcp.RPCError](err); ok {
		return metrics.RPCError, clampCode(e.Code)
	}
	if _, ok := errors.AsType[*mcp.AnswerError](err); ok {
		return metrics.ScriptError, 0 // what the client answers is the scenario's part
	}
	if _, ok := errors.AsType[*mcp.VersionError](err); ok {
		return metrics.ProtocolError, 0
	}
	return metrics.TransportError, 0
}

func classifyTransport(err error) (metrics.Outcome, int32, bool) {
	if errors.Is(err, errNotCome) {
		return metrics.Timeout, TimeoutWait, true
	}
	if errors.Is(err, mcp.ErrSubscriptionEnded) {
		// The server may end it (specification 2026-07-28, subscriptions/listen),
		// but what a step waited for was on a stream that is not there any more.
		return metrics.TransportError, int32(mcp.ClassEnded), true
	}
	transport, isTransport := errors.AsType[*mcp.TransportError](err)
	if isTransport && transport.ClientFault() {
		return metrics.ClientError, int32(transport.Class()), true
	}
	if e, ok := errors.AsType[*mcp.TimeoutError](err); ok {
		return metrics.Timeout, int32(e.Limit), true
	}
	if _, ok := errors.AsType[*mcp.CancelledError](err); ok {
		return metrics.Cancelled, 0, true
	}
	if e, ok := errors.AsType[*mcp.ExitError](err); ok {
		code := e.Code
		if e.Signal != 0 {
			code = e.Signal
		}
		return metrics.ProcessExit, clampCode(int64(code)), true
	}
	if isTransport {
		return metrics.TransportError, int32(transport.Class()), true
	}
	return 0, 0, false
}

// clampCode fits a JSON-RPC code, which may be any integer, into the column.
func clampCode(code int64) int32 {
	return int32(max(-1<<31, min(code, 1<<31-1)))
}
