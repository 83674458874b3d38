package mcp

import (
	"fmt"
	"slices"
)

// inbox handles what a server sends without being asked: notifications and
// requests of its own. Safe for concurrent use.
type inbox struct {
	env  *envelope
	tell func(kind Anomaly, detail string)
	// reply sends the answer to a server request without waiting for it.
	reply func(payload []byte)
}

// notification counts a notification; progress tells whether it is one of progress.
func (in *inbox) notification(m *message) (progress bool) {
	method := m.methodName()
	if !in.env.current().knowsNotification(method) {
		in.tell(AnomalyUnknownNotification, method)
	}
	return method == "notifications/progress"
}

// request answers a server request: ping with an empty result, anything else
// with -32601, because no client capability is declared that would allow it. In
// a version without server requests nothing is sent, not even a refusal.
func (in *inbox) request(m *message) {
	method := m.methodName()
	if !in.env.current().ServerRequests {
		in.tell(AnomalyServerRequestForbidden, method)
		return
	}
	if method == "ping" {
		in.reply(slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), m.id, []byte(`,"result":{}}`)))
		return
	}
	in.tell(AnomalyServerRequestRefused, method)
	answer := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.id)
	in.reply(answer)
}
