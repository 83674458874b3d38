package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Answerer plays the part of the user and the model behind a client. Answer is
// called on a goroutine of its own, possibly several at once; it may take its
// time, as long as ctx allows. An error that is an *RPCError is sent as such, any
// other as -32603. In 2026-07-28 no error can be sent: there it ends the request
// with an *AnswerError.
type Answerer interface {
	Answer(ctx context.Context, q Question) (result json.RawMessage, err error)
}

// Question is what a server asks of the client: a request of its own up to
// 2025-11-25, an entry of inputRequests in 2026-07-28. Params are an object or
// nil, and valid until Answer returns.
type Question struct {
	Method string // roots/list, sampling/createMessage, elicitation/create
	Params json.RawMessage
}

// Asked is a Question that is over.
type Asked struct {
	Method  string
	At      time.Duration // it arrived, since Options.Base
	Took    time.Duration // until the answer was handed to the transport
	Refused bool          // with an error
	// Cancelled tells that no answer was sent: the server took the question back,
	// or the request or the session that it belonged to had ended.
	Cancelled bool
	Err       error // why it was refused or no answer was sent
}

// AnswerError is a question of the server that was not answered, so that the
// request that led to it could not go on. It is no fault of the server, and wraps
// what the Answerer said.
type AnswerError struct {
	Method string
	Err    error
}

// Error names the question.
func (e *AnswerError) Error() string {
	return fmt.Sprintf("the request asked for %s, which was not answered: %v", e.Method, e.Err)
}

// Unwrap returns what the Answerer said, unless it is an *RPCError: that one is
// ours, and must not pass for the server's.
func (e *AnswerError) Unwrap() error {
	if _, ours := errors.AsType[*RPCError](e.Err); ours {
		return nil
	}
	return e.Err
}

// codeURLElicitation asks the user to visit a URL before the request is made again
// (specification 2025-11-25, client/elicitation, URL elicitation required error).
const codeURLElicitation = -32042

// toOpen lists the URLs of such an error, for its text. Nothing ever opens them.
func (e *RPCError) toOpen() string {
	if e.Code != codeURLElicitation {
		return ""
	}
	var data struct {
		Elicitations []struct {
			URL string `json:"url"`
		} `json:"elicitations"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	const most = 5
	var list strings.Builder
	for i := range min(most, len(data.Elicitations)) {
		list.WriteString(" " + excerpt([]byte(data.Elicitations[i].URL)))
	}
	if more := len(data.Elicitations) - most; more > 0 {
		fmt.Fprintf(&list, " and %d more", more)
	}
	if list.Len() == 0 {
		return ""
	}
	return "; to be opened by the user:" + list.String()
}

// JSON-RPC error codes that the client answers with (JSON-RPC 2.0, section 5.1).
const (
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
)

var (
	errNoAnswerer = errors.New("no Answerer is configured")
	errNoObject   = errors.New("the Answerer gave no JSON object")
	errWithdrawn  = errors.New("the server took it back")
	errFlood      = errors.New("too many requests of the server at once")
)

// declared is what a capabilities object says that the client can be asked for.
type declared struct {
	roots, sampling, tools, form, url bool
}

func readDeclared(capabilities json.RawMessage) declared {
	isObject := func(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }
	sampling, elicitation := lookup(capabilities, "sampling"), lookup(capabilities, "elicitation")
	d := declared{roots: isObject(lookup(capabilities, "roots")), sampling: isObject(sampling)}
	d.tools = isObject(lookup(sampling, "tools"))
	if isObject(elicitation) {
		d.url = isObject(lookup(elicitation, "url"))
		// An empty object means form (specification 2025-11-25, client/elicitation, capabilities).
		d.form = isObject(lookup(elicitation, "form")) || !d.url
	}
	return d
}

// refuse returns the error with which a question is refused, nil when it may be
// answered. An undeclared mode of elicitation is -32602 (specification
// 2025-11-25, client/elicitation, error handling), and so are tools that were not
// declared (schema, CreateMessageRequestParams); whatever else was not declared
// is -32601.
func (d *declared) refuse(f Features, q *Question) *RPCError {
	switch {
	case !f.knowsQuestion(q.Method) || !d.has(q.Method):
		return &RPCError{Code: codeMethodNotFound, Message: "Method not found"}
	case q.Params != nil && q.Params[0] != '{':
		return &RPCError{Code: codeInvalidParams, Message: "Invalid params: not an object"}
	case q.Method == "elicitation/create" && !d.allowsMode(f, lookup(q.Params, "mode")):
		return &RPCError{Code: codeInvalidParams, Message: "Invalid params: this mode was not declared"}
	case q.Method == "sampling/createMessage" && f.richQuestions() && !d.tools && lookup(q.Params, "tools") != nil:
		return &RPCError{Code: codeInvalidParams, Message: "Invalid params: tools were not declared"}
	}
	return nil
}

func (d *declared) has(method string) bool {
	switch method {
	case "roots/list":
		return d.roots
	case "sampling/createMessage":
		return d.sampling
	case "elicitation/create":
		return d.form || d.url
	}
	return false
}

// allowsMode judges the mode of an elicitation; none means form. Versions without
// modes have only the form.
func (d *declared) allowsMode(f Features, mode json.RawMessage) bool {
	name, _ := text(mode)
	switch {
	case name == "url":
		return d.url && f.richQuestions()
	case !f.richQuestions():
		return true
	}
	return d.form && (mode == nil || name == "form")
}

// Capabilities returns the client capabilities object that declares, in the form
// of version v, what the client can be asked for. What v does not have is left
// out. It is for Options.Capabilities.
func (v Version) Capabilities(roots, sampling, elicitation bool) json.RawMessage {
	f := v.Features()
	c := []byte{'{'}
	add := func(wanted bool, plain, rich string) {
		if !wanted {
			return
		}
		if f.richQuestions() {
			plain = rich
		}
		if len(c) > 1 {
			c = append(c, ',')
		}
		c = append(c, plain...)
	}
	if f.ServerRequests {
		add(roots, `"roots":{"listChanged":true}`, `"roots":{"listChanged":true}`)
	} else {
		add(roots, `"roots":{}`, `"roots":{}`)
	}
	add(sampling, `"sampling":{}`, `"sampling":{"tools":{}}`)
	add(elicitation && f.knowsQuestion("elicitation/create"), `"elicitation":{}`, `"elicitation":{"form":{},"url":{}}`)
	return append(c, '}')
}

// ask has one question answered. The result is a JSON object.
func (o *Options) ask(ctx context.Context, q *Question) (json.RawMessage, error) {
	if o.Answers == nil {
		return nil, errNoAnswerer
	}
	result, err := o.Answers.Answer(ctx, *q)
	if err != nil {
		return nil, err
	}
	if start := skipSpace(result, 0); start == len(result) || result[start] != '{' || !json.Valid(result) {
		return nil, errNoObject
	}
	return result, nil
}

// asRPC returns the error to send for what an Answerer said.
func asRPC(err error) *RPCError {
	if e, ok := errors.AsType[*RPCError](err); ok {
		return e
	}
	return &RPCError{Code: codeInternal, Message: "Internal error"}
}

// resultMessage is the answer to a request of the server. The id is echoed as it
// came.
func resultMessage(id, result json.RawMessage) []byte {
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), result, []byte{'}'})
}

// errorMessage is the refusal of a request of the server.
func errorMessage(id json.RawMessage, e *RPCError) []byte {
	p := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	p = strconv.AppendInt(append(p, `,"error":{"code":`...), e.Code, 10)
	p = appendString(append(p, `,"message":`...), e.Message)
	if json.Valid(e.Data) {
		p = append(append(p, `,"data":`...), e.Data...)
	}
	return append(p, "}}"...)
}
