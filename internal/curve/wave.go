package curve

import "math"

// wave returns the nanoseconds at which a sine has counted r since its start.
//
// With the angle E from the trough, the level is mean·(1 − e·cos E) with e =
// amplitude/mean, so that its integral is Kepler's equation, M = E − e·sin E,
// whose M is the count as an angle: 2π is one period. The period begins a quarter
// after the trough, at E = π/2.
func (p *piece) wave(r float64) float64 {
	e := p.eccentricity
	period := float64(p.length)
	m := math.Pi/2 - e + r/(p.end-p.before)*(2*math.Pi)
	offset := -math.Pi / 2
	if m > math.Pi {
		m -= 2 * math.Pi
		offset += 2 * math.Pi
	}
	// A hundredth of a nanosecond, or the resolution of E for very long periods.
	tolerance := max(0.01*2*math.Pi/period, 1e-15)
	return max(0, (math.Copysign(kepler(math.Abs(m), e, tolerance), m)+offset)/(2*math.Pi)*period)
}

// kepler solves E − e·sin E = m for m from 0 to π and e from 0 to 1, by Halley's
// method within a bracket that is halved where a step would leave it: for e = 1
// and small m the root is nearly a triple one.
func kepler(m, e, tolerance float64) float64 {
	low, high := m, min(m+e, math.Pi)
	x := min(max(starter(m, e), low), high)
	for range 64 {
		sin, cos := math.Sincos(x)
		f, f1, f2 := x-e*sin-m, 1-e*cos, e*sin
		if f > 0 {
			high = x
		} else {
			low = x
		}
		next := x - f*f1/(f1*f1-f*f2/2)
		if !(next >= low && next <= high) {
			next = (low + high) / 2
		}
		step := math.Abs(next - x)
		x = next
		if step <= tolerance {
			break
		}
	}
	return x
}

// starter returns a first guess for kepler, wrong by less than 0.001: Markley's,
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
