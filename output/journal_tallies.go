package output

import (
	"encoding/binary"
	"math"

	"mcpbench/metrics"
)

// appendTallies appends what a mark has beside the gauges. The distribution of
// the answers' times is there by its figures: that is all a summary tells of it.
func appendTallies(dst []byte, t *metrics.Tallies) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(t.Anomalies)))
	for kind, n := range t.Anomalies { // in any order: to sort them would allocate
		dst = binary.AppendVarint(appendText(dst, kind), n)
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.ServerRequests)))
	for i := range t.ServerRequests {
		r := &t.ServerRequests[i]
		dst = appendText(dst, r.Method)
		for _, n := range [...]int64{r.Count, r.Refused, r.Unanswered} {
			dst = binary.AppendVarint(dst, n)
		}
		q := r.Answer
		if q == nil {
			q = &metrics.Quantiles{} // Count 0 stands for none
		}
		dst = binary.AppendVarint(binary.AppendVarint(dst, q.Count), q.Over)
		for _, f := range figuresOf(q) {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(*f))
		}
	}
	return dst
}

// figuresOf lists the figures in the order in which they are written.
func figuresOf(q *metrics.Quantiles) [7]*float64 {
	return [...]*float64{&q.Min, &q.Mean, &q.P50, &q.P90, &q.P99, &q.P999, &q.Max}
}

// tallies decodes what appendTallies wrote.
func (d *decoder) tallies() (t metrics.Tallies) {
	if n := d.count(); n > 0 {
		t.Anomalies = make(map[string]int64, n)
		for range n {
			kind := d.text()
			t.Anomalies[kind] = d.varint()
		}
	}
	for range d.count() {
		r := metrics.ServerRequestSummary{Method: d.text(), Count: d.varint(), Refused: d.varint(), Unanswered: d.varint()}
		q := &metrics.Quantiles{Count: d.varint(), Over: d.varint()}
		for _, f := range figuresOf(q) {
			*f = d.float()
		}
		if q.Count != 0 {
			r.Answer = q
		}
		t.ServerRequests = append(t.ServerRequests, r)
	}
	return t
}

func (d *decoder) float() float64 {
	b := d.take(8)
	if b == nil {
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if math.IsNaN(f) || math.IsInf(f, 0) { // JSON has none
		d.fail()
		return 0
	}
	return f
}
