package metrics

// Outcome says how one measured thing ended. It is a closed set: every request
// ends in exactly one of the values below, and their String forms are the
// values of the outcome column in every result.
type Outcome uint8

const (
	// OK is a result that arrived and was accepted.
	OK Outcome = iota
	// CheckFailed is a result that arrived but that an expectation of the step refused.
	CheckFailed
	// Timeout is a step or dial limit that ran out.
	Timeout
	// ToolError is a result with isError: true.
	ToolError
	// RPCError is a well-formed JSON-RPC error.
	RPCError
	// ProtocolError is bytes that break JSON, JSON-RPC, SSE, HTTP or MCP rules.
	ProtocolError
	// LimitExceeded is an answer beyond a configured limit.
	LimitExceeded
	// HTTPError is a non-2xx answer without a JSON-RPC error body, or a 404 to a
	// request that carried a server session.
	HTTPError
	// TransportError is a connection that failed before the whole answer.
	TransportError
	// ProcessExit is a stdio server that ended while the request was in flight.
	ProcessExit
	// Cancelled is a request that the scenario cancelled on purpose.
	Cancelled
	// Interrupted is work cut by the end of the run or by the user.
	Interrupted
	// ClientError is our own fault (descriptors, ports, memory); the run is unsound.
	ClientError
	// ScriptError is an expression or template that failed at run time.
	ScriptError
	// Skipped is a step that does not exist in the negotiated version; it makes no row.
	Skipped
	// Dropped is an arrival that never started.
	Dropped
	// AgentLost is a case whose agent was lost.
	AgentLost
)

// NumOutcomes is the number of outcomes; an array of this length can be indexed by Outcome.
const NumOutcomes = int(AgentLost) + 1

var outcomeNames = [NumOutcomes]string{
	"ok", "check_failed", "timeout", "tool_error", "rpc_error", "protocol_error", "limit_exceeded",
	"http_error", "transport_error", "process_exit", "cancelled", "interrupted", "client_error",
	"script_error", "skipped", "dropped", "agent_lost",
}

// String returns the outcome's name as it stands in results.
func (o Outcome) String() string {
	if int(o) < NumOutcomes {
		return outcomeNames[o]
	}
	return "invalid"
}

// Timed reports whether a request with this outcome counts in the latency and
// service time distributions.
func (o Outcome) Timed() bool { return o == OK || o == CheckFailed || o == Timeout }

// Failed reports whether a request with this outcome is a failure of the
// server under test. Requests that are neither OK nor Failed are "other".
func (o Outcome) Failed() bool {
	switch o {
	case CheckFailed, Timeout, ToolError, RPCError, ProtocolError, LimitExceeded, HTTPError,
		TransportError, ProcessExit, Dropped, AgentLost:
		return true
	case OK, Cancelled, Interrupted, ClientError, ScriptError, Skipped:
		return false
	}
	return false
}

// Answered reports whether the step's checks are evaluated on an answer with this outcome.
func (o Outcome) Answered() bool { return o == OK || o == ToolError || o == CheckFailed }

// CountsChecks reports whether a request with this outcome carries verdicts for
// the checks of its step, evaluated or (when not Answered) failed unevaluated.
func (o Outcome) CountsChecks() bool {
	switch o {
	case Cancelled, Interrupted, ClientError, Skipped, Dropped:
		return false
	case OK, CheckFailed, Timeout, ToolError, RPCError, ProtocolError, LimitExceeded, HTTPError,
		TransportError, ProcessExit, ScriptError, AgentLost:
		return true
	}
	return false
}

// Class is the outcome class of the intervals table.
type Class uint8

// Outcome classes, as in the column outcome_class.
const (
	ClassTimed Class = iota
	ClassFailed
	ClassOther
	NumClasses = 3
)

// String returns timed, failed or other.
func (c Class) String() string { return [...]string{"timed", "failed", "other"}[c] }

// Class returns the histogram class of the outcome: timed for those that count
// in latency, failed for other failures, other for the rest.
func (o Outcome) Class() Class {
	switch {
	case o.Timed():
		return ClassTimed
	case o.Failed():
		return ClassFailed
	}
	return ClassOther
}

// IterationOutcome says how one iteration ended. One arrival has exactly one.
type IterationOutcome uint8

// Iteration outcomes. IterScriptError is an iteration whose first failed step was a script_error.
const (
	IterCompleted IterationOutcome = iota
	IterFailed
	IterInterrupted
	IterDropped
	IterScriptError
	IterAgentLost
	NumIterationOutcomes = 6
)

// String returns the name as it stands in results.
func (o IterationOutcome) String() string {
	return [...]string{"completed", "failed", "interrupted", "dropped", "script_error", "agent_lost"}[o]
}
