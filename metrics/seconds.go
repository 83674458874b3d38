package metrics

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// setupSecond is the interval of all that ended before the clock started.
const setupSecond = -1

// noValues is the histogram of a row without values. It is never recorded into.
var noValues = newIntervalHistogram()

// seconds holds the intervals and load rows that are still open, by second.
type seconds struct {
	cfg    *CollectorConfig
	warmup *warmup
	open   map[int64]*second
	next   int64 // the oldest second not handed over
	// read is the second up to which the gauges were read; last is what was read.
	read   int64
	last   []Gauges
	wanted []int          // most sessions wanted at any reading, by group
	recent []recentSecond // the last seconds handed over
	trends []trend        // by step
	rows   []Interval     // buffers of close
	loads  []LoadRow
}

// second is one open second.
type second struct {
	rows  map[uint32]*Interval
	delay map[delayKey]*delayHistograms
	ended []gaugeStep // by group; nil: the gauges were not read for it
}

type delayKey struct {
	group uint8
	phase Phase
}

type delayHistograms struct {
	lateness, queued *hdrhistogram.Histogram
}

// gaugeStep is what a group did in one second and how it stood at its end.
type gaugeStep struct {
	did, now Gauges
}

// recentSecond is what Snapshot needs of a second handed over.
type recentSecond struct {
	second   int64
	requests int64
	latency  *hdrhistogram.Histogram // nil when nothing was timed
}

func newSeconds(cfg *CollectorConfig, w *warmup) seconds {
	groups := len(cfg.Catalog.Groups)
	return seconds{
		warmup: w,
		cfg:    cfg, open: map[int64]*second{}, next: setupSecond, read: setupSecond,
		last: make([]Gauges, groups), wanted: make([]int, groups), trends: make([]trend, len(cfg.Catalog.Steps)),
	}
}

// at returns the open second of an offset: its own, or the oldest still open.
func (w *seconds) at(end time.Duration) *second {
	i := int64(setupSecond)
	if end >= 0 {
		i = int64(end / time.Second)
	}
	return w.second(max(i, w.next))
}

func (w *seconds) second(i int64) *second {
	s := w.open[i]
	if s == nil {
		s = &second{rows: map[uint32]*Interval{}, delay: map[delayKey]*delayHistograms{}}
		w.open[i] = s
	}
	return s
}

// add counts a request in its interval and an iteration of an open load in its load row.
func (w *seconds) add(s *Sample) {
	switch s.Kind {
	case KindStep:
		w.interval(s).add(s)
	case KindIteration:
		late, queued, ok := delays(s)
		if !ok || !w.cfg.Catalog.Groups[s.Group].Open {
			return
		}
		sec, key := w.at(s.End), delayKey{group: s.Group, phase: s.Phase}
		h := sec.delay[key]
		if h == nil {
			h = &delayHistograms{lateness: newIntervalHistogram(), queued: newIntervalHistogram()}
			sec.delay[key] = h
		}
		recordClamped(h.lateness, late)
		if iterationStarted(s) {
			recordClamped(h.queued, queued)
		}
	case KindConnect, KindSession:
	}
}

// interval returns the row that the request belongs to.
func (w *seconds) interval(s *Sample) *Interval {
	sec, class := w.at(s.End), s.Outcome.Class()
	// The order of the keys is the order of the rows.
	key := uint32(s.Step)<<16 | uint32(s.Proto)<<8 | uint32(s.Phase)<<4 | uint32(class)
	row := sec.rows[key]
	if row == nil {
		checks := len(w.cfg.Catalog.Steps[s.Step].Checks)
		row = &Interval{
			Trial: w.cfg.Trial, Step: s.Step, Proto: s.Proto, Phase: s.Phase, Class: class,
			Passed: make([]int64, checks), Failed: make([]int64, checks), Min: math.MaxInt64, Max: math.MinInt64,
			Hist: newIntervalHistogram(), Service: newIntervalHistogram(),
		}
		sec.rows[key] = row
	}
	return row
}

func (row *Interval) add(s *Sample) {
	latency := s.Latency()
	row.Count++
	row.Outcomes[s.Outcome]++
	row.BytesOut += int64(s.BytesOut)
	row.BytesIn += int64(s.BytesIn)
	row.Min = min(row.Min, latency)
	row.Max = max(row.Max, latency)
	recordClamped(row.Hist, latency)
	recordClamped(row.Service, s.Service())
	countChecks(s, row.Passed, row.Failed)
}

// due reports whether a second has ended for which the gauges were not read.
func (w *seconds) due(elapsed time.Duration) bool { return int64(elapsed/time.Second)-1 > w.read }

// readGauges takes the reading at the end of the second i. What changed since
// the last one is counted in it, also when readings in between were missed.
func (w *seconds) readGauges(i int64, now []Gauges) {
	i = max(i, w.read, 0)
	for gap := max(w.read+1, w.next); gap < i; gap++ {
		w.endSecond(gap, now, false)
	}
	w.endSecond(i, now, true)
	w.read = i
}

// endSecond notes for a second how the gauges stand and, when counted, what
// changed since they were last counted.
func (w *seconds) endSecond(i int64, readings []Gauges, counted bool) {
	sec := w.second(max(i, w.next))
	if sec.ended == nil {
		sec.ended = make([]gaugeStep, len(w.last))
	}
	for g := range w.last {
		now := readings[g]
		w.wanted[g] = max(w.wanted[g], now.SessionsWanted)
		step := &sec.ended[g]
		step.now = now
		if !counted {
			continue
		}
		before := &w.last[g]
		step.did.Intended += now.Intended - before.Intended
		step.did.Started += now.Started - before.Started
		step.did.Completed += now.Completed - before.Completed
		step.did.Dropped += now.Dropped - before.Dropped
		*before = now
	}
}

// end returns the second after the last open one.
func (w *seconds) end() int64 {
	end := w.next
	for i := range w.open {
		end = max(end, i+1)
	}
	return end
}

// close ends the oldest open second and returns its rows, which are valid
// until the next close.
func (w *seconds) close() ([]Interval, []LoadRow) {
	i := w.next
	sec := w.second(i)
	delete(w.open, i)
	w.next++

	w.rows = w.rows[:0]
	var requests int64
	var latency *hdrhistogram.Histogram
	base := int64(w.warmup.end() / time.Second)
	for _, key := range slices.Sorted(maps.Keys(sec.rows)) {
		row := sec.rows[key]
		row.Second = i
		requests += row.Count
		w.rows = append(w.rows, *row)
		if row.Class != ClassTimed {
			continue
		}
		latency = mergeInto(latency, row.Hist)
		if row.Phase == PhaseMeasured {
			w.trends[row.Step].add(i-base, row.Hist)
		}
	}
	w.recent = append(w.recent, recentSecond{second: i, requests: requests, latency: latency})
	if extra := len(w.recent) - snapshotWindow; extra > 0 {
		w.recent = slices.Delete(w.recent, 0, extra)
	}
	w.loads = w.loadRows(w.loads[:0], i, sec)
	return w.rows, w.loads
}

// loadRows appends the rows of one second, by group and phase.
func (w *seconds) loadRows(rows []LoadRow, i int64, sec *second) []LoadRow {
	phase := PhaseMeasured
	if time.Duration(i)*time.Second < w.warmup.end() {
		phase = PhaseWarmup
	}
	if i == setupSecond {
		phase = PhaseSetup
	}
	for g, step := range sec.ended {
		row := loadRow(w.cfg.Trial, i, uint8(g), phase, step.now)
		row.Intended, row.Started = step.did.Intended, step.did.Started
		row.Completed, row.Dropped = step.did.Completed, step.did.Dropped
		rows = append(rows, row)
	}
	for key, h := range sec.delay {
		at := slices.IndexFunc(rows, func(r LoadRow) bool { return r.Group == key.group && r.Phase == key.phase })
		if at < 0 {
			var now Gauges
			if sec.ended != nil {
				now = sec.ended[key.group].now
			}
			rows = append(rows, loadRow(w.cfg.Trial, i, key.group, key.phase, now))
			at = len(rows) - 1
		}
		rows[at].Lateness, rows[at].Queued = h.lateness, h.queued
	}
	slices.SortFunc(rows, func(a, b LoadRow) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Phase, b.Phase))
	})
	return rows
}

func loadRow(trial uint16, i int64, group uint8, phase Phase, now Gauges) LoadRow {
	return LoadRow{
		Second: i, Trial: trial, Group: group, Phase: phase,
		SessionsWanted: now.SessionsWanted, SessionsActive: now.SessionsActive,
		SessionsConnecting: now.SessionsConnecting, InFlight: now.InFlight,
		Lateness: noValues, Queued: noValues,
	}
}

// requests returns the number of requests that ended in a second.
func (w *seconds) requests(i int64) int64 {
	for _, r := range w.recent {
		if r.second == i {
			return r.requests
		}
	}
	var n int64
	if sec := w.open[i]; sec != nil {
		for _, row := range sec.rows {
			n += row.Count
		}
	}
	return n
}

// recentP99 returns the p99 latency of the seconds from the given one on, 0 when there is none.
func (w *seconds) recentP99(from int64) time.Duration {
	var all *hdrhistogram.Histogram
	for _, r := range w.recent {
		if r.second >= from && r.latency != nil {
			all = mergeInto(all, r.latency)
		}
	}
	for i, sec := range w.open {
		for _, row := range sec.rows {
			if i >= from && row.Class == ClassTimed {
				all = mergeInto(all, row.Hist)
			}
		}
	}
	if all == nil {
		return 0
	}
	return time.Duration(all.ValueAtQuantile(NearestRank(99, all.TotalCount())))
}
