package main

import (
	"fmt"
	"os"

	"mcpbench/scenarios"
)

// File descriptors that a run takes, apart from its sessions.
const (
	// descriptorsOfRun are what the results take at most at a time: the journal and
	// the parts of a table each.
	descriptorsOfRun = 24
	// descriptorsUnknown stands for those that are open already, where they cannot be counted.
	descriptorsUnknown = 16
	// descriptorsOfProcess are three pipes and, on Linux, the handle of the process.
	descriptorsOfProcess = 4
)

// descriptors is what the sessions of a program take when all are open, by a
// careful estimate: not what a step takes in parallel, and no redials.
type descriptors struct {
	sessions int // that take some of their own
	own      int // of all these together
	common   int // of what sessions share
}

// descriptorsOf counts what the groups of a program take. streams tells the groups
// whose sessions keep a stream open.
func descriptorsOf(p *scenarios.Program, streams func(group int) bool) descriptors {
	var d descriptors
	sharing := map[int]int{} // sessions by server
	for i := range p.Groups {
		g := &p.Groups[i]
		s := &p.Servers[g.Server]
		each := max(1, g.InFlight)
		switch {
		case s.Transport == "stdio" && s.SharedProcess, s.Transport != "stdio" && s.Connections > 0:
			sharing[g.Server] += g.Sessions * each
			continue
		case s.Transport == "stdio":
			each = descriptorsOfProcess
		case s.Transport == "sse", streams(i):
			each++
		}
		d.sessions += g.Sessions
		d.own += g.Sessions * each * ends(s)
	}
	for server, most := range sharing {
		s := &p.Servers[server]
		if s.SharedProcess {
			d.common += descriptorsOfProcess
		} else {
			d.common += min(most, s.Connections) * ends(s)
		}
	}
	return d
}

// ends is how many ends of a connection are in this process.
func ends(s *scenarios.Server) int {
	if s.Embedded && s.Transport != "stdio" {
		return 2
	}
	return 1
}

// lack says that the sessions cannot all be open with limit descriptors, of which
// others are in use or kept for the results; "" when they can.
func (d descriptors) lack(limit, others int) string {
	needed := d.own + d.common + others
	if needed <= limit || d.own == 0 {
		return ""
	}
	fit := max(0, limit-others-d.common) * d.sessions / d.own
	return fmt.Sprintf("the load of %s needs about %d file descriptors, and this process may have %d: about %d sessions fit; raise the limit (ulimit -n %d), or have fewer sessions or shared connections",
		count(d.sessions, "session"), needed, limit, fit, needed)
}

// openDescriptors counts the descriptors in use.
func openDescriptors() int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return descriptorsUnknown
	}
	return len(entries)
}

// descriptorWarning says before the load that its sessions do not fit; "" when they do.
func (e *execution) descriptorWarning() string {
	limit := descriptorLimit()
	if limit == 0 {
		return ""
	}
	d := descriptorsOf(e.program, func(group int) bool {
		return e.flags.getStream == "always" || e.flags.getStream == "auto" && e.program.NeedsStream(group)
	})
	return d.lack(limit, openDescriptors()+descriptorsOfRun)
}
