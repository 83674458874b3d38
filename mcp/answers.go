package mcp

import (
	"context"
	"encoding/json"
	"time"
)

// Answerer plays the part of the user and the model behind a client. Answer is
// called on a goroutine of its own, possibly several at once; it may take its
// time, as long as ctx allows. An error that is an *RPCError is sent as such, any
// other as -32603.
type Answerer interface {
	Answer(ctx context.Context, q Question) (result json.RawMessage, err error)
}

// Question is what a server asks of the client: a request of its own up to
// 2025-11-25, an entry of inputRequests in 2026-07-28.
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
}
