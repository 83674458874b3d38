package curve

import (
	"math"
	"sort"
	"time"
)

// slack makes a count that is less than the end of a piece by rounding alone
// belong to the next one: 8 times the resolution of a float64. Otherwise an
// arrival due when a pulse comes on would come when the one before goes off.
const slack = 1 + 8*0x1p-53

// place is a piece and, where it is one of the cycle, which turn.
type place struct {
	piece *piece // nil: none
	index int    // in its list
	turn  int64
	cycle bool
}

// When returns the time from which on Count is more than n, rounded to the
// nanosecond: where the level is positive the time at which Count is n, and
// otherwise when it next becomes positive. So with arrivals numbered from 0 as
// many come before t as Count(t), and none while the level is 0. ok is false
// when Count never becomes more than n. A negative n counts as 0.
func (c Curve) When(n float64) (t time.Duration, ok bool) {
	if c.s == nil || math.IsNaN(n) {
		return 0, false
	}
	n = max(n, 0)
	at := n * slack
	i := sort.Search(len(c.s.once), func(i int) bool { return c.s.once[i].end > at })
	p := place{index: i}
	if i < len(c.s.once) {
		p.piece = &c.s.once[i]
	} else {
		p = c.s.turnOf(n)
	}
	return c.s.solve(p, n)
}

// Walk returns the times of counts that never fall, see Curve.When, in constant
// time each. It is for one goroutine. The zero value is of the zero Curve.
type Walk struct {
	s    *shape
	at   place
	last time.Duration
}

// Walk returns a walk from the beginning.
func (c Curve) Walk() Walk {
	w := Walk{s: c.s}
	if w.s != nil {
		w.at = w.s.first()
	}
	return w
}

// Next returns what When(n) returns, but never less than before: where counts are
// closer than a nanosecond, rounding could take When back by one. n must not be
// less than the n before, nor be NaN.
func (w *Walk) Next(n float64) (t time.Duration, ok bool) {
	if w.s == nil {
		return 0, false
	}
	for !w.at.cycle && w.at.piece != nil && n*slack >= w.at.piece.end {
		w.at = w.s.next(w.at)
	}
	if w.at.cycle && w.s.within(w.at.turn, n*slack) >= w.at.piece.end {
		w.at = w.s.turnOf(n)
	}
	t, ok = w.s.solve(w.at, n)
	if ok {
		w.last = max(w.last, t)
		t = w.last
	}
	return t, ok
}

// within returns the count within a turn of the cycle. Fused, it is rounded once
// however many turns there were.
func (s *shape) within(turn int64, n float64) float64 {
	return math.FMA(-float64(turn), s.per, n-s.leadCount)
}

// turnOf finds the place of n, which is not before the cycle.
func (s *shape) turnOf(n float64) place {
	if len(s.cycle) == 0 {
		return place{}
	}
	at := n * slack
	f := math.Floor((at - s.leadCount) / s.per)
	if f >= float64(s.turns) {
		return place{}
	}
	turn := max(0, int64(f))
	last := s.cycle[len(s.cycle)-1].end
	for turn > 0 && s.within(turn-1, at) < last { // the division was rounded up
		turn--
	}
	for s.within(turn, at) >= last { // or down
		turn++
	}
	in := s.within(turn, at)
	i := 0
	for s.cycle[i].end <= in { // a cycle has two pieces at most
		i++
	}
	return s.inCycle(i, turn)
}

func (s *shape) inCycle(i int, turn int64) place {
	if turn >= s.turns {
		return place{}
	}
	return place{piece: &s.cycle[i], index: i, turn: turn, cycle: true}
}

// first returns the first place.
func (s *shape) first() place {
	if len(s.once) > 0 {
		return place{piece: &s.once[0]}
	}
	return s.inCycle(0, 0)
}

// next returns the place after p, no piece at the end of time.
func (s *shape) next(p place) place {
	i := p.index + 1
	switch {
	case p.cycle && i < len(s.cycle):
		return s.inCycle(i, p.turn)
	case p.cycle:
		return s.inCycle(0, p.turn+1)
	case i < len(s.once):
		return place{piece: &s.once[i], index: i}
	case len(s.cycle) > 0:
		return s.inCycle(0, 0)
	}
	return place{}
}

// start returns when the piece at p begins.
func (s *shape) start(p place) time.Duration {
	if p.cycle {
		return s.lead + time.Duration(p.turn)*s.every + p.piece.start
	}
	return p.piece.start
}

// solve returns when n is reached in the piece at p, or when the next one with a
// level begins, if that is only at its end.
func (s *shape) solve(p place, n float64) (time.Duration, bool) {
	if p.piece == nil {
		return 0, false
	}
	in := n
	if p.cycle {
		in = s.within(p.turn, n)
	}
	if x := p.piece.when(in) + 0.5; x < float64(p.piece.length) {
		return s.start(p) + time.Duration(x), true
	}
	for p = s.next(p); p.piece != nil; p = s.next(p) {
		if p.piece.end > p.piece.before {
			return s.start(p), true
		}
	}
	return 0, false
}

// when returns the nanoseconds from the start of the piece at which the count is
// n. The quadratic equations are solved such that nothing cancels: for the second
// half of a falling line from its end, where all terms have one sign.
func (p *piece) when(n float64) float64 {
	r := n - p.before
	switch {
	case r <= 0:
		return 0
	case p.amp > 0:
		return p.wave.when(r)
	case p.slope == 0:
		return r / p.level * float64(time.Second)
	case p.slope > 0 || r < p.end-n:
		return 2 * r / (p.level + math.Sqrt(p.level*p.level+2*p.slope*r)) * float64(time.Second)
	}
	left := p.end - n
	if left <= 0 {
		return float64(p.length)
	}
	y := 2 * left / (p.to + math.Sqrt(p.to*p.to-2*p.slope*left))
	return max(0, float64(p.length)-y*float64(time.Second))
}
