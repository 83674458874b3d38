package driver_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/driver"
	"mcpbench/internal/curve"
)

// curves returns one of every kind, with a mean near 50/s over whole periods.
func curves(tb testing.TB) map[string]curve.Curve {
	tb.Helper()
	all := map[string]curve.Curve{"constant": curve.Constant(50)}
	add := func(name string, c curve.Curve, err error) {
		if err != nil {
			tb.Fatal(name, err)
		}
		all[name] = c
	}
	c, err := curve.Stages(0, []curve.Stage{
		{Level: 100, HasLevel: true, Over: 8 * time.Hour},
		{Hold: time.Hour},
		{Level: 10, HasLevel: true},
		{Hold: time.Hour},
		{Level: 100, HasLevel: true, Over: time.Second},
		{Level: 0, HasLevel: true, Over: 12 * time.Hour},
		{Level: 50, HasLevel: true},
	})
	add("stages", c, err)
	c, err = curve.Spike(45, 350, 17*time.Second, time.Second, 61*time.Second)
	add("spike", c, err)
	c, err = curve.Sine(50, 50, 97*time.Second+1)
	add("sine", c, err)
	c, err = curve.Pulse(100.1, 3*time.Second+7, 3*time.Second-5)
	add("pulse", c, err)
	c, err = curve.Staircase(1.3, 0.1, time.Minute, 60)
	add("staircase", c.After(time.Minute, 3), err)
	return all
}

// TestADay runs every kind of curve for 24 simulated hours: as many arrivals as
// the integral says, to the end, and none out of order.
func TestADay(t *testing.T) {
	day := 24 * time.Hour
	if testing.Short() {
		day = 10 * time.Minute // the race detector makes it ten times slower and finds nothing in pure code
	}
	for name, c := range curves(t) {
		t.Run(name, func(t *testing.T) {
			want := c.Count(day)
			s := driver.Uniform(c, driver.Bounds{End: day})
			if n := march(t, s); math.Abs(float64(n)-want) > 1 {
				t.Errorf("%d uniform arrivals, integral %v", n, want)
			}
			p := driver.Poisson(c, driver.Bounds{End: day}, rand.New(rand.NewPCG(24, 50)))
			if n := march(t, p); math.Abs(float64(n)-want) > 4*math.Sqrt(want) {
				t.Errorf("%d Poisson arrivals, integral %v, 4σ = %v", n, want, 4*math.Sqrt(want))
			}
		})
	}
	// 432 million arrivals are too many to take each; every hundredth has its time.
	w := curve.Constant(5000).Walk()
	for k := int64(0); k <= 5000*int64(day/time.Second); k += 100 {
		if at, ok := w.Next(float64(k)); !ok || at != time.Duration(k)*200*time.Microsecond {
			t.Fatalf("5,000/s: %d at %v %v", k, at, ok)
		}
	}
	hour := day / 96
	p := driver.Poisson(curve.Constant(5000), driver.Bounds{End: hour}, rand.New(rand.NewPCG(1, 5000)))
	if n, want := march(t, p), 5000*hour.Seconds(); math.Abs(float64(n)-want) > 4*math.Sqrt(want) {
		t.Errorf("5,000/s: %d Poisson arrivals in %v", n, hour)
	}
}

func march(t *testing.T, s driver.Schedule) (n int64) {
	t.Helper()
	var last time.Duration
	for {
		at, ok := s.Next()
		if !ok {
			return n
		}
		if at < last {
			t.Fatalf("arrival %d at %v is before %v", n, at, last)
		}
		last = at
		n++
	}
}

// ramp goes up and down, with a stretch of nothing and a jump.
func ramp(tb testing.TB) curve.Curve {
	tb.Helper()
	c, err := curve.Stages(0, []curve.Stage{
		{Level: 100, HasLevel: true, Over: 10 * time.Second},
		{Level: 20, HasLevel: true, Over: 8 * time.Second},
		{Level: 0, HasLevel: true, Hold: 2 * time.Second},
		{Level: 60, HasLevel: true, Hold: time.Second},
		{Level: 0, HasLevel: true, Over: 9 * time.Second},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// TestUniformWindows: before t there are as many arrivals as the integral to t,
// rounded up, so each window has the difference, on the way down as on the way up.
func TestUniformWindows(t *testing.T) {
	c := ramp(t)
	got := drain(t, driver.Uniform(c, driver.Bounds{}), 10_000)
	if want := 500 + 480 + 60 + 270; len(got) != want {
		t.Errorf("%d arrivals, want %d", len(got), want)
	}
	for _, width := range []time.Duration{time.Second, 250 * time.Millisecond, 10 * time.Millisecond, 977 * time.Microsecond} {
		for from := time.Duration(0); from < 31*time.Second; from += width {
			low, _ := slices.BinarySearch(got, from)
			high, _ := slices.BinarySearch(got, from+width)
			// 1e-9 arrivals are rounding: whole numbers must not be rounded up.
			want := math.Ceil(c.Count(from+width)-1e-9) - math.Ceil(c.Count(from)-1e-9)
			if n := high - low; float64(n) != want {
				t.Errorf("%d arrivals from %v for %v, want %v", n, from, width, want)
			}
		}
	}
}

// TestPoissonWindows: over 200 seeds the mean count of each window is that of the
// curve, also on the ramps, and its variance is the same number.
func TestPoissonWindows(t *testing.T) {
	const seeds, windows = 200, 30
	c := ramp(t)
	var sum, squares [windows]float64
	for seed := range uint64(seeds) {
		var count [windows]float64
		for _, at := range drain(t, driver.Poisson(c, driver.Bounds{}, rand.New(rand.NewPCG(seed, 9))), 10_000) {
			count[at/time.Second]++
		}
		for i, n := range count {
			sum[i] += n
			squares[i] += n * n
		}
	}
	for i := range windows {
		want := c.Count(time.Duration(i+1)*time.Second) - c.Count(time.Duration(i)*time.Second)
		mean := sum[i] / seeds
		if math.Abs(mean-want) > 4*math.Sqrt(want/seeds) {
			t.Errorf("second %d: mean %v, want %v", i, mean, want)
		}
		// The variance of a sample variance is (µ₄ − σ⁴)/n, for Poisson (λ + 2λ²)/n.
		if variance := squares[i]/seeds - mean*mean; math.Abs(variance-want) > 4*math.Sqrt((want+2*want*want)/seeds) {
			t.Errorf("second %d: variance %v, want %v", i, variance, want)
		}
	}
}

// TestRescaledGaps: seen through the integral of the rate, the gaps of every curve
// are exponential with mean 1, by the Kolmogorov–Smirnov test at 0.1 %.
func TestRescaledGaps(t *testing.T) {
	for name, c := range curves(t) {
		if name == "stages" {
			c = ramp(t).After(time.Second, 30)
		}
		for seed := range uint64(5) {
			s := driver.Poisson(c, driver.Bounds{Count: 20_000}, rand.New(rand.NewPCG(seed, 77)))
			var gaps []float64
			before := 0.0
			for at, ok := s.Next(); ok; at, ok = s.Next() {
				n := c.Count(at)
				gaps = append(gaps, n-before)
				before = n
			}
			slices.Sort(gaps)
			var worst float64
			for i, g := range gaps {
				f := -math.Expm1(-g)
				worst = max(worst, f-float64(i)/float64(len(gaps)), float64(i+1)/float64(len(gaps))-f)
			}
			if limit := 1.949 / math.Sqrt(float64(len(gaps))); worst > limit || len(gaps) < 1000 {
				t.Errorf("%s, seed %d: distance %.4f of %d gaps, at most %.4f", name, seed, worst, len(gaps), limit)
			}
		}
	}
}

// TestConstantIsItsFormula: k/rate, and the running sum of the gaps by rate.
func TestConstantIsItsFormula(t *testing.T) {
	arrivals := 200_000
	if testing.Short() {
		arrivals = 10_000 // as in TestADay
	}
	for _, rate := range []float64{0.01, 1.0 / 60, 1, 3, 50, 333.3, 5000, 1e6} {
		s := driver.Uniform(curve.Constant(rate), driver.Bounds{})
		p := driver.Poisson(curve.Constant(rate), driver.Bounds{}, rand.New(rand.NewPCG(3, 4)))
		r := rand.New(rand.NewPCG(3, 4))
		var sum float64
		for k := range arrivals {
			at, ok := s.Next()
			if want := float64(k) / rate * 1e9; !ok || math.Abs(float64(at)-want) > 1 {
				t.Fatalf("%v/s: %d at %v, want %v ns", rate, k, at, want)
			}
			sum += r.ExpFloat64() / rate
			// The sum itself rounds: 200,000 times half its resolution at most.
			if at, ok = p.Next(); !ok || math.Abs(float64(at)-sum*1e9) > 1+sum*1e9*1e-13 {
				t.Fatalf("%v/s: Poisson %d at %v, want %v s", rate, k, at, sum)
			}
		}
	}
}

func TestReplay(t *testing.T) {
	times := []time.Duration{0, 5, 5, 7, 20, 20, 31}
	for _, tc := range []struct {
		b    driver.Bounds
		want []time.Duration
	}{
		{driver.Bounds{}, times},
		{driver.Bounds{End: 20}, times[:4]},
		{driver.Bounds{Count: 2}, times[:2]},
		{driver.Bounds{Count: 2, Warmup: 6}, times[:5]},
		{driver.Bounds{Count: 100, End: 21}, times[:6]},
	} {
		if diff := cmp.Diff(tc.want, drain(t, driver.Replay(times, tc.b), 100)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.b, diff)
		}
	}
	if got := drain(t, driver.Replay(nil, driver.Bounds{}), 0); got != nil {
		t.Errorf("%v of nothing", got)
	}
}

// BenchmarkSchedule is the cost of an arrival to the pacer.
func BenchmarkSchedule(b *testing.B) {
	for name, c := range curves(b) {
		for process, s := range map[string]driver.Schedule{
			"uniform": driver.Uniform(c, driver.Bounds{}),
			"poisson": driver.Poisson(c, driver.Bounds{}, rand.New(rand.NewPCG(1, 1))),
		} {
			b.Run(name+"/"+process, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Next()
				}
			})
		}
	}
}

func TestSchedulesDoNotAllocate(t *testing.T) {
	for name, c := range curves(t) {
		u := driver.Uniform(c, driver.Bounds{Count: 1 << 40})
		p := driver.Poisson(c, driver.Bounds{Count: 1 << 40}, rand.New(rand.NewPCG(1, 1)))
		r := driver.Replay(make([]time.Duration, 20_000), driver.Bounds{})
		if n := testing.AllocsPerRun(10_000, func() { u.Next(); p.Next(); r.Next() }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
