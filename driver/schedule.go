package driver

import (
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
// the two the schedule lasts as long as its curve has a level.
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
	walk curve.Walk
	k    float64
}

// Uniform returns the arrivals of a rate that follows c, in arrivals per second,
// without chance: the k-th, k from 0, is intended when the integral of the rate
// is k and the rate is positive, see curve.Curve.When. Before any time t there are
// exactly as many as the integral to t, rounded up.
func Uniform(c curve.Curve, b Bounds) Schedule {
	return &uniform{limiter: limiter{Bounds: b}, walk: c.Walk()}
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
	limiter
	walk curve.Walk
	n    float64 // the integral of the rate at the arrival before
	rng  *rand.Rand
}

// Poisson returns the arrivals of a Poisson process whose rate follows c, in
// arrivals per second. The integral of the rate turns such a process into one of
// rate 1, so exponential steps of mean 1 taken back through it give the arrivals
// exactly, whatever the curve: nothing is thinned out or held still in between.
func Poisson(c curve.Curve, b Bounds, rng *rand.Rand) Schedule {
	return &poisson{limiter: limiter{Bounds: b}, walk: c.Walk(), rng: rng}
}

func (p *poisson) Next() (time.Duration, bool) {
	n := p.n + p.rng.ExpFloat64()
	at, ok := p.walk.Next(n)
	if !ok || !p.admit(at) {
		return 0, false
	}
	p.n = n
	return at, true
}

type replay struct {
	limiter
	times []time.Duration // those to come
}

// Replay returns arrivals at recorded offsets. They must not fall, and may be
// equal; the slice is not written to, and must not change meanwhile.
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
