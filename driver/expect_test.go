package driver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"mcpbench/mcp"
	"mcpbench/metrics"
)

// TestExpectDecidesTheOutcome holds the outcome, the tag and the message of
// answers that were expected and that were not.
func TestExpectDecidesTheOutcome(t *testing.T) {
	tests := []struct {
		name, tool, expect string
		outcome            metrics.Outcome
		tag, message       string
	}{
		{name: "a tool error", tool: "fails", expect: "{outcome: tool_error}", outcome: metrics.OK, tag: "tool_error"},
		{name: "an error by its code", tool: "refuses", expect: `{outcome: [tool_error, "rpc_error:-32602"]}`, outcome: metrics.OK, tag: "rpc_error"},
		{name: "an error with another code", tool: "refuses", expect: `{outcome: "rpc_error:-32603"}`, outcome: metrics.RPCError},
		{name: "success where none was expected", tool: "a", expect: "{outcome: tool_error}", outcome: metrics.CheckFailed, message: "the request went well"},
		{name: "a schema that holds", tool: "a", expect: "{schema: {type: object, required: [content]}}", outcome: metrics.OK},
		{name: "a schema that does not", tool: "a", expect: "{schema: {type: object, required: [other]}}", outcome: metrics.CheckFailed, message: "other"},
		{name: "members", tool: "a", expect: "{contains: {structuredContent: {v: 5}}}", outcome: metrics.OK},
		{name: "other members", tool: "a", expect: "{contains: {structuredContent: {v: 6}}}", outcome: metrics.CheckFailed, message: "/structuredContent/v"},
		{name: "a pattern", tool: "a", expect: "{matches: nothing like it}", outcome: metrics.CheckFailed, message: "nothing like it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := toolPeer()
				answer := p.call
				p.call = func(ctx context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error) {
					if strings.Contains(string(req.Params), `"refuses"`) {
						return c.reply(c.now()), &mcp.RPCError{Code: -32602, Message: "no"}
					}
					return answer(ctx, c, req)
				}
				got := play(t.Context(), t, p, once+`flows: {f: {steps: [{id: x, tools/call: {name: `+tt.tool+`, arguments: {v: 5}}, tags: {kind: k}, expect: `+tt.expect+`}]}}`)
				s := got.step("x")[0]
				x := s.Extra
				if x == nil {
					x = &metrics.Extra{}
				}
				if s.Outcome != tt.outcome || x.Tags["expected"] != tt.tag || !strings.Contains(x.Message, tt.message) {
					t.Errorf("outcome %v, code %d, tags %v, message %q", s.Outcome, s.Code, x.Tags, x.Message)
				}
				if tt.tag != "" && x.Tags["kind"] != "k" {
					t.Errorf("the step's own tags are lost: %v", x.Tags)
				}
			})
		})
	}
}

const toolList = `{"tools": [
  {"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["a"], "additionalProperties": false},
   "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}, "annotations": {"readOnlyHint": true}},
  {"name": "drop", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}}]}`

// listing is a peer with two tools. add answers with a sum, and refuses arguments
// that are no small number of its own, unless it is lax.
func listing(lax bool, sum string) *peer {
	return &peer{call: func(_ context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error) {
		reply := c.reply(c.now())
		if req.Method == "tools/list" {
			reply.Result = json.RawMessage(toolList)
			return reply, nil
		}
		var p struct {
			Name      string
			Arguments map[string]any
		}
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return reply, fmt.Errorf("params: %w", err)
		}
		a, isNumber := p.Arguments["a"].(float64)
		if valid := p.Name == "drop" || isNumber && a >= 0 && a <= 9 && a == float64(int(a)) && len(p.Arguments) == 1; !valid && !lax {
			return reply, &mcp.RPCError{Code: -32602, Message: "bad arguments"}
		}
		reply.Result = fmt.Appendf(nil, `{"content":[],"structuredContent":%s}`, sum)
		return reply, nil
	}}
}

// TestGenerateMakesArguments: valid ones are accepted, invalid ones must be refused,
// and only tools that are hinted read-only are chosen.
func TestGenerateMakesArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = `load: {groups: {g: {flow: f, iterations: 300}}}
flows: {f: {steps: [{id: x, generate: {tool: any, invalid: 0.3}, check: {schema: valid_output}}]}}`
		var before []string
		for _, lax := range []bool{false, true} {
			p := listing(lax, `{"sum": 3}`)
			got := play(t.Context(), t, p, text)
			counts := map[string]int{}
			for _, s := range got.step("x") {
				counts[s.Outcome.String()+" "+s.Extra.Tags["expected"]]++
				if s.Extra.Tags["tool"] != "add" {
					t.Errorf("tool %s was called", s.Extra.Tags["tool"])
				}
			}
			refused := counts["ok rpc_error"] + counts["check_failed "]
			if counts["ok "]+refused != 300 || refused < 60 || refused > 120 || lax != (counts["check_failed "] > 0) {
				t.Errorf("lax %t: %v", lax, counts)
			}
			if diff := cmp.Diff(before, p.log); before != nil && diff != "" {
				t.Errorf("not the same requests:\n%s", diff)
			}
			before = p.log
		}
	})
}

// TestValidOutputIsACheck holds the verdict against answers that keep and that
// break the tool's outputSchema.
func TestValidOutputIsACheck(t *testing.T) {
	for sum, failed := range map[string]uint32{`{"sum": 3}`: 0, `{"sum": "x"}`: 2} {
		synctest.Test(t, func(t *testing.T) {
			got := play(t.Context(), t, listing(false, sum), once+`flows: {f: {steps: [{id: x, tools/call: {name: add, arguments: {a: 1}}, check: {fine: "true", shape: valid_output}}]}}`)
			if s := got.step("x")[0]; s.Outcome != metrics.OK || s.ChecksFailed != failed {
				t.Errorf("%s: outcome %v, checks %b, want %b", sum, s.Outcome, s.ChecksFailed, failed)
			}
		})
	}
}

// TestValidOutputAfterGenerate is about the tool of its own step.
func TestValidOutputAfterGenerate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := play(t.Context(), t, listing(false, `{"sum": 3}`), once+`flows: {f: {steps: [{generate: {tool: drop}}, {id: x, tools/call: {name: add, arguments: {a: 1}}, check: {shape: valid_output}, expect: {outcome: ok}}]}}`)
		if s := got.step("x")[0]; s.Outcome != metrics.OK || s.ChecksFailed != 0 {
			t.Errorf("outcome %v, checks %b, extra %+v", s.Outcome, s.ChecksFailed, s.Extra)
		}
	})
}

// TestNoOutputSchemaIsToldOnce: a tool without an outputSchema makes every request
// with valid_output a script_error, and the log says so once, not each time.
func TestNoOutputSchemaIsToldOnce(t *testing.T) {
	for _, step := range []string{
		"{id: x, tools/call: {name: drop}, check: {shape: valid_output}}",
		"{id: x, generate: {tool: drop}, check: {shape: valid_output}}",
	} {
		synctest.Test(t, func(t *testing.T) {
			got := play(t.Context(), t, listing(true, `{"sum": 3}`), "load: {groups: {g: {flow: f, sessions: 2, iterations: 20}}}\nflows: {f: {steps: ["+step+"]}}")
			if got.err != nil || len(got.step("x")) != 20 {
				t.Fatalf("%d requests, error %v", len(got.step("x")), got.err)
			}
			for _, s := range got.step("x") {
				if s.Outcome != metrics.ScriptError {
					t.Fatalf("outcome %v, want script_error", s.Outcome)
				}
			}
			told := got.logs.FilterMessage("a check cannot be evaluated: its requests are script_error").All()
			if len(told) != 1 || !strings.Contains(fmt.Sprint(told[0].ContextMap()["error"]), `tool "drop": the tool has no outputSchema`) {
				t.Errorf("told %v", told)
			}
		})
	}
}

// TestToolsThatAreMissingAreTold before anything is sent.
func TestToolsThatAreMissingAreTold(t *testing.T) {
	for step, want := range map[string]string{
		`{generate: {tool: ad}}`:                             `the server has no tool "ad" (did you mean "add"?)`,
		`{tools/call: {name: ad}, check: {s: valid_output}}`: `the server has no tool "ad" (did you mean "add"?)`,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := listing(false, "{}")
			got := play(t.Context(), t, p, once+"flows: {f: {steps: ["+step+"]}}")
			if got.err == nil || !strings.Contains(got.err.Error(), want) {
				t.Errorf("error %v", got.err)
			}
			for _, line := range p.log {
				if !strings.HasPrefix(line, "tools/list") {
					t.Errorf("sent %s", line)
				}
			}
		})
	}
}
