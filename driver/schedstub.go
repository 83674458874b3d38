package driver

import (
	"math/rand/v2"
	"time"

	"mcpbench/internal/curve"
)

type uni struct {
	limiter
	c curve.Curve
	k float64
	r *rand.Rand
}

func (u *uni) Next() (time.Duration, bool) {
	if u.r != nil {
		u.k += u.r.ExpFloat64()
	}
	at, ok := u.c.When(u.k)
	if !ok || !u.admit(at) {
		return 0, false
	}
	if u.r == nil {
		u.k++
	}
	return at, true
}
func Uniform(c curve.Curve, b Bounds) Schedule { return &uni{limiter: limiter{Bounds: b}, c: c} }
func PoissonOver(c curve.Curve, b Bounds, r *rand.Rand) Schedule {
	return &uni{limiter: limiter{Bounds: b}, c: c, r: r}
}
func Replay(t []time.Duration, b Bounds) Schedule { return &rep{limiter: limiter{Bounds: b}, t: t} }

type rep struct {
	limiter
	t []time.Duration
}

func (r *rep) Next() (time.Duration, bool) {
	if len(r.t) == 0 || !r.admit(r.t[0]) {
		return 0, false
	}
	at := r.t[0]
	r.t = r.t[1:]
	return at, true
}
