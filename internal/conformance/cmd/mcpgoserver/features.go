package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// pageSize is small, so that each list of several things has pages.
const pageSize = 5

func newServer() *server.MCPServer {
	var n news
	s := server.NewMCPServer("mcpgoserver", "1.2.1",
		server.WithPaginationLimit(pageSize), server.WithLogging(), server.WithCompletions(),
		server.WithElicitation(), server.WithRoots(),
		server.WithToolCapabilities(true), server.WithPromptCapabilities(true), server.WithResourceCapabilities(true, true),
		server.WithPromptCompletionProvider(names{}), server.WithResourceCompletionProvider(names{}),
		server.WithHooks(n.hooks()),
	)
	s.EnableSampling()
	n.server = s
	addTools(s, &n)
	addQuestions(s)
	for i := range 2*pageSize + 1 {
		uri := fmt.Sprintf("toy://item/%d", i)
		s.AddResource(mcp.NewResource(uri, uri, mcp.WithMIMEType("text/plain")), read)
	}
	s.AddResourceTemplate(mcp.NewResourceTemplate("toy://any/{name}", "any"), read)
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("who", mcp.RequiredArgument()), mcp.WithArgument("mood")), greet)
	for i := range 2 * pageSize {
		s.AddPrompt(mcp.NewPrompt(fmt.Sprintf("spare-%02d", i)), greet)
	}
	return s
}

func read(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	uri := r.Params.URI
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: "text of " + uri}}, nil
}

func greet(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	text := strings.TrimSpace("Hello " + r.Params.Arguments["who"] + " " + r.Params.Arguments["mood"])
	return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(text))}), nil
}

// names completes the argument of the prompt and that of the template alike.
type names struct{}

func (names) CompletePromptArgument(_ context.Context, _ string, a mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	values := []string{}
	for _, name := range []string{"Ada", "Alan", "Grace"} {
		if strings.HasPrefix(name, a.Value) {
			values = append(values, name)
		}
	}
	return &mcp.Completion{Values: values, Total: len(values)}, nil
}

func (n names) CompleteResourceArgument(ctx context.Context, uri string, a mcp.CompleteArgument, c mcp.CompleteContext) (*mcp.Completion, error) {
	return n.CompletePromptArgument(ctx, uri, a, c)
}
