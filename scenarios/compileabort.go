package scenarios

import (
	"time"

	"mcpbench/metrics"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// abort is when a threshold ends the run; nil is never.
func (c *compiler) abort(f *grammar.Abort) *metrics.Abort {
	if !f.Set {
		return nil
	}
	window := orDefault(f.Window, metrics.DefaultAbortWindow)
	if window < metrics.MinAbortWindow || window > metrics.MaxAbortWindow || window%time.Second != 0 {
		c.fault(f.Node.Lookup("window"), syntax.Join(f.Path, "window"), "must be whole seconds from 1s to 1h")
	}
	after := orDefault(f.After, window)
	first := max((after+time.Second-1)/time.Second, 1) * time.Second // at the end of a second, and soon after it
	if longest, timed := c.longest(); timed && !c.loading && first >= longest {
		c.warn(f.Node, f.Path, "never ends the run: it is judged from %v on, and the load lasts %v", first, longest)
	}
	return &metrics.Abort{After: after, Window: window}
}

// longest is how long the load lasts by time; timed is false when some of it does not end by time.
func (c *compiler) longest() (d time.Duration, timed bool) {
	for i := range c.out.Groups {
		g := &c.out.Groups[i]
		if g.Duration == 0 {
			return 0, false
		}
		d = max(d, g.Duration)
	}
	return d, len(c.out.Groups) > 0
}
