package driver

import (
	"time"

	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// check fills the verdicts of the step's checks. On a request without an
// answer each of them has failed, unevaluated.
func (w *worker) check(s *metrics.Sample, step *scenarios.Step, reply mcp.Reply) {
	if !step.Looks() {
		return
	}
	if !s.Outcome.Answered() {
		if s.Outcome.CountsChecks() {
			s.ChecksFailed = 1<<len(step.Checks) - 1
		}
		return
	}
	w.evaluated = true
	failed, err := step.Check(&w.env, scenarios.Response{
		Result: reply.Result, Elapsed: s.Service(), OK: s.Outcome == metrics.OK, Page: w.page, Tool: w.made.Tool,
	})
	if err != nil {
		s.Outcome, s.Code = metrics.ScriptError, 0
		s.ChecksFailed = 1<<len(step.Checks) - 1
		if s.Extra == nil {
			s.Extra = &metrics.Extra{}
		}
		s.Extra.Message = mask(err.Error())
		return
	}
	s.ChecksFailed = failed
}

// sample returns what all samples of the current iteration's requests share.
func (w *worker) sample(live *session, id uint16) metrics.Sample {
	s := metrics.Sample{
		Kind: metrics.KindStep, Group: w.g.index, Step: id, Session: live.number, Proto: live.proto,
		Iteration: w.arrival.index, Seq: w.next(),
	}
	live.requests.Add(1)
	return s
}

// next numbers a request within its iteration.
func (w *worker) next() uint16 {
	n := w.seq
	if w.seq < 1<<16-1 {
		w.seq++
	}
	return n
}

// place sets the sample's offsets. The first request of an iteration has the
// arrival's intended start; a later one the end of the request before it.
func (w *worker) place(s *metrics.Sample, t mcp.Timing) {
	t0 := w.g.runner.t0
	if w.once != nil {
		t0 = 0 // the clock may not have started: see recordSinceBase
	}
	s.Start, s.FirstByte, s.End = t.Start-t0, t.FirstByte-t0, t.End-t0
	s.Intended, s.Release = w.arrival.intended, w.arrival.released
	if w.moved && s.Intended != metrics.NoOffset {
		s.Intended, s.Release = w.prev, s.Start
	}
	s.Phase = w.g.runner.phase(phaseAt(s))
}

func phaseAt(s *metrics.Sample) time.Duration {
	if s.Intended != metrics.NoOffset {
		return s.Intended
	}
	return s.Start
}

// scriptError records a step whose parameters could not be made; nothing was sent.
func (w *worker) scriptError(live *session, id uint16, err error) metrics.Outcome {
	s := w.sample(live, id)
	now := time.Since(w.g.runner.base)
	w.place(&s, mcp.Timing{Start: now, FirstByte: now, End: now})
	s.Outcome = metrics.ScriptError
	s.Extra = &metrics.Extra{Message: own(err)}
	if n := len(w.g.runner.plan.Catalog.Steps[id].Checks); n > 0 {
		s.ChecksFailed = 1<<n - 1
	}
	w.prev, w.moved = s.End, true
	w.keep(s)
	return metrics.ScriptError
}
