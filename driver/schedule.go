package driver

import (
	"math"
	"math/rand/v2"
	"time"
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

type constant struct {
	limiter
	rate float64
	k    float64
}

// Constant returns evenly spaced arrivals: the k-th is intended at k/rate
// seconds, k from 0. rate is in arrivals per second and must be positive.
func Constant(rate float64, b Bounds) Schedule {
	return &constant{limiter: limiter{Bounds: b}, rate: rate}
}

func (c *constant) Next() (time.Duration, bool) {
	at := seconds(c.k / c.rate)
	if !c.admit(at) {
		return 0, false
	}
	c.k++
	return at, true
}

type poisson struct {
	limiter
	rate float64
	at   float64 // seconds
	rng  *rand.Rand
}

// Poisson returns the arrivals of a Poisson process: independent, exponentially
// distributed gaps with mean 1/rate seconds. rate must be positive.
func Poisson(rate float64, b Bounds, rng *rand.Rand) Schedule {
	return &poisson{limiter: limiter{Bounds: b}, rate: rate, rng: rng}
}

func (p *poisson) Next() (time.Duration, bool) {
	next := p.at + p.rng.ExpFloat64()/p.rate
	at := seconds(next)
	if !p.admit(at) {
		return 0, false
	}
	p.at = next
	return at, true
}

// seconds converts, saturating: a schedule with a tiny rate must not wrap.
func seconds(s float64) time.Duration {
	if s >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}
