// Package grammar holds the scenario language as Go types. The decoder and the
// published JSON Schema are both made from them: field comments are the
// schema's descriptions, jsonschema tags give what is required, the defaults
// and the allowed values, and a field of type Later is a key that the language
// has but this version does not do yet.
package grammar

import "mcpbench/scenarios/internal/syntax"

// Place is where a map of the scenario stands. The decoder fills it.
type Place struct {
	Node *syntax.Node `json:"-"`
	Path string       `json:"-"` // dotted, "" for the root
}

// File is a whole scenario.
type File struct {
	Place
	// Version of the scenario language; always 1.
	Version int `json:"version" jsonschema:"required,minimum=1,maximum=1"`
	// Name of the scenario in results. Default: the file's name.
	Name string `json:"name"`
	// Description says in a sentence what the scenario is for.
	Description string `json:"description"`
	// Tags are kept with the results of a run.
	Tags map[string]Label `json:"tags"`
	// Matrix runs the scenario once for each cell, several times over.
	Matrix Later `json:"matrix"`
	// Servers under test, by name.
	Servers map[string]*Server `json:"servers"`
	// Client says what the simulated client declares and how it answers the server.
	Client Client `json:"client"`
	// Data names the files that feed rows into expressions.
	Data map[string]*Feeder `json:"data"`
	// Vars are constants for expressions: vars.NAME. The --var flag replaces one.
	Vars map[string]Value `json:"vars"`
	// Limits bound what one request may take.
	Limits Limits `json:"limits"`
	// Load says how often the flows run.
	Load Load `json:"load" jsonschema:"required"`
	// Flows are lists of steps, by name.
	Flows map[string]*Flow `json:"flows" jsonschema:"required"`
	// Thresholds decide whether the run passed, such as p99(latency) < 250ms.
	Thresholds []Threshold `json:"thresholds"`
	// Output says where and what to write.
	Output Output `json:"output"`
	// Use takes over what other files have: FILE or a list of files. What is written here wins.
	Use Files `json:"use"`
}

// Server is one server under test: url, command, from or embedded says which.
type Server struct {
	Place
	// Use takes over a map of another file: FILE#PATH. What is written here wins.
	Use Text `json:"use"`
	// Transport follows from url or command when it is left out or auto. With a url
	// that is Streamable HTTP, or HTTP+SSE (sse) when the server refuses the former.
	Transport string `json:"transport" jsonschema:"enum=auto,enum=http,enum=stdio,enum=sse"`
	// URL of the server's MCP endpoint.
	URL string `json:"url"`
	// Headers sent with each HTTP request. Values may hold ${{ session.index }}.
	Headers map[string]Template `json:"headers"`
	// Command starts a stdio server. It is run without a shell.
	Command string `json:"command"`
	// Args of the command.
	Args []Text `json:"args"`
	// Env adds variables to the child's environment.
	Env map[string]Text `json:"env"`
	// InheritEnv names the variables the child gets from our environment.
	// Default: PATH, HOME and a few more harmless ones.
	InheritEnv []string `json:"inherit_env"`
	// Cwd is the child's working directory, relative to the scenario's folder.
	Cwd string `json:"cwd"`
	// Protocol pins the version of the protocol.
	Protocol string `json:"protocol" jsonschema:"enum=2024-11-05,enum=2025-03-26,enum=2025-06-18,enum=2025-11-25,enum=2026-07-28"`
	// From takes the server from an editor's configuration file.
	From *From `json:"from"`
	// Embedded starts the demo target that is part of mcpbench.
	Embedded string `json:"embedded" jsonschema:"enum=http,enum=stdio"`
	// Auth gets tokens for the server.
	Auth Later `json:"auth"`
	// TLS gives certificates.
	TLS Later `json:"tls"`
	// HTTP tunes the connections.
	HTTP HTTP `json:"http"`
	// Connections says how sessions share HTTP connections: each has its own, or all
	// together have at most N with shared:N.
	Connections Connections `json:"connections" jsonschema:"default=per-session"`
	// Metrics names the process whose CPU and memory to watch.
	Metrics Later `json:"metrics"`
	// Per says whether each session has a process of its own, or all share one.
	Per string `json:"per" jsonschema:"enum=session,enum=shared,default=session"`
	// OnSessionLoss says what follows the loss of a session.
	OnSessionLoss string `json:"on_session_loss" jsonschema:"enum=reopen,enum=end_session,enum=abort,default=reopen"`
}

// From names a server in an editor's configuration file.
type From struct {
	Place
	// File such as .mcp.json or .vscode/mcp.json, relative to the scenario's folder.
	File string `json:"file" jsonschema:"required"`
	// Server is the entry's name in the file.
	Server string `json:"server" jsonschema:"required"`
}

// Limits bound what one request may take.
type Limits struct {
	Place
	// Use takes over a map of another file: FILE#PATH. What is written here wins.
	Use Text `json:"use"`
	// RequestTimeout is the longest a request may take from the send to the full answer.
	RequestTimeout Duration `json:"request_timeout" jsonschema:"default=30s"`
	// ConnectTimeout is the longest that dialling with the handshake may take.
	ConnectTimeout Duration `json:"connect_timeout" jsonschema:"default=10s"`
	// StepTimeout is the longest a step may take with all its pages and rounds. Default: no limit.
	StepTimeout Duration `json:"step_timeout"`
	// IterationTimeout is the longest an iteration may take with all its steps and thinking. Default: no limit.
	IterationTimeout Duration `json:"iteration_timeout"`
	// ResponseBytes is the largest message that is read: an answer, an event, a line.
	ResponseBytes Size `json:"response_bytes" jsonschema:"default=16MiB"`
	// HeaderBytes is the largest header of an HTTP response that is read.
	HeaderBytes Size `json:"header_bytes" jsonschema:"default=1MiB"`
	// Stderr says how much of what a server's processes print on stderr is kept.
	Stderr Keep `json:"stderr" jsonschema:"default=keep-head:2MiB keep-tail:2MiB"`
}

// Output says where and what to write.
type Output struct {
	Place
	// Use takes over a map of another file: FILE#PATH. What is written here wins.
	Use Text `json:"use"`
	// Dir gets one folder for each run.
	Dir string `json:"dir" jsonschema:"default=results"`
	// Requests says what is kept of each request.
	Requests Later `json:"requests"`
}
