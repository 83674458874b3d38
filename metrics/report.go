package metrics

import (
	"maps"
	"slices"
	"syscall"
	"time"
)

// SchemaVersion is the version of Summary's keys.
const SchemaVersion = 1

// RunInfo is what a summary needs beyond the samples.
type RunInfo struct {
	RunID      string
	Scenario   string
	StartedAt  time.Time
	Seed       uint64
	Tags       map[string]string
	ResultsDir string
	// MeasuredEnd is the offset at which the measured phase was to end, or did
	// when a signal stopped it; 0 when only iterations limited it.
	MeasuredEnd time.Duration
	// SessionOpened says that a session was opened at some time. A KindConnect
	// sample with outcome ok says so too.
	SessionOpened    bool
	Closed, Reopened int64 // sessions; see SessionsSummary
	Anomalies        map[string]int64
	ServerRequests   []ServerRequestSummary
	Own              OwnUse
	Calibration      []Calibration // none: not calibrated
	ThrottledShare   float64       // share of the seconds with cgroup throttling, 0 to 1
	Thresholds       []Threshold   // none: DefaultThresholds
	// Err says why the run could not finish; nil when it did. A sink that
	// failed and a run without any session are found without it.
	Err    error
	Signal syscall.Signal // that stopped the run; 0 is none
	// CutOff says that the run did not come to its end, as after a kill: what it
	// was waiting for is known only as interrupted iterations.
	CutOff bool
}

// Summary returns the final figures of the measured phase. It is called after
// Run has returned.
func (c *Collector) Summary(info RunInfo) *Summary {
	duration := c.duration(info.MeasuredEnd)
	requests, steps := c.requests(duration), c.stepSummaries(info.MeasuredEnd)
	thresholds := info.Thresholds
	if len(thresholds) == 0 {
		thresholds = DefaultThresholds()
	}
	s := &Summary{
		SchemaVersion: SchemaVersion, RunID: info.RunID, Scenario: info.Scenario,
		StartedAt: info.StartedAt.UTC().Truncate(time.Microsecond),
		DurationS: duration.Seconds(), WarmupS: c.warmupLength(info.MeasuredEnd).Seconds(), Seed: info.Seed,
		ResultsDir: info.ResultsDir, Tags: maps.Clone(info.Tags),
		Targets: c.targets(), Sessions: c.sessions(&info), Iterations: c.iterations(),
		Requests: requests, Steps: steps, Checks: c.checks(),
		Thresholds: c.evaluate(thresholds, duration), Anomalies: nonNil(maps.Clone(info.Anomalies)),
		ServerRequests: info.ServerRequests,
		Errors:         c.totals.errors.summaries(c.cfg.Catalog), Load: c.load(duration, info.MeasuredEnd),
		Soundness: c.soundness(&info), Servers: []ServerSummary{},
	}
	s.Trials = []TrialSummary{{
		Trial: int(c.cfg.Trial), StartedAt: s.StartedAt, DurationS: s.DurationS,
		Requests: requests, Steps: steps, Soundness: s.Soundness,
	}}
	c.decide(s, &info, thresholds)
	return s
}

// decide fills verdict, exit code and error.
func (c *Collector) decide(s *Summary, info *RunInfo, thresholds []Threshold) {
	// A run that was stopped before its first session could open did not fail.
	opened := info.SessionOpened || s.Sessions.Opened > 0 || info.Signal != 0 && s.Sessions.Failed == 0
	facts := VerdictFacts{
		CannotFinish: info.Err != nil || c.err != nil || !opened,
		Signal:       info.Signal,
		Unsound:      s.Soundness.Verdict == Unsound,
	}
	for i, t := range thresholds {
		facts.UserThresholds = facts.UserThresholds || !t.Default
		facts.ThresholdsFailed = facts.ThresholdsFailed || !s.Thresholds[i].OK
	}
	s.Verdict, s.ExitCode = facts.Decide()
	switch {
	case info.Err != nil:
		s.Error = info.Err.Error()
	case c.err != nil:
		s.Error = c.err.Error()
	case !opened:
		s.Error = "no session could be opened"
	}
}

// measuredEnd is the later of the scheduled end and the End of the last
// measured sample that was not interrupted.
func (c *Collector) measuredEnd(scheduled time.Duration) time.Duration {
	if c.totals.hasEnd {
		scheduled = max(scheduled, c.totals.lastEnd)
	}
	return scheduled
}

// duration is the length of the measured phase.
func (c *Collector) duration(scheduled time.Duration) time.Duration {
	return max(c.measuredEnd(scheduled)-c.warmup.end(), 0)
}

// warmupLength is that of the warm-up, which may have lasted until the end.
func (c *Collector) warmupLength(scheduled time.Duration) time.Duration {
	if end := c.warmup.end(); end < Endless {
		return end
	}
	return max(scheduled, 0)
}

func (c *Collector) targets() []TargetSummary {
	out := []TargetSummary{}
	for _, t := range c.cfg.Catalog.Targets {
		out = append(out, TargetSummary{
			Server: t.Server, Transport: t.Transport, ProtocolVersion: t.ProtocolVersion,
			ServerInfo: ServerInfo{Name: t.ServerName, Version: t.ServerVersion}, HTTPEngine: t.HTTPEngine,
			Era: t.Era, Probe: t.Probe,
		})
	}
	return out
}

func (c *Collector) sessions(info *RunInfo) SessionsSummary {
	var connect distribution
	var outcomes [NumOutcomes]int64
	for i := range c.totals.groups {
		g := &c.totals.groups[i]
		connect.merge(&g.connect)
		for o, n := range g.connectOutcomes {
			outcomes[o] += n
		}
	}
	s := SessionsSummary{
		Opened: outcomes[OK], Reopened: info.Reopened, Closed: info.Closed,
		Connect: connect.quantiles(nil), Outcomes: outcomeCounts(&outcomes),
	}
	for o, n := range outcomes {
		if o := Outcome(o); o != OK && o != Interrupted && o != Cancelled {
			s.Failed += n
		}
	}
	return s
}

func (c *Collector) iterations() IterationsSummary {
	var latency distribution
	var n [NumIterationOutcomes]int64
	for i := range c.totals.groups {
		g := &c.totals.groups[i]
		latency.merge(&g.latency)
		for o := range n {
			n[o] += g.outcomes[o]
		}
	}
	s := IterationsSummary{
		Completed: n[IterCompleted], Failed: n[IterFailed], Dropped: n[IterDropped], Interrupted: n[IterInterrupted],
		ScriptError: n[IterScriptError], AgentLost: n[IterAgentLost], Latency: latency.quantiles(nil),
	}
	for _, v := range n {
		s.Total += v
	}
	return s
}

func (c *Collector) requests(duration time.Duration) RequestsSummary {
	var r RequestsSummary
	var outcomes [NumOutcomes]int64
	for i := range c.totals.steps {
		st := &c.totals.steps[i]
		r.ChecksFailed += st.checksFailed
		r.BytesSent += st.bytesOut
		r.BytesReceived += st.bytesIn
		for o, n := range st.outcomes {
			outcomes[o] += n
		}
	}
	for o, n := range outcomes {
		r.Total += n
		switch {
		case Outcome(o) == OK:
			r.OK += n
		case Outcome(o).Failed():
			r.Failed += n
		default:
			r.Other += n
		}
	}
	r.Outcomes = outcomeCounts(&outcomes)
	r.RatePerS = perSecond(r.Total, duration)
	r.Open = c.totals.open.quantiles(nil)
	return r
}

func (c *Collector) checks() []CheckSummary {
	out := []CheckSummary{}
	for i := range c.totals.steps {
		st, info := &c.totals.steps[i], &c.cfg.Catalog.Steps[i]
		for k, name := range info.Checks {
			out = append(out, CheckSummary{Name: name, Step: info.ID, Passed: st.passed[k], Failed: st.failed[k]})
		}
	}
	return out
}

func (c *Collector) soundness(info *RunInfo) Soundness {
	var lateness, service distribution
	var interrupted int64
	for i := range c.totals.groups {
		lateness.merge(&c.totals.groups[i].lateness)
		interrupted += c.totals.groups[i].outcomes[IterInterrupted]
	}
	for i := range c.totals.steps {
		if c.cfg.Catalog.Groups[c.cfg.Catalog.Steps[i].Group].Open {
			service.merge(&c.totals.steps[i].service)
		}
	}
	own := &info.Own
	verdict, reasons := SoundnessFacts{
		Own: *own, LatenessP99: lateness.quantile(99), ServiceP50: service.quantile(50),
		SlabWaits: c.stream.waits.Load(), ClientErrors: c.totals.clientErrors, ThrottledShare: info.ThrottledShare,
		CutOff: info.CutOff, Interrupted: interrupted,
	}.Judge()
	s := Soundness{
		Verdict: verdict, Reasons: reasons, Notes: c.notes(), Lateness: lateness.quantiles(nil),
		CPUS: (own.CPUUser + own.CPUSystem).Seconds(), CPUUserS: own.CPUUser.Seconds(), CPUSystemS: own.CPUSystem.Seconds(),
		CPUShareMax: own.CPUShareMax, GCPause: milliseconds(own.GCPauseMax), GoroutinesMax: known(own.Goroutines),
		FDsMax: known(own.FDs), FDsLimit: known(own.FDsLimit), TimeWaitMax: known(own.TimeWait), PortsLimit: known(own.PortsLimit),
	}
	if own.PortsLimit > 0 {
		s.PortsMax = &own.Ports
	}
	c.compare(&s, info.Calibration)
	return s
}

// notes are what makes a run no less sound but must be borne in mind.
func (c *Collector) notes() []string {
	groups := c.cfg.Catalog.Groups
	if len(groups) == 0 || slices.ContainsFunc(groups, func(g GroupInfo) bool { return g.Open }) {
		return []string{}
	}
	return []string{NoteClosed}
}

// outcomeCounts names the outcomes that occurred.
func outcomeCounts(counts *[NumOutcomes]int64) map[string]int64 {
	out := map[string]int64{}
	for o, n := range counts {
		if n > 0 {
			out[outcomeNames[o]] = n
		}
	}
	return out
}

func nonNil(m map[string]int64) map[string]int64 {
	if m == nil {
		return map[string]int64{}
	}
	return m
}

// perSecond is n over d, 0 when d is 0.
func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// LatencyQuantiles returns the median and the 99th percentile of the latency of all
// requests of the measured phase, in ms; 0 when there is none. Call it after Run.
func (c *Collector) LatencyQuantiles() (p50, p99 float64) {
	var all distribution
	for i := range c.totals.steps {
		all.merge(&c.totals.steps[i].latency)
	}
	return milliseconds(all.quantile(50)), milliseconds(all.quantile(99))
}
