package scenarios

import (
	"fmt"

	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// aloneCheck finds the steps that open or close the session where other requests
// of the same session may be in flight. It goes through the file's steps rather
// than through what is compiled of them, since a flow that is called is compiled
// once, however it is called.
type aloneCheck struct {
	*compiler
	seen map[aloneVisit]bool
}

// aloneVisit is a called flow with whether it was called beside other requests.
type aloneVisit struct {
	flow   string
	beside bool
}

// company is why a step is not alone on its session. The zero value is that it is.
type company struct {
	// where is what has several requests in flight, as "in parallel".
	where string
	// remedy is what to do about it.
	remedy string
	// call is the outermost call within it, through which the step is reached; nil for none.
	call *grammar.Call
}

var inParallel = company{where: "in parallel", remedy: "put it after the parallel, where nothing else is in flight"}

// aloneInGroup is alone for the flow of a group with several requests in flight
// on each session.
func (c *compiler) aloneInGroup(g Group) {
	if g.InFlight < 2 || g.Flow >= len(c.out.Flows) {
		return
	}
	if f := c.file.Flows[c.out.Flows[g.Flow].Name]; f != nil {
		c.alone(f.Steps, company{
			where:  fmt.Sprintf("in group %q, which has in_flight: %d", g.Name, g.InFlight),
			remedy: "give the group in_flight: 1 and more sessions, or leave disconnect out",
		})
	}
}

// alone holds the steps of an iteration against the law that nothing opens or
// closes a session on which others may be waiting for their answers: the requests
// would be lost by the scenario's own doing, and not by the server's.
//
// with is what keeps all of the list from being alone: a group whose sessions
// have several iterations at once.
func (c *compiler) alone(list []*grammar.Step, with company) {
	check := aloneCheck{compiler: c, seen: map[aloneVisit]bool{}}
	check.steps(list, with)
}

func (a *aloneCheck) steps(list []*grammar.Step, with company) {
	for _, s := range list {
		if s == nil || s.Node == nil || s.Node.Kind != syntax.Map {
			continue
		}
		a.step(s, with)
	}
}

func (a *aloneCheck) step(s *grammar.Step, with company) {
	switch {
	case s.Disconnect != nil && with.where != "":
		a.fault(s.Node.Key("disconnect"), s.Path+".disconnect",
			"disconnect would close the session under the requests that others have on it %s%s; %s",
			with.where, a.through(with), with.remedy)
	case s.Connect != nil && with.where == inParallel.where:
		a.fault(s.Node.Key("connect"), s.Path+".connect",
			"connect makes no sense %s%s, which has a session already; put it before", with.where, a.through(with))
	case s.FlowStep != nil:
		a.call(s.FlowStep, with)
	case s.Parallel != nil && with.where == "":
		a.steps(s.Parallel, inParallel)
	default:
		for _, list := range inner(s) {
			a.steps(list, with)
		}
	}
}

func (a *aloneCheck) call(call *grammar.Call, with company) {
	flow := a.file.Flows[call.Name]
	visit := aloneVisit{call.Name, with.where != ""}
	if flow == nil || a.seen[visit] {
		return
	}
	a.seen[visit] = true
	if with.where != "" && with.call == nil {
		with.call = call
	}
	a.steps(flow.Steps, with)
}

// through says by which call a step came to be there; "" for none.
func (a *aloneCheck) through(with company) string {
	if with.call == nil {
		return ""
	}
	place := a.src.Problem(with.call.Node, -1, "", "").Place()
	return ", where flow \"" + with.call.Name + "\" is called (" + place + ")"
}
