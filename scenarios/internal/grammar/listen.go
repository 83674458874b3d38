package grammar

// Cancel cancels the request of a step on purpose, if it was not answered before.
type Cancel struct {
	Place
	// After is the time from the send to the cancellation.
	After Spread `json:"after" jsonschema:"required"`
}

// Subscribe starts a subscription: resources/subscribe for each URI, or
// subscriptions/listen in 2026-07-28.
type Subscribe struct {
	Place
	// URIs of resources whose changes to be told of.
	URIs []Template `json:"uris"`
	// Tools: be told when the list of tools changes.
	Tools bool `json:"tools" jsonschema:"default=false"`
	// Prompts: be told when the list of prompts changes.
	Prompts bool `json:"prompts" jsonschema:"default=false"`
	// Resources: be told when the list of resources changes.
	Resources bool `json:"resources" jsonschema:"default=false"`
}

// Unsubscribe ends a subscription.
type Unsubscribe struct {
	Place
	// Handle is the name that the subscription has by as.
	Handle string `json:"handle" jsonschema:"required"`
}

// WaitFor waits for a notification of the server.
type WaitFor struct {
	Place
	// Notification such as resources/updated; notifications/ may be left out.
	Notification string `json:"notification" jsonschema:"required"`
	// From takes only notifications of the subscription with that name. Default: any on the session.
	From string `json:"from"`
	// Timeout of the waiting. Default: limits.request_timeout.
	Timeout Duration `json:"timeout"`
}

// Message is a request or notification written by hand.
type Message struct {
	Place
	// Method of the message.
	Method string `json:"method" jsonschema:"required"`
	// Params of the message: any map; values may hold ${{ }} expressions.
	Params Values `json:"params"`
}
