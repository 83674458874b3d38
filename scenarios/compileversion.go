package scenarios

import (
	"slices"
	"strings"

	"mcpbench/scenarios/internal/script"
)

// knownMethod tells whether a step's method exists in a protocol version; the
// step is skipped where it does not.
func knownMethod(method, version string) bool {
	modern := version == modernVersion
	switch method {
	case "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "notifications/roots/list_changed":
		return !modern
	case "server/discover":
		return modern
	}
	return true
}

// inVersion tells whether the step exists in a protocol version. Subscriptions
// exist in all, in one form or another; 2026-07-28 has no notifications of the
// client over HTTP (specification 2026-07-28, basic/transports).
func (s *Step) inVersion(version, transport string) bool {
	switch s.Kind {
	case StepRequest:
		return knownMethod(s.Method, version)
	case StepNotify:
		return knownMethod(s.Method, version) && (version != modernVersion || transport == "stdio")
	case StepSubscribe, StepUnsubscribe, StepWait:
	}
	return true
}

// repeatable warns of requests that the seed does not determine, where it
// otherwise would: in open loads and with a number of iterations.
func (c *compiler) repeatable(g Group) {
	if g.Flow >= len(c.out.Flows) || !g.Open && g.Iterations == 0 {
		return
	}
	flow := &c.out.Flows[g.Flow]
	step, name := "", ""
	for _, s := range flow.Steps {
		if name = s.params.chance(); name != "" {
			step = s.ID
			break
		}
	}
	if name == "" {
		step, name = chanceOf(flow.Do, flow.Steps)
	}
	reason, known := map[string]string{
		"session.*": "which session takes an arrival is left to chance",
		"saved.*":   "what was saved comes from the server's answers",
		"now()":     "the time differs from run to run",
	}[name]
	if !known {
		return
	}
	at := c.root.Lookup("load").Lookup("groups").Key(g.Name)
	c.warn(at, "load.groups."+g.Name, "step %q uses %s: %s, so the same seed does not repeat the requests", step, name, reason)
}

// chanceOf returns what the conditions of actions depend on that the seed does
// not determine, with the id of the step.
func chanceOf(actions []*Action, rows []*Step) (step, name string) {
	for _, a := range actions {
		if a.Row >= 0 {
			step = rows[a.Row].ID
		}
		for _, e := range []*script.Expression{a.when, a.while, a.count} {
			if name = chance(e); name != "" {
				return step, name
			}
		}
		for _, arg := range a.args {
			if name = (&paramsTemplate{parts: arg.parts}).chance(); name != "" {
				return step, name
			}
		}
		for _, b := range a.Branches {
			if inner, name := chanceOf(b, rows); name != "" {
				return inner, name
			}
		}
	}
	return "", ""
}

// pinned warns of steps that a group's server skips by its pinned version.
func (c *compiler) pinned(g Group) {
	if g.Server >= len(c.out.Servers) || g.Flow >= len(c.out.Flows) {
		return
	}
	server := c.out.Servers[g.Server]
	if server.Protocol == "" {
		return
	}
	var skipped []string
	for s := range c.out.Flows[g.Flow].all() {
		if !s.inVersion(server.Protocol, server.Transport) && !slices.Contains(skipped, s.Method) {
			skipped = append(skipped, s.Method)
		}
	}
	if len(skipped) > 0 {
		at := c.root.Lookup("load").Lookup("groups").Key(g.Name)
		c.warn(at, "load.groups."+g.Name, "server %q is pinned to %s and skips %s", server.Name, server.Protocol, strings.Join(skipped, ", "))
	}
}
