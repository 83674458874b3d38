package scenarios

import (
	"slices"
	"strings"
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
	for _, s := range c.out.Flows[g.Flow].Steps {
		if s.params.usesSession() {
			at := c.root.Lookup("load").Lookup("groups").Key(g.Name)
			c.warn(at, "load.groups."+g.Name,
				"step %q uses session.*: which session takes an arrival is left to chance, so the same seed does not repeat the requests", s.ID)
			return
		}
	}
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
