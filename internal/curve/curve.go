// Package curve describes the level of a load over time, arrivals per second or
// a number of sessions, and answers exactly: how much has come until a time, and
// when so much has come. It knows no clock.
package curve

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// MaxLevel is the highest level of a curve. Its square and its integral
	// over all time must stay far inside a float64.
	MaxLevel = 1e12
	// MaxPieces is how many stages or steps a curve may have.
	MaxPieces = 10_000
	// forever is the end of all pieces, 292 years.
	forever time.Duration = math.MaxInt64
)

// Curve is a level over time, from 0 on and for ever. The zero value is the
// level 0. It is immutable and safe for concurrent use. Where it jumps, the new
// level holds from that instant on. Times are exact to the nanosecond for the
// first hundred days, and thereafter to the resolution of a float64; a curve
// that repeats itself counts its periods in whole numbers, so that nothing adds up.
type Curve struct{ s *shape }

// Stage is one stage of Stages.
type Stage struct {
	Level    float64       // the level to go to, when HasLevel
	HasLevel bool          // without, the level stays for Over and Hold
	Over     time.Duration // how long the way to Level takes, in a straight line; 0 is a jump
	Hold     time.Duration // how long the level then stays
}

// Constant returns the curve of one level. A level that is negative or no number
// counts as 0, one above MaxLevel as MaxLevel.
func Constant(level float64) Curve {
	return build([]part{flat(sane(level), forever)}, nil)
}

// Stages returns the curve that begins at start and goes through the stages. The
// last level stays for ever.
func Stages(start float64, stages []Stage) (Curve, error) {
	if err := checkLevel("start", start); err != nil {
		return Curve{}, err
	}
	if len(stages) > MaxPieces {
		return Curve{}, fmt.Errorf("%d stages: at most %d", len(stages), MaxPieces)
	}
	parts := make([]part, 0, 2*len(stages)+1)
	level, total := start, time.Duration(0)
	for i, st := range stages {
		if st.Over < 0 || st.Hold < 0 {
			return Curve{}, fmt.Errorf("stage %d: a negative duration", i+1)
		}
		total = later(later(total, st.Over), st.Hold)
		to := level
		if st.HasLevel {
			if err := checkLevel("level", st.Level); err != nil {
				return Curve{}, fmt.Errorf("stage %d: %w", i+1, err)
			}
			to = st.Level
		}
		parts = append(parts, part{length: st.Over, level: level, to: to}, flat(to, st.Hold))
		level = to
	}
	c := build(append(parts, flat(level, forever)), nil)
	c.s.end, c.s.staged = total, true
	return c, nil
}

// Spike returns the curve that is at base, and from at on at top for length;
// again every so often, counted from start to start, or only once when every is
// 0. top may be less than base.
func Spike(base, top float64, at, length, every time.Duration) (Curve, error) {
	if err := checkLevel("base", base); err != nil {
		return Curve{}, err
	}
	if err := checkLevel("top", top); err != nil {
		return Curve{}, err
	}
	switch {
	case at < 0 || length <= 0 || every < 0:
		return Curve{}, fmt.Errorf("a spike at %v for %v every %v: the length must be positive, the others not negative", at, length, every)
	case every == 0:
		return build([]part{flat(base, at), flat(top, length), flat(base, forever)}, nil), nil
	case every < length:
		return Curve{}, fmt.Errorf("a spike of %v every %v: it would begin again before its end", length, every)
	}
	return build([]part{flat(base, at)}, []part{flat(top, length), flat(base, every-length)}), nil
}

// Sine returns the curve that swings around mean by amplitude, upwards first.
func Sine(mean, amplitude float64, period time.Duration) (Curve, error) {
	if err := checkLevel("mean", mean); err != nil {
		return Curve{}, err
	}
	if err := checkLevel("top", mean+amplitude); err != nil {
		return Curve{}, err
	}
	if !(amplitude >= 0 && amplitude <= mean) {
		return Curve{}, fmt.Errorf("amplitude %g: must be from 0 to the mean %g, a level is never negative", amplitude, mean)
	}
	if period <= 0 {
		return Curve{}, fmt.Errorf("period %v: must be positive", period)
	}
	return build(nil, []part{{length: period, level: mean, to: mean, amp: amplitude}}), nil
}

// Pulse returns the curve that is at level for on, then at 0 for off, and so on.
func Pulse(level float64, on, off time.Duration) (Curve, error) {
	if err := checkLevel("level", level); err != nil {
		return Curve{}, err
	}
	if on <= 0 || off < 0 {
		return Curve{}, fmt.Errorf("a pulse of %v on and %v off: on must be positive, off not negative", on, off)
	}
	return build(nil, []part{flat(level, on), flat(0, off)}), nil
}

// Staircase returns the curve that begins at start and rises by by every so
// often until it is at top, where it stays. The last step may be a smaller one.
func Staircase(start, by float64, every time.Duration, top float64) (Curve, error) {
	if err := checkLevel("start", start); err != nil {
		return Curve{}, err
	}
	if err := checkLevel("top", top); err != nil {
		return Curve{}, err
	}
	if err := checkLevel("step", by); err != nil {
		return Curve{}, err
	}
	if by == 0 || top < start || every <= 0 {
		return Curve{}, fmt.Errorf("a staircase from %g by %g every %v to %g: it must rise", start, by, every, top)
	}
	// The small part of a step that is left over by rounding is none.
	steps := math.Ceil((top-start)/by - 1e-9)
	if steps >= MaxPieces {
		return Curve{}, fmt.Errorf("a staircase of %.0f steps: at most %d", steps, MaxPieces)
	}
	var parts []part
	for i := range int(steps) {
		parts = append(parts, flat(start+float64(i)*by, every))
	}
	return build(append(parts, flat(top, forever)), nil), nil
}

// After returns the curve that stays at level for d and then is c from its
// beginning. It takes levels as Constant does; without a positive d it is c.
func (c Curve) After(d time.Duration, level float64) Curve {
	if d <= 0 {
		return c
	}
	once, cycle := c.parts()
	if len(once)+len(cycle) == 0 {
		once = []part{flat(0, forever)}
	}
	n := build(slices.Insert(once, 0, flat(sane(level), d)), cycle)
	if end, ok := c.End(); ok {
		n.s.end, n.s.staged = later(end, d), true
	}
	return n
}

// Scale returns the curve with all levels multiplied by f, which counts as 0
// when it is negative or no number. No level comes above MaxLevel.
func (c Curve) Scale(f float64) Curve {
	f = sane(f)
	once, cycle := c.parts()
	for _, parts := range [][]part{once, cycle} {
		for i := range parts {
			p := &parts[i]
			by := f
			if highest := max(p.level+p.amp, p.to); highest*f > MaxLevel {
				by = MaxLevel / highest
			}
			p.level, p.to, p.amp = p.level*by, p.to*by, p.amp*by
		}
	}
	n := build(once, cycle)
	if end, ok := c.End(); ok {
		n.s.end, n.s.staged = end, true
	}
	return n
}

// Level returns the level at t, 0 before the beginning.
func (c Curve) Level(t time.Duration) float64 {
	p, x, _ := c.at(t)
	if p == nil {
		return 0
	}
	return p.levelAt(x)
}

// Count returns the integral of the level from 0 to t, the level being per second.
func (c Curve) Count(t time.Duration) float64 {
	p, x, turn := c.at(t)
	switch {
	case p == nil:
		return 0
	case turn < 0:
		return p.count(x)
	}
	// Rounding must not take it past the start of the next turn.
	return min(c.s.before(turn)+p.count(x), c.s.before(turn+1))
}

// Max returns the highest level, which a ramp may only approach.
func (c Curve) Max() float64 {
	var highest float64
	if c.s != nil {
		for _, list := range [][]piece{c.s.once, c.s.cycle} {
			for i := range list {
				highest = max(highest, list[i].level+list[i].amp, list[i].to)
			}
		}
	}
	return highest
}

// End returns the length of all stages, ok false for a curve that was not made
// by Stages. After counts in.
func (c Curve) End() (end time.Duration, ok bool) {
	if c.s == nil {
		return 0, false
	}
	return c.s.end, c.s.staged
}

// Equal reports whether both curves were made of the same pieces.
func (c Curve) Equal(d Curve) bool {
	if c.s == nil || d.s == nil {
		return c.s == d.s
	}
	once, cycle := c.parts()
	otherOnce, otherCycle := d.parts()
	return c.s.end == d.s.end && c.s.staged == d.s.staged && slices.Equal(once, otherOnce) && slices.Equal(cycle, otherCycle)
}

func checkLevel(what string, level float64) error {
	if !(level >= 0 && level <= MaxLevel) {
		return fmt.Errorf("%s %g: must be from 0 to %g", what, level, float64(MaxLevel))
	}
	return nil
}

func sane(level float64) float64 {
	if !(level > 0) {
		return 0
	}
	return min(level, MaxLevel)
}

// later adds durations that are not negative, saturating.
func later(a, b time.Duration) time.Duration {
	if b > forever-a {
		return forever
	}
	return a + b
}
