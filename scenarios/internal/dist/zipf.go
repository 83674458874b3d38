package dist

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Zipf draws ranks from 0 to n-1 where rank k has a probability proportional to
// 1/(k+1)^s. It is immutable and safe for concurrent use.
//
// It is the rejection-inversion of W. Hörmann and G. Derflinger,
// "Rejection-inversion to generate variates from monotone discrete
// distributions", ACM TOMACS 6(3), 1996, §3 and §4: constant time whatever n is,
// no table, about 1.1 draws a rank.
// math/rand/v2's has the same method but wants s > 1, where the s of
// most use, 0.99, is not.
type Zipf struct {
	n, s float64
	// The area under the hat, H(x) = ∫ x^-s, at both ends of its range.
	first, last float64
	// squeeze is how near to the whole number above x may be for acceptance
	// without a look at the hat.
	squeeze float64
}

// Limits of Zipf: beyond the first, ranks are not exact in a float64; beyond the
// second all but rank 0 is as good as never drawn.
const (
	maxRanks = 1 << 52
	maxSkew  = 20
)

// NewZipf is for n ranks with the exponent s, more than 0: with 1 the first rank
// comes twice as often as the second, near 0 all come alike.
func NewZipf(n uint64, s float64) (Zipf, error) {
	switch {
	case n == 0 || n > maxRanks:
		return Zipf{}, fmt.Errorf("zipf wants 1 to 2^52 ranks, not %d", n)
	case !(s > 0 && s <= maxSkew):
		return Zipf{}, fmt.Errorf("s of zipf must be more than 0 and at most %d, is %v", maxSkew, s)
	}
	z := Zipf{n: float64(n), s: s}
	z.first = z.area(1.5) - 1
	z.last = z.area(z.n + 0.5)
	z.squeeze = 2 - z.inverse(z.area(2.5)-z.height(2))
	return z, nil
}

// Rank draws one.
func (z *Zipf) Rank(r *rand.Rand) uint64 {
	for {
		u := z.last + r.Float64()*(z.first-z.last)
		x := z.inverse(u)
		// Rounding may lead a little out of the range at its ends.
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.squeeze || u >= z.area(k+0.5)-z.height(k) {
			return uint64(k) - 1
		}
	}
}

// height is x^-s.
func (z *Zipf) height(x float64) float64 { return math.Exp(-z.s * math.Log(x)) }

// area is an integral of height: (x^(1-s) - 1)/(1-s), or log x where s is 1.
func (z *Zipf) area(x float64) float64 {
	l := math.Log(x)
	return expm1Ratio((1-z.s)*l) * l
}

// inverse is the x of which area is u.
func (z *Zipf) inverse(u float64) float64 {
	t := max(u*(1-z.s), -1) // rounding could take it below
	return math.Exp(log1pRatio(t) * u)
}

// expm1Ratio is (e^x - 1)/x, with the limit at 0.
func expm1Ratio(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Expm1(x) / x
	}
	return 1 + x/2*(1+x/3)
}

// log1pRatio is log(1+x)/x, with the limit at 0.
func log1pRatio(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Log1p(x) / x
	}
	return 1 - x*(1.0/2-x/3)
}
