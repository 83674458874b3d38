package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// What init writes at most, so that the file stays one that a person reads.
const (
	initTools     = 100
	initResources = 3
	initPrompts   = 5
	initArguments = 2 << 10  // bytes of the arguments of one step
	initBytes     = 64 << 10 // of all of them
	initName      = 200      // bytes of a name or a URI
)

// tryTime is how long a call may take that init tries: one that takes longer would
// fill a short load alone.
const tryTime = 5 * time.Second

// survey is what init learns of a server.
type survey struct {
	flags *initFlags
	mask  *scenarios.Masker

	offer   *offer
	info    mcp.Info
	more    []json.RawMessage // tools that only a client with capabilities is shown
	session *probe            // its client declares all that can be answered
	asked   atomic.Int64      // questions of the server, ping aside
	gone    bool              // the session was lost, and no other could be opened
	slowest time.Duration     // of the calls that went well
	bytes   int               // of arguments so far

	tools, resources, prompts tally
	variables                 map[string]string
}

// ask asks the server what it has: once as a client that can be asked nothing, once
// as one that answers all, which some servers show more tools. The second session
// stays open. The error has the exit code.
func (v *survey) ask(ctx context.Context, a *aim) error {
	p, err := a.open(ctx, &v.flags.targetFlags, &dialer{}, mcp.Options{ParamHeaders: &mcp.ParamHeaders{}})
	if err != nil {
		return err
	}
	v.info = p.session.Info()
	v.offer, err = p.ask(ctx)
	decision := p.decision
	p.close(ctx)
	if err != nil {
		return failure("%w", err)
	}
	a.server.Protocol, a.server.Transport, a.server.AnyHTTP = string(v.info.Version), decision.Transport.Kind(), false
	answers, err := mcp.Canned{
		Sampling:    mcp.CannedSampling{Text: "stub answer", Model: "mcpbench", StopReason: "endTurn"},
		Elicitation: mcp.CannedElicitation{Action: "accept", Fill: true},
		Roots:       mcp.CannedRoots{List: []mcp.Root{{URI: scenarios.StarterRoot}}},
	}.Ready()
	if err != nil {
		return failure("%w", err)
	}
	v.session, err = a.open(ctx, &v.flags.targetFlags, &dialer{}, mcp.Options{
		ParamHeaders: &mcp.ParamHeaders{}, Capabilities: v.info.Version.Capabilities(true, true, true), Answers: answers, GetStream: true,
		OnAsked: func(q mcp.Asked) {
			if q.Method != "ping" {
				v.asked.Add(1)
			}
		},
	})
	if err != nil {
		return err
	}
	if !v.info.Declares("tools/list") {
		return nil
	}
	shown, err := list[json.RawMessage](ctx, v.session, "tools/list", "tools", func(mcp.Reply) {})
	if err != nil {
		v.close(ctx)
		return failure("%w", err)
	}
	known := map[string]bool{}
	for _, raw := range v.offer.Tools {
		known[nameOf(raw)] = true
	}
	for _, raw := range shown {
		if !known[nameOf(raw)] {
			v.more = append(v.more, raw)
		}
	}
	return nil
}

func nameOf(raw json.RawMessage) string {
	var t struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(raw, &t) // what is no object has no name
	return t.Name
}

func (v *survey) close(ctx context.Context) { v.session.close(ctx) }

// answer is what came of a call that was tried.
type answer struct {
	took   time.Duration
	result json.RawMessage
	failed string // why it is no call for a load; "" when it went well
}

// try makes a request that the load will make too.
func (v *survey) try(ctx context.Context, method string, params []byte) answer {
	if v.gone {
		return answer{failed: "not tried: the session was lost"}
	}
	limit := min(v.flags.timeout, tryTime)
	reply, err := v.session.session.Call(ctx, mcp.Request{Method: method, Params: params, Timeout: limit})
	out := answer{took: reply.Timing.End - reply.Timing.Start, result: reply.Result}
	outcome, _ := driver.Classify(ctx, reply, err)
	said := ""
	if outcome.Failed() || err != nil {
		said = saidOf(reply, err)
		if said == "" && err != nil {
			said = err.Error()
		}
		said = oneLineOf(clean(v.mask.Text(said)), 120)
	}
	switch {
	case outcome == metrics.Timeout:
		out.failed = fmt.Sprintf("no answer within %v when it was tried", limit)
	case outcome.Failed():
		out.failed = fmt.Sprintf("%s when it was tried: %s", outcome, said)
	case err != nil:
		out.failed = "failed when it was tried: " + said
	default:
		v.slowest = max(v.slowest, out.took)
	}
	if err != nil && mcp.SessionLost(err) && ctx.Err() == nil {
		v.reopen(ctx)
	}
	return out
}

// reopen opens another session in place of one that a call has cost.
func (v *survey) reopen(ctx context.Context) {
	session, err := v.session.connect(ctx, v.info.Version)
	if err != nil {
		v.gone = true
		return
	}
	v.session.end(ctx)
	v.session.session = session
}

// starter makes the scenario of what the server has. Where to reach it is left out.
func (v *survey) starter(ctx context.Context) (*scenarios.Starter, error) {
	s := &scenarios.Starter{Name: serverName(v.offer.Server.Name)}
	if v.flags.server != "" {
		s.Name = serverName(v.flags.server)
	}
	for _, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
		i := slices.IndexFunc(v.offer.Lists, func(l listOffer) bool { return l.Method == method })
		if i >= 0 && v.offer.Lists[i].Declared && v.offer.Lists[i].Error == "" {
			s.Before = append(s.Before, scenarios.StarterStep{Method: method, Params: []byte(`{"all_pages":true}`)})
		}
	}
	for _, part := range []func(context.Context) ([]scenarios.StarterStep, error){v.toolSteps, v.resourceSteps, v.promptSteps} {
		steps, err := part(ctx)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s.Steps = append(s.Steps, steps...)
	}
	if !slices.ContainsFunc(s.Steps, func(step scenarios.StarterStep) bool { return !step.Off }) {
		s.Steps = append(s.Steps, v.idle())
	}
	s.Answers = len(v.more) > 0 || v.asked.Load() > 0
	s.Comments = v.head(s)
	s.Thresholds = []string{"rate(errors) < 1%", fmt.Sprintf("p95(latency) < %v", roomFor(v.slowest))}
	return s, nil
}

// idle is a step for a server that has nothing to be used.
func (v *survey) idle() scenarios.StarterStep {
	method := "tools/list"
	for _, other := range []string{"ping", "server/discover"} {
		if v.info.Version.Features().Has(other) {
			method = other
		}
	}
	return scenarios.StarterStep{Comments: []string{"Nothing else is used yet."}, Method: method, Params: []byte("{}")}
}

// head is the comment at the head of the file.
func (v *survey) head(s *scenarios.Starter) []string {
	name := v.flags.out
	if name == "-" {
		name = "FILE"
	}
	name = shellQuote(clean(name))
	out := []string{
		fmt.Sprintf("A first load for %s %s, %s, protocol %s.", clean(v.offer.Server.Name), clean(v.offer.Server.Version),
			v.info.Transport, v.info.Version),
		"",
		"  mcpbench check --connect " + name + " compares it with the server,",
		"  mcpbench run " + name + " runs it,",
		"  mcpbench schema > mcpbench.schema.json lets editors complete and check it.",
		"",
		"The arguments are made up from the input schemas. Put in what users of the server send:",
		`an argument may hold an expression, as in "item ${{ iteration.index }}".`,
	}
	if v.tools.all > v.tools.live {
		out = append(out, fmt.Sprintf("%d of %s are used; the others are commented out, with the reason.", v.tools.live, count(v.tools.all, "tool")))
	}
	if s.Answers {
		out = append(out, "The server asks its client, or has tools that only such a client is shown: see client.")
	}
	return out
}

// roomFor is a limit for a percentile of latency that a load keeps well: ten times
// what one call took, at least a second, rounded up to 1, 2 or 5 times a power of ten.
func roomFor(took time.Duration) time.Duration {
	limit := time.Second
	for _, factor := range []time.Duration{1, 2, 5, 10, 20, 50} {
		if limit = factor * time.Second; limit >= 10*took {
			break
		}
	}
	return limit
}

// serverName makes a name for the scenario of the one that a server gives itself.
func serverName(name string) string {
	out := make([]rune, 0, 32)
	for _, r := range name {
		switch {
		case len(out) == cap(out):
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9' && len(out) > 0:
			out = append(out, r)
		case len(out) > 0 && out[len(out)-1] != '-':
			out = append(out, '-')
		}
	}
	for len(out) > 0 && out[len(out)-1] == '-' {
		out = out[:len(out)-1]
	}
	if len(out) == 0 {
		return "server"
	}
	return string(out)
}

var errTooMuch = errors.New("too much for a first scenario")

// room tells whether a step with these params may be written, and counts it.
func (v *survey) room(params []byte) error {
	if len(params) > initArguments+initName {
		return fmt.Errorf("its arguments have %d bytes: %w", len(params), errTooMuch)
	}
	if v.bytes+len(params) > initBytes {
		return errTooMuch
	}
	v.bytes += len(params)
	return nil
}
