package scenarios

import (
	"strings"
	"time"

	"mcpbench/internal/curve"
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
	out.PerSession = g.Iterations.PerSession
	out.IdleSessions = g.IdleSessions
	if g.Node.Lookup("arrivals") != nil {
		c.openGroup(&out, g)
		c.size(g, &out, "max_sessions")
	} else {
		c.closedGroup(&out, g)
		c.size(g, &out, "sessions")
	}
	c.lasts(&out, g)
	out.Life = c.life(g)
	return out
}

// lasts says how long the group's load is: what it says itself, or its stages.
func (c *compiler) lasts(out *Group, g *grammar.Group) {
	staged, stages := out.Level.End()
	switch key := g.Node.Key("duration"); {
	case stages && g.Duration.Set:
		c.fault(key, syntax.Join(g.Path, "duration"), "the stages say how long the load is (%v); leave duration out", staged)
	case stages:
		out.Duration = staged
	case len(out.Times) > 0 && !g.Duration.Set:
		out.Duration = out.Times[len(out.Times)-1] + time.Nanosecond // with the last one
	case !g.Duration.Set && !g.Iterations.Set:
		out.Duration = defaultDuration
	}
}

// closedGroup compiles a load of sessions.
func (c *compiler) closedGroup(out *Group, g *grammar.Group) {
	out.Think = c.spread(g.Think, g.Path+".think")
	for _, key := range []string{"max_sessions", "on_saturation", "queue_limit"} {
		if n := g.Node.Key(key); n != nil {
			c.fault(n, syntax.Join(g.Path, key), "%s belongs to an open load, which has arrivals", key)
		}
	}
	start := g.Sessions.Count
	if len(g.Sessions.Stages) == 0 {
		out.Sessions = max(start, 1)
		out.Level, out.WarmLevel = curve.Constant(float64(out.Sessions)), float64(out.Sessions)
		return
	}
	stages := make([]curve.Stage, 0, len(g.Sessions.Stages))
	for _, s := range g.Sessions.Stages {
		if s.Node == nil || s.Node.Kind != syntax.Map {
			continue
		}
		stages = append(stages, curve.Stage{
			Level: float64(s.To), HasLevel: s.Node.Lookup("to") != nil, Over: s.Over.D, Hold: s.Hold.D,
		})
	}
	out.Changes = true
	level, err := curve.Stages(float64(start), stages)
	if err != nil {
		c.fault(g.Sessions.Node.Key("stages"), g.Path+".sessions.stages", "%s", err)
		return
	}
	out.Level = level
	out.WarmLevel = firstLevel(float64(start), stages)
	out.Sessions = max(int(out.Level.Max()), int(out.WarmLevel), 1)
	if out.Level.Max() == 0 {
		c.fault(g.Sessions.Node.Lookup("stages"), g.Path+".sessions.stages", "there is never a session")
	}
}

// firstLevel is the level of the warm-up of a load with stages: the one at their
// start, or the first that they lead to when that is 0.
func firstLevel(start float64, stages []curve.Stage) float64 {
	for i := 0; start == 0 && i < len(stages); i++ {
		start = stages[i].Level
	}
	return start
}

// maxRequestsAtOnce bounds sessions × in_flight of a group: each is a goroutine
// and, over HTTP, a connection, and no machine has room for more.
const maxRequestsAtOnce = 200_000

// size refuses a group that no machine could run. key is the one that says how
// many sessions it has.
func (c *compiler) size(g *grammar.Group, out *Group, key string) {
	if out.Sessions+out.IdleSessions <= maxRequestsAtOnce/out.InFlight {
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
	if g.Iterations.PerSession > 0 {
		c.fault(g.Node.Lookup("iterations"), g.Path+".iterations", "per_session belongs to a closed load, which has sessions")
	}
	c.arrivals(out, g)
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
