package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// message is one decoded JSON-RPC message. Its fields alias the bytes it was
// decoded from and are nil where the member is absent.
type message struct {
	jsonrpc, id, method, params, result, err json.RawMessage
}

// messageKind is what a message is, told by its members alone: a request has
// method and id, a notification only method, a response no method. An object
// with none of jsonrpc, result and error is something else, such as a log line.
type messageKind uint8

const (
	kindOther messageKind = iota // no JSON-RPC message
	kindRequest
	kindNotification
	kindResponse
)

var errNotObject = errors.New("not a JSON object")

// decodeMessage splits one JSON object into the members JSON-RPC knows. Keys
// are matched exactly, other members are ignored, of equal keys the last counts.
func decodeMessage(data []byte) (message, error) {
	if err := validObject(data); err != nil {
		return message{}, err
	}
	var m message
	s := scanObject(data)
	for f, ok := s.next(); ok; f, ok = s.next() {
		if slot := m.slot(&f); slot != nil {
			*slot = data[f.start:f.end]
		}
	}
	return m, nil
}

func (m *message) slot(f *member) *json.RawMessage {
	switch {
	case f.named("jsonrpc"):
		return &m.jsonrpc
	case f.named("id"):
		return &m.id
	case f.named("method"):
		return &m.method
	case f.named("params"):
		return &m.params
	case f.named("result"):
		return &m.result
	case f.named("error"):
		return &m.err
	}
	return nil
}

func validObject(data []byte) error {
	if !json.Valid(data) {
		var v json.RawMessage
		if err := json.Unmarshal(data, &v); err != nil {
			return err
		}
	}
	if i := skipSpace(data, 0); i >= len(data) || data[i] != '{' {
		return errNotObject
	}
	return nil
}

// isArray reports whether data begins like a JSON array.
func isArray(data []byte) bool {
	i := skipSpace(data, 0)
	return i < len(data) && data[i] == '['
}

// splitBatch returns the elements of a JSON array.
func splitBatch(data []byte) ([]json.RawMessage, error) {
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	return all, nil
}

func (m *message) kind() messageKind {
	switch {
	case m.jsonrpc == nil && m.result == nil && m.err == nil:
		return kindOther
	case m.method != nil && m.id != nil:
		return kindRequest
	case m.method != nil:
		return kindNotification
	case m.result != nil || m.err != nil || m.id != nil:
		return kindResponse
	}
	return kindOther
}

func (m *message) methodName() string {
	var s string
	if json.Unmarshal(m.method, &s) != nil {
		return ""
	}
	return s
}

// numericID returns the id when it is a number that one of our requests can
// have. Strings never match: we number requests, and `7` is not `"7"`.
func (m *message) numericID() (int64, bool) {
	if id, err := strconv.ParseInt(string(m.id), 10, 64); err == nil {
		return id, true
	}
	if len(m.id) == 0 || m.id[0] == '"' {
		return 0, false
	}
	// The same number may be written 7.0 or 7e0.
	f, err := strconv.ParseFloat(string(m.id), 64)
	if err != nil || f != float64(int64(f)) || f > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// anonymous reports whether a response names no id: absent or null, as servers
// send when they could not tell which request an error belongs to.
func (m *message) anonymous() bool { return len(m.id) == 0 || string(m.id) == "null" }

// answer returns what a response to one of our requests holds: a copy of its
// result, or the error it amounts to. Status is the HTTP status, 0 on stdio.
func (m *message) answer(data []byte, status int) (json.RawMessage, error) {
	if string(m.jsonrpc) != `"2.0"` {
		return nil, &ProtocolError{Kind: FaultBadJSONRPC, Detail: `jsonrpc is not "2.0" in ` + excerpt(data)}
	}
	switch {
	case m.result != nil && m.err != nil:
		return nil, &ProtocolError{Kind: FaultResultAndError, Detail: excerpt(data)}
	case m.err != nil:
		return nil, m.rpcError(status)
	case m.result == nil:
		return nil, &ProtocolError{Kind: FaultNoResultNoError, Detail: excerpt(data)}
	case m.result[0] != '{':
		return nil, &ProtocolError{Kind: FaultBadResult, Detail: "the result is not an object: " + excerpt(m.result)}
	}
	return slices.Clone(m.result), nil
}

// rpcError decodes the error member: an object with an integer code.
func (m *message) rpcError(status int) error {
	var e struct {
		Code    *int64          `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(m.err, &e); err != nil || e.Code == nil {
		return &ProtocolError{Kind: FaultBadError, Detail: excerpt(m.err), Err: err}
	}
	return &RPCError{Code: *e.Code, Message: e.Message, Data: e.Data, HTTPStatus: status}
}

// unknownSession reports whether an error is how the TypeScript SDK's example
// router says that it does not know the session id it was sent; the rule is 404.
func unknownSession(e *RPCError) bool {
	return e.HTTPStatus == 400 && e.Code == -32000 && strings.Contains(e.Message, "No valid session ID")
}

// idInFragment looks for the id of a message of which only the beginning and
// the end are there, because it was longer than the limit.
func idInFragment(head, tail []byte) (int64, bool) {
	var m message
	s := scanObject(head)
	for f, ok := s.next(); ok; f, ok = s.next() {
		if slot := m.slot(&f); slot != nil {
			*slot = head[f.start:f.end]
		}
	}
	if m.id == nil {
		m.id = idAtEnd(tail)
	}
	if m.id == nil || m.method != nil {
		return 0, false
	}
	return m.numericID()
}

// idAtEnd returns the id when it is one of the last members of the object that
// ends with tail, as some servers write it: …,"jsonrpc":"2.0","id":7}.
func idAtEnd(tail []byte) json.RawMessage {
	rest, ok := bytes.CutSuffix(bytes.TrimSpace(tail), []byte{'}'})
	if !ok {
		return nil
	}
	rest = bytes.TrimSpace(rest)
	if cut, found := bytes.CutSuffix(rest, []byte(`"jsonrpc":"2.0"`)); found {
		rest, found = bytes.CutSuffix(bytes.TrimSpace(cut), []byte{','})
		if !found {
			return nil
		}
		rest = bytes.TrimSpace(rest)
	}
	digits := len(rest)
	for digits > 0 && rest[digits-1] >= '0' && rest[digits-1] <= '9' {
		digits--
	}
	key := bytes.TrimSpace(rest[:digits])
	if digits == len(rest) || !bytes.HasSuffix(key, []byte(`"id":`)) {
		return nil
	}
	return json.RawMessage(rest[digits:])
}
