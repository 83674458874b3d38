package curve

import (
	"math"
	"time"
)

// Whole returns the level at t rounded to the nearest whole number, halves up.
func (c Curve) Whole(t time.Duration) int { return whole(c.Level(t), math.MaxInt32) }

func whole(level float64, limit int) int {
	if level >= float64(limit) {
		return limit
	}
	n := int(level)
	if level-float64(n) >= 0.5 {
		n++
	}
	return n
}

// Crossing is a slot that comes on or goes off.
type Crossing struct {
	At   time.Duration
	Slot int // from 0
	On   bool
}

// Crossings yields when each slot of a number of sessions comes on and goes off.
// Slot i is on while the level is at least i + 0.5, that is while Whole is more
// than i: the last to come is the first to go. It is for one goroutine.
type Crossings struct {
	s        *shape
	limit    int
	at       place
	quarter  int           // of a sine: which of its three monotone parts
	from, to time.Duration // what is left of the monotone part, to excluded
	on       int           // slots that are on
	active   bool          // something crossed in this turn of the cycle
}

// Crossings returns the crossings of the slots below limit from the beginning, in
// order of time; of those at one time slots come in rising and go in falling order.
func (c Curve) Crossings(limit int) *Crossings {
	k := &Crossings{s: c.s, limit: max(0, limit)}
	if k.s != nil {
		k.at = k.s.first()
		k.span()
	}
	return k
}

// Next returns the next crossing, ok false when there are no more. It looks
// ahead no farther than it must.
func (k *Crossings) Next() (next Crossing, ok bool) {
	for k.at.piece != nil {
		if w := k.whole(k.from); w != k.on {
			return k.cross(w > k.on), true
		}
		last := k.whole(k.to - 1)
		if last == k.on {
			k.advance()
			continue
		}
		// The first nanosecond at which the next slot differs, by halving: the
		// level is monotone from here to there, and Whole decides, so that both
		// always agree.
		rises, low, high := last > k.on, k.from, k.to-1
		for high-low > 1 {
			middle := low + (high-low)/2
			if w := k.whole(middle); w > k.on && rises || w < k.on && !rises {
				high = middle
			} else {
				low = middle
			}
		}
		k.from = high
	}
	return Crossing{}, false
}

func (k *Crossings) cross(on bool) Crossing {
	k.active = true
	if on {
		k.on++
		return Crossing{At: k.from, Slot: k.on - 1, On: true}
	}
	k.on--
	return Crossing{At: k.from, Slot: k.on}
}

func (k *Crossings) whole(t time.Duration) int {
	return whole(k.at.piece.levelAt(t-k.s.start(k.at)), k.limit)
}

// advance goes to the next monotone part. A turn in which nothing crossed is the
// end, as all others are like it.
func (k *Crossings) advance() {
	if k.at.piece.amp > 0 && k.quarter < 2 {
		k.quarter++
		k.span()
		return
	}
	turn, cycle := k.at.turn, k.at.cycle
	k.at = k.s.next(k.at)
	k.quarter = 0
	if k.at.piece == nil {
		return
	}
	if cycle && k.at.turn != turn {
		if !k.active {
			k.at = place{}
			return
		}
		k.active = false
	}
	k.span()
}

// span sets the ends of a monotone part: a sine rises for a quarter, falls for
// two, and rises for the last one.
func (k *Crossings) span() {
	start, length := k.s.start(k.at), k.at.piece.length
	k.from, k.to = start, start+length
	if k.at.piece.amp == 0 {
		return
	}
	switch k.quarter {
	case 0:
		k.to = start + length/4
	case 1:
		k.from, k.to = start+length/4, start+length-length/4
	default:
		k.from = start + length - length/4
	}
}
