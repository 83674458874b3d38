package output

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
)

// TestEveryFieldOfAMarkSurvives fails for a new field that is not encoded.
func TestEveryFieldOfAMarkSurvives(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		want := mark{runID: "RUN", at: 1, unjournalled: 1 + rng.Int64N(9), warmup: []int64{rng.Int64(), 0}}
		for range 3 {
			var g metrics.Gauges
			fill(reflect.ValueOf(&g).Elem(), rng)
			want.groups = append(want.groups, g)
			want.segments = append(want.segments, segmentMark{rng.Int(), rng.Int64(), rng.Int64(), rng.Uint32()})
		}
		want.tallies.Anomalies = map[string]int64{"odd_event": rng.Int64(), "killed": 1}
		for i := range 3 {
			r := metrics.ServerRequestSummary{Method: string(rune('a' + i)), Count: rng.Int64(), Refused: rng.Int64(), Unanswered: rng.Int64()}
			if i > 0 {
				r.Answer = &metrics.Quantiles{Count: 1 + rng.Int64N(9), Over: rng.Int64()}
				for _, f := range figuresOf(r.Answer) {
					*f = rng.Float64()
				}
			}
			want.tallies.ServerRequests = append(want.tallies.ServerRequests, r)
		}
		d := decoder{rest: appendMark(nil, &want)[1:]}
		got, err := d.mark()
		if diff := cmp.Diff(&want, got, cmp.AllowUnexported(mark{}, segmentMark{})); diff != "" || err != nil || len(d.rest) > 0 {
			t.Fatalf("%v, %d bytes left, (-want +got):\n%s", err, len(d.rest), diff)
		}
	}
}

// FuzzMark decodes anything without a panic, and what it decodes it encodes alike.
func FuzzMark(f *testing.F) {
	f.Add(appendMark(nil, &mark{runID: "RUN", at: 5, groups: make([]metrics.Gauges, 2), segments: []segmentMark{{1, 2, 3, 4}}})[1:])
	f.Add(appendMark(nil, &mark{runID: "RUN", tallies: metrics.Tallies{
		Anomalies: map[string]int64{"killed": 1}, ServerRequests: []metrics.ServerRequestSummary{{Method: "ping", Count: 2, Answer: &metrics.Quantiles{Count: 2, P50: 1.5}}},
	}})[1:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := decoder{rest: data}
		m, err := d.mark()
		if err != nil {
			return
		}
		again := decoder{rest: appendMark(nil, m)[1:]}
		got, err := again.mark()
		if err != nil || !reflect.DeepEqual(m, got) {
			t.Errorf("%+v became %+v, %v", m, got, err)
		}
	})
}

// TestIndexSetHoldsAgainstAMap adds indexes nearly in order, as arrivals end.
func TestIndexSetHoldsAgainstAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var s indexSet
	want := map[uint64]bool{}
	const n = 3*pageSize + 1000
	order := make([]uint64, n)
	for i := range order {
		order[i] = uint64(i)
	}
	for i := range order {
		j := min(i+rng.IntN(500), n-1)
		order[i], order[j] = order[j], order[i]
	}
	for _, i := range order {
		if i%150001 == 5 || i > n-20 && i%2 == 0 {
			continue // never comes
		}
		s.add(i)
		want[i] = true
	}
	full := 0
	for p := range maps.Values(s.pages) {
		if p == fullPage {
			full++
		}
	}
	if full != 1 { // the others have a hole, or their end to come
		t.Errorf("%d full pages, want 1", full)
	}
	var missing []uint64
	for i := range uint64(n + 3) {
		if s.has(i) != want[i] {
			t.Fatalf("has(%d) = %v", i, s.has(i))
		}
		if !want[i] {
			missing = append(missing, i)
		}
	}
	if got := slices.Collect(s.missing(n + 3)); !slices.Equal(got, missing) {
		t.Errorf("missing %v, want %v", got, missing)
	}
}
