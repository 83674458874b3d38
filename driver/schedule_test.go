package driver_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"mcpbench/driver"
	"mcpbench/internal/curve"
)

func drain(t *testing.T, s driver.Schedule, most int) []time.Duration {
	t.Helper()
	var out []time.Duration
	for {
		at, ok := s.Next()
		if !ok {
			return out
		}
		if len(out) > 0 && at < out[len(out)-1] {
			t.Fatalf("arrival %d at %v is before %v", len(out), at, out[len(out)-1])
		}
		if out = append(out, at); len(out) > most {
			t.Fatalf("more than %d arrivals", most)
		}
	}
}

func TestConstant(t *testing.T) {
	for _, tc := range []struct {
		name string
		rate float64
		b    driver.Bounds
		want int
		last time.Duration
	}{
		{"200/s for 4 s", 200, driver.Bounds{End: 4 * time.Second}, 800, 3995 * time.Millisecond},
		{"a day", 50, driver.Bounds{End: 24 * time.Hour}, 50 * 86400, 24*time.Hour - 20*time.Millisecond},
		{"a third of a second", 3, driver.Bounds{End: time.Second}, 3, 666666666 * time.Nanosecond},
		{"one a minute", 1.0 / 60, driver.Bounds{End: time.Hour}, 60, 59 * time.Minute},
		{"by count", 1000, driver.Bounds{Count: 7}, 7, 6 * time.Millisecond},
		{"by count after the warm-up", 10, driver.Bounds{Count: 5, Warmup: time.Second}, 15, 1400 * time.Millisecond},
		{"the first bound", 10, driver.Bounds{Count: 500, End: time.Second}, 10, 900 * time.Millisecond},
		{"slower than the end", 0.001, driver.Bounds{End: time.Second}, 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := drain(t, driver.Uniform(curve.Constant(tc.rate), tc.b), tc.want+1)
			if len(got) != tc.want {
				t.Fatalf("%d arrivals, want %d", len(got), tc.want)
			}
			if last := got[len(got)-1]; (last - tc.last).Abs() > time.Microsecond {
				t.Errorf("last at %v, want %v", last, tc.last)
			}
		})
	}
}

// TestPoisson compares mean and variance of counts and gaps with the process's
// own: counts in a second have mean and variance equal to the rate, gaps have
// mean and standard deviation 1/rate. 4 standard errors are allowed.
func TestPoisson(t *testing.T) {
	const rate, seconds = 100.0, 10_000
	got := drain(t, driver.Poisson(curve.Constant(rate), driver.Bounds{End: seconds * time.Second}, rand.New(rand.NewPCG(1, 2))), 2*rate*seconds)
	if diff := math.Abs(float64(len(got)) - rate*seconds); diff > 4*math.Sqrt(rate*seconds) {
		t.Errorf("%d arrivals, want %.0f ± %.0f", len(got), rate*seconds, 4*math.Sqrt(rate*seconds))
	}
	counts := make([]float64, seconds)
	var squares float64
	for i, at := range got {
		counts[int(at.Seconds())]++
		if i > 0 {
			gap := (at - got[i-1]).Seconds() * rate
			squares += (gap - 1) * (gap - 1)
		}
	}
	if v := squares / float64(len(got)); math.Abs(v-1) > 4*math.Sqrt(8/float64(len(got))) {
		t.Errorf("variance of the gaps is %.4f of 1/rate², want 1", v)
	}
	var variance float64
	for _, c := range counts {
		variance += (c - rate) * (c - rate) / seconds
	}
	if math.Abs(variance-rate) > 4*rate*math.Sqrt(2.0/seconds) {
		t.Errorf("variance of the counts is %.2f, want %.0f", variance, rate)
	}
	again := drain(t, driver.Poisson(curve.Constant(rate), driver.Bounds{Count: 1000}, rand.New(rand.NewPCG(1, 2))), 1000)
	for i := range again {
		if again[i] != got[i] {
			t.Fatalf("arrival %d: %v and %v with the same seed", i, got[i], again[i])
		}
	}
}

func FuzzSchedules(f *testing.F) {
	f.Add(200.0, int64(4*time.Second), int64(0), int64(0), uint64(1))
	f.Add(1e9, int64(time.Microsecond), int64(10), int64(0), uint64(2))
	f.Add(1e-12, int64(math.MaxInt64), int64(3), int64(5), uint64(3))
	f.Fuzz(func(t *testing.T, rate float64, end, count, warmup int64, seed uint64) {
		if !(rate > 0) || math.IsInf(rate, 0) || end < 0 || count < 0 || warmup < 0 {
			t.Skip("outside what the scenario loader lets through")
		}
		b := driver.Bounds{End: time.Duration(end), Count: count, Warmup: time.Duration(warmup)}
		for _, s := range []driver.Schedule{driver.Uniform(curve.Constant(rate), b), driver.Poisson(curve.Constant(rate), b, rand.New(rand.NewPCG(seed, 0)))} {
			last := time.Duration(0)
			for range 1000 {
				at, ok := s.Next()
				if !ok {
					break
				}
				if at < last || b.End > 0 && at >= b.End {
					t.Fatalf("arrival at %v after %v, end %v", at, last, b.End)
				}
				last = at
			}
		}
	})
}
