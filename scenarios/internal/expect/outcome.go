package expect

import (
	"fmt"
	"strconv"
	"strings"

	"mcpbench/internal/nearest"
	"mcpbench/metrics"
)

// Outcomes is a set of outcomes that a step expects. It is immutable and safe
// for concurrent use.
type Outcomes struct {
	whole [metrics.NumOutcomes]bool
	codes []outcomeCode
}

type outcomeCode struct {
	outcome metrics.Outcome
	code    int32
}

// expectable are outcomes that the server brings about. Those that are our own
// fault, or not those of a request, cannot be wished for.
var expectable = []metrics.Outcome{
	metrics.OK, metrics.Timeout, metrics.ToolError, metrics.RPCError, metrics.ProtocolError, metrics.LimitExceeded,
	metrics.HTTPError, metrics.TransportError, metrics.ProcessExit, metrics.Cancelled,
}

// coded are those whose error_code is a number of the protocol.
var coded = map[metrics.Outcome]string{
	metrics.RPCError: "JSON-RPC error code", metrics.HTTPError: "HTTP status", metrics.ProcessExit: "exit code",
}

// CompileOutcomes reads names of outcomes such as tool_error, and such as
// rpc_error:-32602 with the error_code.
func CompileOutcomes(names []string) (*Outcomes, error) {
	if len(names) == 0 {
		return nil, &PartError{Part: "outcome", Reason: "it names none"}
	}
	var known []string
	byName := map[string]metrics.Outcome{}
	for _, o := range expectable {
		known = append(known, o.String())
		byName[o.String()] = o
	}
	out := &Outcomes{}
	for i, text := range names {
		name, code, withCode := strings.Cut(text, ":")
		outcome, ok := byName[name]
		if !ok {
			return nil, &PartError{"outcome", i, fmt.Sprintf("%s is no outcome that can be expected%s", quote(name), nearest.DidYouMean(name, known))}
		}
		if !withCode {
			out.whole[outcome] = true
			continue
		}
		what, ok := coded[outcome]
		if !ok {
			return nil, &PartError{"outcome", i, name + " has no code to expect"}
		}
		number, err := strconv.ParseInt(code, 10, 32)
		if err != nil {
			return nil, &PartError{"outcome", i, fmt.Sprintf("%s is no %s", quote(code), what)}
		}
		out.codes = append(out.codes, outcomeCode{outcome, int32(number)})
	}
	return out, nil
}

// Match tells whether an outcome with this error_code is expected.
func (o *Outcomes) Match(outcome metrics.Outcome, code int32) bool {
	if int(outcome) < len(o.whole) && o.whole[outcome] {
		return true
	}
	for _, c := range o.codes {
		if c.outcome == outcome && c.code == code {
			return true
		}
	}
	return false
}
