package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// addTools adds the tools that need nothing of the client.
func addTools(s *server.MCPServer, n *news) {
	s.AddTool(
		mcp.NewTool("echo", mcp.WithString("message", mcp.Required()), mcp.WithReadOnlyHintAnnotation(true)),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			message, err := req.RequireString("message")
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText(message), nil
		})
	s.AddTool(mcp.NewTool("fails"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("failed as asked"), nil
	})
	s.AddTool(mcp.NewTool("sum", mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			sum := r.GetInt("a", 0) + r.GetInt("b", 0)
			return mcp.NewToolResultStructured(map[string]any{"sum": sum}, fmt.Sprintf(`{"sum":%d}`, sum)), nil
		})
	s.AddTool(mcp.NewTool("log"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "info", "warning", "error"} {
			err := s.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(level, "toy", "a message of level "+string(level)))
			if err != nil {
				return nil, err
			}
		}
		return mcp.NewToolResultText("logged"), nil
	})
	s.AddTool(mcp.NewTool("touch", mcp.WithString("uri", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			n.updated(r.GetString("uri", ""))
			return mcp.NewToolResultText("touched"), nil
		})
	s.AddTool(mcp.NewTool("grow"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddTool(mcp.NewTool("grown"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("grown"), nil
		})
		return mcp.NewToolResultText("grown"), nil
	})
	var d deeds
	s.AddTool(mcp.NewTool("slow", mcp.WithNumber("steps"), mcp.WithNumber("ms"), mcp.WithString("key")), d.slow)
	s.AddTool(mcp.NewTool("fate", mcp.WithString("key", mcp.Required())), d.fate)
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

// slow takes its time, tells of its progress and obeys a cancellation. Its keys are
// used once.
func (d *deeds) slow(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	how, steps := "finished", r.GetInt("steps", 1)
	if key := r.GetString("key", ""); key != "" {
		deed := d.get(key)
		defer func() { deed.how = how; close(deed.ended) }()
	}
	step := time.NewTicker(time.Duration(max(r.GetInt("ms", 1), 1)) * time.Millisecond)
	defer step.Stop()
	for i := range steps {
		select {
		case <-ctx.Done():
			how = "cancelled"
			return nil, ctx.Err()
		case <-step.C:
		}
		if r.Params.Meta != nil && r.Params.Meta.ProgressToken != nil {
			err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", map[string]any{
				"progressToken": r.Params.Meta.ProgressToken, "progress": i + 1, "total": steps,
			})
			if err != nil {
				how = "cancelled"
				return nil, err
			}
		}
	}
	return mcp.NewToolResultText(fmt.Sprintf("%d steps", steps)), nil
}

// fate waits until the slow call with this key has ended and tells how.
func (d *deeds) fate(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	deed := d.get(r.GetString("key", ""))
	select {
	case <-deed.ended:
		return mcp.NewToolResultText(deed.how), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
