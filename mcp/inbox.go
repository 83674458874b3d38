package mcp

import (
	"bytes"
	"encoding/json"
)

// inbox handles what a server sends without being asked: notifications and
// requests of its own. Its Conn stops and awaits what it answers. Safe for
// concurrent use.
type inbox struct {
	o   *Options
	env *envelope
	// reply sends an answer that is there at once, without waiting for it.
	reply    func(payload []byte)
	declared declared
	desk     desk
}

// newInbox returns an inbox that answers by reply what needs no thought, and by
// send, from goroutines of its own, the rest. See desk.send.
func newInbox(o *Options, env *envelope, reply func(payload []byte), send func(payload []byte) error) inbox {
	return inbox{o: o, env: env, reply: reply, declared: readDeclared(o.Capabilities), desk: desk{o: o, send: send}}
}

// notification counts a notification; progress tells whether it is one of progress.
func (in *inbox) notification(m *message) (progress bool) {
	method := m.methodName()
	rules := in.env.current()
	if !rules.knowsNotification(method) {
		in.o.OnAnomaly(AnomalyUnknownNotification, method)
	}
	if method == methodCancelled && rules.ServerRequests {
		in.desk.withdraw(lookup(m.params, "requestId"))
	}
	return method == methodProgress
}

// request answers a server request: ping at once, what the client declared by the
// Answerer, anything else with an error. It does not wait. In a version without
// server requests nothing is sent, not even a refusal.
func (in *inbox) request(m *message) {
	rules := in.env.current()
	q := &question{Question: Question{Method: m.methodName()}, at: in.o.now()}
	if !rules.ServerRequests {
		in.o.OnAnomaly(AnomalyServerRequestForbidden, q.Method)
		return
	}
	if string(m.params) != "null" {
		q.Params = m.params
	}
	var refusal *RPCError
	switch _, named := text(m.method); {
	case string(m.jsonrpc) != `"2.0"` || !named:
		refusal = &RPCError{Code: codeInvalidRequest, Message: "Invalid Request"}
	case q.Method == "ping":
		in.o.OnAsked(Asked{Method: q.Method, At: q.at, Took: in.o.now() - q.at})
		in.reply(resultMessage(m.id, json.RawMessage("{}")))
		return
	case in.o.Answers == nil:
		refusal = &RPCError{Code: codeMethodNotFound, Message: "Method not found"}
	default:
		refusal = in.declared.refuse(rules.Features, &q.Question)
	}
	if refusal != nil {
		in.refuse(m, q, refusal, AnomalyServerRequestRefused)
		return
	}
	// The message lies in a buffer that its reader uses again.
	q.id, q.Params = bytes.Clone(m.id), bytes.Clone(q.Params)
	switch v, twice := in.desk.take(q); {
	case v == deskFull:
		in.refuse(m, q, &RPCError{Code: codeInternal, Message: errFlood.Error()}, AnomalyServerRequestFlood)
	case v == deskEnded:
		in.o.OnAsked(Asked{Method: q.Method, At: q.at, Cancelled: true, Err: errClosed})
	case twice:
		in.o.OnAnomaly(AnomalyServerRequestTwice, q.Method+", id "+excerpt(m.id))
	}
}

// refuse answers with an error at once.
func (in *inbox) refuse(m *message, q *question, e *RPCError, kind Anomaly) {
	in.o.OnAnomaly(kind, q.Method+": "+e.Message)
	in.o.OnAsked(Asked{Method: q.Method, At: q.at, Took: in.o.now() - q.at, Refused: true, Err: e})
	in.reply(errorMessage(m.id, e))
}
