package metrics

import "time"

// window holds the last seconds of what one threshold measures. Its memory: 100 B
// a second; for a percentile, three arrays of cells of together 384 KiB, and 6 B
// for each cell that has a value in a second.
type window struct {
	t      *Threshold
	groups []int // whose load it depends on

	past  []part     // by second, modulo their number
	open  [2]part    // the oldest second that is not judged, and what comes after it
	dense [2][]int32 // of open: values by cell; nil unless a percentile is asked for
	cells []int64    // of past together

	picked  [NumOutcomes]bool // outcomes that are counted; for iterations by IterationOutcome
	checks  [][]int           // by step: those of its checks that are counted
	catalog *Catalog

	seconds int64 // that were measured last
	tripped bool
	at      int64   // second at which it did
	value   float64 // seen then, in base units
}

// part is what a window has of one second.
type part struct {
	count    int64 // values; of a counter: what it counts among
	n        int64 // what a counter counts
	sum      float64
	min, max time.Duration
	cells    []uint16 // those with values
	times    []int32  // how many, of past
	offers   []offer  // of achieved, by group
}

func newWindow(t *Threshold, cat *Catalog) window {
	w := window{t: t, catalog: cat, past: make([]part, t.Abort.Window/time.Second)}
	if _, ok := percentile(t.Agg); ok {
		w.cells = make([]int64, numCells)
		w.dense = [2][]int32{make([]int32, numCells), make([]int32, numCells)}
	}
	for o := range w.picked {
		if metricTable[t.Metric].scope == scopeGroup {
			w.picked[o] = o < NumIterationOutcomes && t.countsIteration(IterationOutcome(o))
		} else {
			w.picked[o] = t.countsRequest(Outcome(o))
		}
	}
	if t.Metric == "checks" {
		for i := range cat.Steps {
			var picked []int
			for k, name := range cat.Steps[i].Checks {
				if t.countsCheck(name) {
					picked = append(picked, k)
				}
			}
			w.checks = append(w.checks, picked)
		}
	}
	return w
}

// add takes a sample that belongs to the i-th open second.
func (w *window) add(s *Sample, i int) {
	switch s.Kind {
	case KindStep:
		w.addStep(s, i)
	case KindIteration:
		w.addIteration(s, i)
	case KindConnect:
		if w.t.Metric == "connect" && s.Outcome == OK {
			w.record(i, s.Service())
		}
	case KindSession:
	}
}

func (w *window) addStep(s *Sample, i int) {
	p := &w.open[i]
	switch w.t.Metric {
	case "latency":
		if s.Outcome.Timed() {
			w.record(i, s.Latency())
		}
	case "service_time":
		if s.Outcome.Timed() {
			w.record(i, s.Service())
		}
	case "ttfb":
		if d, arrived := s.TTFB(); arrived && s.Outcome.Timed() {
			w.record(i, d)
		}
	case "gap":
		if s.Extra != nil {
			for _, gap := range s.Extra.Gaps {
				w.record(i, gap)
			}
		}
	case "bytes_sent":
		p.tally(int64(s.BytesOut))
	case "bytes_received":
		p.tally(int64(s.BytesIn))
	case "checks":
		if s.Outcome.CountsChecks() {
			bad := s.badChecks()
			for _, k := range w.checks[s.Step] {
				p.tally(count(bad>>k&1 == 0 || w.t.Agg == "count"))
			}
		}
	default:
		p.tally(count(w.picked[s.Outcome]))
	}
}

func (w *window) addIteration(s *Sample, i int) {
	p := &w.open[i]
	o := s.IterOutcome()
	late, queued, ok := delays(s)
	ok = ok && w.catalog.Groups[s.Group].Open
	switch w.t.Metric {
	case "connect":
	case "iteration":
		if o == IterCompleted || o == IterFailed {
			w.record(i, s.Latency())
		}
	case "lateness":
		if ok {
			w.record(i, late)
		}
	case "queued":
		if ok && iterationStarted(s) {
			w.record(i, queued)
		}
	case "achieved":
		if !w.catalog.Groups[s.Group].Open {
			return
		}
		if p.offers == nil {
			p.offers = make([]offer, len(w.catalog.Groups))
		}
		p.tally(0)
		p.offers[s.Group].add(s)
	default:
		p.tally(count(w.picked[o]))
	}
}

func count(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// tally counts a thing, and n for it.
func (p *part) tally(n int64) {
	p.n += n
	p.count++
}

// record takes a value of the i-th open second.
func (w *window) record(i int, v time.Duration) {
	p := &w.open[i]
	if p.count == 0 {
		p.min, p.max = v, v
	}
	p.count++
	p.sum += float64(v)
	p.min, p.max = min(p.min, v), max(p.max, v)
	if w.cells == nil {
		return
	}
	cell := cellOf(v)
	if w.dense[i][cell] == 0 {
		p.cells = append(p.cells, cell)
	}
	w.dense[i][cell]++
}

// roll puts the oldest open second, which is the given one, in the place of the
// one that leaves the window.
func (w *window) roll(second int64) {
	old, p := &w.past[second%int64(len(w.past))], &w.open[0]
	for k, cell := range old.cells {
		w.cells[cell] -= int64(old.times[k])
	}
	cells, times, offers := append(old.cells[:0], p.cells...), old.times[:0], old.offers
	for _, cell := range p.cells {
		n := w.dense[0][cell]
		w.dense[0][cell] = 0
		w.cells[cell] += int64(n)
		times = append(times, n)
	}
	spare := p.cells[:0]
	*old = *p
	old.cells, old.times = cells, times
	clear(offers)
	w.open[0] = w.open[1]
	w.open[1] = part{cells: spare, offers: offers}
	w.dense[0], w.dense[1] = w.dense[1], w.dense[0]
}

// measure returns the left side of the threshold over the past seconds in base
// units; ok is false when there is no sample to judge by.
func (w *window) measure() (v float64, ok bool) {
	var d distribution // without a histogram
	var n int64
	for i := range w.past {
		p := &w.past[i]
		if p.count == 0 {
			continue
		}
		if d.count == 0 {
			d.min, d.max = p.min, p.max
		}
		d.count += p.count
		d.sum += p.sum
		d.min, d.max = min(d.min, p.min), max(d.max, p.max)
		n += p.n
	}
	switch {
	case d.count == 0:
		return 0, false
	case w.cells != nil:
		q, _ := percentile(w.t.Agg)
		return float64(w.quantile(q, &d)), true
	case metricTable[w.t.Metric].kind == kindTime:
		v, _, ok = aggregateTime(w.t.Agg, &d, &distribution{})
		return v, ok
	case w.t.Metric == "achieved":
		return w.achieved()
	}
	v, ok = w.t.counted(n, d.count, time.Duration(w.seconds)*time.Second)
	return v, ok
}

// quantile is that of a distribution, d, whose histogram are the window's cells.
func (w *window) quantile(q float64, d *distribution) time.Duration {
	switch {
	case q <= 0:
		return d.min
	case q >= 100:
		return d.max
	}
	left := rank(q, d.count)
	for cell, n := range w.cells {
		if left -= n; left <= 0 {
			return min(max(cellEdge(cell), d.min), d.max)
		}
	}
	return d.max
}

// achieved is that of the arrivals that came to their end in the window.
func (w *window) achieved() (float64, bool) {
	var offered, reached float64
	for g := range w.catalog.Groups {
		var o offer
		for i := range w.past {
			if offers := w.past[i].offers; offers != nil {
				o.merge(&offers[g])
			}
		}
		offered += float64(o.arrived)
		reached += o.reached()
	}
	return min(reached/offered, 1), offered > 0
}
