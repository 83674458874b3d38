package main

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"time"

	"mcpbench/internal/self"
	"mcpbench/scenarios"
)

// ownFiles is about how many descriptors this process needs beside those of the
// sessions: streams, poller, journal, results.
const ownFiles = 24

// impossible says why a load cannot be made on a machine of such limits with so
// many source addresses, and which could; nil when nothing speaks against it.
// Needs are counted at their least: what is only probable is not refused.
func impossible(p *scenarios.Program, m self.Limits, sources int) error {
	for _, check := range []func() error{
		func() error { return fewDescriptors(p, m.FDs) },
		func() error { return fewProcesses(p, m.Processes) },
		func() error { return fewPorts(p, m.Ports, sources) },
		func() error { return tooFast(p) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// connections is how many connections a group holds to its server over HTTP at
// the least, when all its sessions are open.
func connections(p *scenarios.Program, g *scenarios.Group) int {
	s := &p.Servers[g.Server]
	switch {
	case s.Transport == "stdio":
		return 0
	case s.Connections > 0:
		return min(s.Connections, g.AllSessions())
	}
	return g.AllSessions()
}

// fewDescriptors compares what all sessions need with the limit.
func fewDescriptors(p *scenarios.Program, limit int64) error {
	var need, sessions int64
	for i := range p.Groups {
		g := &p.Groups[i]
		s := &p.Servers[g.Server]
		n := int64(connections(p, g))
		switch {
		case s.SharedProcess:
			n = 3
		case s.Transport == "stdio":
			n = 3 * int64(g.AllSessions()) // stdin, stdout, stderr
		case s.Embedded:
			n *= 2 // the other end is in this process too
		}
		need += n
		sessions += int64(g.AllSessions())
	}
	if limit == 0 || need+ownFiles <= limit {
		return nil
	}
	fit := max(0, int64(float64(sessions)*float64(limit-ownFiles)/float64(need)))
	return fmt.Errorf("%d sessions need %d file descriptors, and this process may have %d: "+
		"at most %d sessions fit, or raise the hard limit to %d (ulimit -Hn)", sessions, need+ownFiles, limit, fit, need+ownFiles)
}

// fewProcesses compares the processes of stdio servers with the user's limit.
func fewProcesses(p *scenarios.Program, limit int64) error {
	var need int64
	for i := range p.Groups {
		g := &p.Groups[i]
		switch s := &p.Servers[g.Server]; {
		case s.SharedProcess:
			need++
		case s.Transport == "stdio":
			need += int64(g.AllSessions())
		}
	}
	if limit == 0 || need < limit {
		return nil
	}
	return fmt.Errorf("%d processes of servers are needed, one for each session, and this user may have %d with all that run already: "+
		"fewer than %d sessions, a server with per: shared, or raise the limit (ulimit -u)", need, limit, limit)
}

// fewPorts compares the connections to each target with the local ports.
func fewPorts(p *scenarios.Program, ports int64, sources int) error {
	if ports == 0 {
		return nil
	}
	need := map[string]int64{}
	var order []string
	for i := range p.Groups {
		g := &p.Groups[i]
		n := connections(p, g)
		if n == 0 {
			continue
		}
		target := hostOf(&p.Servers[g.Server])
		if !slices.Contains(order, target) {
			order = append(order, target)
		}
		need[target] += int64(n)
	}
	most := ports * int64(max(1, sources))
	for _, target := range order {
		if n := need[target]; n > most {
			return fmt.Errorf("%d connections to %s need as many local ports, and this machine has %d for each source address "+
				"(net.ipv4.ip_local_port_range): at most %d sessions, or %d source addresses (--source-ip)",
				n, target, ports, most, (n+ports-1)/ports)
		}
	}
	return nil
}

// hostOf names the target of a server.
func hostOf(s *scenarios.Server) string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return s.Name // the demo target: each has one of its own
	}
	return u.Host
}

// tooFast finds an open load whose sessions, with all the pauses of its flow, can
// not make so many iterations: its queue would only grow.
func tooFast(p *scenarios.Program) error {
	for i := range p.Groups {
		g := &p.Groups[i]
		least := p.Flows[g.Flow].LeastThink()
		if !g.Open || g.DropWhenFull || least == 0 {
			continue
		}
		rate := g.MeanRate()
		each := float64(max(1, g.InFlight)) / least.Seconds() // iterations a second of one session
		if rate <= float64(g.Sessions)*each*(1+1e-9) {
			continue
		}
		return fmt.Errorf("group %s: %g iterations/s cannot be made by %s: each iteration pauses for %v, so that %g/s is the most; "+
			"%g/s needs at least %d sessions (max_sessions, -c)", g.Name, rate, count(g.Sessions, "session"), least.Round(time.Millisecond),
			math.Floor(1000*float64(g.Sessions)*each)/1000, rate, int(math.Ceil(rate/each-1e-9)))
	}
	return nil
}
