package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpbench/mcp"
)

// operations are tried in this order; close ends the session.
var operations = []operation{
	{"open", opOpen}, {"ping", opPing}, {"discover", opDiscover},
	{"tools/list", opTools}, {"call", opCall}, {"structured", opStructured},
	{"tool error", opToolError}, {"unknown tool", opUnknownTool}, {"unknown method", opUnknownMethod},
	{"progress", opProgress}, {"idle", opIdle}, {"cancel", opCancel}, {"timeout", opTimeout},
	{"sampling", opSampling}, {"elicitation", opElicitation}, {"url", opURL}, {"roots", opRoots}, {"undeclared", opUndeclared},
	{"resources/list", opResources}, {"templates", opTemplates}, {"read", opRead}, {"read missing", opMissing},
	{"subscribe", opSubscribe}, {"list_changed", opListChanged}, {"listen", opListen},
	{"prompts/list", opPrompts}, {"prompts/get", opPrompt}, {"complete", opComplete}, {"logging", opLogging},
	{"close", opClose},
}

// call makes a request within the patience.
func (r *row) call(ctx context.Context, method, params string, wants *mcp.Wants) (mcp.Reply, error) {
	return r.s.Call(ctx, mcp.Request{Method: method, Params: []byte(params), Timeout: r.limit(), Wants: wants})
}

func (r *row) tool(ctx context.Context, name, arguments string, wants *mcp.Wants) (mcp.Reply, error) {
	return r.call(ctx, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments), wants)
}

// works says what is wrong with a tool that must succeed.
func (r *row) works(ctx context.Context, a asked, wants *mcp.Wants) error {
	reply, err := r.tool(ctx, a.tool, a.arguments, wants)
	return right(a, reply, err)
}

func right(a asked, reply mcp.Reply, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", a.tool, err)
	case reply.ToolError || !strings.Contains(words(reply), a.holds):
		return fmt.Errorf("%s: %s", a.tool, reply.Result)
	}
	return nil
}

// words returns the texts of a tool's result, or the result as it is.
func words(reply mcp.Reply) string {
	var result struct {
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
	}
	if err := json.Unmarshal(reply.Result, &result); err != nil || len(result.Content) == 0 {
		return string(reply.Result)
	}
	texts := []string{}
	for _, c := range result.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n") + string(result.StructuredContent)
}

// has skips what the version does not have.
func (r *row) has(method string) error {
	if !r.version.Features().Has(method) {
		return skip("the version has no " + method)
	}
	return nil
}

// offers skips what the server's capabilities do not have, after a look whether it
// really refuses it.
func (r *row) offers(ctx context.Context, capability, method string) error {
	var c map[string]json.RawMessage
	if err := json.Unmarshal(r.s.Info().Capabilities, &c); err != nil {
		return fmt.Errorf("capabilities %s: %w", r.s.Info().Capabilities, err)
	}
	if _, ok := c[capability]; ok {
		return nil
	}
	if reply, err := r.call(ctx, method, `{}`, nil); err == nil {
		return fmt.Errorf("%s is answered without the capability %s: %s", method, capability, reply.Result)
	}
	return skip("the server does not offer " + capability)
}

func opOpen(ctx context.Context, r *row) error {
	var err error
	r.s, err = r.connect(ctx, r.options(true))
	speaks := slices.Contains(r.speaks, string(r.version))
	if e, refused := errors.AsType[*mcp.VersionError](err); !speaks && (refused || r.transport == "sse" || err != nil && strings.Contains(err.Error(), string(r.version))) {
		if e != nil && r.server.offers && !slices.Contains(e.Offered, string(mcp.V20251125)) {
			return fmt.Errorf("the refusal offers %v", e.Offered)
		}
		return errRefused
	}
	if err != nil {
		return err
	}
	info := r.s.Info()
	if !speaks || info.Version != r.version || info.Transport != r.transport || info.Server.Name == "" || len(info.Capabilities) < 2 {
		return fmt.Errorf("opened as %+v", info)
	}
	if engine := string(info.Engine); r.transport != "stdio" && engine != r.engine {
		return fmt.Errorf("the engine is %s", engine)
	}
	return nil
}

// errRefused ends a row: the server does not speak the version, as it should be.
var errRefused = skip("the server does not speak the version and says so")

func opPing(ctx context.Context, r *row) error {
	if err := r.has("ping"); err != nil {
		return err
	}
	reply, err := r.call(ctx, "ping", "{}", nil)
	if err == nil && (reply.Rounds != 1 || reply.Timing.End <= reply.Timing.Start) {
		return fmt.Errorf("got %+v", reply)
	}
	return err
}

func opDiscover(ctx context.Context, r *row) error {
	if err := r.has("server/discover"); err != nil {
		return err
	}
	reply, err := r.call(ctx, "server/discover", "{}", nil)
	if err == nil && !strings.Contains(string(reply.Result), string(r.version)) {
		return fmt.Errorf("got %s", reply.Result)
	}
	return err
}

func opCall(ctx context.Context, r *row) error {
	r.keys++
	text := fmt.Sprintf("hi %s %d", r.version, r.keys) // a crossed answer would show
	reply, err := r.tool(ctx, "echo", fmt.Sprintf(`{"message":%q}`, text), nil)
	if err != nil {
		return err
	}
	if got := words(reply); reply.ToolError || got != fmt.Sprintf(r.echo, text) || reply.BytesIn == 0 || reply.BytesOut == 0 {
		return fmt.Errorf("got %q, %+v", got, reply)
	}
	return nil
}

func opStructured(ctx context.Context, r *row) error { return r.works(ctx, r.structured, nil) }

func opToolError(ctx context.Context, r *row) error {
	reply, err := r.tool(ctx, r.fails.tool, r.fails.arguments, nil)
	if err != nil {
		return err
	}
	if !reply.ToolError || !strings.Contains(words(reply), r.fails.holds) {
		return fmt.Errorf("got %+v %s", reply, reply.Result)
	}
	return nil
}

func opUnknownTool(ctx context.Context, r *row) error {
	reply, err := r.tool(ctx, "no_such_tool", "{}", nil)
	return r.refused(reply, err, -32602)
}

func opUnknownMethod(ctx context.Context, r *row) error {
	reply, err := r.call(ctx, "toy/nothing", "{}", nil)
	return r.refused(reply, err, -32601)
}

// refused demands a JSON-RPC error with this code.
func (r *row) refused(reply mcp.Reply, err error, code int64) error {
	e, ok := errors.AsType[*mcp.RPCError](err)
	switch {
	case err == nil:
		return fmt.Errorf("a result, toolError %v: %s", reply.ToolError, reply.Result)
	case !ok || e.Code != code:
		return fmt.Errorf("%T: %w", err, err)
	}
	return nil
}

func opProgress(ctx context.Context, r *row) error {
	tool, arguments := r.slow(4, 10, "")
	reply, err := r.tool(ctx, tool, arguments, &mcp.Wants{Progress: true})
	if err := right(asked{tool: tool}, reply, err); err != nil {
		return err
	}
	if reply.Progress != 4 {
		return fmt.Errorf("%d of 4 progress notifications came before the answer", reply.Progress)
	}
	more := reply.More
	if more == nil || more.First < reply.Timing.Start || more.Last < more.First || more.Last > reply.Timing.End || len(more.Gaps) != 3 {
		return fmt.Errorf("times %+v of %+v", more, reply.Timing)
	}
	return nil
}

// opIdle: the limit of the silence is not met as long as progress comes, though the
// whole takes longer, and is met without.
func opIdle(ctx context.Context, r *row) error {
	tool, arguments := r.slow(8, 100, "")
	limit := 700 * time.Millisecond
	reply, err := r.tool(ctx, tool, arguments, &mcp.Wants{IdleTimeout: limit})
	if err := right(asked{tool: tool}, reply, err); err != nil {
		return err
	}
	if took := reply.Timing.End - reply.Timing.Start; took < limit {
		return fmt.Errorf("it took only %v", took)
	}
	tool, arguments = r.slow(1, 400, "")
	_, err = r.tool(ctx, tool, arguments, &mcp.Wants{IdleTimeout: limit / 10})
	if e, ok := errors.AsType[*mcp.TimeoutError](err); !ok || e.Limit != mcp.TimeoutIdle {
		return fmt.Errorf("without progress: %w", errors.Join(err, errNotMet))
	}
	return opCall(ctx, r)
}

var errNotMet = errors.New("the limit was not met")

func opCancel(ctx context.Context, r *row) error {
	r.keys++
	key := fmt.Sprintf("%s %d", r.mark, r.keys)
	tool, arguments := r.slow(60, 20, key)
	reply, err := r.tool(ctx, tool, arguments, &mcp.Wants{CancelAfter: 60 * time.Millisecond})
	e, ok := errors.AsType[*mcp.CancelledError](err)
	if !ok {
		return fmt.Errorf("not cancelled: %+v, %w", reply, err)
	}
	// The time counts from when the request is handed over, some µs before its Start.
	if after := e.Sent - reply.Timing.Start; after < 59*time.Millisecond || e.Stopped != 0 && e.Stopped < e.Sent {
		return fmt.Errorf("cancelled after %v, %+v", after, e)
	}
	if err := opCall(ctx, r); err != nil {
		return fmt.Errorf("the next call: %w", err)
	}
	// Under load the cancellation may overtake the call.
	if !r.tellsFate || r.tally != nil {
		return nil // the server does not show it
	}
	reply, err = r.s.Call(ctx, mcp.Request{
		Method: "tools/call", Params: fmt.Appendf(nil, `{"name":"fate","arguments":{"key":%q}}`, key), Timeout: patience,
	})
	if err != nil {
		return fmt.Errorf("fate: %w", err)
	}
	if words(reply) != "cancelled" {
		return fmt.Errorf("the server went on: the call was %s", words(reply))
	}
	return nil
}

func opTimeout(ctx context.Context, r *row) error {
	tool, arguments := r.slow(40, 10, "")
	_, err := r.s.Call(ctx, mcp.Request{
		Method: "tools/call", Params: fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, arguments), Timeout: 60 * time.Millisecond,
	})
	if e, ok := errors.AsType[*mcp.TimeoutError](err); !ok || e.Limit != mcp.TimeoutTotal {
		return fmt.Errorf("got %w", errors.Join(err, errNotMet))
	}
	return opCall(ctx, r)
}
