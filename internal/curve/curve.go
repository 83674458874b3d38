// Package curve describes a level over time, such as arrivals per second or a
// number of sessions, with its integral and the inverse of that in closed form, so
// that a load of any shape is exact after any length of time.
package curve

import (
	"math"
	"slices"
	"sort"
	"time"
)

// Curve is a level over time, from 0 on. It is never negative. The zero value is 0
// for ever. It is immutable and safe for concurrent use.
type Curve struct {
	lead  []piece // without gaps, from 0 on
	cycle []piece // repeated for ever after the lead; nil: the level stays at last
	last  float64

	start  time.Duration // length of the lead
	before float64       // integral over the lead
	period time.Duration // length of the cycle
	each   float64       // integral over one cycle
	staged bool
}

// piece is a part of a curve: a straight line, or one swing of a sine around its mean.
type piece struct {
	at, length time.Duration // at counts from the beginning of the lead or the cycle
	from, to   float64       // levels at the ends; of a swing both are the mean
	swing      float64       // amplitude; 0: a straight line
	count      float64       // integral from the beginning of the lead or the cycle to at
}

// Stage is a part of Stages: a ramp to Level over Over, when HasLevel, then Hold.
type Stage struct {
	Level      float64
	HasLevel   bool
	Over, Hold time.Duration
}

// Constant is always at level.
func Constant(level float64) Curve { return Curve{last: level} }

// Stages goes from start through stages, and then stays where it is.
func Stages(start float64, stages []Stage) Curve {
	c := Curve{last: start, staged: true}
	for _, s := range stages {
		if s.HasLevel {
			c.line(s.Over, c.last, s.Level)
			c.last = s.Level
		}
		c.line(s.Hold, c.last, c.last)
	}
	return c
}

// Spike is at base, and from at on at top for length, which is repeated every every;
// 0 is once. every is not less than length.
func Spike(base, top float64, at, length, every time.Duration) Curve {
	c := Curve{last: base}
	c.line(at, base, base)
	if every == 0 {
		c.line(length, top, top)
		return c
	}
	c.repeat(line(length, top, top), line(every-length, base, base))
	return c
}

// Sine swings around mean, upwards first. The amplitude is not greater than the mean.
func Sine(mean, amplitude float64, period time.Duration) Curve {
	c := Curve{last: mean}
	c.repeat(piece{length: period, from: mean, to: mean, swing: amplitude})
	return c
}

// Pulse is at level for on, then at 0 for off, and so on.
func Pulse(level float64, on, off time.Duration) Curve {
	c := Curve{last: level}
	c.repeat(line(on, level, level), line(off, 0, 0))
	return c
}

// maxSteps bounds the pieces of a staircase.
const maxSteps = 1_000_000

// Staircase begins at start and rises by by every every, until top.
func Staircase(start, by float64, every time.Duration, top float64) Curve {
	c := Curve{last: start}
	for by > 0 && c.last < top && len(c.lead) < maxSteps && c.start < math.MaxInt64-every {
		c.line(every, c.last, c.last)
		c.last = min(c.last+by, top)
	}
	return c
}

func line(length time.Duration, from, to float64) piece {
	return piece{length: length, from: from, to: to}
}

// line adds a straight line to the lead.
func (c *Curve) line(length time.Duration, from, to float64) {
	if length <= 0 {
		return
	}
	p := piece{at: c.start, length: length, from: from, to: to, count: c.before}
	c.lead = append(c.lead, p)
	c.start += length
	c.before = p.end()
}

// repeat makes pieces the cycle.
func (c *Curve) repeat(pieces ...piece) {
	for _, p := range pieces {
		if p.length <= 0 {
			continue
		}
		p.at, p.count = c.period, c.each
		c.cycle = append(c.cycle, p)
		c.period += p.length
		c.each = p.end()
	}
}

// Equal reports whether both are the same at all times, and made alike.
func (c Curve) Equal(o Curve) bool {
	return slices.Equal(c.lead, o.lead) && slices.Equal(c.cycle, o.cycle) && c.last == o.last && c.staged == o.staged
}

// End returns how long the stages of Stages take; ok is false for other curves.
func (c Curve) End() (length time.Duration, ok bool) { return c.start, c.staged }

// Max returns the highest level.
func (c Curve) Max() float64 {
	most := 0.0
	if c.cycle == nil {
		most = c.last
	}
	for _, pieces := range [][]piece{c.lead, c.cycle} {
		for i := range pieces {
			most = max(most, pieces[i].from+pieces[i].swing, pieces[i].to)
		}
	}
	return most
}

// at returns the piece that holds t, the time of the beginning of its list, and the
// integral up to there; nil after the end of a curve without a cycle.
func (c *Curve) at(t time.Duration) (p *piece, since time.Duration, before float64) {
	if t < c.start {
		return find(c.lead, t), 0, 0
	}
	if c.cycle == nil {
		return nil, c.start, c.before
	}
	lap := (t - c.start) / c.period
	since = c.start + lap*c.period
	return find(c.cycle, t-since), since, c.before + float64(lap)*c.each
}

// find returns the piece that holds t, which is in one of them.
func find(pieces []piece, t time.Duration) *piece {
	i := sort.Search(len(pieces), func(i int) bool { return pieces[i].at > t })
	return &pieces[i-1]
}

// Level returns the level at t, which is not negative. Where it jumps that is the
// level after the jump.
func (c Curve) Level(t time.Duration) float64 {
	p, since, _ := c.at(t)
	if p == nil {
		return c.last
	}
	return p.level((t - since - p.at).Seconds())
}

// Whole returns the level at t as a whole number, rounded, halves upwards.
func (c Curve) Whole(t time.Duration) int { return whole(c.Level(t)) }

func whole(level float64) int { return int(math.Floor(level + half)) }

const half = 0.5

// Count returns the integral of the level from 0 to t, in level seconds.
func (c Curve) Count(t time.Duration) float64 {
	p, since, before := c.at(t)
	if p == nil {
		return before + c.last*(t-since).Seconds()
	}
	return before + p.count + p.integral((t-since-p.at).Seconds())
}

// When returns the time at which the integral exceeds n; ok is false when it never
// does. Times beyond what a Duration holds are its greatest value.
func (c Curve) When(n float64) (t time.Duration, ok bool) {
	w := c.Walk()
	return w.Next(n)
}

// Walker is When for numbers that do not fall, one after the other. It is not safe
// for concurrent use.
type Walker struct {
	c     *Curve
	i     int // of the piece that the last number was in
	lap   int64
	cycle bool // the piece is one of the cycle
}

// Walk begins at the beginning.
func (c *Curve) Walk() Walker {
	return Walker{c: c, cycle: len(c.lead) == 0}
}

// Next is When.
func (w *Walker) Next(n float64) (t time.Duration, ok bool) {
	c := w.c
	if !w.cycle {
		for ; w.i < len(c.lead); w.i++ {
			if p := &c.lead[w.i]; n < p.end() {
				return duration(p.at, p.when(n-p.count)), true
			}
		}
		w.cycle, w.i = true, 0
	}
	n -= c.before
	if c.cycle == nil {
		if c.last <= 0 {
			return 0, false
		}
		return duration(c.start, max(n, 0)/c.last), true
	}
	if c.each <= 0 {
		return 0, false
	}
	if lap := int64(n / c.each); lap > w.lap+1 {
		w.lap, w.i = lap-1, 0 // many laps without one; the loop does the rest
	}
	for {
		rest := n - float64(w.lap)*c.each
		for ; w.i < len(c.cycle); w.i++ {
			if p := &c.cycle[w.i]; rest < p.end() {
				return duration(c.start+time.Duration(w.lap)*c.period+p.at, p.when(max(rest-p.count, 0))), true
			}
		}
		w.lap, w.i = w.lap+1, 0
		if w.lap > int64((math.MaxInt64-c.start)/c.period)-1 {
			return math.MaxInt64, true
		}
	}
}

// duration is at and s seconds, rounded down, or the greatest there is.
func duration(at time.Duration, s float64) time.Duration {
	ns := s * float64(time.Second)
	if ns >= float64(math.MaxInt64-at) {
		return math.MaxInt64
	}
	return at + time.Duration(ns)
}

func (p *piece) level(x float64) float64 {
	length := p.length.Seconds()
	if p.swing != 0 {
		return p.from + p.swing*math.Sin(2*math.Pi*x/length)
	}
	return p.from + (p.to-p.from)*(x/length)
}

// integral is that from the beginning of the piece over x seconds.
func (p *piece) integral(x float64) float64 {
	length := p.length.Seconds()
	if p.swing != 0 {
		s := math.Sin(math.Pi * x / length) // 1 - cos(2a) = 2 sin²(a), without cancellation
		return p.from*x + p.swing*length/math.Pi*s*s
	}
	return x * (p.from + (p.to-p.from)*(x/length)*half)
}

// end is the integral up to the end of the piece.
func (p *piece) end() float64 {
	length := p.length.Seconds()
	return p.count + length*(p.from+p.to)*half
}

// when is the inverse of integral: how many seconds into the piece it exceeds n.
func (p *piece) when(n float64) float64 {
	length := p.length.Seconds()
	switch {
	case p.swing != 0:
		return p.whenSine(n, length)
	case p.from == p.to:
		return min(n/p.from, length)
	}
	slope := (p.to - p.from) / length
	// Of the two forms of a quadratic's root the one that does not cancel.
	root := math.Sqrt(max(p.from*p.from+2*slope*n, 0))
	if p.from+root == 0 {
		return 0
	}
	return min(2*n/(p.from+root), length)
}

// whenSine finds the root by Newton's steps, kept within a bracket.
func (p *piece) whenSine(n, length float64) float64 {
	low, high := 0.0, length
	x := min(n/p.from, length)
	for range 100 {
		gap := p.integral(x) - n
		if gap > 0 {
			high = x
		} else {
			low = x
		}
		next := x - gap/p.level(x)
		if !(next > low && next < high) { // also when the level is 0 there
			next = low + (high-low)*half
		}
		const enough = 1e-11 // of a second: below what a Duration shows
		if math.Abs(next-x) < enough || high-low < enough {
			return next
		}
		x = next
	}
	return x
}
