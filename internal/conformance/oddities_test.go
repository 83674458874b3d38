package conformance

import (
	"fmt"
	"regexp"
	"sync/atomic"
)

// oddity is how a server departs from what an operation demands.
type oddity struct {
	// where is a regular expression for the names of sessions: server, transport, engine
	// and version.
	where, operation string
	seen             string // regular expression
	why              string
	// sometimes: it depends on the moment, and need not be seen in each run.
	sometimes bool

	met *atomic.Bool
}

func (o oddity) String() string {
	return fmt.Sprintf("%s, %s: %s", o.where, o.operation, o.seen)
}

// concerns tells whether the oddity is one of this operation there.
func (o oddity) concerns(r *row, operation string) bool {
	return regexp.MustCompile(`^`+o.operation+`$`).MatchString(operation) && regexp.MustCompile(o.where).MatchString(r.name())
}

// known returns the oddity that explains what was seen, or nil.
func (r *row) known(operation, seen string) *oddity {
	for i, o := range oddities {
		if o.concerns(r, operation) && regexp.MustCompile(o.seen).MatchString(seen) {
			return &oddities[i]
		}
	}
	return nil
}

func init() {
	for i := range oddities {
		oddities[i].met = &atomic.Bool{}
	}
}

// older is how names of sessions in versions with a handshake end.
const older = ` 202[45]\S+$`

// oddities are all that are known. One that is not seen any more fails the test, unless
// it comes only sometimes.
var oddities = []oddity{
	{
		where: `^go-sdk.* (http|sse) .*` + older, operation: "unknown method", seen: `HTTP status 400: JSON RPC not handled`,
		why: "go-sdk refuses a method that it does not know with HTTP 400 and text",
	},
	{
		where: `^server-everything`, operation: "unknown tool", seen: `toolError true.*-32602: Tool no_such_tool not found`,
		why: "the TypeScript SDK makes an unknown tool a result with isError",
	},
	{
		where: `^(go-sdk|server-everything).*` + older, operation: "read missing", seen: `error -32602`,
		why: "the code of 2026-07-28 in older versions",
	},

	// Without a GET stream.
	{
		where: ` http .*2024-11-05`, operation: "subscribe", seen: `no update came`,
		why: "2024-11-05 has no GET stream, on which alone updates come",
	},
	{
		where: `^(go-sdk|server-everything).* http .*2024-11-05`, operation: "list_changed", seen: `no change came`,
		why: "2024-11-05 has no GET stream, on which alone changes of lists come",
	},
	{
		where: `^mcp-go http .*2024-11-05`, operation: "list_changed", seen: `no change came`, sometimes: true,
		why: "2024-11-05 has no GET stream, and mcp-go tells of a change in the answer to a call only when that is still being written",
	},
	{
		where: `^go-sdk json http .*2024-11-05`, operation: "(progress|idle)", seen: `stream not connected`,
		why: "in JSON mode go-sdk sends notifications on the GET stream, which 2024-11-05 has not",
	},
	{
		where: `^go-sdk json http .*2024-11-05`, operation: "(sampling|roots|undeclared|logging)", seen: `stream not connected`,
		why: "in JSON mode go-sdk asks and logs on the GET stream, which 2024-11-05 has not",
	},
	{
		where: `^mcp-go http .*2024-11-05`, operation: "(sampling|roots|undeclared)", seen: `timeout`,
		why: "mcp-go asks on the GET stream, which 2024-11-05 has not",
	},
	{
		where: `^server-everything http .*2024-11-05`, operation: "(roots|logging)", seen: `timeout|no message came`,
		why: "the server asks for roots and logs on the GET stream, which 2024-11-05 has not",
	},
	{
		where: `^go-sdk json http`, operation: "(undeclared|sampling|elicitation|url|roots)", seen: `stream not connected`, sometimes: true,
		why: "the first call of a session may be there before its GET stream",
	},

	// Stateless.
	{
		where: `^go-sdk stateless`, operation: "cancel", seen: `the server went on: the call was finished`,
		why: "without sessions go-sdk cannot tell which request is cancelled, and in 2026-07-28 it does not heed the end of the stream",
	},
	{
		where: `^go-sdk stateless.*` + older, operation: "(elicitation|url)", seen: `client does not support elicitation`,
		why: "without sessions go-sdk does not remember what the client declared",
	},
	{
		where: `^go-sdk stateless.*2025`, operation: "subscribe", seen: `no update came`,
		why: "without sessions go-sdk accepts subscriptions and forgets them",
	},
	{
		where: `^go-sdk stateless.*2025`, operation: "list_changed", seen: `no change came`,
		why: "without sessions nobody can be told",
	},
	{
		where: `^go-sdk stateless.*` + older, operation: "logging", seen: `got .*"level":"info".*, want level warning`,
		why: "without sessions go-sdk does not remember the level that was set",
	},

	// Order.
	{
		where: `^(mcp-go|go-sdk json)`, operation: "progress", seen: `[0123] of 4 progress notifications`, sometimes: true,
		why: "mcp-go writes notifications and answers from several goroutines, and go-sdk in JSON mode on two streams: the answer may be first",
	},
	{
		where: `^(mcp-go|go-sdk json) http`, operation: "progress", seen: `^times`, sometimes: true,
		why: "progress on another stream than the answer may be read after it",
	},
	{
		where: `^(mcp-go|go-sdk json)`, operation: "anomaly", seen: `^progress_late`, sometimes: true,
		why: "as above",
	},
	{
		where: `^mcp-go http`, operation: "logging", seen: `got .*, want level|no message came`, sometimes: true,
		why: "mcp-go keeps no order of notifications, and loses those that come after the answer where there is no GET stream",
	},
	{
		where: `^mcp-go .*2026`, operation: "listen", seen: `no_ack`, sometimes: true,
		why: "mcp-go may answer a subscription to nothing before it acknowledges it",
	},

	// What comes for requests that are over.
	{
		where: `^(mcp-go|go-sdk|server-everything) (stdio|sse)`, operation: "anomaly", seen: `^late_answer`, sometimes: true,
		why: "the server answers, or had answered, a request that was cancelled or timed out",
	},
	{
		where: `^server-everything (stdio|sse)`, operation: "anomaly", seen: `^progress_late`, sometimes: true,
		why: "the tool goes on after a cancellation",
	},

	{
		where: `^server-everything (http|sse)`, operation: "anomaly", seen: `^stale_connection`, sometimes: true,
		why: "node closes connections that were idle for five seconds",
	},
	{
		where: `^server-everything stdio`, operation: "anomaly", seen: `^killed`, sometimes: true,
		why: "with timers the server does not exit when its stdin is closed; a question that nobody answers has one of a minute",
	},
	{
		where: `^mcp-go stdio - 2026`, operation: "(subscribe|list_changed)", seen: `came: gave up`,
		why: "over stdio mcp-go sends changes without the subscriptionId that says whose they are",
	},
	{
		where: `^mcp-go stdio - 2026`, operation: "anomaly", seen: `^unasked_notification`,
		why: "as above",
	},
}
