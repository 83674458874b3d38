package main

import (
	"fmt"
	"sync/atomic"

	"mcpbench/mcp"
)

// noise counts the lines on a server's stdout that were no messages: why a server
// that seems to run does not answer. Safe for concurrent use.
type noise struct{ lines atomic.Int64 }

// watch has o tell n too.
func (n *noise) watch(o *mcp.Options) {
	tell := o.OnAnomaly
	o.OnAnomaly = func(kind mcp.Anomaly, detail string) {
		if kind == mcp.AnomalyStdoutNoise {
			n.lines.Add(1)
		}
		if tell != nil {
			tell(kind, detail)
		}
	}
}

// explain adds to err, the failure to open a session, what was counted.
func (n *noise) explain(err error) error {
	if lines := n.lines.Load(); err != nil && lines > 0 {
		return fmt.Errorf("%w; lines on its stdout that were no messages: %d (a server logs to stderr)", err, lines)
	}
	return err
}
