package scenarios

import (
	"time"

	"mcpbench/internal/curve"
)

// WarmupGoal ends a warm-up: one of Iterations and Window is set.
type WarmupGoal struct {
	Iterations int64 // of all groups together
	// Window is the time of one median of the latency; the warm-up is over when the
	// medians of three windows in a row differ by at most Within, as a share of the
	// least of them.
	Window time.Duration
	Within float64
	Max    time.Duration // ends the warm-up in any case
}

// Group is one load group.
type Group struct {
	Name     string
	Server   int // index into Program.Servers
	Flow     int // index into Program.Flows
	Open     bool
	Sessions int // the most at the same time; open: max_sessions
	// Level is how many sessions a closed load has, and how many arrivals a second an
	// open one, by the time since the end of the warm-up. In the warm-up it is
	// WarmLevel.
	Level        curve.Curve
	Changes      bool // the level is not the same all the time
	WarmLevel    float64
	IdleSessions int    // held open besides, without work
	Think        Spread // closed: pause between iterations of a session
	Life         Life
	Process      string // open: constant, poisson or replay
	// Times are the offsets of a replay since the end of the warm-up, none before
	// that before it.
	Times        []time.Duration
	SkipLate     bool          // open: on_late: skip
	DropWhenFull bool          // open: on_saturation: drop
	QueueLimit   int           // open: arrivals that may wait; 0 is no limit
	Duration     time.Duration // 0: none
	Iterations   int64         // of all sessions together; 0: no limit
	PerSession   int64         // closed: iterations of each session's place; 0: no limit
	InFlight     int           // requests in flight on one session, at least 1
	OnError      OnError       // when a step fails and neither it nor its flow says more; never 0
}

// Life says when sessions end while the load goes on, and how all of them end.
type Life struct {
	Iterations int64  // after which a session is replaced; 0: never
	Duration   Spread // after which it is replaced; zero: never
	// Churn is how many sessions end in a second, each in its turn.
	Churn float64
	// StormEvery, unless 0, is the time between two moments at which StormShare of all
	// sessions end and connect again.
	StormEvery time.Duration
	StormShare float64
	// Ends are the weights of the ways in which sessions end, all 0 for the orderly one.
	Ends Ends
}

// Ends are weights of ways in which sessions end.
type Ends struct {
	Delete, NoDelete, Drop float64
}

// Varies tells that the number of sessions of a closed load changes over time.
func (g *Group) Varies() bool { return !g.Open && g.Changes }

// Peak is the highest rate of an open load, in arrivals a second.
func (g *Group) Peak() float64 { return max(g.Level.Max(), g.WarmLevel) }

// MeanRate is the mean rate of an open load over its measured time, in arrivals a
// second; where that has no end it is the one at the beginning.
func (g *Group) MeanRate() float64 {
	switch {
	case g.Duration > 0 && g.Process == "replay":
		return float64(len(g.Times)) / g.Duration.Seconds()
	case g.Duration > 0:
		return g.Level.Count(g.Duration) / g.Duration.Seconds()
	}
	return g.WarmLevel
}

// AllSessions is how many sessions the group may have at the same time, idle ones
// among them.
func (g *Group) AllSessions() int { return g.Sessions + g.IdleSessions }
