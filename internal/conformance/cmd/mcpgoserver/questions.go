package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// addQuestions adds a tool for each thing that a server may ask of its client. The
// library asks by a request of the server up to 2025-11-25, by input_required after.
func addQuestions(s *server.MCPServer) {
	ask := func(name string, question func(*server.InputRequestBuilder)) {
		s.AddTool(mcp.NewTool(name), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answers := r.Params.InputResponses
			if _, ok := server.InputResponse(answers, "it"); !ok {
				b := server.NewInputRequestBuilder("asked " + name)
				question(b)
				return b.ToolResult(), nil
			}
			return told(name, answers)
		})
	}
	ask("ask_sampling", func(b *server.InputRequestBuilder) {
		b.Sample("it", mcp.CreateMessageParams{
			MaxTokens: 10, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent("2+2")}},
		})
	})
	ask("ask_elicitation", func(b *server.InputRequestBuilder) {
		b.Elicit("it", mcp.ElicitationParams{Mode: "form", Message: "Who?", RequestedSchema: map[string]any{
			"type": "object", "required": []string{"name"},
			"properties": map[string]any{"name": map[string]any{"type": "string"}, "yes": map[string]any{"type": "boolean"}},
		}})
	})
	ask("ask_url", func(b *server.InputRequestBuilder) {
		b.Elicit("it", mcp.ElicitationParams{Mode: "url", Message: "Open it", URL: "http://127.0.0.1/open", ElicitationID: "e1"})
	})
	ask("ask_roots", func(b *server.InputRequestBuilder) { b.Roots("it") })
}

// told puts the answer of the client into the result.
func told(name string, answers mcp.InputResponses) (*mcp.CallToolResult, error) {
	switch name {
	case "ask_sampling":
		if a := server.SamplingResponse(answers, "it"); a != nil {
			return mcp.NewToolResultText("sampled " + mcp.GetTextFromContent(a.Content)), nil
		}
	case "ask_roots":
		if a := server.RootsResponse(answers, "it"); a != nil {
			var roots []string
			for _, r := range a.Roots {
				roots = append(roots, r.URI)
			}
			return mcp.NewToolResultText("roots " + strings.Join(roots, " ")), nil
		}
	default:
		if a := server.ElicitationResponse(answers, "it"); a != nil {
			content, _ := a.Content.(map[string]any)
			return mcp.NewToolResultText(fmt.Sprintf("%s %v", a.Action, content["name"])), nil
		}
	}
	return nil, fmt.Errorf("%s: the answer has another form", name)
}
