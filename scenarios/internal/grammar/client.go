package grammar

// Client says what the simulated client declares and how it answers the server.
type Client struct {
	Place
	// Use takes over a map of another file: FILE#PATH. What is written here wins.
	Use Text `json:"use"`
	// Capabilities that the client declares; a server may ask for these only.
	Capabilities Capabilities `json:"capabilities"`
	// Answers to what the server asks of the client.
	Answers Answers `json:"answers"`
	// TraceContext sends trace ids along.
	TraceContext Later `json:"trace_context"`
}

// Capabilities are what the client declares to be able to answer.
type Capabilities struct {
	Place
	// Elicitation: the server may ask the user for input (from 2025-06-18 on).
	Elicitation bool `json:"elicitation" jsonschema:"default=false"`
	// Sampling: the server may ask the model for a message.
	Sampling bool `json:"sampling" jsonschema:"default=false"`
	// Roots: the server may ask for the client's roots.
	Roots bool `json:"roots" jsonschema:"default=false"`
}

// Answers are given in place of a user and a model.
type Answers struct {
	Place
	// Elicitation answers elicitation/create.
	Elicitation *Elicitation `json:"elicitation"`
	// Sampling answers sampling/createMessage.
	Sampling *Sampling `json:"sampling"`
	// Roots answer roots/list: file URIs. Default: none.
	Roots []Template `json:"roots"`
}

// Elicitation answers a request for input of the user.
type Elicitation struct {
	Place
	// Action of the user.
	Action string `json:"action" jsonschema:"enum=accept,enum=decline,enum=cancel,default=accept"`
	// Content of the form. Default: the defaults of the schema that the server asks with, else its smallest values.
	Content Values `json:"content"`
	// Delay is the time that the user takes.
	Delay Spread `json:"delay" jsonschema:"default=0s"`
}

// Sampling answers a request for a message of the model.
type Sampling struct {
	Place
	// Text of the message.
	Text Template `json:"text" jsonschema:"default=stub answer"`
	// Model that is said to have made it.
	Model Template `json:"model" jsonschema:"default=mcpbench"`
	// StopReason that is given.
	StopReason Template `json:"stop_reason" jsonschema:"default=endTurn"`
	// Delay is the time that the model takes.
	Delay Spread `json:"delay" jsonschema:"default=0s"`
}
