package output

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestByStart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var b orderBuffer
	for _, span := range []time.Duration{0, 1, 1000, time.Second, time.Hour, 1 << 44, 1 << 50, 1 << 62} {
		for _, n := range []int{0, 1, 2, 3, 1000, 5000} {
			starts := make([]time.Duration, n)
			for i := range starts {
				starts[i] = time.Duration(rng.Int64N(int64(span)+1)) - span/2
				b.add(starts[i])
			}
			want := make([]uint64, n)
			for i := range want {
				want[i] = uint64(i)
			}
			slices.SortStableFunc(want, func(x, y uint64) int { return cmp.Compare(starts[x], starts[y]) })
			if got := b.byStart(); !slices.Equal(got, want) {
				t.Errorf("%d samples within %v: %s", n, span, gocmp.Diff(want, got))
			}
		}
	}
}
