package grammar

// Flow is a list of steps that one iteration runs in order.
type Flow struct {
	Place
	// Use takes over a map of another file: FILE#PATH. What is written here wins.
	Use Text `json:"use"`
	// Steps of one iteration.
	Steps []*Step `json:"steps" jsonschema:"required"`
	// Before runs once when a session was opened, before its first iteration.
	Before []*Step `json:"before"`
	// After runs once before a session is closed.
	After []*Step `json:"after"`
	// OnError says what a failed step of the flow does to its iteration. Default: that of the group.
	OnError string `json:"on_error" jsonschema:"enum=next_iteration,enum=continue,enum=end_session"`
}

// Step is one operation with its settings. It has exactly one key that names
// an operation.
type Step struct {
	Place
	// ID names the step in results. Default: the operation and the tool.
	ID string `json:"id"`
	// Check holds expressions on the answer, by name; a check that does not hold is counted beside the outcome.
	Check map[string]Expr `json:"check"`
	// Timeout of this step's request. Default: limits.request_timeout.
	Timeout Duration `json:"timeout"`
	// Progress asks the server for progress notifications.
	Progress bool `json:"progress" jsonschema:"default=false"`
	// IdleTimeout is the longest silence: it counts from the send and anew from each progress notification.
	IdleTimeout Duration `json:"idle_timeout"`
	// LogLevel asks for log messages about this request. Only 2026-07-28 has it; before, logging/setLevel does so for the session.
	LogLevel string `json:"log_level" jsonschema:"enum=debug,enum=info,enum=notice,enum=warning,enum=error,enum=critical,enum=alert,enum=emergency"`
	// Cancel cancels the request on purpose.
	Cancel *Cancel `json:"cancel"`
	// As names a subscription for wait_for and unsubscribe.
	As string `json:"as"`

	// Ping the server.
	Ping *Empty `json:"ping" bench:"op"`
	// ToolsList lists the tools.
	ToolsList *List `json:"tools/list" bench:"op"`
	// ToolsCall calls a tool.
	ToolsCall *ToolCall `json:"tools/call" bench:"op"`
	// ResourcesList lists the resources.
	ResourcesList *List `json:"resources/list" bench:"op"`
	// ResourceTemplatesList lists the resource templates.
	ResourceTemplatesList *List `json:"resources/templates/list" bench:"op"`
	// ResourcesRead reads a resource.
	ResourcesRead *ResourceRead `json:"resources/read" bench:"op"`
	// PromptsList lists the prompts.
	PromptsList *List `json:"prompts/list" bench:"op"`
	// PromptsGet gets a prompt.
	PromptsGet *PromptGet `json:"prompts/get" bench:"op"`
	// CompletionComplete asks for completions of an argument.
	CompletionComplete *Complete `json:"completion/complete" bench:"op"`
	// LoggingSetLevel sets the level of the server's log messages. Not in 2026-07-28.
	LoggingSetLevel *SetLevel `json:"logging/setLevel" bench:"op"`
	// ServerDiscover asks for versions and capabilities. Only in 2026-07-28.
	ServerDiscover *Empty `json:"server/discover" bench:"op"`

	// Subscribe to changes of resources and lists.
	Subscribe *Subscribe `json:"subscribe" bench:"op"`
	// Unsubscribe ends a subscription.
	Unsubscribe *Unsubscribe `json:"unsubscribe" bench:"op"`
	// WaitFor waits for a notification.
	WaitFor *WaitFor `json:"wait_for" bench:"op"`
	// Request sends any other request.
	Request *Message `json:"request" bench:"op"`
	// Notify sends a notification.
	Notify *Message `json:"notify" bench:"op"`
	// Connect stands for the opening of the session, first in before.
	Connect *Empty `json:"connect" bench:"op"`

	// Disconnect closes the session in order; the next step that needs one opens another.
	Disconnect *Empty `json:"disconnect" bench:"op"`
	// Generate calls a tool with arguments made from its input schema.
	Generate *Generate `json:"generate" bench:"op"`
	// ThinkStep pauses.
	ThinkStep *Spread `json:"think" bench:"op"`
	// Random runs one of several lists of steps, by weight.
	Random []*Branch `json:"random" bench:"op"`
	// Parallel performs its steps at the same time on one session and goes on when all have ended.
	Parallel []*Step `json:"parallel" bench:"op"`
	// Repeat performs steps several times.
	Repeat *Repeat `json:"repeat" bench:"op"`
	// FlowStep performs the steps of another flow.
	FlowStep *Call `json:"flow" bench:"op"`

	// When performs the step only if the expression holds.
	When Expr `json:"when"`
	// Save keeps values of the answer, by name, for later steps of the iteration: saved.NAME.
	Save Save `json:"save"`
	// OnError says what happens to the iteration when the step fails. Default: that of the flow.
	OnError string `json:"on_error" jsonschema:"enum=next_iteration,enum=continue,enum=end_session"`
	// Sample is the share of iterations that perform the step, from 0 to 1.
	Sample *Share `json:"sample" jsonschema:"default=1"`

	// Expect decides the outcome by the answer.
	Expect *Expect `json:"expect"`
	// Task runs the call as a task.
	Task *Task `json:"task"`
	// Tags are kept with each request of the step.
	Tags map[string]Label `json:"tags"`
	// Retry sends the request again when it failed.
	Retry Later `json:"retry"`
}

// Empty is an operation without settings: {}.
type Empty struct {
	Place
}

// List is a list operation.
type List struct {
	Place
	// AllPages follows nextCursor to the end; each page is one request.
	AllPages bool `json:"all_pages" jsonschema:"default=false"`
	// Cursor of the page to ask for.
	Cursor Template `json:"cursor"`
}

// ToolCall is a call of a tool.
type ToolCall struct {
	Place
	// Name of the tool.
	Name Template `json:"name" jsonschema:"required"`
	// Arguments of the tool: any map; values may hold ${{ }} expressions.
	Arguments Values `json:"arguments"`
}

// ResourceRead is the reading of a resource.
type ResourceRead struct {
	Place
	// URI of the resource.
	URI Template `json:"uri" jsonschema:"required"`
}

// PromptGet is the getting of a prompt.
type PromptGet struct {
	Place
	// Name of the prompt.
	Name Template `json:"name" jsonschema:"required"`
	// Arguments of the prompt. The protocol wants text: other scalars are sent as text.
	Arguments map[string]Template `json:"arguments"`
}

// Complete asks for completions of an argument.
type Complete struct {
	Place
	// Ref names the prompt or the resource template.
	Ref CompleteRef `json:"ref" jsonschema:"required"`
	// Argument to complete.
	Argument CompleteArgument `json:"argument" jsonschema:"required"`
	// Context holds arguments that are known already (from 2025-06-18 on).
	Context CompleteContext `json:"context"`
}

// CompleteRef names a prompt or a resource template.
type CompleteRef struct {
	Place
	// Type of the reference.
	Type string `json:"type" jsonschema:"required,enum=ref/prompt,enum=ref/resource"`
	// Name of the prompt, with ref/prompt.
	Name Template `json:"name"`
	// URI template of the resource, with ref/resource.
	URI Template `json:"uri"`
}

// CompleteArgument is the argument to complete.
type CompleteArgument struct {
	Place
	// Name of the argument.
	Name Template `json:"name" jsonschema:"required"`
	// Value typed so far.
	Value Template `json:"value" jsonschema:"required"`
}

// CompleteContext holds arguments that are known already.
type CompleteContext struct {
	Place
	// Arguments by name.
	Arguments map[string]Template `json:"arguments"`
}

// SetLevel sets the level of log messages.
type SetLevel struct {
	Place
	// Level from which on the server sends messages.
	Level string `json:"level" jsonschema:"required,enum=debug,enum=info,enum=notice,enum=warning,enum=error,enum=critical,enum=alert,enum=emergency"`
}
