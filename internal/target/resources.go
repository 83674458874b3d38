package target

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	resourceCount = 100
	pageSize      = 50 // so that resources/list has two pages

	textPrefix   = "demo://text/"
	itemPrefix   = "demo://item/"
	itemTemplate = itemPrefix + "{id}"
)

var names = []string{"Ada", "Alan", "Barbara", "Edsger", "Grace", "Ken", "Linus"}

func (s *surface) addResources() {
	for n := range resourceCount {
		id := strconv.Itoa(n + 1)
		s.server.AddResource(
			&mcp.Resource{URI: textPrefix + id, Name: "text " + id, MIMEType: "text/plain"},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return plainText("resource " + id), nil
			})
	}
	s.server.AddResourceTemplate(
		&mcp.ResourceTemplate{URITemplate: itemTemplate, Name: "item", MIMEType: "text/plain"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return plainText("item " + strings.TrimPrefix(req.Params.URI, itemPrefix)), nil
		})
}

// plainText leaves URI and MIME type to the SDK, which knows both.
func plainText(s string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{Text: s}}}
}

func (s *surface) addPrompts() {
	add := func(name, description, argument, format string) {
		s.server.AddPrompt(
			&mcp.Prompt{
				Name: name, Description: description,
				Arguments: []*mcp.PromptArgument{{Name: argument, Required: true}},
			},
			func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				value, ok := req.Params.Arguments[argument]
				if !ok {
					return nil, invalid("prompt %s: argument %q is missing", name, argument)
				}
				return &mcp.GetPromptResult{
					Description: description,
					Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: fmt.Sprintf(format, value)}}},
				}, nil
			})
	}
	add("greet", "Greets somebody.", "name", "Say hello to %s.")
	add("summarize", "Summarises an item.", "id", "Summarise item %s in one sentence.")
}

// complete knows the argument name of the prompt greet, and the ids of the
// prompt summarize and of the resource template.
func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	ref, argument := req.Params.Ref, req.Params.Argument
	var candidates []string
	switch {
	case ref.Name == "greet" && argument.Name == "name":
		candidates = names
	case (ref.Name == "summarize" || ref.URI == itemTemplate) && argument.Name == "id":
		for n := range resourceCount {
			candidates = append(candidates, strconv.Itoa(n+1))
		}
	default:
		return nil, invalid("nothing to complete for %s%s, argument %q", ref.Name, ref.URI, argument.Name)
	}
	values := []string{}
	for _, c := range candidates {
		if strings.HasPrefix(c, argument.Value) {
			values = append(values, c)
		}
	}
	// At most 100 values are allowed (2025-11-25, completion); there are not more.
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}

func invalid(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
