package target

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxRandomBytes bounds the answer of random_bytes.
const maxRandomBytes = 4 << 20

// maxDelay bounds the tool delay, so that a slip of the pen ends some time.
const maxDelay = 10 * time.Minute

var toolNames = []string{"add", "delay", "echo", "fail", "random_bytes", "rpc_error"}

func isTool(name string) bool { return slices.Contains(toolNames, name) }

type (
	echoInput struct {
		Message string `json:"message"`
	}
	addInput struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}
	addOutput struct {
		Sum float64 `json:"sum"`
	}
	delayInput struct {
		MS float64 `json:"ms"`
	}
	sizeInput struct {
		Size int `json:"size"`
	}
	noInput struct{}
)

func (s *surface) addTools() {
	addTool(s, "echo", "Returns the message, byte for byte.",
		`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`, "", s.echo)
	addTool(s, "add", "Adds two numbers.",
		`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`,
		`{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}`, s.add)
	addTool(s, "delay", "Answers after ms milliseconds.",
		fmt.Sprintf(`{"type":"object","properties":{"ms":{"type":"number","minimum":0,"maximum":%d}},"required":["ms"]}`,
			maxDelay.Milliseconds()), "", s.delay)
	addTool(s, "fail", "Always answers with isError, and logs an error.", `{"type":"object"}`, "", s.fail)
	addTool(s, "rpc_error", "Always answers with JSON-RPC error -32603.", `{"type":"object"}`, "", s.rpcError)
	addTool(s, "random_bytes", "Returns a text of size random letters and digits.",
		fmt.Sprintf(`{"type":"object","properties":{"size":{"type":"integer","minimum":0,"maximum":%d}},"required":["size"]}`,
			maxRandomBytes), "", s.randomBytes)
}

func addTool[In, Out any](s *surface, name, description, input, output string, h mcp.ToolHandlerFor[In, Out]) {
	no := false
	tool := &mcp.Tool{
		Name:        name,
		Description: description,
		InputSchema: json.RawMessage(input),
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no,
		},
	}
	if output != "" {
		tool.OutputSchema = json.RawMessage(output)
	}
	mcp.AddTool(s.server, tool, h)
}

func text(s string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: s}} }

func (*surface) echo(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: text(in.Message)}, nil, nil
}

func (*surface) add(_ context.Context, _ *mcp.CallToolRequest, in addInput) (*mcp.CallToolResult, addOutput, error) {
	sum := in.A + in.B
	if math.IsInf(sum, 0) {
		return nil, addOutput{}, fmt.Errorf("the sum of %v and %v is too large", in.A, in.B)
	}
	return &mcp.CallToolResult{Content: text(strconv.FormatFloat(sum, 'f', -1, 64))}, addOutput{Sum: sum}, nil
}

func (s *surface) delay(ctx context.Context, _ *mcp.CallToolRequest, in delayInput) (*mcp.CallToolResult, any, error) {
	d := time.Duration(in.MS * float64(time.Millisecond))
	if err := s.sleep(ctx, d); err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{Content: text("waited " + d.String())}, nil, nil
}

func (*surface) fail(ctx context.Context, req *mcp.CallToolRequest, _ noInput) (*mcp.CallToolResult, any, error) {
	// Sent only to a client that asked for log messages of this level.
	//nolint:staticcheck // deprecated with the feature, which 2024-11-05 to 2025-11-25 have
	if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Logger: "target", Data: "fail was called"}); err != nil {
		return nil, nil, fmt.Errorf("log the failure: %w", err)
	}
	return &mcp.CallToolResult{IsError: true, Content: text("this tool always fails")}, nil, nil
}

func (*surface) rpcError(context.Context, *mcp.CallToolRequest, noInput) (*mcp.CallToolResult, any, error) {
	return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "this tool always answers with an error"}
}

func (s *surface) randomBytes(_ context.Context, _ *mcp.CallToolRequest, in sizeInput) (*mcp.CallToolResult, any, error) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" // 64 of them
	var pcg rand.PCG
	pcg.Seed(s.cfg.Seed, s.work.Add(1))
	block := make([]byte, in.Size)
	for i := 0; i < len(block); {
		// Ten letters of six bits from each draw.
		for bits, left := pcg.Uint64(), 10; left > 0 && i < len(block); left-- {
			block[i] = letters[bits&63]
			bits >>= 6
			i++
		}
	}
	return &mcp.CallToolResult{Content: text(string(block))}, nil, nil
}
