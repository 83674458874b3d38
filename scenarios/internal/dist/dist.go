// Package dist draws durations from distributions, and ranks by Zipf's law.
//
// Every value is immutable and safe for concurrent use; what is drawn depends on
// the generator alone. Drawing does not allocate.
package dist

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Bounds keep what is drawn between two durations: a value beyond one is that
// one. The zero value bounds nothing; a Max of 0 is none.
type Bounds struct {
	Min, Max time.Duration
}

// Dist is a distribution of durations. The zero value is always 0.
type Dist struct {
	kind kind
	// a and b are the parameters in nanoseconds unless the constructor says
	// otherwise. A constant and the ends of a uniform one are in bounds, exactly.
	a, b   float64
	bounds Bounds
	list   []time.Duration // of an empirical one
}

type kind uint8

const (
	constant kind = iota
	uniform
	exponential
	normal
	lognormal
	pareto
	empirical
)

// Constant is always d, which must not be negative.
func Constant(d time.Duration) (Dist, error) {
	if d < 0 {
		return Dist{}, fmt.Errorf("constant must not be negative, is %v", d)
	}
	return Dist{kind: constant, bounds: Bounds{Min: d, Max: d}}, nil
}

// Least is a time below which nothing is drawn; of a constant it is the constant.
func (d Dist) Least() time.Duration { return d.bounds.Min }

// Uniform is anything from low to high, both included, each as likely.
func Uniform(low, high time.Duration) (Dist, error) {
	switch {
	case low < 0:
		return Dist{}, fmt.Errorf("uniform must not begin below 0, begins at %v", low)
	case high < low:
		return Dist{}, fmt.Errorf("uniform must not end (%v) before it begins (%v)", high, low)
	}
	return Dist{kind: uniform, bounds: Bounds{Min: low, Max: high}}, nil
}

// Exponential has the given mean before bounds apply: times between events that
// do not know of each other. A Max must not be less than the mean.
func Exponential(mean time.Duration, b Bounds) (Dist, error) {
	switch {
	case mean <= 0:
		return Dist{}, fmt.Errorf("mean of exponential must be more than 0, is %v", mean)
	case b.Max > 0 && b.Max < mean:
		return Dist{}, fmt.Errorf("max must not be less than the mean, %v, is %v", mean, b.Max)
	}
	return bounded(Dist{kind: exponential, a: float64(mean)}, b)
}

// Normal has the bell's shape around mean, which must not be negative, with
// standard deviation sd. It is truncated at 0: what would be negative is drawn
// again, so that with an sd near the mean or above the true mean is higher and
// the spread less than the parameters say.
func Normal(mean, sd time.Duration, b Bounds) (Dist, error) {
	switch {
	case mean < 0:
		return Dist{}, fmt.Errorf("mean of normal must not be negative, is %v", mean)
	case sd <= 0:
		return Dist{}, fmt.Errorf("sd of normal must be more than 0, is %v; for one value use constant", sd)
	}
	return bounded(Dist{kind: normal, a: float64(mean), b: float64(sd)}, b)
}

// Percentile says that P percent of the values are not more than Value.
type Percentile struct {
	P     float64 // 1 to 99.9
	Value time.Duration
}

// Lognormal is the lognormal distribution that has, before bounds apply, the two
// percentiles given, in either order.
func Lognormal(p, q Percentile, b Bounds) (Dist, error) {
	if p.P > q.P {
		p, q = q, p
	}
	for _, one := range []Percentile{p, q} {
		switch {
		case !(one.P >= 1 && one.P <= 99.9):
			return Dist{}, fmt.Errorf("lognormal takes percentiles from p1 to p99.9, not p%v", one.P)
		case one.Value <= 0:
			return Dist{}, fmt.Errorf("p%v of lognormal must be more than 0, is %v", one.P, one.Value)
		}
	}
	switch {
	case p.P == q.P:
		return Dist{}, fmt.Errorf("lognormal wants two different percentiles, has p%v twice", p.P)
	case p.Value >= q.Value:
		return Dist{}, fmt.Errorf("p%v of lognormal (%v) must be less than p%v (%v)", p.P, p.Value, q.P, q.Value)
	}
	zp, zq := quantile(p.P/100), quantile(q.P/100)
	lp, lq := math.Log(float64(p.Value)), math.Log(float64(q.Value))
	sigma := (lq - lp) / (zq - zp)
	// a and b are mean and standard deviation of the logarithm of nanoseconds.
	return bounded(Dist{kind: lognormal, a: lp - sigma*zp, b: sigma}, b)
}

// quantile is the value that a standard normal is not above with probability p.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// Pareto has no value below scale, its most likely one, and a tail that gets
// heavier as shape gets smaller: P(X > x) = (scale/x)^shape. The mean is
// infinite with a shape of 1 or less, so such a one needs a Max.
func Pareto(scale time.Duration, shape float64, b Bounds) (Dist, error) {
	switch {
	case scale <= 0:
		return Dist{}, fmt.Errorf("min of pareto must be more than 0, is %v", scale)
	case !(shape > 0) || math.IsInf(shape, 1):
		return Dist{}, fmt.Errorf("shape of pareto must be a number more than 0, is %v", shape)
	case shape <= 1 && b.Max == 0:
		return Dist{}, fmt.Errorf("pareto with a shape of %v has an infinite mean: give a max, or a shape above 1", shape)
	case b.Max > 0 && b.Max < scale:
		return Dist{}, fmt.Errorf("max must not be less than the min of pareto, %v, is %v", scale, b.Max)
	}
	return bounded(Dist{kind: pareto, a: float64(scale), b: -1 / shape}, b)
}

// Empirical is one of values, each as likely: a value that is there twice comes
// twice as often. Nothing between two values is made up, as load scripts that
// pick from a list of recorded times do it. The list is copied.
func Empirical(values []time.Duration, b Bounds) (Dist, error) {
	if len(values) == 0 {
		return Dist{}, fmt.Errorf("empirical wants at least one duration")
	}
	for i, v := range values {
		if v < 0 {
			return Dist{}, fmt.Errorf("duration %d of empirical must not be negative, is %v", i+1, v)
		}
	}
	return bounded(Dist{kind: empirical, list: slices.Clone(values)}, b)
}

func bounded(d Dist, b Bounds) (Dist, error) {
	switch {
	case b.Min < 0:
		return Dist{}, fmt.Errorf("min must not be negative, is %v", b.Min)
	case b.Max < 0:
		return Dist{}, fmt.Errorf("max must not be negative, is %v", b.Max)
	case b.Max == 0:
		b.Max = math.MaxInt64
	case b.Max < b.Min:
		return Dist{}, fmt.Errorf("max (%v) must not be less than min (%v)", b.Max, b.Min)
	}
	d.bounds = b
	return d, nil
}

// IsZero tells that every value is 0.
func (d Dist) IsZero() bool { return d.bounds.Max == 0 }

// Draw returns one value, never negative. A constant takes nothing from r, which
// may then be nil.
func (d Dist) Draw(r *rand.Rand) time.Duration {
	switch d.kind {
	case constant:
		return d.bounds.Min
	case uniform:
		if d.bounds.Min == d.bounds.Max {
			return d.bounds.Min
		}
		return d.bounds.Min + time.Duration(r.Uint64N(uint64(d.bounds.Max-d.bounds.Min)+1)) //nolint:gosec // between the two
	case exponential:
		return d.within(d.a * r.ExpFloat64())
	case normal:
		return d.within(d.normal(r))
	case lognormal:
		return d.within(math.Exp(d.a + d.b*r.NormFloat64()))
	case pareto:
		// 1-[0,1) is never 0.
		return d.within(d.a * math.Pow(1-r.Float64(), d.b))
	case empirical:
		return min(max(d.list[r.IntN(len(d.list))], d.bounds.Min), d.bounds.Max)
	}
	return 0
}

// normal draws until the value is not negative, which with a mean of 0 or more
// is at least every second one.
func (d Dist) normal(r *rand.Rand) float64 {
	for range 64 {
		if v := d.a + d.b*r.NormFloat64(); v >= 0 {
			return v
		}
	}
	return d.a // once in 2⁶⁴ at most
}

// within makes a duration of nanoseconds, also of more than there are.
func (d Dist) within(ns float64) time.Duration {
	if ns >= float64(d.bounds.Max) {
		return d.bounds.Max
	}
	return max(time.Duration(ns), d.bounds.Min)
}
