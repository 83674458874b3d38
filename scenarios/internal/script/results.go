package script

// The result of each operation as expressions see it: the variable result. A
// member that a server left out has its zero value. Sources: the schema of the
// protocol versions 2024-11-05 to 2026-07-28; a member of one version only is
// empty in the others.

// ToolsCall is the result of tools/call.
type ToolsCall struct {
	Content           []Content `json:"content" expr:"content"`
	IsError           bool      `json:"isError" expr:"isError"`
	StructuredContent any       `json:"structuredContent" expr:"structuredContent"`
	ResultType        string    `json:"resultType" expr:"resultType"`
	Meta              any       `json:"_meta" expr:"_meta"`
}

// Content is one block of content.
type Content struct {
	Type        string   `json:"type" expr:"type"`
	Text        string   `json:"text" expr:"text"`
	Data        string   `json:"data" expr:"data"`
	MimeType    string   `json:"mimeType" expr:"mimeType"`
	URI         string   `json:"uri" expr:"uri"`
	Name        string   `json:"name" expr:"name"`
	Title       string   `json:"title" expr:"title"`
	Description string   `json:"description" expr:"description"`
	Size        float64  `json:"size" expr:"size"`
	Resource    Contents `json:"resource" expr:"resource"`
	Annotations any      `json:"annotations" expr:"annotations"`
	Meta        any      `json:"_meta" expr:"_meta"`
}

// Contents is what one resource holds.
type Contents struct {
	URI      string `json:"uri" expr:"uri"`
	MimeType string `json:"mimeType" expr:"mimeType"`
	Text     string `json:"text" expr:"text"`
	Blob     string `json:"blob" expr:"blob"`
	Meta     any    `json:"_meta" expr:"_meta"`
}

// ResourcesRead is the result of resources/read.
type ResourcesRead struct {
	Contents   []Contents `json:"contents" expr:"contents"`
	TTLMs      float64    `json:"ttlMs" expr:"ttlMs"`
	CacheScope string     `json:"cacheScope" expr:"cacheScope"`
	ResultType string     `json:"resultType" expr:"resultType"`
	Meta       any        `json:"_meta" expr:"_meta"`
}

// PromptsGet is the result of prompts/get.
type PromptsGet struct {
	Description string    `json:"description" expr:"description"`
	Messages    []Message `json:"messages" expr:"messages"`
	ResultType  string    `json:"resultType" expr:"resultType"`
	Meta        any       `json:"_meta" expr:"_meta"`
}

// Message is one message of a prompt.
type Message struct {
	Role    string  `json:"role" expr:"role"`
	Content Content `json:"content" expr:"content"`
}

// ToolsList is the result of tools/list.
type ToolsList struct {
	Tools      []Tool  `json:"tools" expr:"tools"`
	NextCursor string  `json:"nextCursor" expr:"nextCursor"`
	TTLMs      float64 `json:"ttlMs" expr:"ttlMs"`
	CacheScope string  `json:"cacheScope" expr:"cacheScope"`
	ResultType string  `json:"resultType" expr:"resultType"`
	Meta       any     `json:"_meta" expr:"_meta"`
}

// Tool is one entry of tools/list.
type Tool struct {
	Name         string `json:"name" expr:"name"`
	Title        string `json:"title" expr:"title"`
	Description  string `json:"description" expr:"description"`
	InputSchema  any    `json:"inputSchema" expr:"inputSchema"`
	OutputSchema any    `json:"outputSchema" expr:"outputSchema"`
	Annotations  any    `json:"annotations" expr:"annotations"`
	Execution    any    `json:"execution" expr:"execution"`
	Icons        any    `json:"icons" expr:"icons"`
	Meta         any    `json:"_meta" expr:"_meta"`
}

// ResourcesList is the result of resources/list.
type ResourcesList struct {
	Resources  []Resource `json:"resources" expr:"resources"`
	NextCursor string     `json:"nextCursor" expr:"nextCursor"`
	TTLMs      float64    `json:"ttlMs" expr:"ttlMs"`
	CacheScope string     `json:"cacheScope" expr:"cacheScope"`
	ResultType string     `json:"resultType" expr:"resultType"`
	Meta       any        `json:"_meta" expr:"_meta"`
}

// Resource is one entry of resources/list.
type Resource struct {
	URI         string  `json:"uri" expr:"uri"`
	Name        string  `json:"name" expr:"name"`
	Title       string  `json:"title" expr:"title"`
	Description string  `json:"description" expr:"description"`
	MimeType    string  `json:"mimeType" expr:"mimeType"`
	Size        float64 `json:"size" expr:"size"`
	Annotations any     `json:"annotations" expr:"annotations"`
	Icons       any     `json:"icons" expr:"icons"`
	Meta        any     `json:"_meta" expr:"_meta"`
}

// ResourceTemplatesList is the result of resources/templates/list.
type ResourceTemplatesList struct {
	ResourceTemplates []ResourceTemplate `json:"resourceTemplates" expr:"resourceTemplates"`
	NextCursor        string             `json:"nextCursor" expr:"nextCursor"`
	TTLMs             float64            `json:"ttlMs" expr:"ttlMs"`
	CacheScope        string             `json:"cacheScope" expr:"cacheScope"`
	ResultType        string             `json:"resultType" expr:"resultType"`
	Meta              any                `json:"_meta" expr:"_meta"`
}

// ResourceTemplate is one entry of resources/templates/list.
type ResourceTemplate struct {
	URITemplate string `json:"uriTemplate" expr:"uriTemplate"`
	Name        string `json:"name" expr:"name"`
	Title       string `json:"title" expr:"title"`
	Description string `json:"description" expr:"description"`
	MimeType    string `json:"mimeType" expr:"mimeType"`
	Annotations any    `json:"annotations" expr:"annotations"`
	Icons       any    `json:"icons" expr:"icons"`
	Meta        any    `json:"_meta" expr:"_meta"`
}

// PromptsList is the result of prompts/list.
type PromptsList struct {
	Prompts    []Prompt `json:"prompts" expr:"prompts"`
	NextCursor string   `json:"nextCursor" expr:"nextCursor"`
	TTLMs      float64  `json:"ttlMs" expr:"ttlMs"`
	CacheScope string   `json:"cacheScope" expr:"cacheScope"`
	ResultType string   `json:"resultType" expr:"resultType"`
	Meta       any      `json:"_meta" expr:"_meta"`
}

// Prompt is one entry of prompts/list.
type Prompt struct {
	Name        string           `json:"name" expr:"name"`
	Title       string           `json:"title" expr:"title"`
	Description string           `json:"description" expr:"description"`
	Arguments   []PromptArgument `json:"arguments" expr:"arguments"`
	Icons       any              `json:"icons" expr:"icons"`
	Meta        any              `json:"_meta" expr:"_meta"`
}

// PromptArgument is one argument of a prompt.
type PromptArgument struct {
	Name        string `json:"name" expr:"name"`
	Title       string `json:"title" expr:"title"`
	Description string `json:"description" expr:"description"`
	Required    bool   `json:"required" expr:"required"`
}

// CompletionComplete is the result of completion/complete.
type CompletionComplete struct {
	Completion Completion `json:"completion" expr:"completion"`
	ResultType string     `json:"resultType" expr:"resultType"`
	Meta       any        `json:"_meta" expr:"_meta"`
}

// Completion holds the values that complete an argument.
type Completion struct {
	Values  []string `json:"values" expr:"values"`
	Total   float64  `json:"total" expr:"total"`
	HasMore bool     `json:"hasMore" expr:"hasMore"`
}

// ServerDiscover is the result of server/discover.
type ServerDiscover struct {
	SupportedVersions []string `json:"supportedVersions" expr:"supportedVersions"`
	Capabilities      any      `json:"capabilities" expr:"capabilities"`
	Instructions      string   `json:"instructions" expr:"instructions"`
	TTLMs             float64  `json:"ttlMs" expr:"ttlMs"`
	CacheScope        string   `json:"cacheScope" expr:"cacheScope"`
	ResultType        string   `json:"resultType" expr:"resultType"`
	Meta              any      `json:"_meta" expr:"_meta"`
}

// EmptyResult is the result of ping, logging/setLevel and the subscriptions.
type EmptyResult struct {
	ResultType string `json:"resultType" expr:"resultType"`
	Meta       any    `json:"_meta" expr:"_meta"`
}
