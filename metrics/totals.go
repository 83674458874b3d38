package metrics

import (
	"fmt"
	"time"
)

// maxCodes bounds the distinct codes counted for one step: a server chooses
// the numbers of its errors.
const maxCodes = 64

// totals holds what is kept for the whole run: the measured phase, except for
// live and the connects.
type totals struct {
	cat    *Catalog
	steps  []stepTotals
	groups []groupTotals
	errors errorTable
	live   liveCounts
	// lastEnd is the End of the last measured request or iteration that was
	// not interrupted; valid when hasEnd.
	lastEnd time.Duration
	hasEnd  bool
	open    distribution // ages of requests that were still open at the end of the load
	// clientErrors counts every outcome client_error, in all phases.
	clientErrors int64
}

// liveCounts are of all phases, for Snapshot.
type liveCounts struct {
	requests, ok, failed, iterations, dropped int64
}

// stepTotals holds the requests of one step.
type stepTotals struct {
	outcomes     [NumOutcomes]int64
	codes        map[codeKey]int64
	bytesOut     int64
	bytesIn      int64
	checksFailed int64   // requests with at least one failed check
	passed       []int64 // by check
	failed       []int64

	latency, service, ttfb   distribution // timed outcomes
	gap                      distribution // between progress notifications, all outcomes
	firstProgress            distribution // all outcomes
	round                    distribution // exchanges of requests that took several, all outcomes
	cache                    cacheTotals
	cancelStop               distribution // cancelled requests whose end was seen
	timeouts, serviceTimeout distribution // the timeouts among latency and service
	failedLatency            distribution // failures that are not timed
}

type codeKey struct {
	outcome Outcome
	code    int32
	other   bool // stands for the codes beyond maxCodes
}

func (k codeKey) String() string {
	if k.other {
		return k.outcome.String() + ":other"
	}
	return fmt.Sprintf("%v:%d", k.outcome, k.code)
}

// groupTotals holds the iterations and connects of one group.
type groupTotals struct {
	outcomes         [NumIterationOutcomes]int64
	latency          distribution // iterations that came to their own end: completed and failed
	lateness, queued distribution // open groups
	offer

	connectOutcomes [NumOutcomes]int64 // all phases
	connect         distribution       // all phases
}

// span is the first and the last of some instants.
type span struct {
	first, last time.Duration
	any         bool
}

func (sp *span) add(at time.Duration) {
	if !sp.any {
		sp.first, sp.last, sp.any = at, at, true
		return
	}
	sp.first, sp.last = min(sp.first, at), max(sp.last, at)
}

func (sp *span) merge(from span) {
	if from.any {
		sp.add(from.first)
		sp.add(from.last)
	}
}

func (sp *span) length() time.Duration { return sp.last - sp.first }

// offer is how many arrivals there were and how many started, and when.
type offer struct {
	arrived, started int64
	intended, starts span // open groups: of arrivals, and of those that started
}

func (o *offer) add(s *Sample) {
	begun := iterationStarted(s)
	o.arrived++
	o.started += count(begun)
	if s.Intended == NoOffset {
		return
	}
	o.intended.add(s.Intended)
	if begun {
		o.starts.add(s.Start)
	}
}

func (o *offer) merge(from *offer) {
	o.arrived += from.arrived
	o.started += from.started
	o.intended.merge(from.intended)
	o.starts.merge(from.starts)
}

// reached is the number of arrivals that started, less as many as would not
// have in the time in which all arrived.
func (o *offer) reached() float64 {
	if asked, took := o.intended.length(), o.starts.length(); asked > 0 && took > asked {
		return float64(o.started) * float64(asked) / float64(took)
	}
	return float64(o.started)
}

func newTotals(cat *Catalog) totals {
	t := totals{cat: cat, steps: make([]stepTotals, len(cat.Steps)), groups: make([]groupTotals, len(cat.Groups))}
	for i := range t.steps {
		n := len(cat.Steps[i].Checks)
		t.steps[i].passed, t.steps[i].failed = make([]int64, n), make([]int64, n)
	}
	return t
}

func (t *totals) add(s *Sample) {
	switch s.Kind {
	case KindStep:
		t.addLive(s)
		if s.Phase == PhaseMeasured {
			t.addStep(s)
		}
	case KindIteration:
		t.addIteration(s)
	case KindConnect:
		t.addConnect(s)
	case KindSession: // rows only: the attempts were counted as connects
	}
}

func (t *totals) addLive(s *Sample) {
	t.live.requests++
	switch {
	case s.Outcome == OK:
		t.live.ok++
	case s.Outcome.Failed():
		t.live.failed++
	case s.Outcome == ClientError:
		t.clientErrors++
	}
}

func (t *totals) addStep(s *Sample) {
	if s.Outcome == Interrupted {
		t.open.record(s.Service())
	} else {
		t.ended(s.End)
	}
	st := &t.steps[s.Step]
	st.outcomes[s.Outcome]++
	st.bytesOut += int64(s.BytesOut)
	st.bytesIn += int64(s.BytesIn)
	// 0 is a code of its own only where a peer chooses it.
	if s.Code != 0 || s.Outcome == RPCError || s.Outcome == ProcessExit {
		st.addCode(s.Outcome, s.Code)
	}
	if countChecks(s, st.passed, st.failed) {
		st.checksFailed++
	}
	if s.Extra != nil {
		st.addExtra(s.Extra)
	}
	switch {
	case s.Outcome.Timed():
		st.addTimed(s)
	case s.Outcome.Failed():
		st.failedLatency.record(s.Latency())
	}
	if s.Outcome.Failed() || s.Outcome == ClientError || s.Outcome == ScriptError {
		t.errors.add(s, s.Step)
	}
}

func (st *stepTotals) addExtra(x *Extra) {
	for _, gap := range x.Gaps {
		st.gap.record(gap)
	}
	for _, round := range x.Rounds {
		st.round.record(round)
	}
	if x.HasProgress {
		st.firstProgress.record(x.FirstProgress)
	}
	if x.HasCancelStop {
		st.cancelStop.record(x.CancelStop)
	}
	if x.HasCache {
		st.cache.add(x.CacheTTL, x.CacheScope)
	}
}

func (st *stepTotals) addTimed(s *Sample) {
	latency, service := s.Latency(), s.Service()
	ttfb, arrived := s.TTFB()
	st.latency.record(latency)
	st.service.record(service)
	if arrived {
		st.ttfb.record(ttfb)
	}
	if s.Outcome == Timeout {
		st.timeouts.record(latency)
		st.serviceTimeout.record(service)
	}
}

func (st *stepTotals) addCode(o Outcome, code int32) {
	key := codeKey{outcome: o, code: code}
	if _, known := st.codes[key]; !known && len(st.codes) >= maxCodes {
		key = codeKey{outcome: o, other: true}
	}
	if st.codes == nil {
		st.codes = map[codeKey]int64{}
	}
	st.codes[key]++
}

// countChecks adds the verdicts of a request to the counts of its step's
// checks and reports whether one failed. Without an answer to evaluate, every
// check of the step counts as failed (see Outcome.CountsChecks).
func countChecks(s *Sample, passed, failed []int64) (anyFailed bool) {
	if len(passed) == 0 || !s.Outcome.CountsChecks() {
		return false
	}
	bad := s.badChecks()
	for i := range passed {
		if bad>>i&1 != 0 {
			failed[i]++
			anyFailed = true
		} else {
			passed[i]++
		}
	}
	return anyFailed
}

// badChecks has a bit for each check that failed: all when there is no answer.
func (s *Sample) badChecks() uint32 {
	if s.Outcome.Answered() {
		return s.ChecksFailed
	}
	return ^uint32(0)
}

func (t *totals) addIteration(s *Sample) {
	g := &t.groups[s.Group]
	o := s.IterOutcome()
	switch o {
	case IterDropped:
		t.live.dropped++
	case IterCompleted, IterFailed, IterScriptError:
		t.live.iterations++
	case IterInterrupted, IterAgentLost:
	}
	if s.Phase != PhaseMeasured {
		return
	}
	if o != IterInterrupted {
		t.ended(s.End)
	}
	g.outcomes[o]++
	if o == IterCompleted || o == IterFailed {
		g.latency.record(s.Latency())
	}
	g.add(s)
	if !t.cat.Groups[s.Group].Open {
		return
	}
	if late, queued, ok := delays(s); ok {
		g.lateness.record(late)
		if iterationStarted(s) {
			g.queued.record(queued) // what was never sent has no time from release to send
		}
	}
}

// iterationStarted reports whether a session took the arrival.
func iterationStarted(s *Sample) bool {
	switch s.IterOutcome() {
	case IterDropped, IterAgentLost:
		return false
	case IterInterrupted:
		return s.Seq > 0 // cut while it waited for a session otherwise
	case IterCompleted, IterFailed, IterScriptError:
		return true
	}
	return true
}

// delays returns the lateness and the queueing of an arrival of an open load.
func delays(s *Sample) (late, queued time.Duration, ok bool) {
	if s.Intended == NoOffset || s.Release == NoOffset {
		return 0, 0, false
	}
	return s.Release - s.Intended, s.Start - s.Release, true
}

func (t *totals) addConnect(s *Sample) {
	g := &t.groups[s.Group]
	g.connectOutcomes[s.Outcome]++
	if s.Outcome == OK {
		g.connect.record(s.Service())
		return
	}
	if s.Outcome == ClientError {
		t.clientErrors++
	}
	if s.Outcome != Interrupted && s.Outcome != Cancelled {
		t.errors.add(s, NoStep)
	}
}

// ended notes the End of a measured sample.
func (t *totals) ended(at time.Duration) {
	if !t.hasEnd || at > t.lastEnd {
		t.lastEnd, t.hasEnd = at, true
	}
}
