package target

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestLeakKeepsWhatItTook(t *testing.T) {
	tg := New(Config{})
	for range 3 {
		tg.leak(1 << 10)
	}
	tg.leak(0)
	if len(tg.leaked) != 3 || len(tg.leaked[2]) != 1<<10 {
		t.Errorf("%d blocks are kept, want 3 of 1024 bytes", len(tg.leaked))
	}
}

// The oracles are the moments of the distributions; the draws are seeded, so
// the test cannot flicker.
func TestDelayDistributions(t *testing.T) {
	const n = 100_000
	draws := func(d Delay) []float64 {
		r := rand.New(rand.NewPCG(1, 2))
		ms := make([]float64, n)
		for i := range ms {
			ms[i] = d.draw(r).Seconds() * 1e3
		}
		return ms
	}
	t.Run("exponential", func(t *testing.T) {
		ms := draws(Delay{Shape: Exponential, Low: 10 * time.Millisecond})
		sum := 0.0
		for _, x := range ms {
			sum += x
		}
		// The mean of n draws has the standard error 10 ms/√n; allow four.
		if mean := sum / n; math.Abs(mean-10) > 4*10/math.Sqrt(n) {
			t.Errorf("mean %.3f ms, want about 10", mean)
		}
		slices.Sort(ms)
		// P(X > 20 ms) = e^-2, standard error 0.0011.
		i, _ := slices.BinarySearch(ms, 20)
		if share := 1 - float64(i)/n; math.Abs(share-math.Exp(-2)) > 0.0044 {
			t.Errorf("share above 20 ms is %.4f, want about %.4f", share, math.Exp(-2))
		}
	})
	t.Run("bimodal", func(t *testing.T) {
		high := 0
		for _, x := range draws(Delay{Shape: Bimodal, Low: 2 * time.Millisecond, High: 200 * time.Millisecond, Share: 0.05}) {
			switch {
			case x == 200:
				high++
			case x != 2:
				t.Fatalf("a delay of %v ms, want 2 or 200", x)
			}
		}
		// np = 5000, standard deviation 69.
		if high < 4724 || high > 5276 {
			t.Errorf("%d of %d are slow, want about 5000", high, n)
		}
	})
	t.Run("fixed", func(t *testing.T) {
		if ms := draws(Delay{Low: 3 * time.Millisecond}); slices.Min(ms) != 3 || slices.Max(ms) != 3 {
			t.Errorf("from %v to %v ms, want 3", slices.Min(ms), slices.Max(ms))
		}
	})
}
