package curve

import (
	"math"
	"sort"
	"time"
)

// shape is a curve laid out for reading: pieces that come once, and then a cycle
// of pieces for ever. Where there is no cycle, the last piece lasts until forever.
type shape struct {
	once, cycle []piece
	lead        time.Duration // where the cycle begins
	leadCount   float64       // the count there
	every       time.Duration // the length of a turn of the cycle
	per         float64       // the count of one
	turns       int64         // turns that end before forever

	end    time.Duration // see Curve.End
	staged bool
}

// piece is a straight line or, with amp, one period of a sine. Start and counts
// are from the beginning of the curve, or of the turn.
type piece struct {
	start, length time.Duration
	level, to     float64 // at the start, and what the end approaches; of a sine the mean
	slope         float64 // per second
	before, end   float64 // count at the start and at the end
	amp           float64
	wave          *wave // with amp
}

// part is what a piece is built from.
type part struct {
	length         time.Duration
	level, to, amp float64
}

func flat(level float64, length time.Duration) part {
	return part{length: length, level: level, to: level}
}

// build lays out parts, leaving out those without length.
func build(once, cycle []part) Curve {
	s := &shape{}
	s.once, s.lead, s.leadCount = lay(once)
	if s.lead == forever || len(cycle) == 0 {
		return Curve{s}
	}
	s.cycle, s.every, s.per = lay(cycle)
	if s.turns = int64((forever - s.lead) / s.every); s.per == 0 || s.turns == 0 {
		// Nothing ever comes, which no search for a turn would find.
		s.cycle = nil
		s.once, s.lead, s.leadCount = lay(append(once, flat(0, forever)))
	}
	return Curve{s}
}

// lay sets parts one after the other and returns where they end. The counts are
// summed with compensation: the rounding of many stages must not add up.
func lay(parts []part) (pieces []piece, at time.Duration, count float64) {
	var low float64
	high := 0.0
	for _, p := range parts {
		length := min(p.length, forever-at)
		if length <= 0 {
			continue
		}
		slope := (p.to - p.level) / seconds(p.length)
		if length < p.length {
			p.to = p.level + slope*seconds(length)
		}
		q := piece{start: at, length: length, level: p.level, to: p.to, slope: slope, before: high + low, amp: p.amp}
		if q.amp > 0 {
			q.wave = newWave(p.level, p.amp, length)
		}
		area := (p.level + p.to) / 2 * seconds(length)
		sum := high + area
		if high >= area {
			low += (high - sum) + area
		} else {
			low += (area - sum) + high
		}
		high = sum
		q.end = max(q.before, high+low)
		at += length
		pieces = append(pieces, q)
	}
	return pieces, at, high + low
}

func (c Curve) parts() (once, cycle []part) {
	if c.s == nil {
		return nil, nil
	}
	return unlay(c.s.once), unlay(c.s.cycle)
}

func unlay(pieces []piece) []part {
	parts := make([]part, len(pieces))
	for i, p := range pieces {
		parts[i] = part{length: p.length, level: p.level, to: p.to, amp: p.amp}
	}
	if n := len(pieces); n > 0 && pieces[n-1].start+pieces[n-1].length == forever && pieces[n-1].slope == 0 {
		parts[n-1].length = forever // also when it moves to an earlier start
	}
	return parts
}

// at returns the piece at t, the time within it, and the turn of the cycle, which
// is negative before it; nil where there is no level.
func (c Curve) at(t time.Duration) (p *piece, x time.Duration, turn int64) {
	s := c.s
	if s == nil || t < 0 {
		return nil, 0, 0
	}
	list, turn := s.once, int64(-1)
	if len(s.cycle) > 0 && t >= s.lead {
		turn = int64((t - s.lead) / s.every)
		t -= s.lead + time.Duration(turn)*s.every
		list = s.cycle
	}
	// The last piece that begins at or before t: the first always does.
	i := sort.Search(len(list)-1, func(i int) bool { return list[i+1].start > t })
	p = &list[i]
	return p, t - p.start, turn
}

// before returns the count at the start of a turn, rounded once.
func (s *shape) before(turn int64) float64 { return math.FMA(float64(turn), s.per, s.leadCount) }

// levelAt returns the level at x from the start of the piece.
func (p *piece) levelAt(x time.Duration) float64 {
	switch {
	case p.amp > 0:
		return max(0, p.level+p.amp*math.Sin(2*math.Pi*(float64(x)/float64(p.length))))
	case p.to < p.level: // from the end, so that the last level is exact
		return min(p.level, p.to-p.slope*seconds(p.length-x))
	}
	return min(p.to, p.level+p.slope*seconds(x))
}

// count returns the count at x from the start of the piece. The second half of a
// falling line is counted from its end, so that nothing cancels.
func (p *piece) count(x time.Duration) float64 {
	switch {
	case p.amp > 0:
		half := math.Sin(math.Pi * (float64(x) / float64(p.length)))
		return min(p.end, p.before+p.level*seconds(x)+p.amp*seconds(p.length)/math.Pi*half*half)
	case p.to < p.level && x > p.length/2:
		y := seconds(p.length - x)
		return max(p.before, p.end-y*(p.to-p.slope/2*y))
	}
	y := seconds(x)
	return min(p.end, p.before+y*(p.level+p.slope/2*y))
}

func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }
