package metrics

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Geometry of every histogram of durations: nanoseconds between
// HistogramLowest and HistogramHighest, with TotalDigits significant digits
// (192 KiB) for the totals of a run and IntervalDigits (27 KiB) for one second.
const (
	HistogramLowest  = time.Microsecond
	HistogramHighest = time.Hour
	TotalDigits      = 3
	IntervalDigits   = 2
)

func newIntervalHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(HistogramLowest), int64(HistogramHighest), IntervalDigits)
}

// recordClamped records v, moved into the range of the histogram.
func recordClamped(h *hdrhistogram.Histogram, v time.Duration) {
	v = min(max(v, HistogramLowest), HistogramHighest)
	if err := h.RecordValue(int64(v)); err != nil {
		panic("metrics: a clamped value is out of range: " + err.Error())
	}
}

// distribution is a histogram of durations in nanoseconds with exact count,
// sum and ends. Values outside the histogram's range are recorded at its edge
// and counted. The zero value is empty.
type distribution struct {
	hist  *hdrhistogram.Histogram // nil until the first value
	count int64
	sum   float64 // ns
	min   time.Duration
	max   time.Duration
	over  int64 // values above HistogramHighest
}

func (d *distribution) record(v time.Duration) {
	if d.hist == nil {
		d.hist = hdrhistogram.New(int64(HistogramLowest), int64(HistogramHighest), TotalDigits)
		d.min, d.max = v, v
	}
	if v > HistogramHighest {
		d.over++
	}
	d.count++
	d.sum += float64(v)
	d.min = min(d.min, v)
	d.max = max(d.max, v)
	recordClamped(d.hist, v)
}

// merge adds what from holds; from is only read.
func (d *distribution) merge(from *distribution) {
	if from.count == 0 {
		return
	}
	if d.hist == nil {
		d.hist = hdrhistogram.New(int64(HistogramLowest), int64(HistogramHighest), TotalDigits)
		d.min, d.max = from.min, from.max
	}
	d.hist.Merge(from.hist)
	d.count += from.count
	d.sum += from.sum
	d.over += from.over
	d.min = min(d.min, from.min)
	d.max = max(d.max, from.max)
}

// quantile returns the q-th percentile, q from 0 to 100: the upper edge of the
// histogram cell of the value with that nearest rank, kept within the exact
// minimum and maximum. 0 and 100 are exact. It is 0 for an empty distribution.
func (d *distribution) quantile(q float64) time.Duration {
	switch {
	case d.count == 0:
		return 0
	case q <= 0:
		return d.min
	case q >= 100:
		return d.max
	}
	v := time.Duration(d.hist.ValueAtQuantile(NearestRank(q, d.count)))
	return min(max(v, d.min), d.max)
}

// mean returns the exact mean in ns, 0 when empty.
func (d *distribution) mean() float64 {
	if d.count == 0 {
		return 0
	}
	return d.sum / float64(d.count)
}

// rank returns the nearest rank of the q-th percentile of n values, from 1: the
// smallest whole number not below q/100·n, as SQL's quantile_disc has it.
func rank(q float64, n int64) int64 {
	// What floating point adds to a whole number must not make it the next one.
	r := math.Ceil(q/100*float64(n) - 1e-9*float64(n))
	return int64(math.Max(1, math.Min(r, float64(n))))
}

// NearestRank returns the percentile to ask a histogram of n values for so that
// it answers with the value of the nearest rank of the q-th percentile.
// hdrhistogram rounds q/100·n half up, which may be one rank too low.
func NearestRank(q float64, n int64) float64 {
	if n == 0 {
		return q
	}
	return 100 * (float64(rank(q, n)) - 0.25) / float64(n)
}

// figures are the percentiles of Quantiles by their JSON names, ascending.
var figures = [...]struct {
	name string
	q    float64
}{{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}}

// quantiles returns the figures of d in milliseconds, nil when it is empty.
// timeouts holds those values of d that belong to timeouts; nil is none.
func (d *distribution) quantiles(timeouts *distribution) *Quantiles {
	if d.count == 0 {
		return nil
	}
	at := func(i int) float64 { return milliseconds(d.quantile(figures[i].q)) }
	return &Quantiles{
		Count: d.count, Min: milliseconds(d.min), Mean: d.mean() / 1e6, Max: milliseconds(d.max),
		P50: at(0), P90: at(1), P99: at(2), P999: at(3),
		Over: d.over, AtTimeout: d.atTimeout(timeouts),
	}
}

// atTimeout names the figures that fall on a timeout. Min and max do when the
// exact extreme of the timeouts is that of the whole. A percentile has a rank
// and so a histogram cell; values of one cell cannot be told apart, and as an
// answer that came within the limit was faster than one that did not, the
// timeouts of a cell are taken to be its largest values: the percentile falls
// on a timeout when its rank lies among the last ones of its cell.
func (d *distribution) atTimeout(timeouts *distribution) []string {
	if timeouts == nil || timeouts.count == 0 {
		return nil
	}
	var names []string
	if timeouts.min == d.min {
		names = append(names, "min")
	}
	for i, on := range d.onTimeout(timeouts, figures[0].q, figures[1].q, figures[2].q, figures[3].q) {
		if on {
			names = append(names, figures[i].name)
		}
	}
	if timeouts.max == d.max {
		names = append(names, "max")
	}
	return names
}

// onTimeout applies the rule of atTimeout to percentiles, given in ascending order.
func (d *distribution) onTimeout(timeouts *distribution, qs ...float64) []bool {
	out := make([]bool, len(qs))
	if timeouts == nil || timeouts.count == 0 {
		return out
	}
	// Histograms of one geometry have the same cells.
	all, late := d.hist.Export().Counts, timeouts.hist.Export().Counts
	var seen int64
	next := 0
	for cell, n := range all {
		seen += n
		for next < len(qs) && rank(qs[next], d.count) <= seen {
			out[next] = rank(qs[next], d.count) > seen-late[cell]
			next++
		}
	}
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
