package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addQuestions adds a tool for each thing that a server may ask of its client. The
// SDK asks by a request of the server up to 2025-11-25, by input_required after.
func addQuestions(server *mcp.Server) {
	ask := func(name string, question mcp.InputRequest) {
		mcp.AddTool(server, &mcp.Tool{Name: name},
			func(_ context.Context, r *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
				answer, ok := r.Params.InputResponses["it"]
				if !ok {
					return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"it": question}, RequestState: "asked " + name}, nil, nil
				}
				return told(answer)
			})
	}
	ask("ask_sampling", &mcp.CreateMessageParams{
		MaxTokens: 10, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "2+2"}}},
	})
	ask("ask_elicitation", &mcp.ElicitParams{Mode: "form", Message: "Who?", RequestedSchema: map[string]any{
		"type": "object", "required": []string{"name"},
		"properties": map[string]any{"name": map[string]any{"type": "string"}, "yes": map[string]any{"type": "boolean"}},
	}})
	ask("ask_url", &mcp.ElicitParams{Mode: "url", Message: "Open it", URL: "http://127.0.0.1/open", ElicitationID: "e1"})
	ask("ask_roots", &mcp.ListRootsParams{})
}

// told puts the answer of the client into the result.
func told(answer mcp.InputResponse) (*mcp.CallToolResult, any, error) {
	switch a := answer.(type) {
	case *mcp.CreateMessageWithToolsResult:
		var said []string
		for _, c := range a.Content {
			if t, ok := c.(*mcp.TextContent); ok {
				said = append(said, t.Text)
			}
		}
		return text("sampled " + strings.Join(said, " ")), nil, nil
	case *mcp.ElicitResult:
		return text(fmt.Sprintf("%s %v", a.Action, a.Content["name"])), nil, nil
	case *mcp.ListRootsResult:
		var roots []string
		for _, r := range a.Roots {
			roots = append(roots, r.URI)
		}
		return text("roots " + strings.Join(roots, " ")), nil, nil
	default:
		return nil, nil, fmt.Errorf("unknown answer %T", answer)
	}
}
