package curve

import (
	"iter"
	"time"
)

// Crossing is a moment at which a slot is switched on or off.
type Crossing struct {
	At   time.Duration
	Slot int // from 0
	On   bool
}

// Crossings yields, in order of time, when the slots below limit are switched, for a
// curve that is a number of sessions in Stages: slot i is on while the level is at
// least i + 0.5. Those that are on at the beginning are left out: Whole(0) tells them.
func (c Curve) Crossings(limit int) iter.Seq[Crossing] {
	return func(yield func(Crossing) bool) {
		now := min(c.Whole(0), limit)
		// move switches slots one after the other until n are on; at tells when each is.
		move := func(n int, at func(slot int) time.Duration) bool {
			for ; now < min(n, limit); now++ {
				if !yield(Crossing{At: at(now), Slot: now, On: true}) {
					return false
				}
			}
			for ; now > n; now-- {
				if !yield(Crossing{At: at(now - 1), Slot: now - 1}) {
					return false
				}
			}
			return true
		}
		for i := range c.lead {
			p := &c.lead[i]
			if !move(whole(p.from), func(int) time.Duration { return p.at }) { // a jump
				return
			}
			ramp := func(slot int) time.Duration {
				share := (float64(slot) + half - p.from) / (p.to - p.from)
				return p.at + time.Duration(share*float64(p.length))
			}
			if !move(whole(p.to), ramp) {
				return
			}
		}
		move(whole(c.last), func(int) time.Duration { return c.start })
	}
}
