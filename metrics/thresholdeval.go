package metrics

import (
	"strconv"
	"strings"
	"time"
)

// Evaluate tests the measured phase, taken to end with the last measured
// sample; Summary does the same with the scheduled end. Call it after Run has
// returned. A value that was not measured is nil and its threshold is not
// met; a count of nothing is 0. Values are in the unit of the right side, but
// times always in ms: see ThresholdResult.Unit.
func (c *Collector) Evaluate(thresholds []Threshold) []ThresholdResult {
	return c.evaluate(thresholds, c.duration(0))
}

func (c *Collector) evaluate(thresholds []Threshold, duration time.Duration) []ThresholdResult {
	out := make([]ThresholdResult, 0, len(thresholds))
	for i := range thresholds {
		t := &thresholds[i]
		r := ThresholdResult{Expr: t.Expr, Default: t.Default, Unit: t.shownUnit()}
		if v, atTimeout, ok := c.measure(t, duration); ok {
			r.OK, r.AtTimeout = compare(v, t.Op, t.limit()), atTimeout
			shown := t.shown(v)
			r.Value = &shown
		}
		c.aborts.mark(t, &r)
		out = append(out, r)
	}
	return out
}

// shownUnit is the unit of values of the left side in results.
func (t *Threshold) shownUnit() string {
	if t.dimension() == timeSpan {
		return "ms"
	}
	return t.Unit
}

// shown turns a value in base units into one in shownUnit.
func (t *Threshold) shown(v float64) float64 {
	unit := t.shownUnit()
	if unit == "%" {
		return v * 100
	}
	return v / unitSize(unit)
}

// limit is the right side in base units: ns, byte, one.
func (t *Threshold) limit() float64 {
	if t.Unit == "%" {
		return t.Value / 100 // exact where a product with 0.01 is not
	}
	return t.Value * unitSize(t.Unit)
}

// unitSize is a unit of time or bytes, per second or not, in ns or bytes; 1 for all others.
func unitSize(unit string) float64 {
	unit = strings.TrimSuffix(unit, "/s")
	if f, ok := timeUnits[unit]; ok {
		return f
	}
	if f, ok := byteUnits[unit]; ok {
		return f
	}
	return 1
}

func compare(v float64, op string, limit float64) bool {
	switch op {
	case "<":
		return v < limit
	case "<=":
		return v <= limit
	case ">":
		return v > limit
	case ">=":
		return v >= limit
	case "==":
		return v == limit
	case "!=":
		return v != limit
	}
	return false
}

// measure returns the left side in base units (ns, bytes, one); ok is false
// when nothing was measured for it. atTimeout says that it is a percentile
// that falls on a request that timed out.
func (c *Collector) measure(t *Threshold, duration time.Duration) (v float64, atTimeout, ok bool) {
	if metricTable[t.Metric].kind == kindTime {
		d, timeouts := c.distributionOf(t)
		return aggregateTime(t.Agg, d, timeouts)
	}
	if t.Metric == "achieved" {
		v, ok = c.achieved(t)
		return v, false, ok
	}
	n, of := c.counts(t)
	v, ok = t.counted(n, of, duration)
	return v, false, ok
}

// counted is what a threshold on things counted compares: n of so many, in the
// length of time.
func (t *Threshold) counted(n, of int64, duration time.Duration) (v float64, ok bool) {
	switch t.dimension() {
	case plainCount, byteCount:
		return float64(n), true
	case share:
		if of == 0 {
			return 0, false
		}
		return float64(n) / float64(of), true
	case perSecondRate, byteRate:
		return perSecond(n, duration), duration > 0 || n == 0
	case timeSpan:
	}
	return 0, false
}

func aggregateTime(agg string, d, timeouts *distribution) (v float64, atTimeout, ok bool) {
	if agg == "count" {
		return float64(d.count), false, true
	}
	if d.count == 0 {
		return 0, false, false
	}
	switch agg {
	case "mean":
		return d.mean(), false, true
	case "min":
		return float64(d.min), false, true
	case "max":
		return float64(d.max), timeouts.count > 0 && timeouts.max == d.max, true
	case "sum":
		return d.sum, false, true
	}
	q, ok := percentile(agg)
	if !ok {
		return 0, false, false
	}
	return float64(d.quantile(q)), d.onTimeout(timeouts, q)[0], true
}

// percentile returns that of an aggregate such as p99.9.
func percentile(agg string) (q float64, ok bool) {
	number, ok := strings.CutPrefix(agg, "p")
	q, err := strconv.ParseFloat(number, 64)
	return q, ok && err == nil
}

// distributionOf merges the distributions that the threshold selects, and
// those of the timeouts among them.
func (c *Collector) distributionOf(t *Threshold) (all, timeouts *distribution) {
	all, timeouts = &distribution{}, &distribution{}
	cat := c.cfg.Catalog
	if metricTable[t.Metric].scope == scopeGroup {
		for i := range c.totals.groups {
			if !t.matches(cat, i) {
				continue
			}
			g := &c.totals.groups[i]
			all.merge(map[string]*distribution{
				"connect": &g.connect, "iteration": &g.latency, "lateness": &g.lateness, "queued": &g.queued,
			}[t.Metric])
		}
		return all, timeouts
	}
	for i := range c.totals.steps {
		if !t.matches(cat, i) {
			continue
		}
		st := &c.totals.steps[i]
		switch t.Metric {
		case "latency":
			all.merge(&st.latency)
			timeouts.merge(&st.timeouts)
		case "service_time":
			all.merge(&st.service)
			timeouts.merge(&st.serviceTimeout)
		case "ttfb":
			all.merge(&st.ttfb)
		case "gap":
			all.merge(&st.gap)
		}
	}
	return all, timeouts
}

// counts returns what the threshold counts, and what it is a share of.
func (c *Collector) counts(t *Threshold) (n, of int64) {
	cat := c.cfg.Catalog
	if metricTable[t.Metric].scope == scopeGroup {
		for i := range c.totals.groups {
			if t.matches(cat, i) {
				g := &c.totals.groups[i]
				n += g.counted(t)
				of += g.arrivals()
			}
		}
		return n, of
	}
	for i := range c.totals.steps {
		if t.matches(cat, i) {
			k, all := c.totals.steps[i].counted(t, cat.Steps[i].Checks)
			n += k
			of += all
		}
	}
	return n, of
}

func (g *groupTotals) counted(t *Threshold) (n int64) {
	for o, k := range g.outcomes {
		if t.countsIteration(IterationOutcome(o)) {
			n += k
		}
	}
	return n
}

// countsIteration says which iterations count: those with the outcome named, else
// those that came to an end of their own.
func (t *Threshold) countsIteration(o IterationOutcome) bool {
	if t.Metric == "dropped" {
		return o == IterDropped
	}
	if name, named := t.tag("outcome"); named {
		return o.String() == name
	}
	return o == IterCompleted || o == IterFailed || o == IterScriptError
}

// countsRequest says which requests count.
func (t *Threshold) countsRequest(o Outcome) bool {
	name, named := t.tag("outcome")
	switch {
	case named && o.String() != name,
		t.Metric == "ok" && o != OK,
		t.Metric == "errors" && !o.Failed():
		return false
	}
	return true
}

// counted counts requests, checks or bytes of one step and what they are a share of.
func (st *stepTotals) counted(t *Threshold, checks []string) (n, of int64) {
	switch t.Metric {
	case "bytes_sent":
		return st.bytesOut, 0
	case "bytes_received":
		return st.bytesIn, 0
	case "checks":
		return st.countedChecks(t, checks)
	}
	for o, k := range st.outcomes {
		of += k
		if t.countsRequest(Outcome(o)) {
			n += k
		}
	}
	return n, of
}

// countedChecks returns the passed verdicts of all, or for count all of them.
func (st *stepTotals) countedChecks(t *Threshold, checks []string) (n, of int64) {
	for k := range checks {
		if t.countsCheck(checks[k]) {
			n += st.passed[k]
			of += st.passed[k] + st.failed[k]
		}
	}
	if t.Agg == "count" {
		return of, of
	}
	return n, of
}

// countsCheck says which checks count: the one that is named, or all.
func (t *Threshold) countsCheck(check string) bool {
	name, named := t.tag("check")
	return !named || check == name
}

// achieved returns the rate at which iterations started as a share of the rate
// at which they arrived, over the open groups selected: the arrivals that
// started, times the time in which all arrived, by the time in which those
// started. It is 1 at most, and below it when sessions were not free in time.
func (c *Collector) achieved(t *Threshold) (float64, bool) {
	var offered, reached float64
	for i := range c.totals.groups {
		g := &c.totals.groups[i]
		if !c.cfg.Catalog.Groups[i].Open || !t.matches(c.cfg.Catalog, i) {
			continue
		}
		offered += float64(g.arrivals())
		reached += g.reached()
	}
	if offered == 0 {
		return 0, false
	}
	return min(reached/offered, 1), true
}
