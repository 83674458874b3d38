package metrics

import "time"

// stepSummaries has one entry for each step of the catalog, also for those
// that made no request.
func (c *Collector) stepSummaries(scheduled time.Duration) []StepSummary {
	cat := c.cfg.Catalog
	end := c.measuredEnd(scheduled)
	if scheduled > 0 {
		end = scheduled
	}
	first := int64(c.warmup.end() / time.Second)
	seconds := int64((end+time.Second-1)/time.Second) - first
	out := []StepSummary{}
	for i := range cat.Steps {
		info, st := &cat.Steps[i], &c.totals.steps[i]
		group := &cat.Groups[info.Group]
		row := StepSummary{
			Step: info.ID, Group: group.Name, Method: info.Method, Name: info.Name, Target: group.Target,
			Count: st.count(), Outcomes: outcomeCounts(&st.outcomes),
			Latency: st.latency.quantiles(&st.timeouts), Service: st.service.quantiles(&st.serviceTimeout),
			TTFB: st.ttfb.quantiles(nil), Failed: st.failedLatency.quantiles(nil),
			Gap: st.gap.quantiles(nil), FirstProgress: st.firstProgress.quantiles(nil), CancelStop: st.cancelStop.quantiles(nil),
			Round: st.round.quantiles(nil), Cache: st.cache.summary(),
			Part: info.Part, Trend: c.seconds.trends[i].medians(seconds), Codes: map[string]int64{},
		}
		if group.Target < len(cat.Targets) {
			t := &cat.Targets[group.Target]
			row.Server, row.Transport, row.ProtocolVersion = t.Server, t.Transport, t.ProtocolVersion
		}
		for key, n := range st.codes {
			row.Codes[key.String()] += n
		}
		out = append(out, row)
	}
	return out
}

// count is the number of requests of the step.
func (st *stepTotals) count() int64 {
	var n int64
	for _, k := range st.outcomes {
		n += k
	}
	return n
}

// load says what was asked for and reached, by group.
func (c *Collector) load(duration, scheduled time.Duration) []LoadSummary {
	out := []LoadSummary{}
	for i := range c.cfg.Catalog.Groups {
		info, g := &c.cfg.Catalog.Groups[i], &c.totals.groups[i]
		row := LoadSummary{
			Group: info.Name, Model: "closed", Intended: g.arrivals(), Started: g.started,
			Dropped: g.outcomes[IterDropped], Sessions: c.seconds.wanted[i],
			Lateness: g.lateness.quantiles(nil), Queued: g.queued.quantiles(nil),
		}
		if info.Open {
			row.Model, row.Pacer = "open", info.Pacer
		}
		row.RatePerS = g.offered(duration, scheduled-c.warmup.end())
		row.AchievedPerS = row.RatePerS
		if n := g.arrivals(); n > 0 {
			row.AchievedPerS *= min(g.reached()/float64(n), 1)
		}
		out = append(out, row)
	}
	return out
}

// arrivals is the number of arrivals of the group, however they ended.
func (g *groupTotals) arrivals() int64 {
	var n int64
	for _, k := range g.outcomes {
		n += k
	}
	return n
}

// offered is the rate of arrivals per second: over the scheduled length of the
// measured phase when there is one, so that a server that is slow to finish
// does not lower it; else over the time from the first to the last arrival;
// else (closed load) over the whole duration.
func (g *groupTotals) offered(duration, scheduled time.Duration) float64 {
	n := g.arrivals()
	if scheduled > 0 {
		return perSecond(n, scheduled)
	}
	if n > 1 && g.intended.length() > 0 {
		return perSecond(n-1, g.intended.length())
	}
	return perSecond(n, duration)
}
