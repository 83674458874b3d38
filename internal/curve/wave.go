package curve

import (
	"math"
	"time"
)

// wave inverts the integral of a sine.
//
// With the angle E from the trough, the level is mean·(1 − e·cos E) with e =
// amplitude/mean, so that its integral is Kepler's equation, M = E − e·sin E,
// whose M is the count as an angle: 2π is one period. The period begins a quarter
// after the trough, at E = π/2.
type wave struct {
	e         float64
	length    float64 // nanoseconds
	count     float64 // of one period
	tolerance float64 // of E
	// guesses are solutions for M in even steps from 0 to π, a tenth of the cost
	// of starter. Next to 0 they are too far apart for e near 1.
	guesses [knots + 2]float64
}

const (
	knots      = 256
	firstGuess = 4
)

func newWave(mean, amplitude float64, length time.Duration) *wave {
	w := &wave{e: amplitude / mean, length: float64(length), count: mean * seconds(length)}
	// A hundredth of a nanosecond, or the resolution of E for very long periods.
	w.tolerance = max(0.01*2*math.Pi/w.length, 1e-15)
	for i := range w.guesses {
		m := min(math.Pi, math.Pi*float64(i)/knots)
		w.guesses[i] = kepler(starter(m, w.e), m, w.e, w.tolerance)
	}
	return w
}

// when returns the nanoseconds at which the sine has counted r since its start.
func (w *wave) when(r float64) float64 {
	m := math.Pi/2 - w.e + r/w.count*(2*math.Pi)
	offset := -math.Pi / 2
	if m > math.Pi {
		m -= 2 * math.Pi
		offset += 2 * math.Pi
	}
	a := math.Abs(m)
	var guess float64
	step := a * (knots / math.Pi)
	if i := int(step); i >= firstGuess && i <= knots {
		guess = w.guesses[i] + (w.guesses[i+1]-w.guesses[i])*(step-float64(i))
	} else {
		guess = starter(a, w.e)
	}
	x := math.Copysign(kepler(guess, a, w.e, w.tolerance), m)
	return max(0, (x+offset)*(1/(2*math.Pi))*w.length)
}

// kepler solves E − e·sin E = m for m from 0 to π and e from 0 to 1, by steps of
// the fifth order (Danby) within a bracket that is halved where a step would leave
// it: for e = 1 and small m the root is nearly a triple one. With a good guess the
// first step is nearly always the last.
func kepler(guess, m, e, tolerance float64) float64 {
	low, high := m, min(m+e, math.Pi)
	x := min(max(guess, low), high)
	for range 64 {
		sin, cos := math.Sincos(x)
		sin, cos = e*sin, e*cos // the second and third derivative
		f, f1 := x-sin-m, 1-cos
		if f > 0 {
			high = x
		} else {
			low = x
		}
		d := -f * f1 / (f1*f1 - f*sin/2)
		d = -f / (f1 + d*(sin/2+d*cos/6))
		d = -f / (f1 + d*(sin/2+d*(cos/6-d*sin/24)))
		next := x + d
		if !(next >= low && next <= high) {
			next = (low + high) / 2
			d = high - low
		}
		if next == x || d == 0 {
			return next
		}
		// What is left is about the fifth power of the step, as a part of the
		// distance to where f flattens, which is x.
		if part := d / x; math.Abs(part*part*part*part*d) <= tolerance {
			return next
		}
		x = next
	}
	return x
}

// starter returns a guess for kepler, wrong by less than 0.001: Markley's,
// the root of a cubic that comes from a Padé approximant of the sine (Celestial
// Mechanics and Dynamical Astronomy 63, 1995).
func starter(m, e float64) float64 {
	const pi2 = math.Pi * math.Pi
	alpha := (3*pi2 + 1.6*math.Pi*(math.Pi-m)/(1+e)) / (pi2 - 6)
	d := 3*(1-e) + alpha*e
	q := 2*alpha*d*(1-e) - m*m
	r := 3*alpha*d*(d-1+e)*m + m*m*m
	w := math.Cbrt(r + math.Sqrt(q*q*q+r*r))
	w *= w
	guess := (2*r*w/(w*w+w*q+q*q) + m) / d
	if math.IsNaN(guess) { // m = 0 and e = 1
		return 0
	}
	return guess
}
