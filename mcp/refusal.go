package mcp

import (
	"bytes"
	"errors"
	"io"
)

// refusal turns an answer outside 2xx into an error: the JSON-RPC error that its
// body holds, or the HTTP status. A 404 to a message with a server session means
// that the session is gone, whatever the body says (specification 2025-11-25,
// basic/transports, session management). id is that of the request, 0 for a
// message that has none. size is that of the JSON-RPC message, if there was one.
func (c *httpConn) refusal(resp response, session bool, id int64) (size int, err error) {
	body, cut := readSome(resp, refusalBytes)
	c.showAnswer(resp, c.o.now(), ChannelPost, body, cut)
	if session && resp.status() == 404 {
		err := &HTTPError{Status: 404, Body: excerpt(body), Lost: true}
		c.lose(err)
		return 0, err
	}
	e, foreign := c.refusalRPC(body, resp.status(), id)
	switch {
	case foreign:
		resp.distrust()
	case e != nil:
		if session && unknownSession(e) {
			e.lost = true
			c.lose(e)
		}
		return len(body), e
	}
	if late, ok := errors.AsType[*TimeoutError](cut); ok {
		return 0, late // there was no time for the whole answer
	}
	return 0, &HTTPError{Status: resp.status(), Body: excerpt(body), Header: tellingHeader(resp)}
}

// refusalRPC returns the JSON-RPC error in a body, or nil when there is none
// that can be about the request; foreign tells that it is about another one.
func (c *httpConn) refusalRPC(body []byte, status int, id int64) (e *RPCError, foreign bool) {
	m, err := decodeMessage(body)
	isError := err == nil && m.kind() == kindResponse && m.err != nil && string(m.jsonrpc) == `"2.0"`
	if !isError {
		return nil, false
	}
	if got, ok := m.numericID(); !m.anonymous() && (!ok || got != id) {
		c.o.OnAnomaly(AnomalyUnknownID, excerpt(body))
		return nil, true
	}
	e, _ = errors.AsType[*RPCError](m.rpcError(status))
	return e, false
}

// tellingHeader returns the header field that explains a status, as "Name: value".
func tellingHeader(resp response) string {
	name := ""
	switch {
	case resp.status()/100 == 3:
		name = "Location"
	case resp.status() == 401 || resp.status() == 403:
		name = "WWW-Authenticate"
	case resp.status() == 429 || resp.status() == 503:
		name = "Retry-After"
	}
	if name == "" || resp.header(name) == "" {
		return ""
	}
	return name + ": " + excerpt([]byte(resp.header(name)))
}

// readSome reads at most n bytes of a body. What a failing read leaves is still
// worth showing.
func readSome(resp response, n int64) ([]byte, error) {
	var b bytes.Buffer
	if _, err := b.ReadFrom(io.LimitReader(resp, n)); err != nil {
		return b.Bytes(), resp.fault(err)
	}
	return b.Bytes(), nil
}

// beginning is what of a body is quoted in an error.
func beginning(resp response) string {
	body, err := readSome(resp, 512)
	if err != nil && len(body) == 0 {
		return ""
	}
	return excerpt(body)
}

// discard reads the body of an answer that says nothing more, for a while, so that
// the connection can be used again, and returns it; a stream is left alone.
func discard(resp response) []byte {
	if mediaType(resp.header("Content-Type")) == "text/event-stream" || resp.length() == 0 || resp.hurry(drainLimit) != nil {
		return nil
	}
	body, _ := readSome(resp, drainBytes) // after an error the connection is not used again
	return body
}

// closeBody closes a response body. Its error says nothing that reading did not.
func closeBody(resp response) {
	if err := resp.Close(); err != nil {
		return
	}
}

// leave closes a response. An answer to another request may be one that came too
// much, and then all that follow it on the connection would be one request late.
func (x *exchange) leave(resp response) {
	if x.foreign {
		resp.distrust()
	}
	closeBody(resp)
}
