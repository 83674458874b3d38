package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addTools adds the tools that need nothing of the client.
func addTools(server *mcp.Server) {
	type message struct {
		Message string `json:"message" jsonschema:"what to return"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in message) (*mcp.CallToolResult, any, error) {
			return text(in.Message), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "fails"},
		func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
			return nil, nil, errors.New("failed as asked")
		})
	type numbers struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type sum struct {
		Sum int `json:"sum"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "sum"},
		func(_ context.Context, _ *mcp.CallToolRequest, in numbers) (*mcp.CallToolResult, sum, error) {
			return nil, sum{Sum: in.A + in.B}, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "log"}, logSome)
	addChanges(server)
	var d deeds
	mcp.AddTool(server, &mcp.Tool{Name: "slow"}, d.slow)
	mcp.AddTool(server, &mcp.Tool{Name: "fate"}, d.fate)
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// addChanges adds what tells of changes: touch of a resource, grow of the tools.
func addChanges(server *mcp.Server) {
	type resource struct {
		URI string `json:"uri"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "touch"},
		func(ctx context.Context, _ *mcp.CallToolRequest, in resource) (*mcp.CallToolResult, any, error) {
			return text("touched"), nil, server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: in.URI})
		})
	mcp.AddTool(server, &mcp.Tool{Name: "grow"},
		func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
			server.AddTool(&mcp.Tool{Name: "grown", InputSchema: map[string]any{"type": "object"}},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("grown"), nil })
			return text("grown"), nil, nil
		})
}

// logSome sends one message of each of four levels; the SDK leaves out those below
// the level that the client wants.
func logSome(ctx context.Context, r *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	for _, level := range []mcp.LoggingLevel{"debug", "info", "warning", "error"} {
		err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "toy", Data: "a message of level " + string(level)})
		if err != nil {
			return nil, nil, err
		}
	}
	return text("logged"), nil, nil
}

// deeds remembers how slow calls with a key ended.
type deeds struct {
	mu    sync.Mutex
	byKey map[string]*deed
}

type deed struct {
	ended chan struct{}
	how   string // finished or cancelled; valid after ended
}

func (d *deeds) get(key string) *deed {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byKey == nil {
		d.byKey = map[string]*deed{}
	}
	if d.byKey[key] == nil {
		d.byKey[key] = &deed{ended: make(chan struct{})}
	}
	return d.byKey[key]
}

type slowness struct {
	Steps int    `json:"steps"`
	MS    int    `json:"ms" jsonschema:"milliseconds of a step"`
	Key   string `json:"key,omitempty" jsonschema:"for fate; used once"`
}

// slow takes its time, tells of its progress and obeys a cancellation.
func (d *deeds) slow(ctx context.Context, r *mcp.CallToolRequest, in slowness) (*mcp.CallToolResult, any, error) {
	how := "finished"
	if in.Key != "" {
		deed := d.get(in.Key)
		defer func() { deed.how = how; close(deed.ended) }()
	}
	step := time.NewTicker(time.Duration(max(in.MS, 1)) * time.Millisecond)
	defer step.Stop()
	for i := range in.Steps {
		select {
		case <-ctx.Done():
			how = "cancelled"
			return nil, nil, ctx.Err()
		case <-step.C:
		}
		if token := r.Params.GetProgressToken(); token != nil {
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1), Total: float64(in.Steps)})
			if err != nil {
				how = "cancelled"
				return nil, nil, err
			}
		}
	}
	return text(fmt.Sprintf("%d steps", in.Steps)), nil, nil
}

type fated struct {
	Key string `json:"key"`
}

// fate waits until the slow call with this key has ended and tells how.
func (d *deeds) fate(ctx context.Context, _ *mcp.CallToolRequest, in fated) (*mcp.CallToolResult, any, error) {
	deed := d.get(in.Key)
	select {
	case <-deed.ended:
		return text(deed.how), nil, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}
