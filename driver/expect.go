package driver

import (
	"maps"

	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// expect lets a step decide the outcome by the answer. An error that was expected
// keeps its code, and the tag expected says what it was.
func (w *worker) expect(s *metrics.Sample, step *scenarios.Step, reply mcp.Reply) {
	w.evaluated = true
	if w.made.Invalid != "" {
		return // judged already
	}
	was := s.Outcome
	outcome, failure, err := step.Expect(&w.env, was, s.Code, reply.Result)
	switch {
	case err != nil:
		s.Outcome, s.Code = metrics.ScriptError, 0
		extra(s).Message = mask(err.Error())
	case outcome == metrics.CheckFailed:
		s.Outcome, s.Code = outcome, 0
		extra(s).Message = cut(failure)
	case outcome != was: // ok
		s.Outcome = outcome
		w.tag(s, "expected", was.String())
	}
}

// judgeMade says of a request with made arguments which tool it called, and turns
// round the outcome of invalid arguments: they must be refused.
func (w *worker) judgeMade(s *metrics.Sample) {
	w.evaluated = true
	w.tag(s, "tool", w.made.Tool)
	if w.made.Invalid == "" {
		return
	}
	w.tag(s, "invalid", cut(w.made.Invalid))
	switch s.Outcome { //nolint:exhaustive // the others stay what they are
	case metrics.OK:
		s.Outcome = metrics.CheckFailed
		extra(s).Message = cut("the server took arguments that its schema refuses: " + w.made.Invalid)
	case metrics.ToolError, metrics.RPCError:
		w.tag(s, "expected", s.Outcome.String())
		s.Outcome = metrics.OK
	}
}

// tag adds a tag to those of the step.
func (w *worker) tag(s *metrics.Sample, key, value string) {
	x := extra(s)
	if x.Tags == nil {
		x.Tags = maps.Clone(w.g.runner.plan.Catalog.Steps[s.Step].Tags)
	}
	if x.Tags == nil {
		x.Tags = map[string]string{}
	}
	x.Tags[key] = value
}

func extra(s *metrics.Sample) *metrics.Extra {
	if s.Extra == nil {
		s.Extra = &metrics.Extra{}
	}
	return s.Extra
}
