package driver

import (
	"math"
	"math/rand/v2"
	"time"

	"mcpbench/internal/curve"
)

// Schedule yields the intended starts of an open load, each once, in order, as
// offsets from the start of the clock. It is pure: no clock, no goroutine. ok
// is false when there are no more.
type Schedule interface {
	Next() (intended time.Duration, ok bool)
}

// Bounds end a schedule. A zero value of either bound means none; with none of
// the two the schedule never ends.
type Bounds struct {
	End    time.Duration // arrivals are intended before it
	Count  int64         // arrivals intended at or after Warmup
	Warmup time.Duration
}

// limiter applies Bounds to offsets that never fall.
type limiter struct {
	Bounds
	counted int64
}

func (l *limiter) admit(at time.Duration) bool {
	if l.End > 0 && at >= l.End {
		return false
	}
	if l.Count > 0 && at >= l.Warmup {
		if l.counted == l.Count {
			return false
		}
		l.counted++
	}
	return true
}

type uniform struct {
	limiter
	curve curve.Curve
	walk  curve.Walker
	k     float64
}

// Uniform returns the arrivals of a rate over time, in arrivals per second: the k-th,
// k from 0, is intended when the integral of the rate exceeds k. Where the rate is
// constant they are evenly spaced.
func Uniform(rate curve.Curve, b Bounds) Schedule {
	u := &uniform{limiter: limiter{Bounds: b}, curve: rate}
	u.walk = u.curve.Walk()
	return u
}

func (u *uniform) Next() (time.Duration, bool) {
	at, ok := u.walk.Next(u.k)
	if !ok || !u.admit(at) {
		return 0, false
	}
	u.k++
	return at, true
}

type poisson struct {
	uniform
	rng *rand.Rand
}

// Poisson returns the arrivals of a Poisson process whose rate is a curve, in arrivals
// per second: exact for each curve, since the gaps of the integral are independent and
// exponentially distributed with mean 1 (time rescaling).
func Poisson(rate curve.Curve, b Bounds, rng *rand.Rand) Schedule {
	p := &poisson{uniform: uniform{limiter: limiter{Bounds: b}, curve: rate}, rng: rng}
	p.walk = p.curve.Walk()
	return p
}

func (p *poisson) Next() (time.Duration, bool) {
	next := p.k + p.rng.ExpFloat64()
	at, ok := p.walk.Next(next)
	if !ok || !p.admit(at) {
		return 0, false
	}
	p.k = next
	return at, true
}

type replay struct {
	limiter
	times []time.Duration
}

// Replay returns recorded arrivals, as offsets that do not fall.
func Replay(times []time.Duration, b Bounds) Schedule {
	return &replay{limiter: limiter{Bounds: b}, times: times}
}

func (r *replay) Next() (time.Duration, bool) {
	if len(r.times) == 0 || !r.admit(r.times[0]) {
		return 0, false
	}
	at := r.times[0]
	r.times = r.times[1:]
	return at, true
}

// seconds converts, saturating: a tiny rate must not wrap.
func seconds(s float64) time.Duration {
	if s >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}
