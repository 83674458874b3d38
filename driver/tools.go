package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// learnTools asks for the server's tools, once for the group, when a step needs
// them. It is part of the opening of a session and makes no row. An error says
// what stands in the way of a step.
func (g *group) learnTools(ctx context.Context, s Session) error {
	if !g.plan.NeedsTools || g.tools.Load() != nil {
		return nil
	}
	select {
	case g.learning <- struct{}{}:
		defer func() { <-g.learning }()
	case <-ctx.Done():
		return fmt.Errorf("wait for the list of tools: %w", context.Cause(ctx))
	}
	if g.tools.Load() != nil {
		return nil
	}
	var listings []json.RawMessage
	req := mcp.Request{Method: "tools/list", Params: []byte("{}"), Timeout: g.plan.RequestTimeout}
	for reply, err := range mcp.Pages(ctx, s, req) {
		if err != nil {
			outcome, code := Classify(ctx, reply, err)
			return &onceError{step: "tools/list for generate and valid_output", outcome: outcome, code: code, message: message(err)}
		}
		listings = append(listings, slices.Clone(reply.Result))
	}
	tools, err := scenarios.NewTools(listings, g.plan.AllowWrites)
	if err != nil {
		return &onceError{step: "tools/list", outcome: metrics.ProtocolError, message: mask(err.Error())}
	}
	for _, step := range slices.Concat(g.plan.Before, g.plan.Steps, g.plan.After) {
		if err := tools.Ready(step); err != nil {
			return &onceError{step: step.ID, outcome: metrics.ScriptError, message: err.Error()}
		}
	}
	for _, step := range slices.Concat(g.plan.Before, g.plan.Steps, g.plan.After) {
		if err := tools.Unchecked(step); err != nil {
			g.runner.log.Warn("a check cannot be evaluated: its requests are script_error",
				zap.String("group", g.plan.Name), zap.String("step", step.ID), zap.Error(err))
		}
	}
	g.tools.Store(tools)
	return nil
}
