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
		r := ThresholdResult{Expr: t.Expr, Default: t.Default, Unit: t.Unit}
		if t.dimension() == timeSpan {
			r.Unit = "ms"
		}
		if v, atTimeout, ok := (view{&c.totals}).measure(t, duration); ok {
			r.OK, r.AtTimeout = compare(v, t.Op, t.limit()), atTimeout
			r.Value = r.shown(v)
		}
		if a := c.windows.abortOf(i); a != nil {
			r.OK, r.Aborted = false, &AbortResult{AtS: a.at.Seconds(), Value: r.shown(a.value)}
		}
		out = append(out, r)
	}
	return out
}

// shown is a value in the unit of the result.
func (r *ThresholdResult) shown(v float64) *float64 {
	shown := v / unitSize(r.Unit)
	if r.Unit == "%" {
		shown = v * 100
	}
	return &shown
}

// view is what thresholds are measured in: the totals of the run, or those of some
// seconds. All are of the same catalog; there is at least one.
type view []*totals

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
func (v view) measure(t *Threshold, duration time.Duration) (value float64, atTimeout, ok bool) {
	if metricTable[t.Metric].kind == kindTime {
		d, timeouts := v.distributionOf(t)
		return aggregateTime(t.Agg, d, timeouts)
	}
	if t.Metric == "achieved" {
		value, ok = v.achieved(t)
		return value, false, ok
	}
	n, of := v.counts(t)
	switch t.dimension() {
	case plainCount, byteCount:
		return float64(n), false, true
	case share:
		if of == 0 {
			return 0, false, false
		}
		return float64(n) / float64(of), false, true
	case perSecondRate, byteRate:
		return perSecond(n, duration), false, duration > 0 || n == 0
	case timeSpan:
	}
	return 0, false, false
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
	q, err := strconv.ParseFloat(strings.TrimPrefix(agg, "p"), 64)
	if err != nil {
		return 0, false, false
	}
	return float64(d.quantile(q)), d.onTimeout(timeouts, q)[0], true
}

// distributionOf merges the distributions that the threshold selects, and
// those of the timeouts among them.
func (v view) distributionOf(t *Threshold) (all, timeouts *distribution) {
	all, timeouts = &distribution{}, &distribution{}
	for i := range t.candidates(v[0].cat) {
		if !t.matches(v[0].cat, i) {
			continue
		}
		for _, part := range v {
			values, late := part.distributionOf(t, i)
			all.merge(values)
			if late != nil {
				timeouts.merge(late)
			}
		}
	}
	return all, timeouts
}

// distributionOf returns the distribution of the i-th step or group, and that of the
// timeouts among its values, if there are such.
func (t *totals) distributionOf(of *Threshold, i int) (values, timeouts *distribution) {
	if metricTable[of.Metric].scope == scopeGroup {
		g := &t.groups[i]
		return map[string]*distribution{
			"connect": &g.connect, "iteration": &g.latency, "lateness": &g.lateness, "queued": &g.queued,
		}[of.Metric], nil
	}
	st := &t.steps[i]
	switch of.Metric {
	case "latency":
		return &st.latency, &st.timeouts
	case "service_time":
		return &st.service, &st.serviceTimeout
	case "ttfb":
		return &st.ttfb, nil
	case "gap":
		return &st.gap, nil
	}
	return &distribution{}, nil
}

// counts returns what the threshold counts, and what it is a share of.
func (v view) counts(t *Threshold) (n, of int64) {
	cat := v[0].cat
	for i := range t.candidates(cat) {
		if !t.matches(cat, i) {
			continue
		}
		for _, part := range v {
			if metricTable[t.Metric].scope == scopeGroup {
				n += part.groups[i].counted(t)
				of += part.groups[i].arrivals()
				continue
			}
			k, all := part.steps[i].counted(t, cat.Steps[i].Checks)
			n += k
			of += all
		}
	}
	return n, of
}

// arrived is what of the i-th group says how its arrivals were served.
func (v view) arrived(i int) (all groupTotals) {
	for _, part := range v {
		g := &part.groups[i]
		for o, n := range g.outcomes {
			all.outcomes[o] += n
		}
		all.started += g.started
		all.intended.join(g.intended)
		all.starts.join(g.starts)
	}
	return all
}

// counted counts iterations: those with the outcome named, else those that
// came to an end of their own.
func (g *groupTotals) counted(t *Threshold) int64 {
	if t.Metric == "dropped" {
		return g.outcomes[IterDropped]
	}
	if name, ok := t.tag("outcome"); ok {
		for o, n := range g.outcomes {
			if IterationOutcome(o).String() == name {
				return n
			}
		}
		return 0
	}
	return g.outcomes[IterCompleted] + g.outcomes[IterFailed] + g.outcomes[IterScriptError]
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
	name, named := t.tag("outcome")
	for o, k := range st.outcomes {
		of += k
		outcome := Outcome(o)
		switch {
		case named && outcome.String() != name,
			t.Metric == "ok" && outcome != OK,
			t.Metric == "errors" && !outcome.Failed():
		default:
			n += k
		}
	}
	return n, of
}

// countedChecks returns the passed verdicts of all, or for count all of them.
func (st *stepTotals) countedChecks(t *Threshold, checks []string) (n, of int64) {
	name, named := t.tag("check")
	for k := range checks {
		if named && checks[k] != name {
			continue
		}
		n += st.passed[k]
		of += st.passed[k] + st.failed[k]
	}
	if t.Agg == "count" {
		return of, of
	}
	return n, of
}

// reached is the number of arrivals that started, less as many as would not
// have in the time in which all arrived.
func (g *groupTotals) reached() float64 {
	if asked, took := g.intended.length(), g.starts.length(); asked > 0 && took > asked {
		return float64(g.started) * float64(asked) / float64(took)
	}
	return float64(g.started)
}

// achieved returns the rate at which iterations started as a share of the rate
// at which they arrived, over the open groups selected: the arrivals that
// started, times the time in which all arrived, by the time in which those
// started. It is 1 at most, and below it when sessions were not free in time.
func (v view) achieved(t *Threshold) (float64, bool) {
	var offered, reached float64
	for i := range v[0].groups {
		if !v[0].cat.Groups[i].Open || !t.matches(v[0].cat, i) {
			continue
		}
		g := v.arrived(i)
		offered += float64(g.arrivals())
		reached += g.reached()
	}
	if offered == 0 {
		return 0, false
	}
	return min(reached/offered, 1), true
}
