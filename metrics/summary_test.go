package metrics_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
)

// TestSummaryMatchesPlainCounting computes the summary a second time, with
// plain loops over all samples.
func TestSummaryMatchesPlainCounting(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		c, sink := recordRandom(t, seed, 20_000)
		end := 5 * time.Second
		s := c.Summary(metrics.RunInfo{MeasuredEnd: end, Closed: 3, Reopened: 2})
		if diff := gocmp.Diff(s, c.Summary(metrics.RunInfo{MeasuredEnd: end, Closed: 3, Reopened: 2})); diff != "" {
			t.Errorf("a second summary differs (-first +second):\n%s", diff)
		}
		cat := oracleCatalog()

		var last time.Duration
		for _, x := range sink.samples {
			step := x.Kind == metrics.KindStep && x.Outcome != metrics.Interrupted
			iteration := x.Kind == metrics.KindIteration && x.IterOutcome() != metrics.IterInterrupted
			if x.Phase == metrics.PhaseMeasured && (step || iteration) {
				last = max(last, x.End)
			}
		}
		exact(t, "duration_s", s.DurationS, (max(last, end) - 1500*time.Millisecond).Seconds())
		checkQuantiles(t, "open requests", s.Requests.Open, plainOpen(sink.samples))
		requests := s.Requests
		requests.Open = nil
		if diff := gocmp.Diff(plainRequests(sink.samples, cat, s.DurationS), requests); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		for i := range cat.Steps {
			checkStep(t, &s.Steps[i], cat.Steps[i].ID, stepSamples(sink.samples, i))
		}
		checkIterations(t, s, sink.samples)
		checkSessions(t, &s.Sessions, sink.samples)
		if diff := gocmp.Diff(plainChecks(sink.samples, cat), s.Checks); diff != "" {
			t.Errorf("checks (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff(plainErrors(sink.samples, cat), s.Errors); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
		checkIntervals(t, sink, cat)
	}
}

func stepSamples(all []metrics.Sample, step int) []metrics.Sample {
	var out []metrics.Sample
	for _, s := range all {
		if s.Kind == metrics.KindStep && s.Phase == metrics.PhaseMeasured && int(s.Step) == step {
			out = append(out, s)
		}
	}
	return out
}

// plainOpen returns the ages of the requests that were interrupted.
func plainOpen(all []metrics.Sample) (ages []time.Duration) {
	for _, s := range all {
		if s.Kind == metrics.KindStep && s.Phase == metrics.PhaseMeasured && s.Outcome == metrics.Interrupted {
			ages = append(ages, s.End-s.Start)
		}
	}
	return ages
}

func plainRequests(all []metrics.Sample, cat *metrics.Catalog, durationS float64) metrics.RequestsSummary {
	r := metrics.RequestsSummary{Outcomes: map[string]int64{}}
	for step := range cat.Steps {
		for _, s := range stepSamples(all, step) {
			r.Total++
			switch s.Outcome.String() {
			case "ok":
				r.OK++
			case "cancelled", "interrupted", "client_error", "script_error":
				r.Other++
			default:
				r.Failed++
			}
			r.Outcomes[s.Outcome.String()]++
			r.BytesSent += int64(s.BytesOut)
			r.BytesReceived += int64(s.BytesIn)
			if _, failed := plainVerdicts(&s, len(cat.Steps[step].Checks)); failed > 0 {
				r.ChecksFailed++
			}
		}
	}
	r.RatePerS = float64(r.Total) / durationS
	return r
}

// plainVerdicts returns how many of the n checks of a request passed and failed.
func plainVerdicts(s *metrics.Sample, n int) (passed, failed int) {
	switch s.Outcome.String() {
	case "cancelled", "interrupted", "client_error":
		return 0, 0
	case "ok", "tool_error", "check_failed":
		for i := range n {
			if s.ChecksFailed>>i&1 == 1 {
				failed++
			} else {
				passed++
			}
		}
		return passed, failed
	}
	return 0, n
}

func checkStep(t *testing.T, got *metrics.StepSummary, id string, samples []metrics.Sample) {
	t.Helper()
	var latency, service, ttfb, failed, gaps, rounds, first, stops []time.Duration
	outcomes := map[string]int64{}
	for _, s := range samples {
		if s.Extra != nil {
			gaps = append(gaps, s.Extra.Gaps...)
			rounds = append(rounds, s.Extra.Rounds...)
			if s.Extra.HasProgress {
				first = append(first, s.Extra.FirstProgress)
			}
			if s.Extra.HasCancelStop {
				stops = append(stops, s.Extra.CancelStop)
			}
		}
		outcomes[s.Outcome.String()]++
		from := s.Intended
		if from == metrics.NoOffset {
			from = s.Start
		}
		switch s.Outcome.String() {
		case "ok", "check_failed", "timeout":
			latency, service = append(latency, s.End-from), append(service, s.End-s.Start)
			if s.Outcome != metrics.Timeout || s.FirstByte < s.End && s.FirstByte > s.Start {
				ttfb = append(ttfb, s.FirstByte-s.Start)
			}
		case "cancelled", "interrupted", "client_error", "script_error":
		default:
			failed = append(failed, s.End-from)
		}
	}
	if got.Step != id || got.Count != int64(len(samples)) {
		t.Errorf("step %s count %d, want %s %d", got.Step, got.Count, id, len(samples))
	}
	if diff := gocmp.Diff(outcomes, got.Outcomes); diff != "" {
		t.Errorf("%s outcomes (-want +got):\n%s", id, diff)
	}
	checkQuantiles(t, id+" latency", got.Latency, latency)
	checkQuantiles(t, id+" service", got.Service, service)
	checkQuantiles(t, id+" ttfb", got.TTFB, ttfb)
	checkQuantiles(t, id+" failed", got.Failed, failed)
	checkQuantiles(t, id+" gap", got.Gap, gaps)
	checkQuantiles(t, id+" round", got.Round, rounds)
	checkCache(t, id, got.Cache, samples)
	checkQuantiles(t, id+" first progress", got.FirstProgress, first)
	checkQuantiles(t, id+" cancel stop", got.CancelStop, stops)
}

func checkIterations(t *testing.T, s *metrics.Summary, all []metrics.Sample) {
	t.Helper()
	want := metrics.IterationsSummary{Latency: s.Iterations.Latency}
	var latency, lateness, queued []time.Duration
	load := []metrics.LoadSummary{{Group: "open", Model: "open"}, {Group: "closed", Model: "closed"}}
	var intended, starts []time.Duration // of the open group
	for _, x := range all {
		if x.Kind != metrics.KindIteration || x.Phase != metrics.PhaseMeasured {
			continue
		}
		want.Total++
		row := &load[x.Group]
		row.Intended++
		started := int64(1)
		switch x.IterOutcome().String() {
		case "completed":
			want.Completed++
			latency = append(latency, x.Latency())
		case "failed":
			want.Failed++
			latency = append(latency, x.Latency())
		case "dropped":
			want.Dropped++
			row.Dropped++
			started = 0
		case "interrupted":
			want.Interrupted++
			started = min(int64(x.Seq), 1)
		case "script_error":
			want.ScriptError++
		case "agent_lost":
			want.AgentLost++
			started = 0
		}
		row.Started += started
		if x.Group != 0 {
			continue
		}
		lateness, intended = append(lateness, x.Release-x.Intended), append(intended, x.Intended)
		if started == 1 {
			queued, starts = append(queued, x.Start-x.Release), append(starts, x.Start)
		}
	}
	if diff := gocmp.Diff(want, s.Iterations); diff != "" {
		t.Errorf("iterations (-want +got):\n%s", diff)
	}
	checkQuantiles(t, "iteration", s.Iterations.Latency, latency)
	checkQuantiles(t, "lateness", s.Soundness.Lateness, slices.Clone(lateness))
	checkQuantiles(t, "group lateness", s.Load[0].Lateness, lateness)
	checkQuantiles(t, "group queued", s.Load[0].Queued, queued)
	for i := range load {
		load[i].RatePerS = float64(load[i].Intended) / 3.5
		load[i].AchievedPerS = float64(load[i].Started) / 3.5
		load[i].Lateness, load[i].Queued = s.Load[i].Lateness, s.Load[i].Queued
	}
	asked, took := slices.Max(intended)-slices.Min(intended), slices.Max(starts)-slices.Min(starts)
	load[0].AchievedPerS *= min(1, float64(asked)/float64(took))
	near := gocmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })
	if diff := gocmp.Diff(load, s.Load, near); diff != "" {
		t.Errorf("load (-want +got):\n%s", diff)
	}
	if s.Load[1].Lateness != nil || s.Load[1].Queued != nil {
		t.Error("a closed load has lateness")
	}
}

func checkSessions(t *testing.T, got *metrics.SessionsSummary, all []metrics.Sample) {
	t.Helper()
	want := metrics.SessionsSummary{Closed: 3, Reopened: 2, Connect: got.Connect, Outcomes: map[string]int64{}}
	var connect []time.Duration
	for _, s := range all {
		if s.Kind != metrics.KindConnect {
			continue
		}
		want.Outcomes[s.Outcome.String()]++
		switch s.Outcome.String() {
		case "ok":
			want.Opened++
			connect = append(connect, s.End-s.Start)
		case "interrupted", "cancelled":
		default:
			want.Failed++
		}
	}
	if diff := gocmp.Diff(&want, got); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
	checkQuantiles(t, "connect", got.Connect, connect)
}

func plainChecks(all []metrics.Sample, cat *metrics.Catalog) []metrics.CheckSummary {
	var out []metrics.CheckSummary
	for step, info := range cat.Steps {
		for k, name := range info.Checks {
			row := metrics.CheckSummary{Name: name, Step: info.ID}
			for _, s := range stepSamples(all, step) {
				s.ChecksFailed >>= k
				passed, failed := plainVerdicts(&s, 1)
				row.Passed += int64(passed)
				row.Failed += int64(failed)
			}
			out = append(out, row)
		}
	}
	return out
}

func plainErrors(all []metrics.Sample, cat *metrics.Catalog) []metrics.ErrorSummary {
	var out []metrics.ErrorSummary
	for _, s := range all {
		row := metrics.ErrorSummary{Outcome: s.Outcome.String(), Code: s.Code, Count: 1, FirstS: s.End.Seconds(), LastS: s.End.Seconds()}
		switch {
		case s.Outcome == metrics.OK || s.Outcome == metrics.Cancelled || s.Outcome == metrics.Interrupted,
			s.Kind == metrics.KindIteration, s.Kind == metrics.KindStep && s.Phase != metrics.PhaseMeasured:
			continue
		case s.Kind == metrics.KindStep:
			row.Step = cat.Steps[s.Step].ID
		}
		row.Message = s.Extra.Message
		i := slices.IndexFunc(out, func(o metrics.ErrorSummary) bool {
			return o.Outcome == row.Outcome && o.Code == row.Code && o.Message == row.Message && o.Step == row.Step
		})
		if i < 0 {
			out = append(out, row)
			continue
		}
		out[i].Count++
		out[i].FirstS = min(out[i].FirstS, row.FirstS)
		out[i].LastS = max(out[i].LastS, row.LastS)
	}
	slices.SortFunc(out, func(a, b metrics.ErrorSummary) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message), cmp.Compare(a.Step, b.Step))
	})
	return out
}

// checkIntervals counts all samples again by the keys of the intervals: a
// second may differ (stragglers), the sums may not.
func checkIntervals(t *testing.T, sink *oracleSink, cat *metrics.Catalog) {
	t.Helper()
	type key struct {
		step  uint16
		proto uint8
		phase metrics.Phase
		class string
	}
	type sums struct {
		Count, Bytes, Passed, Failed, Hist, Service int64
		Outcomes                                    [metrics.NumOutcomes]int64
		Min, Max                                    time.Duration
	}
	want, got := map[key]sums{}, map[key]sums{}
	for _, s := range sink.samples {
		if s.Kind != metrics.KindStep {
			continue
		}
		k := key{s.Step, s.Proto, s.Phase, s.Outcome.Class().String()}
		v, known := want[k]
		if !known {
			v.Min = time.Hour
		}
		passed, failed := plainVerdicts(&s, len(cat.Steps[s.Step].Checks))
		v.Count++
		v.Hist++
		v.Service++
		v.Bytes += int64(s.BytesIn) + int64(s.BytesOut)
		v.Passed += int64(passed)
		v.Failed += int64(failed)
		v.Outcomes[s.Outcome]++
		v.Min, v.Max = min(v.Min, s.Latency()), max(v.Max, s.Latency())
		want[k] = v
	}
	for _, r := range sink.intervals {
		k := key{r.Step, r.Proto, r.Phase, r.Class.String()}
		v, known := got[k]
		if !known {
			v.Min = time.Hour
		}
		v.Count += r.Count
		v.Hist += r.Hist.TotalCount()
		v.Service += r.Service.TotalCount()
		v.Bytes += r.BytesIn + r.BytesOut
		for i := range r.Passed {
			v.Passed += r.Passed[i]
			v.Failed += r.Failed[i]
		}
		for o, n := range r.Outcomes {
			v.Outcomes[o] += n
		}
		v.Min, v.Max = min(v.Min, r.Min), max(v.Max, r.Max)
		got[k] = v
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("sums of the intervals (-want +got):\n%s", diff)
	}
}
