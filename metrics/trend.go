package metrics

import "github.com/HdrHistogram/hdrhistogram-go"

// trendParts is the largest number of parts of a trend.
const trendParts = 16

// trend keeps the latencies of up to trendParts equal parts of the measured
// phase. When a second lies beyond the last part, neighbours are joined and
// each part lasts twice as long, so that its size does not depend on the
// length of the run.
type trend struct {
	width int64 // seconds in a part
	parts []*hdrhistogram.Histogram
}

// add merges the latencies of the second with this index within the measured phase.
func (t *trend) add(second int64, h *hdrhistogram.Histogram) {
	second = max(second, 0)
	if t.width == 0 {
		t.width = 1
	}
	for second/t.width >= trendParts {
		t.halve()
	}
	i := int(second / t.width)
	for len(t.parts) <= i {
		t.parts = append(t.parts, nil)
	}
	t.parts[i] = mergeInto(t.parts[i], h)
}

func (t *trend) halve() {
	t.width *= 2
	half := t.parts[:0]
	for i := 0; i < len(t.parts); i += 2 {
		joined := t.parts[i]
		if i+1 < len(t.parts) && t.parts[i+1] != nil {
			joined = mergeInto(joined, t.parts[i+1])
		}
		half = append(half, joined)
	}
	clear(t.parts[len(half):])
	t.parts = half
}

// medians returns the p50 of each part in milliseconds, nil where a part had
// no value. seconds is the length of the measured phase; what ended later
// counts in the last part, which would else hold a few stragglers only.
func (t *trend) medians(seconds int64) []*float64 {
	out := []*float64{}
	if t.width == 0 {
		return out
	}
	n := int((max(seconds, 1) + t.width - 1) / t.width)
	parts := t.parts
	if len(parts) > n {
		last := parts[n-1]
		for _, h := range parts[n:] {
			if h != nil {
				last = mergeInto(cloneOrNil(last), h)
			}
		}
		parts = append(append([]*hdrhistogram.Histogram{}, parts[:n-1]...), last)
	}
	for _, h := range parts {
		if h == nil {
			out = append(out, nil)
			continue
		}
		ms := float64(h.ValueAtQuantile(NearestRank(50, h.TotalCount()))) / 1e6
		out = append(out, &ms)
	}
	return out
}

func cloneOrNil(h *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	if h == nil {
		return nil
	}
	return h.Clone()
}

// mergeInto adds from to h, which may be nil, and returns h.
func mergeInto(h, from *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	if h == nil {
		h = newIntervalHistogram()
	}
	h.Merge(from)
	return h
}
