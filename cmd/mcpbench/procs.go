package main

import (
	"net"
	"net/url"
	"os"
	"runtime"
	"strings"

	"mcpbench/scenarios"
)

// chooseProcs sets how many processors the program uses. precise is the number
// of groups with a precise pacer, which keeps a processor's place while it naps.
//
// On a machine of two processors that the target shares, a closed load gets one:
// what the other would do for the client, waking and being woken, costs more than
// it brings, and the target needs it.
func (e *execution) chooseProcs(precise int) {
	if e.procsSet {
		return // for the tries of a search
	}
	e.procsSet = true
	if e.flags.procs > 0 || os.Getenv("GOMAXPROCS") != "" {
		if e.flags.procs == 0 {
			runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + precise)
		}
		return
	}
	switch {
	case precise > 0:
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + precise)
	case runtime.NumCPU() == 2 && sharesMachine(e.program):
		runtime.GOMAXPROCS(1)
	}
}

// sharesMachine reports whether all load is closed and every target runs on this
// machine, in a process of its own.
func sharesMachine(p *scenarios.Program) bool {
	for i := range p.Groups {
		g := &p.Groups[i]
		s := &p.Servers[g.Server]
		switch {
		case g.Open:
			return false
		case s.Transport == "stdio":
		case s.Embedded, !isLoopback(s.URL):
			return false
		}
	}
	return true
}

func isLoopback(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
