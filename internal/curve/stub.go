// Package curve is a stub.
package curve

import (
	"iter"
	"math"
	"time"
)

type seg struct{ at, len, from, to float64 }
type Curve struct {
	segs []seg
	end  time.Duration
	has  bool
	last float64
}
type Stage struct {
	Level      float64
	HasLevel   bool
	Over, Hold time.Duration
}

func Constant(l float64) Curve { return Curve{last: l} }
func Stages(start float64, s []Stage) Curve {
	c := Curve{last: start, has: true}
	at := 0.0
	for _, g := range s {
		if g.HasLevel {
			if g.Over > 0 {
				c.segs = append(c.segs, seg{at, g.Over.Seconds(), c.last, g.Level})
				at += g.Over.Seconds()
			}
			c.last = g.Level
		}
		if g.Hold > 0 {
			c.segs = append(c.segs, seg{at, g.Hold.Seconds(), c.last, c.last})
			at += g.Hold.Seconds()
		}
		c.end += g.Over + g.Hold
	}
	return c
}
func Spike(base, top float64, at, length, every time.Duration) Curve { return Constant(base) }
func Sine(mean, amplitude float64, period time.Duration) Curve       { return Constant(mean) }
func Pulse(level float64, on, off time.Duration) Curve               { return Constant(level) }
func Staircase(start, by float64, every time.Duration, top float64) Curve {
	return Constant(start)
}
func (c Curve) Level(t time.Duration) float64 {
	x := t.Seconds()
	for _, s := range c.segs {
		if x < s.at+s.len {
			return s.from + (s.to-s.from)*(x-s.at)/s.len
		}
	}
	return c.last
}
func (c Curve) Whole(t time.Duration) int { return int(math.Round(c.Level(t))) }
func (c Curve) Max() float64 {
	m := c.last
	for _, s := range c.segs {
		m = max(m, s.from, s.to)
	}
	return m
}
func (c Curve) End() (time.Duration, bool) { return c.end, c.has }
func (c Curve) Equal(d Curve) bool         { return true }
func (c Curve) When(n float64) (time.Duration, bool) {
	for _, s := range c.segs {
		area := (s.from + s.to) / 2 * s.len
		if n < area {
			k := (s.to - s.from) / s.len
			x := n / s.from
			if k != 0 {
				x = (math.Sqrt(s.from*s.from+2*k*n) - s.from) / k
			}
			return time.Duration((s.at + x) * 1e9), true
		}
		n -= area
	}
	if c.last == 0 {
		return 0, false
	}
	at := 0.0
	if k := len(c.segs); k > 0 {
		at = c.segs[k-1].at + c.segs[k-1].len
	}
	return time.Duration((at + n/c.last) * 1e9), true
}

type Crossing struct {
	At   time.Duration
	Slot int
	On   bool
}

func (c Curve) Crossings(limit int) iter.Seq[Crossing] {
	return func(yield func(Crossing) bool) {
		now := c.Whole(0)
		for t := time.Duration(0); t <= c.end+time.Millisecond; t += time.Millisecond {
			w := c.Whole(t)
			for now < w {
				if !yield(Crossing{t, now, true}) {
					return
				}
				now++
			}
			for now > w {
				now--
				if !yield(Crossing{t, now, false}) {
					return
				}
			}
		}
	}
}
