package scenarios

import (
	"strings"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

func (c *compiler) groups(flows []string) {
	at := c.file.Load
	table := at.Node.Lookup("groups")
	names := table.Keys()
	if table != nil && table.Kind == syntax.Map && len(names) == 0 {
		c.fault(table, "load.groups", "there is no group; a group runs a flow")
	}
	if len(names) > maxGroups {
		c.fault(table.Key(names[maxGroups]), "load.groups", "more than %d groups", maxGroups)
		return
	}
	usedFlows, usedServers := map[int]bool{}, map[int]bool{}
	for _, name := range names {
		g := at.Groups[name]
		if g == nil || g.Node == nil || g.Node.Kind != syntax.Map && g.Node.Kind != syntax.Null {
			continue
		}
		out := c.group(name, g, flows)
		usedFlows[out.Flow], usedServers[out.Server] = true, true
		c.out.Groups = append(c.out.Groups, out)
		c.aloneInGroup(out)
		c.pinned(out)
		c.repeatable(out)
	}
	if c.partly {
		return
	}
	for i, name := range flows {
		if !usedFlows[i] && !c.usedFlows[name] {
			c.warn(c.root.Lookup("flows").Key(name), "flows."+name, "flow %q is used by no group", name)
		}
	}
	for i, s := range c.out.Servers {
		if key := c.root.Lookup("servers").Key(s.Name); key != nil && !usedServers[i] {
			c.warn(key, "servers."+s.Name, "server %q is used by no group", s.Name)
		}
	}
}

func (c *compiler) group(name string, g *grammar.Group, flows []string) Group {
	servers := make([]string, len(c.out.Servers))
	for i, s := range c.out.Servers {
		servers[i] = s.Name
	}
	out := Group{
		Name:       name,
		Server:     c.reference(g.Place, "server", g.Server, servers),
		Flow:       c.reference(g.Place, "flow", g.Flow, flows),
		InFlight:   max(g.InFlight, 1),
		Duration:   c.limit(g.Place, "duration", g.Duration, 0),
		Iterations: g.Iterations.Count,
		OnError:    onErrorOf(g.OnError).Or(NextIteration),
	}
	if !g.Duration.Set && !g.Iterations.Set {
		out.Duration = defaultDuration
	}
	if g.Node.Lookup("arrivals") != nil {
		c.openGroup(&out, g)
		c.size(g, &out, "max_sessions")
		return out
	}
	out.Sessions = max(g.Sessions.Count, 1)
	out.Think = c.spread(g.Think, g.Path+".think")
	c.size(g, &out, "sessions")
	for _, key := range []string{"max_sessions", "on_saturation", "queue_limit"} {
		if n := g.Node.Key(key); n != nil {
			c.fault(n, syntax.Join(g.Path, key), "%s belongs to an open load, which has arrivals", key)
		}
	}
	return out
}

// maxRequestsAtOnce bounds sessions × in_flight of a group: each is a goroutine
// and, over HTTP, a connection, and no machine has room for more.
const maxRequestsAtOnce = 200_000

// size refuses a group that no machine could run. key is the one that says how
// many sessions it has.
func (c *compiler) size(g *grammar.Group, out *Group, key string) {
	if out.Sessions <= maxRequestsAtOnce/out.InFlight {
		return
	}
	at := g.Node.Key(key)
	if at == nil {
		at = g.Node.Key("in_flight")
	}
	c.fault(at, syntax.Join(g.Path, key), "%d sessions with %d requests in flight each are more than %d at once",
		out.Sessions, out.InFlight, maxRequestsAtOnce)
}

func (c *compiler) openGroup(out *Group, g *grammar.Group) {
	out.Open = true
	out.Sessions = max(g.MaxSessions, 1)
	out.Process = "constant"
	out.QueueLimit = g.QueueLimit
	out.DropWhenFull = g.OnSaturation == "drop"
	if n := g.Node.Key("sessions"); n != nil {
		c.fault(n, g.Path+".sessions", "sessions and arrivals are two kinds of load; keep one (an open load bounds its sessions with max_sessions)")
	}
	if n := g.Node.Key("think"); n != nil {
		c.fault(n, g.Path+".think", "think belongs to a closed load, which has sessions")
	}
	if n := g.Node.Key("queue_limit"); n != nil && out.DropWhenFull {
		c.fault(n, g.Path+".queue_limit", "queue_limit does not go with on_saturation: drop, which has no queue")
	}
	a := g.Arrivals
	if a == nil {
		return
	}
	if a.Process != "" {
		out.Process = a.Process
	}
	out.Rate = a.Rate.PerSecond
	if a.Node.Kind != syntax.Map && a.Node.Kind != syntax.Null {
		return
	}
	if rate, stages := a.Node.Key("rate"), a.Node.Key("stages"); rate == nil && stages == nil {
		c.fault(g.Node.Key("arrivals"), a.Path, "arrivals wants a rate, e.g. rate: 200/s")
	} else if rate != nil && stages != nil {
		c.fault(stages, a.Path, "rate and stages are two ways to say how many arrivals; keep one")
	}
}

// reference returns the index of a server or flow that a group names, or of the
// only one. It returns 0 after a fault.
func (c *compiler) reference(g grammar.Place, key, name string, known []string) int {
	node := g.Node.Lookup(key)
	if node == nil {
		if len(known) > 1 {
			at := g.Node
			c.fault(at, g.Path, "%s names no %s; there are several: %s", g.Path, key, strings.Join(known, ", "))
		}
		return 0
	}
	for i, k := range known {
		if k == name {
			return i
		}
	}
	if node.Kind != syntax.String || c.loading && key == "server" && len(known) == 0 {
		return 0
	}
	c.fault(node, syntax.Join(g.Path, key), "there is no %s %q%s", key, name, nearest.DidYouMeanOf(name, known))
	return 0
}
