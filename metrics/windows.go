package metrics

import (
	"sync/atomic"
	"time"
)

// windows keeps the last seconds of the measured phase for the thresholds that may
// end the run, in the coarse geometry of intervals. It is the collector goroutine's
// but for aborted and what abortOf reads after it.
type windows struct {
	cat        *Catalog
	thresholds []Threshold
	longest    int64 // window, in seconds; 0: no threshold may end the run
	kept       map[int64]*totals
	judged     int64 // seconds that were
	aborted    chan struct{}
	abort      atomic.Pointer[abort]
}

// abort is what ended the run.
type abort struct {
	threshold int
	at        time.Duration // end of the window
	value     float64       // in base units
}

func (w *windows) init(cat *Catalog, thresholds []Threshold) {
	w.cat, w.thresholds, w.aborted = cat, thresholds, make(chan struct{})
	for i := range thresholds {
		if a := thresholds[i].Abort; a != nil {
			w.longest = max(w.longest, int64(a.Window/time.Second))
		}
	}
	if w.longest > 0 {
		w.kept = map[int64]*totals{}
	}
}

func (w *windows) used() bool { return w.longest > 0 }

// add counts a sample in the second in which it ended.
func (w *windows) add(s *Sample) {
	if s.Phase != PhaseMeasured {
		return
	}
	i := int64(max(s.End, 0) / time.Second)
	if i < w.judged-w.longest {
		return // too late for any window
	}
	second := w.kept[i]
	if second == nil {
		t := newTotals(w.cat)
		t.makeCoarse()
		second = &t
		w.kept[i] = second
	}
	second.add(s)
}

// judge evaluates the thresholds when a second has ended. warm is the end of the warm-up.
func (w *windows) judge(elapsed, warm time.Duration) {
	now := int64(elapsed / time.Second)
	if !w.used() || now <= w.judged || w.abort.Load() != nil {
		return
	}
	w.judged = now
	for i := range w.kept {
		if i < now-w.longest {
			delete(w.kept, i)
		}
	}
	for i := range w.thresholds {
		t := &w.thresholds[i]
		if t.Abort == nil || time.Duration(now)*time.Second-warm < t.Abort.After {
			continue
		}
		if value, ok := w.fails(t, now, warm); ok {
			w.abort.Store(&abort{threshold: i, at: time.Duration(now) * time.Second, value: value})
			close(w.aborted)
			return
		}
	}
}

// fails reports whether a threshold does not hold over its window, which ends with
// the second before now, and the value. One without anything measured holds.
func (w *windows) fails(t *Threshold, now int64, warm time.Duration) (value float64, fails bool) {
	length := int64(t.Abort.Window / time.Second)
	var v view
	for i := now - length; i < now; i++ {
		if second := w.kept[i]; second != nil {
			v = append(v, second)
		}
	}
	if len(v) == 0 {
		empty := newTotals(w.cat) // a count of nothing is 0
		v = view{&empty}
	}
	span := min(t.Abort.Window, time.Duration(now)*time.Second-warm)
	value, _, ok := v.measure(t, span)
	return value, ok && !compare(value, t.Op, t.limit())
}

// abortOf returns how the threshold with that number ended the run, nil if it did not.
func (w *windows) abortOf(threshold int) *abort {
	if a := w.abort.Load(); a != nil && a.threshold == threshold {
		return a
	}
	return nil
}

// makeCoarse gives all distributions the geometry of intervals. They are empty.
func (t *totals) makeCoarse() {
	for i := range t.steps {
		st := &t.steps[i]
		for _, d := range []*distribution{
			&st.latency, &st.service, &st.ttfb, &st.gap, &st.firstProgress, &st.round, &st.cancelStop,
			&st.timeouts, &st.serviceTimeout, &st.failedLatency,
		} {
			d.coarse = true
		}
	}
	for i := range t.groups {
		g := &t.groups[i]
		for _, d := range []*distribution{&g.latency, &g.lateness, &g.queued, &g.connect} {
			d.coarse = true
		}
	}
	t.open.coarse = true
}
