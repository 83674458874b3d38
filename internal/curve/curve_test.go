package curve_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/internal/curve"
)

func near(a, b, relative float64) bool {
	return math.Abs(a-b) <= relative*max(1, math.Abs(a), math.Abs(b))
}

// resolution is by how much rounding of the count n alone may move the time at
// which the level is l, on top of a nanosecond.
func resolution(n, l float64) time.Duration {
	return time.Nanosecond + time.Duration(min(1e15, 16*(math.Nextafter(n, math.Inf(1))-n)/l*1e9))
}

// TestAgainstReference holds Level and Count against a definition and a numeric
// integral that share nothing with the package, and When against Count.
func TestAgainstReference(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for i, s := range specimens(t, 1, 120) {
		c := s.curve
		var last time.Duration
		var before float64
		for range 40 {
			at := time.Duration(r.Int64N(int64(s.horizon)))
			l, n := c.Level(at), c.Count(at)
			if want := s.level(at); !near(l, want, 1e-9) {
				t.Errorf("%d %s: level at %v is %v, want %v", i, s.name, at, l, want)
			}
			if want := s.integral(at); !near(n, want, 1e-9) {
				t.Errorf("%d %s: count at %v is %v, want %v", i, s.name, at, n, want)
			}
			if l > c.Max() {
				t.Errorf("%d %s: level %v at %v, maximum %v", i, s.name, l, at, c.Max())
			}
			if at < last && n > before || at > last && n < before {
				t.Errorf("%d %s: count %v at %v, and %v at %v", i, s.name, n, at, before, last)
			}
			last, before = at, n
			inverts(t, s.name, c, at)
		}
	}
}

// TestContinuity is of the count everywhere and of the level where spans do not jump.
func TestContinuity(t *testing.T) {
	for i, s := range specimens(t, 2, 60) {
		for _, p := range s.spans[1:] {
			before, at := s.curve.Count(p.from-1), s.curve.Count(p.from)
			if rise := at - before; rise < 0 || rise > s.curve.Max()*1e-9*(1+1e-6)+1e-9 {
				t.Errorf("%d %s: count rises by %v at %v", i, s.name, rise, p.from)
			}
			if diff := s.curve.Level(p.from) - s.curve.Level(p.from-1); !p.jumps && math.Abs(diff) > 1e-6 {
				t.Errorf("%d %s: level jumps by %v at %v", i, s.name, diff, p.from)
			}
		}
	}
}

// TestWalkIsWhen: a walk, in steps of all sizes, gives the times that When gives.
func TestWalkIsWhen(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for i, s := range specimens(t, 3, 60) {
		step := math.Pow(10, 3*r.Float64()-2)
		w := s.curve.Walk()
		n, last := 0.0, time.Duration(0)
		for range 5000 {
			got, ok := w.Next(n)
			want, wantOK := s.curve.When(n)
			if got != want || ok != wantOK || got < last && ok {
				t.Fatalf("%d %s: %v: %v %v, when gives %v %v, before %v", i, s.name, n, got, ok, want, wantOK, last)
			}
			if !ok {
				break
			}
			if l := s.curve.Level(got); l <= 0 && s.curve.Level(got+1) <= 0 {
				t.Fatalf("%d %s: %v comes at %v, where the level is %v", i, s.name, n, got, l)
			}
			last = got
			n += step * r.ExpFloat64()
		}
	}
}

// TestRampClosedForm: from 0 to 100/s in 10 s the integral is 5·t², so the k-th
// arrival is at √(2k·10/100) s; downwards it is that seen from the end.
func TestRampClosedForm(t *testing.T) {
	const length = 10 * time.Second
	up := must(t)(curve.Stages(0, []curve.Stage{{Level: 100, HasLevel: true, Over: length}}))
	down := must(t)(curve.Stages(100, []curve.Stage{{Level: 0, HasLevel: true, Over: length}}))
	for k := range 501 {
		want := time.Duration(math.Round(math.Sqrt(2*float64(k)*10/100) * 1e9))
		if got, ok := up.When(float64(k)); !ok || got != want {
			t.Errorf("up: %d at %v %v, want %v", k, got, ok, want)
		}
		if got, ok := down.When(float64(500 - k)); k > 0 && (!ok || got != length-want) {
			t.Errorf("down: %d at %v %v, want %v", 500-k, got, ok, length-want)
		}
	}
	if got, ok := down.When(500); ok {
		t.Errorf("down: 500 at %v, but the level is 0 from the moment of that count", got)
	}
}

// TestNothingComesWhileTheLevelIsZero, also when the count is a whole number at
// the very end of a pulse: 0.1 × 10 s rounds to either side.
func TestNothingComesWhileTheLevelIsZero(t *testing.T) {
	for _, l := range []float64{0.1, 0.3, 0.7, 5, 1.1} {
		c := must(t)(curve.Pulse(l, 10*time.Second, 7*time.Second))
		each := int(math.Round(10 * l))
		w := c.Walk()
		for k := range 1_000_000 {
			got, ok := w.Next(float64(k))
			turn, in := k/each, k%each
			want := time.Duration(turn)*17*time.Second + time.Duration(math.Round(float64(in)/l*1e9))
			if !ok || (got-want).Abs() > time.Nanosecond || in == 0 && got != want {
				t.Fatalf("%g/s: %d at %v %v, want %v", l, k, got, ok, want)
			}
		}
	}
	c := must(t)(curve.Stages(0, []curve.Stage{
		{Hold: time.Second}, {Level: 3, HasLevel: true, Hold: time.Second}, {Level: 0, HasLevel: true},
	}))
	for k, want := range []time.Duration{1e9, 1e9 + 333333333, 1e9 + 666666667} {
		if got, ok := c.When(float64(k)); !ok || got != want {
			t.Errorf("%d at %v %v, want %v", k, got, ok, want)
		}
	}
	if got, ok := c.When(3); ok {
		t.Errorf("3 at %v, want never", got)
	}
}

// TestExactAfterLong: a period in three years is the first one, later.
func TestExactAfterLong(t *testing.T) {
	const period = 7*time.Second + 13*time.Millisecond + 17
	sine := must(t)(curve.Sine(40, 40, period))
	pulse := must(t)(curve.Pulse(80, period/2, period-period/2))
	spike := must(t)(curve.Spike(1, 100, period/3, period/5, period))
	for name, c := range map[string]curve.Curve{"sine": sine, "pulse": pulse, "spike": spike} {
		perTurn := c.Count(period+period/2) - c.Count(period/2)
		for i := range 50 {
			x := period * time.Duration(i) / 50
			if name == "spike" {
				x += period / 3 // where the turns begin
			}
			for _, turns := range []int64{1, 12_345, 13_500_000} {
				at := time.Duration(turns)*period + x
				if want := c.Count(x) + float64(turns)*perTurn; !near(c.Count(at), want, 1e-13) {
					t.Errorf("%s: count at %v is %v, want %v", name, at, c.Count(at), want)
				}
				if got, want := c.Level(at), c.Level(x); got != want {
					t.Errorf("%s: level at %v is %v, want %v", name, at, got, want)
				}
				inverts(t, name, c, at)
			}
		}
	}
}

// inverts checks that When is the inverse of Count at a time, unless the level is
// 0 or so low there, or the end of a pulse so near, that n cannot tell times apart.
func inverts(t *testing.T, name string, c curve.Curve, at time.Duration) {
	t.Helper()
	l, n := c.Level(at), c.Count(at)
	tolerance := resolution(n, l)
	if l == 0 || tolerance > time.Millisecond || c.Level(at+tolerance) == 0 {
		return
	}
	if got, ok := c.When(n); !ok || (got-at).Abs() > tolerance {
		t.Errorf("%s: when of the count at %v is off by %v, tolerance %v", name, at, got-at, tolerance)
	}
}

func TestEnds(t *testing.T) {
	var zero curve.Curve
	walk := zero.Walk()
	if _, ok := walk.Next(0); ok || zero.Level(5) != 0 || zero.Count(5) != 0 || zero.Max() != 0 || zero.Whole(3) != 0 {
		t.Error("the zero curve has a level")
	}
	if _, ok := zero.When(0); ok {
		t.Error("the zero curve has an arrival")
	}
	if got, ok := zero.After(time.Second, 2).When(1); !ok || got != time.Second/2 {
		t.Errorf("after: %v %v", got, ok)
	}
	if _, ok := zero.After(time.Second, 2).When(2); ok {
		t.Error("an arrival after the warm-up of the zero curve")
	}
	c := must(t)(curve.Stages(5, []curve.Stage{{Level: 10, HasLevel: true, Over: time.Minute, Hold: time.Second}, {Hold: time.Hour}}))
	if end, ok := c.After(time.Minute, 1).Scale(3).End(); !ok || end != time.Hour+2*time.Minute+time.Second {
		t.Errorf("end %v %v", end, ok)
	}
	if _, ok := curve.Constant(3).End(); ok {
		t.Error("a constant has no end")
	}
	if n := curve.Constant(3).Count(math.MaxInt64); !near(n, 3*math.MaxInt64/1e9, 1e-15) {
		t.Errorf("count of all time: %v", n)
	}
	if _, ok := curve.Constant(1e-12).When(1); ok {
		t.Error("an arrival after 30,000 years")
	}
	if got := curve.Constant(math.Inf(1)).Scale(5).Max(); got != curve.MaxLevel {
		t.Errorf("maximum %v", got)
	}
	if !cmp.Equal(curve.Constant(1).After(5, 2), curve.Constant(2).Scale(0.5).After(5, 2)) || cmp.Equal(curve.Constant(1), curve.Constant(2)) {
		t.Error("equality")
	}
}

func TestFaults(t *testing.T) {
	nan, inf, day := math.NaN(), math.Inf(1), 24*time.Hour
	faults := map[string]func() (curve.Curve, error){
		"start":             func() (curve.Curve, error) { return curve.Stages(nan, nil) },
		"stage level":       func() (curve.Curve, error) { return curve.Stages(0, []curve.Stage{{Level: -1, HasLevel: true}}) },
		"stage duration":    func() (curve.Curve, error) { return curve.Stages(0, []curve.Stage{{Hold: -1}}) },
		"too many stages":   func() (curve.Curve, error) { return curve.Stages(0, make([]curve.Stage, curve.MaxPieces+1)) },
		"base":              func() (curve.Curve, error) { return curve.Spike(inf, 1, 0, day, 0) },
		"top":               func() (curve.Curve, error) { return curve.Spike(1, -1, 0, day, 0) },
		"spike at":          func() (curve.Curve, error) { return curve.Spike(1, 2, -1, day, 0) },
		"spike of nothing":  func() (curve.Curve, error) { return curve.Spike(1, 2, 0, 0, 0) },
		"spikes overlap":    func() (curve.Curve, error) { return curve.Spike(1, 2, 0, day, day-1) },
		"mean":              func() (curve.Curve, error) { return curve.Sine(nan, 0, day) },
		"amplitude":         func() (curve.Curve, error) { return curve.Sine(1, 1.1, day) },
		"amplitude below 0": func() (curve.Curve, error) { return curve.Sine(1, -0.1, day) },
		"no amplitude":      func() (curve.Curve, error) { return curve.Sine(1, nan, day) },
		"period":            func() (curve.Curve, error) { return curve.Sine(1, 1, 0) },
		"pulse level":       func() (curve.Curve, error) { return curve.Pulse(-1, day, day) },
		"pulse":             func() (curve.Curve, error) { return curve.Pulse(1, 0, day) },
		"falling stairs":    func() (curve.Curve, error) { return curve.Staircase(2, 1, day, 1) },
		"no step":           func() (curve.Curve, error) { return curve.Staircase(1, 0, day, 2) },
		"step":              func() (curve.Curve, error) { return curve.Staircase(1, inf, day, 2) },
		"too many steps":    func() (curve.Curve, error) { return curve.Staircase(0, 1e-9, day, 1) },
	}
	for name, make := range faults {
		if _, err := make(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
