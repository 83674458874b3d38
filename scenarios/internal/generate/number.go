package generate

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
)

// safe is the last integer that every JSON implementation keeps (RFC 8259 §6).
const safe = 1<<53 - 1

// modest is how far from its bound, or from 0, a number is drawn that is not
// bounded on both sides: servers sleep, allocate and count by their arguments.
const modest = 100

// absurd is where a bound says nothing but how numbers are stored: schema
// builders write ±(2^53−1) for any integer.
const absurd = 1<<31 - 1

// number draws a number that all of flat allow.
func (m *maker) number(flat []*node, whole bool) (any, bool) {
	var low, high bound
	var multiple *big.Rat
	for _, n := range flat {
		low, high = tighter(low, n.low, 1), tighter(high, n.high, -1)
		multiple = common(multiple, n.multiple)
	}
	if whole {
		multiple = common(multiple, big.NewRat(1, 1))
	}
	if m.plain && multiple == nil {
		if v, ok := plainest(low, high); ok {
			return v, true
		}
	}
	narrow := low.value != nil && high.value != nil && new(big.Rat).Sub(high.value, low.value).Cmp(big.NewRat(10, 1)) < 0
	for _, step := range m.stepsOf(multiple, narrow) {
		least, most, ok := multiples(low, high, step, whole)
		if !ok {
			continue
		}
		for range 8 {
			v := new(big.Rat).SetInt(m.between(least, most, step))
			v.Mul(v, step)
			digits, exact := v.FloatPrec()
			if !exact || digits > 300 {
				break
			}
			if multiple == nil || dividesAsFloat(v, multiple) {
				return json.Number(v.FloatString(digits)), true
			}
		}
	}
	return nil, false
}

// stepsOf are the distances between the numbers to draw from: multiple when
// there is one, else a few decimals, and more where the bounds are narrow.
func (m *maker) stepsOf(multiple *big.Rat, narrow bool) []*big.Rat {
	if multiple != nil {
		return []*big.Rat{multiple}
	}
	steps := make([]*big.Rat, 0, 8)
	for _, d := range []int64{1, 10, 100} {
		steps = append(steps, big.NewRat(1, d))
	}
	// Most members that are declared as numbers count something; those between 0
	// and 1 do not.
	if narrow || m.pick(4) == 3 {
		slices.Reverse(steps)
	}
	for _, digits := range []int64{3, 6, 12, 24, 300} {
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(digits), nil)
		steps = append(steps, new(big.Rat).SetFrac(big.NewInt(1), power))
	}
	return steps
}

// multiples are the first and the last factor of step within the bounds; nil
// where there is no bound. False: there is none.
func multiples(low, high bound, step *big.Rat, whole bool) (least, most *big.Int, ok bool) {
	one := big.NewInt(1)
	if low.value != nil {
		q := new(big.Rat).Quo(low.value, step)
		least = floor(q)
		if !q.IsInt() || low.open {
			least.Add(least, one)
		}
	}
	if high.value != nil {
		q := new(big.Rat).Quo(high.value, step)
		most = floor(q)
		if q.IsInt() && high.open {
			most.Sub(most, one)
		}
	}
	if whole {
		last := floor(new(big.Rat).Quo(big.NewRat(safe, 1), step))
		first := new(big.Int).Neg(last)
		if (least == nil || least.Cmp(first) < 0) && (most == nil || most.Cmp(first) >= 0) {
			least = first
		}
		if (most == nil || most.Cmp(last) > 0) && (least == nil || least.Cmp(last) <= 0) {
			most = last
		}
	}
	return least, most, least == nil || most == nil || least.Cmp(most) <= 0
}

// between draws a factor of step from least to most.
func (m *maker) between(least, most *big.Int, step *big.Rat) *big.Int {
	if m.plain { // 1, or once the step, moved into the bounds
		k := big.NewInt(1)
		if step.Cmp(big.NewRat(1, 1)) < 0 {
			k = floor(new(big.Rat).Inv(step))
		}
		if least != nil && k.Cmp(least) < 0 {
			k.Set(least)
		}
		if most != nil && k.Cmp(most) > 0 {
			k.Set(most)
		}
		return k
	}
	limit := floor(new(big.Rat).Quo(big.NewRat(absurd, 1), step))
	low, high := least, most
	if least != nil && least.Sign() < 0 && least.CmpAbs(limit) >= 0 {
		low = nil
	}
	if most != nil && most.Sign() > 0 && most.Cmp(limit) >= 0 {
		high = nil
	}
	span := floor(new(big.Rat).Quo(big.NewRat(modest, 1), step))
	span.Add(span, big.NewInt(1))
	switch {
	case low == nil && high == nil:
		low, high = new(big.Int), span
	case low == nil:
		low = new(big.Int).Sub(high, span)
		if high.Sign() >= 0 && low.Sign() < 0 {
			low.SetInt64(0)
		}
	case high == nil:
		high = new(big.Int).Add(low, span)
	case m.r.IntN(8) == 0: // the ends are where servers fail
		return []*big.Int{low, high}[m.r.IntN(2)]
	}
	if least != nil && low.Cmp(least) < 0 {
		low = least
	}
	if most != nil && high.Cmp(most) > 0 {
		high = most
	}
	width := new(big.Int).Sub(high, low)
	k := new(big.Int)
	if width.IsInt64() && width.Int64() < math.MaxInt64 {
		k.SetInt64(m.r.Int64N(width.Int64() + 1))
	} else {
		k.SetUint64(m.r.Uint64())
		k.Mod(k, width)
	}
	return k.Add(k, low)
}

// plainest is 1 moved to a closed bound.
func plainest(low, high bound) (json.Number, bool) {
	v := big.NewRat(1, 1)
	if low.value != nil && v.Cmp(low.value) <= 0 {
		if low.open {
			return "", false
		}
		v = low.value
	}
	if high.value != nil && v.Cmp(high.value) >= 0 {
		if high.open || low.value != nil && high.value.Cmp(low.value) < 0 {
			return "", false
		}
		v = high.value
	}
	digits, exact := v.FloatPrec()
	return json.Number(v.FloatString(digits)), exact
}

// common is the least positive number that both a and b divide; nil stands for
// no condition.
func common(a, b *big.Rat) *big.Rat {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	// Of reduced fractions: lcm of the numerators by gcd of the denominators.
	gcd := new(big.Int).GCD(nil, nil, a.Num(), b.Num())
	lcm := new(big.Int).Mul(a.Num(), new(big.Int).Quo(b.Num(), gcd))
	return new(big.Rat).SetFrac(lcm, new(big.Int).GCD(nil, nil, a.Denom(), b.Denom()))
}

func floor(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom()) // Euclidean: down, as the denominator is positive
}

// dividesAsFloat tells that validators that divide float64 agree too.
func dividesAsFloat(v, step *big.Rat) bool {
	if step.IsInt() {
		return true
	}
	a, _ := v.Float64()
	b, _ := step.Float64()
	return b != 0 && a/b == math.Trunc(a/b)
}
