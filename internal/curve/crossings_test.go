package curve_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/internal/curve"
)

func TestCrossings(t *testing.T) {
	c := must(t)(curve.Stages(0, []curve.Stage{
		{Level: 3, HasLevel: true, Over: 6 * time.Second, Hold: time.Second},
		{Level: 1, HasLevel: true, Over: 2 * time.Second},
		{Level: 0, HasLevel: true},
	}))
	k := c.Crossings(100)
	var got []curve.Crossing
	for x, ok := k.Next(); ok; x, ok = k.Next() {
		got = append(got, x)
	}
	const s = time.Second
	want := []curve.Crossing{
		{At: 1 * s, Slot: 0, On: true},
		{At: 3 * s, Slot: 1, On: true},
		{At: 5 * s, Slot: 2, On: true},
		{At: 7*s + s/2 + 1, Slot: 2}, // 2.5 and 1.5 still round up
		{At: 8*s + s/2 + 1, Slot: 1},
		{At: 9 * s, Slot: 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("crossings (-want +got):\n%s", diff)
	}
}

// TestCrossingsAreWhole replays the crossings of random curves: at any time those
// on are the first Whole slots, each crossing changes one, and a nanosecond
// before it Whole was still the other.
func TestCrossingsAreWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, s := range specimens(t, 5, 90) {
		replay(t, r, s, 1+r.IntN(300))
	}
}

func replay(t *testing.T, r *rand.Rand, s specimen, limit int) {
	t.Helper()
	wanted := func(at time.Duration) int { return min(limit, s.curve.Whole(at)) }
	k := s.curve.Crossings(limit)
	on, last := 0, time.Duration(0)
	for range 100_000 {
		x, ok := k.Next()
		until := s.horizon
		if ok {
			until = min(until, x.At)
		}
		if until > last {
			at := last + time.Duration(r.Int64N(int64(until-last)))
			if wanted(last) != on || wanted(at) != on || wanted(until-1) != on {
				t.Fatalf("%s: %d on from %v to %v, want %d, %d at %v, %d",
					s.name, on, last, until, wanted(last), wanted(at), at, wanted(until-1))
			}
		}
		if !ok || x.At >= s.horizon {
			return
		}
		want := curve.Crossing{At: max(x.At, last), Slot: on, On: true}
		if !x.On {
			want = curve.Crossing{At: max(x.At, last), Slot: on - 1}
		}
		if x != want || x.Slot < 0 || x.Slot >= limit {
			t.Fatalf("%s: crossing %+v, want %+v", s.name, x, want)
		}
		last = x.At
		if on++; !x.On {
			on -= 2
		}
	}
}

// TestCrossingsEnd where nothing crosses any more, also when the curve goes on.
func TestCrossingsEnd(t *testing.T) {
	for name, c := range map[string]curve.Curve{
		"zero":     {},
		"ripple":   must(t)(curve.Sine(5, 0.1, time.Second)),
		"constant": curve.Constant(5),
		"warm-up":  must(t)(curve.Pulse(5.4, time.Second, 0)).After(time.Minute, 4.6),
	} {
		k := c.Crossings(5)
		n := 0
		for _, ok := k.Next(); ok; _, ok = k.Next() {
			n++
		}
		if want := min(5, c.Whole(0)); n != want {
			t.Errorf("%s: %d crossings, want %d", name, n, want)
		}
	}
	k := must(t)(curve.Pulse(2, time.Second, time.Second)).Crossings(1000)
	for i := range 100_000 {
		turn := time.Duration(i / 4)
		at := 2 * turn * time.Second
		if i%4 >= 2 {
			at += time.Second
		}
		want := curve.Crossing{At: at, Slot: []int{0, 1, 1, 0}[i%4], On: i%4 < 2}
		if got, ok := k.Next(); !ok || got != want {
			t.Fatalf("%d: %+v %v, want %+v", i, got, ok, want)
		}
	}
}
