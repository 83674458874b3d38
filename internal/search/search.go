// Package search finds the highest level that holds: it brackets, then halves the
// bracket, and confirms what it found. It knows neither clocks nor loads.
package search

import "math"

// MaxProbes bounds how often levels are tried.
const MaxProbes = 40

// confirmations is how often the highest level must hold in all before it is believed.
const confirmations = 3

// Config says where to look. From is more than 0 and less than To.
type Config struct {
	From, To float64
	// Precision ends the search: the bracket's upper end is at most its lower one times
	// 1 + Precision.
	Precision float64
	Whole     bool // levels are whole numbers
}

// Search is a search under way. Next says what to try, Report what came of it. It is
// not safe for concurrent use.
//
// A level that fails is tried a second time, and fails when it fails again. The
// highest that held is tried until it has held three times; failing twice before, it
// counts as failed, and the search goes on below it.
type Search struct {
	c      Config
	held   []float64 // that held, ascending, each below failed
	failed float64   // the least that failed; +Inf: none
	level  float64   // being tried
	ok, no int       // how often it held and failed
	probes int
	sure   bool // the highest of held was confirmed
	done   bool
}

// New returns a search that has tried nothing.
func New(c Config) *Search {
	return &Search{c: c, failed: math.Inf(1), level: c.From}
}

// Next returns the level to try, ok false when the search is over.
func (s *Search) Next() (level float64, ok bool) {
	if s.done || s.probes == MaxProbes {
		return 0, false
	}
	s.probes++
	return s.level, true
}

// Report says whether the level of Next held.
func (s *Search) Report(held bool) {
	if held {
		s.ok++
	} else {
		s.no++
	}
	confirming := s.highest() == s.level
	switch {
	case s.no == 2:
		s.fail()
	case confirming && s.ok == confirmations:
		s.sure, s.done = true, true
	case !confirming && held:
		s.held = append(s.held, s.level)
		s.advance()
	}
}

// fail takes the level as the new upper end.
func (s *Search) fail() {
	s.failed = s.level
	for len(s.held) > 0 && s.highest() >= s.failed {
		s.held = s.held[:len(s.held)-1]
	}
	if len(s.held) == 0 && s.failed <= s.c.From {
		s.done = true
		return
	}
	s.advance()
}

// advance chooses the next level: the one to confirm, when the bracket is narrow.
func (s *Search) advance() {
	low := s.highest()
	next := low
	switch {
	case low == 0:
		next = s.c.From
	case math.IsInf(s.failed, 1):
		next = min(low*2, s.c.To)
	case s.failed > low*(1+s.c.Precision):
		next = s.between(low)
	}
	again := next == s.level // it has held just now, or this is what to confirm
	s.ok, s.no = 0, 0
	if again || next == low {
		s.ok = 1 // it is among those that held
	}
	s.level = next
}

// between returns the middle of the bracket, or its lower end when nothing is between.
func (s *Search) between(low float64) float64 {
	middle := math.Sqrt(low * s.failed)
	if s.c.Whole {
		middle = math.Floor(middle)
		if middle <= low {
			middle = low + 1
		}
		if middle >= s.failed {
			return low
		}
	}
	return middle
}

func (s *Search) highest() float64 {
	if len(s.held) == 0 {
		return 0
	}
	return s.held[len(s.held)-1]
}

// Result is what is known: the highest level that held, 0 for none, the least above it
// that failed, 0 for none, and whether the former held three times.
func (s *Search) Result() (held, failed float64, confirmed bool) {
	failed = s.failed
	if math.IsInf(failed, 1) {
		failed = 0
	}
	return s.highest(), failed, s.sure
}
