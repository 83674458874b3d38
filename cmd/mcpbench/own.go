package main

import (
	"mcpbench/internal/self"
	"mcpbench/metrics"
)

// loadEnd is a sink that takes nothing: its end is that of the load, before the
// files are finished.
type loadEnd struct{ watch *self.Watch }

// Write implements metrics.Sink.
func (loadEnd) Write([]metrics.Sample) error { return nil }

// Close implements metrics.Sink.
func (l loadEnd) Close() error {
	l.watch.End()
	return nil
}

// held is the number of connections to the one target that has most of them. It
// is called once a second, after share.
func (e *execution) held() int64 {
	var most int64
	for i := range e.shared {
		most = max(most, e.shared[i].outgoing.Held())
	}
	return most
}

// ownUse is what this process used, and what it could have had.
func (e *execution) ownUse() metrics.OwnUse {
	use := e.own.Use()
	use.CPUUser, use.CPUSystem = self.CPU()
	use.FDsLimit = e.limits.FDs
	for i := range e.program.Servers {
		if e.program.Servers[i].Transport != "stdio" {
			use.PortsLimit = e.limits.Ports * int64(max(1, len(e.flags.sources)))
		}
	}
	return use
}
