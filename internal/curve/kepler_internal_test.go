package curve

import (
	"math"
	"testing"
	"time"
)

// TestKepler holds the equation's solution against bisection, on a grid that is
// dense near the double trouble of e = 1 and m = 0.
func TestKepler(t *testing.T) {
	worst := 0.0
	for _, e := range []float64{1e-9, 0.01, 0.3, 0.5, 0.8, 0.95, 0.99, 0.999, 0.999999, 1 - 0x1p-53, 1} {
		for i := range 2000 {
			m := math.Pi * math.Pow(float64(i)/1999, 4)
			low, high := m, min(m+e, math.Pi)
			for {
				x := (low + high) / 2
				if x == low || x == high {
					break
				}
				if x-e*math.Sin(x) > m {
					high = x
				} else {
					low = x
				}
			}
			const tolerance = 1e-15
			got := kepler(starter(m, e), m, e, tolerance)
			// Rounding of the equation itself, by its slope.
			allowed := 1e-15 + 4e-16*max(got, m)/max(1-e*math.Cos(got), 1e-16)
			if diff := math.Abs(got - low); diff > allowed {
				t.Errorf("e=%v m=%v: %v, want %v, off by %.3g, allowed %.3g", e, m, got, low, diff, allowed)
			} else {
				worst = max(worst, diff/allowed)
			}
		}
	}
	t.Logf("worst: %.2f of what is allowed", worst)
}

// TestWaveFromGuesses: the table of guesses and the early end of the iteration
// leave an error far below a nanosecond, whatever the period.
func TestWaveFromGuesses(t *testing.T) {
	for _, length := range []time.Duration{time.Second, time.Minute, 24 * time.Hour} {
		for _, e := range []float64{0.001, 0.5, 0.9, 0.99, 1} {
			w := newWave(50, 50*e, length)
			exact := *w
			exact.tolerance = 0
			exact.guesses = [knots + 2]float64{} // from the lower end of the bracket
			for i := range 5000 {
				r := w.count * (float64(i) + 0.3) / 5000
				got, want := w.when(r), exact.when(r)
				// By as much as rounding of r moves it, where the level is low.
				level := 50 + 50*e*math.Sin(2*math.Pi*want/w.length)
				allowed := 0.1 + 4e-16*w.count/max(level, 1e-9)*1e9
				if math.Abs(got-want) > allowed {
					t.Fatalf("%v, e=%v, r=%v: %v, want %v ns, allowed %v", length, e, r, got, want, allowed)
				}
			}
		}
	}
}
