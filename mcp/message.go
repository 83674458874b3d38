package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// message is one decoded JSON-RPC message. Its fields alias the bytes it was
// decoded from and are nil where the member is absent.
type message struct {
	jsonrpc, id, method, params, result, err json.RawMessage

	isError, resultType span // values within result, when it is an object that has them
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

// slot returns where the value of a member goes, nil when nobody needs it.
func (m *message) slot(f *member) *json.RawMessage {
	switch string(f.key) {
	case "jsonrpc":
		return &m.jsonrpc
	case "id":
		return &m.id
	case "method":
		return &m.method
	case "params":
		return &m.params
	case "result":
		return &m.result
	case "error":
		return &m.err
	}
	if bytes.IndexByte(f.key, '\\') < 0 {
		return nil
	}
	plain := member{key: f.unescaped()}
	if bytes.IndexByte(plain.key, '\\') >= 0 {
		return nil // none of the names has one
	}
	return m.slot(&plain)
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
	s, _ := text(m.method)
	return s
}

// numericID returns the id when it is a number that one of our requests can
// have. Strings never match: we number requests, and `7` is not `"7"`.
func (m *message) numericID() (int64, bool) {
	if id, ok := digits(m.id); ok {
		return id, true
	}
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

// digits reads a number as we write ids.
func digits(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// anonymous reports whether a response names no id: absent or null, as servers
// send when they could not tell which request an error belongs to.
func (m *message) anonymous() bool { return len(m.id) == 0 || string(m.id) == "null" }

// answer judges a response to one of our requests: nil when it has a result,
// else the error it amounts to. Status is the HTTP status, 0 on stdio.
func (m *message) answer(data []byte, status int) error {
	if string(m.jsonrpc) != `"2.0"` {
		return &ProtocolError{Kind: FaultBadJSONRPC, Detail: `jsonrpc is not "2.0" in ` + excerpt(data)}
	}
	switch {
	case m.result != nil && m.err != nil:
		return &ProtocolError{Kind: FaultResultAndError, Detail: excerpt(data)}
	case m.err != nil:
		return m.rpcError(status)
	case m.result == nil:
		return &ProtocolError{Kind: FaultNoResultNoError, Detail: excerpt(data)}
	case m.result[0] != '{':
		return &ProtocolError{Kind: FaultBadResult, Detail: "the result is not an object: " + excerpt(m.result)}
	}
	return nil
}

// take copies the result of m into the reply, to buf if it is large enough.
func (r *Reply) take(m *message, buf []byte) {
	if buf == nil || cap(buf) < len(m.result) {
		buf = make([]byte, 0, len(m.result))
	}
	r.Result = append(buf[:0], m.result...)
	r.scanned, r.isError, r.resultType = true, m.isError, m.resultType
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

// unknownSession reports whether an error is how some servers say that they do not
// know the session they were named, for which the rule is 404: the example router
// of the TypeScript SDK, and mcp-go over HTTP+SSE.
func unknownSession(e *RPCError) bool {
	switch {
	case e.HTTPStatus != 400:
		return false
	case e.Code == -32000:
		return strings.Contains(e.Message, "No valid session ID")
	}
	return e.Code == -32602 && strings.Contains(e.Message, "Invalid session ID")
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
