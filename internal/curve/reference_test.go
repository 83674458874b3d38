package curve_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"mcpbench/internal/curve"
)

// span is a part of a curve as the tests themselves define it: the level at x
// seconds from its start.
type span struct {
	from, to time.Duration
	level    func(x float64) float64
	jumps    bool // the level may jump at the start
}

// specimen is a curve and what it should be, until horizon.
type specimen struct {
	name    string
	curve   curve.Curve
	spans   []span
	horizon time.Duration
}

const horizon = 3 * time.Minute

func must(tb testing.TB) func(c curve.Curve, err error) curve.Curve {
	tb.Helper()
	return func(c curve.Curve, err error) curve.Curve {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return c
	}
}

func (s *specimen) add(length time.Duration, jumps bool, level func(x float64) float64) {
	var at time.Duration
	if n := len(s.spans); n > 0 {
		at = s.spans[n-1].to
	}
	if end := min(at+length, s.horizon); end > at {
		s.spans = append(s.spans, span{at, end, level, jumps})
	}
}

func (s *specimen) full() bool { return len(s.spans) > 0 && s.spans[len(s.spans)-1].to >= s.horizon }

func level(l float64) func(float64) float64 { return func(float64) float64 { return l } }

// specimens returns random curves of every kind.
func specimens(tb testing.TB, seed uint64, n int) []specimen {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	ms := func(low, high int) time.Duration {
		return time.Duration(low)*time.Millisecond + time.Duration(r.Int64N(int64(high-low)*1e6))
	}
	makers := []func(*specimen){
		func(s *specimen) {
			l := 200 * r.Float64()
			s.name, s.curve = "constant", curve.Constant(l)
			s.add(horizon, false, level(l))
		},
		func(s *specimen) { s.stages(tb, r, ms) },
		func(s *specimen) {
			base, top := 100*r.Float64(), 500*r.Float64()
			at, length := ms(0, 20_000), ms(1, 10_000)
			every := length + ms(0, 10_000)
			if r.IntN(3) == 0 {
				every = 0
			}
			s.name, s.curve = "spike", must(tb)(curve.Spike(base, top, at, length, every))
			s.add(at, false, level(base))
			for !s.full() {
				s.add(length, true, level(top))
				rest := horizon
				if every > 0 {
					rest = every - length
				}
				s.add(rest, true, level(base))
			}
		},
		func(s *specimen) {
			mean, period := 100*r.Float64(), ms(1000, 100_000)
			amplitude := mean * min(1, 1.2*r.Float64())
			s.name, s.curve = "sine", must(tb)(curve.Sine(mean, amplitude, period))
			for !s.full() {
				s.add(period, false, func(x float64) float64 {
					return mean + amplitude*math.Sin(2*math.Pi*x/period.Seconds())
				})
			}
		},
		func(s *specimen) {
			l, on, off := 300*r.Float64(), ms(1, 5000), ms(0, 5000)
			s.name, s.curve = "pulse", must(tb)(curve.Pulse(l, on, off))
			for !s.full() {
				s.add(on, true, level(l))
				s.add(off, true, level(0))
			}
		},
		func(s *specimen) {
			start, by, every := 10*r.Float64(), 0.1+10*r.Float64(), ms(500, 10_000)
			top := start + 100*r.Float64()
			s.name, s.curve = "staircase", must(tb)(curve.Staircase(start, by, every, top))
			for i := 0; !s.full(); i++ {
				s.add(every, true, level(min(top, start+float64(i)*by)))
			}
		},
	}
	var all []specimen
	for i := range n {
		s := specimen{horizon: horizon}
		makers[i%len(makers)](&s)
		if r.IntN(3) == 0 {
			s.scale(2 * r.Float64())
		}
		if r.IntN(3) == 0 {
			s.after(ms(0, 10_000), 50*r.Float64())
		}
		all = append(all, s)
	}
	return all
}

func (s *specimen) stages(tb testing.TB, r *rand.Rand, ms func(low, high int) time.Duration) {
	tb.Helper()
	start := 0.0
	if r.IntN(2) == 0 {
		start = 100 * r.Float64()
	}
	var stages []curve.Stage
	at := start
	for range r.IntN(8) {
		st := curve.Stage{Hold: ms(0, 10_000)}
		if r.IntN(3) > 0 {
			st.HasLevel = true
			if r.IntN(4) > 0 {
				st.Level = 200 * r.Float64()
			}
			if r.IntN(3) > 0 {
				st.Over = ms(0, 10_000)
			}
		}
		if r.IntN(4) == 0 {
			st.Hold = 0
		}
		stages = append(stages, st)
		to := at
		if st.HasLevel {
			to = st.Level
		}
		from := at
		s.add(st.Over, true, func(x float64) float64 { return from + (to-from)*x/st.Over.Seconds() })
		s.add(st.Hold, true, level(to))
		at = to
	}
	s.name, s.curve = "stages", must(tb)(curve.Stages(start, stages))
	s.add(horizon, true, level(at))
}

func (s *specimen) scale(f float64) {
	s.name, s.curve = s.name+" scaled", s.curve.Scale(f)
	for i := range s.spans {
		old := s.spans[i].level
		s.spans[i].level = func(x float64) float64 { return f * old(x) }
	}
}

func (s *specimen) after(d time.Duration, l float64) {
	s.name, s.curve = "after "+s.name, s.curve.After(d, l)
	s.horizon += d
	spans := []span{{0, d, level(l), false}}
	for _, p := range s.spans {
		spans = append(spans, span{p.from + d, p.to + d, p.level, p.jumps || p.from == 0})
	}
	s.spans = spans
}

// integral is the composite Simpson rule, 1000 steps a span.
func (s *specimen) integral(t time.Duration) float64 {
	var sum float64
	for _, p := range s.spans {
		if p.from >= t {
			break
		}
		const steps = 1000
		h := (min(p.to, t) - p.from).Seconds() / steps
		part := p.level(0) + p.level(h*steps)
		for i := 1; i < steps; i++ {
			part += float64(2+2*(i%2)) * p.level(h*float64(i))
		}
		sum += part * h / 3
	}
	return sum
}

func (s *specimen) level(t time.Duration) float64 {
	for _, p := range s.spans {
		if t < p.to {
			return p.level((t - p.from).Seconds())
		}
	}
	return math.NaN()
}
