package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pageSize is small, so that each list of several things has pages.
const pageSize = 5

func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "gosdkserver", Version: "1.8.0"}, &mcp.ServerOptions{
		PageSize:           pageSize,
		CompletionHandler:  complete,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	addTools(server)
	addQuestions(server)
	addResources(server)
	server.AddPrompt(&mcp.Prompt{
		Name:      "greet",
		Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}, {Name: "mood"}},
	}, greet)
	for i := range 2 * pageSize {
		server.AddPrompt(&mcp.Prompt{Name: fmt.Sprintf("spare-%02d", i)}, greet)
	}
	return server
}

// addResources adds more than a page of resources, item/0 and so on, and a template
// for all others.
func addResources(server *mcp.Server) {
	for i := range 2*pageSize + 1 {
		uri := fmt.Sprintf("toy://item/%d", i)
		server.AddResource(&mcp.Resource{Name: uri, URI: uri, MIMEType: "text/plain"}, read)
	}
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "any", URITemplate: "toy://any/{name}"}, read)
}

func read(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := r.Params.URI
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: "text of " + uri}}}, nil
}

func greet(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	text := strings.TrimSpace("Hello " + r.Params.Arguments["who"] + " " + r.Params.Arguments["mood"])
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
}

// complete knows three names, for the prompt and for the template alike.
func complete(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := []string{}
	for _, name := range []string{"Ada", "Alan", "Grace"} {
		if strings.HasPrefix(name, r.Params.Argument.Value) {
			values = append(values, name)
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}
