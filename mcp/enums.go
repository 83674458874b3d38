package mcp

// ProtocolFault enumerates protocol errors; its value is the error_code column,
// so values are only ever added at the end.
type ProtocolFault int32

// Protocol faults.
const (
	// FaultBadJSON is bytes that are no JSON object where a message is due.
	FaultBadJSON ProtocolFault = iota + 1
	// FaultBadJSONRPC is a message without jsonrpc "2.0".
	FaultBadJSONRPC
	// FaultResultAndError is an answer that has both.
	FaultResultAndError
	// FaultNoResultNoError is an answer that has neither.
	FaultNoResultNoError
	// FaultBadError is an error member without an integer code.
	FaultBadError
	// FaultBadResult is a result of the wrong shape.
	FaultBadResult
	// FaultForeignID is an answer to another id where only ours is possible.
	FaultForeignID
	// FaultNoAnswer is an exchange that finished cleanly without an answer.
	FaultNoAnswer
	// FaultContentType is a body whose content type carries no message.
	FaultContentType
	// FaultContentEncoding is a body coded in a way we did not ask for.
	FaultContentEncoding
	// FaultBatch is an array of messages where the version allows none.
	FaultBatch
	// FaultBadHTTP is malformed HTTP.
	FaultBadHTTP
	// FaultResultType is a resultType that the version does not define.
	FaultResultType
	// FaultInputRequired is a demand for input that the client did not declare,
	// that is malformed, or that the request must not bring.
	FaultInputRequired
	// FaultTask is a task where the client did not declare tasks.
	FaultTask
	// FaultCursor is a nextCursor that is no string, or one seen before.
	FaultCursor
	// FaultEndpoint is a stream of HTTP+SSE that does not begin with an endpoint
	// event, or one that names no URI of the same origin.
	FaultEndpoint
	// FaultNoAck is a subscription that ended in order before it was acknowledged.
	FaultNoAck

	faultEnd
)

var faultNames = [...]string{
	"", "bad_json", "bad_jsonrpc", "result_and_error", "no_result_no_error", "bad_error",
	"bad_result", "foreign_id", "no_answer", "content_type", "content_encoding", "batch", "bad_http",
	"result_type", "input_required", "task", "cursor", "endpoint",
	"no_ack",
}

// String returns the fault's name.
func (f ProtocolFault) String() string { return name(faultNames[:], int(f)) }

// LimitKind enumerates limits; its value is the error_code column.
type LimitKind int32

// Limits.
const (
	// LimitMessage bounds one JSON-RPC message, after decompression.
	LimitMessage LimitKind = iota + 1
	// LimitHeader bounds the header of an HTTP response.
	LimitHeader
	// LimitPages bounds the pages of one list.
	LimitPages
	// LimitRounds bounds the exchanges of one request whose answers ask for input.
	LimitRounds

	limitEnd
)

var limitNames = [...]string{"", "message_bytes", "header_bytes", "pages", "rounds"}

// String returns the limit's name.
func (l LimitKind) String() string { return name(limitNames[:], int(l)) }

// TimeoutKind enumerates time limits; its value is the error_code column.
type TimeoutKind int32

// Time limits.
const (
	// TimeoutTotal is Request.Timeout.
	TimeoutTotal TimeoutKind = iota + 1
	// TimeoutIdle is Wants.IdleTimeout.
	TimeoutIdle

	timeoutEnd
)

var timeoutNames = [...]string{"", "request timeout", "idle timeout"}

// String returns the limit's name.
func (k TimeoutKind) String() string { return name(timeoutNames[:], int(k)) }

// Anomaly is a legal oddity or a harmless breach; it is counted by kind and
// never makes a request fail.
type Anomaly uint8

// Anomalies.
const (
	// AnomalyStdoutNoise is a line on a server's stdout that is no message.
	AnomalyStdoutNoise Anomaly = iota + 1
	// AnomalyUnknownID is an answer to an id that was never sent, or has none.
	AnomalyUnknownID
	// AnomalyDuplicateAnswer is a second answer to one request.
	AnomalyDuplicateAnswer
	// AnomalyLateAnswer is an answer to a request that was given up.
	AnomalyLateAnswer
	// AnomalyUnknownNotification is a notification that the version does not define.
	AnomalyUnknownNotification
	// AnomalyServerRequestRefused is a server request that the client did not
	// declare, that the version does not have, or that is malformed.
	AnomalyServerRequestRefused
	// AnomalyServerRequestForbidden is a server request in a version that has none.
	AnomalyServerRequestForbidden
	// AnomalyOddEvent is an SSE event that carries no JSON-RPC message, or one
	// under an unexpected event name.
	AnomalyOddEvent
	// AnomalyGetStreamRefused is a GET stream refused with 409 or answered with
	// something else than a stream.
	AnomalyGetStreamRefused
	// AnomalyGetStreamLost is a GET stream given up after repeated failures.
	AnomalyGetStreamLost
	// AnomalyOddStatus is a notification accepted with a status other than 202.
	AnomalyOddStatus
	// AnomalyOversized is a message over the limit that belongs to no request.
	AnomalyOversized
	// AnomalyBatch is an array of messages outside an exchange, where the version has none.
	AnomalyBatch
	// AnomalyReplyDropped is an answer to a server request that could not be sent.
	AnomalyReplyDropped
	// AnomalyCancelFailed is a cancellation that could not be delivered.
	AnomalyCancelFailed
	// AnomalyCloseFailed is a server session whose end the server refused.
	AnomalyCloseFailed
	// AnomalyKilled is a stdio server that did not exit by itself when its stdin was closed.
	AnomalyKilled
	// AnomalyStaleConnection is a kept-alive HTTP connection that the server had
	// closed; the request was sent again over a new one.
	AnomalyStaleConnection
	// AnomalyServerRequestFlood is a server request refused because too many are
	// being answered.
	AnomalyServerRequestFlood
	// AnomalyServerRequestTwice is a server request with the id of another one that
	// is being answered.
	AnomalyServerRequestTwice
	// AnomalyToolHeaders is a tool that breaks the rules for headers from its
	// arguments, or a list of tools that could not be had for them.
	AnomalyToolHeaders
	// AnomalyProgressToken is a progress notification with a token that no request
	// had, or with none.
	AnomalyProgressToken
	// AnomalyProgressLate is a progress notification for a request that is over. When
	// it came on another stream than the answer, it may have been sent before.
	AnomalyProgressLate
	// AnomalyProgressValue is a progress notification whose value does not increase
	// within its stream, came before, or is no number.
	AnomalyProgressValue
	// AnomalyResumed is the stream of a request that ended before the answer and was
	// taken up again; counted each time.
	AnomalyResumed
	// AnomalyUnaskedNotification is a notification about a change that belongs to no
	// subscription, or that the version does not allow where it came.
	AnomalyUnaskedNotification
	// AnomalyNotificationDropped is a notification that was kept for a caller who did
	// not take it before too many others came.
	AnomalyNotificationDropped
	// AnomalySubscriptionPartly is a subscription of which the server acknowledged
	// only a part.
	AnomalySubscriptionPartly
	// AnomalyListenReopened is the stream of a subscription that ended without a
	// result and is opened again; counted each time.
	AnomalyListenReopened
	// AnomalyListenLost is a subscription given up after repeated failures.
	AnomalyListenLost
	// AnomalyConnectionWait is a request that had to wait for a connection of a pool.
	AnomalyConnectionWait

	anomalyEnd
)

var anomalyNames = [...]string{
	"", "stdout_noise", "unknown_id", "duplicate_answer", "late_answer", "unknown_notification",
	"server_request_refused", "server_request_forbidden", "odd_event", "get_stream_refused",
	"get_stream_lost", "odd_status", "oversized", "batch", "reply_dropped", "cancel_failed",
	"close_failed", "killed", "stale_connection", "server_request_flood", "server_request_twice",
	"tool_headers",
	"progress_token", "progress_late", "progress_value",
	"resumed", "unasked_notification", "notification_dropped", "subscription_partly", "listen_reopened", "listen_lost",
	"connection_wait",
}

// String returns the anomaly's name as it stands in results.
func (a Anomaly) String() string { return name(anomalyNames[:], int(a)) }

// Anomalies lists every kind.
func Anomalies() []Anomaly {
	all := make([]Anomaly, 0, anomalyEnd-1)
	for a := Anomaly(1); a < anomalyEnd; a++ {
		all = append(all, a)
	}
	return all
}

// The tables of names and the constants must have equal length.
var (
	_ = [1]struct{}{}[len(faultNames)-int(faultEnd)]
	_ = [1]struct{}{}[len(limitNames)-int(limitEnd)]
	_ = [1]struct{}{}[len(timeoutNames)-int(timeoutEnd)]
	_ = [1]struct{}{}[len(anomalyNames)-int(anomalyEnd)]
	_ = [1]struct{}{}[len(classNames)-int(classEnd)]
)

func name(names []string, i int) string {
	if i > 0 && i < len(names) {
		return names[i]
	}
	return "invalid"
}
