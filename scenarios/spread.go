package scenarios

import (
	"math/rand/v2"
	"time"

	"mcpbench/scenarios/internal/grammar"
)

// Spread is a time that may differ from one time to the next. The zero value is
// always 0. It is immutable.
type Spread struct {
	low, high time.Duration // equal: a constant
	mean      time.Duration // unless 0, exponential
	bound     time.Duration // of an exponential one; 0 is none
}

func spreadOf(s grammar.Spread) Spread {
	return Spread{low: s.Low, high: s.High, mean: s.Mean, bound: s.Max}
}

// IsZero tells that every value is 0.
func (s Spread) IsZero() bool { return s.high == 0 && s.mean == 0 }

// Draw returns one value. A constant takes nothing from r, which may then be
// nil. A value of an exponential one beyond its bound is the bound.
func (s Spread) Draw(r *rand.Rand) time.Duration {
	switch {
	case s.mean > 0:
		v := float64(s.mean) * r.ExpFloat64()
		if s.bound > 0 {
			v = min(v, float64(s.bound))
		}
		return time.Duration(v)
	case s.high > s.low:
		return s.low + time.Duration(r.Int64N(int64(s.high-s.low)+1))
	}
	return s.low
}

// draws makes the random times of steps, from streams of their own, so that a
// step's times do not change what its expressions draw.
type draws struct {
	pcg rand.PCG
	rng *rand.Rand
}

// CancelAfter returns when after the send the step's request is to be cancelled
// on purpose, 0 for never. It depends on the same as Render.
func (s *Step) CancelAfter(env *Env) time.Duration {
	if s.cancel == nil {
		return 0
	}
	return max(s.cancel.Draw(env.stream(s.params.place, forCancel)), 1)
}

// Cancels tells that the step cancels its request on purpose.
func (s *Step) Cancels() bool { return s.cancel != nil }
