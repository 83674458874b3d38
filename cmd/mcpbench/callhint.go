package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mcpbench/internal/nearest"
	"mcpbench/mcp"
)

// unknownThing is how servers say that they do not know a tool.
var unknownThing = regexp.MustCompile(`(?i)unknown|not found|no such|does(n't| not) exist|not recognized`)

// hint says what may be wrong with a request that failed, or nothing. It asks
// the server for its tools only when that has said that it knows no such tool.
func (p *probe) hint(ctx context.Context, req mcp.Request, reply mcp.Reply, err error) string {
	if req.Method != "tools/call" {
		return p.methodHint(req.Method, err)
	}
	if !unknownThing.MatchString(saidOf(reply, err)) {
		return ""
	}
	tools, err := p.tools(ctx)
	if err != nil {
		return ""
	}
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	if slices.Contains(names, req.Name) {
		return ""
	}
	if near := nearest.DidYouMean(req.Name, names); near != "" {
		return fmt.Sprintf("the server has no tool %q%s", req.Name, near)
	}
	const most = 20
	shown := strings.Join(names[:min(len(names), most)], ", ")
	switch {
	case len(names) == 0:
		return "the server has no tools"
	case len(names) > most:
		shown += ", …"
	}
	return fmt.Sprintf("the server has no tool %q; it has %s", req.Name, shown)
}

// methodHint is for a method that the server refused.
func (p *probe) methodHint(method string, err error) string {
	rpc, isRPC := errors.AsType[*mcp.RPCError](err)
	http, isHTTP := errors.AsType[*mcp.HTTPError](err)
	if !isRPC && !isHTTP || isRPC && rpc.Code != -32601 || isHTTP && http.Status/100 != 4 {
		return ""
	}
	known := mcp.Methods()
	v := p.session.Info().Version
	switch {
	case !v.Features().Has(method):
		return fmt.Sprintf("%s does not exist in protocol version %s; pin another with --protocol", method, v)
	case slices.Contains(known, method):
		return ""
	}
	if near := nearest.DidYouMean(method, known); near != "" {
		return fmt.Sprintf("no protocol version has a method %q%s", method, near)
	}
	return ""
}

// saidOf is what a server said when it refused a call: its error, or the texts of
// a result with isError.
func saidOf(reply mcp.Reply, err error) string {
	if e, ok := errors.AsType[*mcp.RPCError](err); ok {
		return e.Message
	}
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if !reply.ToolError || json.Unmarshal(reply.Result, &result) != nil {
		return ""
	}
	var texts []string
	for _, c := range result.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n")
}
