package grammar

import (
	"strings"

	"mcpbench/scenarios/internal/syntax"
)

// Load says how often the flows run.
type Load struct {
	Place
	// Use takes over a map of another file: FILE#PATH. What is written here wins.
	Use Text `json:"use"`
	// Warmup comes before the measured time; its requests are recorded, marked and left out of results.
	Warmup Warmup `json:"warmup" jsonschema:"default=0s"`
	// Grace is the time that open requests have to end after the stop.
	Grace Duration `json:"grace" jsonschema:"default=5s"`
	// Groups of load, by name. All of them run at the same time.
	Groups map[string]*Group `json:"groups" jsonschema:"required"`
}

// Group is load that runs one flow: closed with sessions, open with arrivals.
type Group struct {
	Place
	// Use takes over a map of another file: FILE#PATH. What is written here wins.
	Use Text `json:"use"`
	// Server by name; may be left out when there is only one.
	Server string `json:"server"`
	// Flow by name; may be left out when there is only one.
	Flow string `json:"flow"`
	// Sessions of a closed load: each waits for its answers before it goes on.
	Sessions Sessions `json:"sessions" jsonschema:"default=1"`
	// SessionLife ends and renews sessions.
	SessionLife *SessionLife `json:"session_life"`
	// IdleSessions are held open besides, and do nothing.
	IdleSessions int `json:"idle_sessions" jsonschema:"minimum=0,default=0"`
	// Think is the pause of a session between two iterations.
	Think Spread `json:"think" jsonschema:"default=0s"`
	// InFlight is how many requests one session may have in flight.
	InFlight int `json:"in_flight" jsonschema:"minimum=1,default=1"`
	// Arrivals of an open load: iterations start at their own times.
	Arrivals *Arrivals `json:"arrivals"`
	// MaxSessions is how many sessions an open load may use.
	MaxSessions int `json:"max_sessions" jsonschema:"minimum=1,default=1"`
	// OnSaturation says what happens to an arrival when no session is free.
	OnSaturation string `json:"on_saturation" jsonschema:"enum=queue,enum=drop,default=queue"`
	// QueueLimit is how many arrivals may wait for a session; 0 is no limit.
	QueueLimit int `json:"queue_limit" jsonschema:"minimum=0,default=0"`
	// Duration of the measured time. Default: that of the stages, or 10s, or none when iterations are given.
	Duration Duration `json:"duration"`
	// Iterations of all sessions together. With a duration too, what is reached first ends the group.
	Iterations Iterations `json:"iterations"`
	// OnError says what a failed step does to its iteration.
	OnError string `json:"on_error" jsonschema:"enum=next_iteration,enum=continue,enum=end_session,default=next_iteration"`
	// Pace replays the pauses of a recorded scenario.
	Pace Later `json:"pace"`
}

// Sessions is a number, written also as {count: N}, or stages of numbers.
type Sessions struct {
	Place
	Count  int
	Set    bool
	Stages []*SessionStage
}

// SessionStage changes the number of sessions.
type SessionStage struct {
	Place
	// To is the number of sessions at the end of the ramp.
	To int `json:"to" jsonschema:"minimum=0"`
	// Over is how long the ramp lasts; without it the change is a jump.
	Over Duration `json:"over"`
	// Hold is how long the number then stays.
	Hold Duration `json:"hold"`
}

func (v *Sessions) decode(d *decoder, n *syntax.Node, path string) {
	v.Node, v.Path = n, path
	if n.Kind != syntax.Map {
		v.Count, v.Set = int(d.integer(n, path, 1)), true
		return
	}
	var long struct {
		Place
		Count  int             `json:"count" jsonschema:"minimum=0"`
		Stages []*SessionStage `json:"stages"`
	}
	faults := len(d.src.Problems())
	d.value(n, path, &long)
	if n.Lookup("count") == nil && n.Lookup("stages") == nil {
		d.fault(n, path, "wants a number of sessions, {count: N} or {stages: [{to: N, over: D}, {hold: D}]}")
	}
	if count := n.Lookup("count"); count != nil && n.Lookup("stages") == nil && long.Count < 1 && len(d.src.Problems()) == faults {
		d.fault(count, syntax.Join(path, "count"), "must be at least 1")
	}
	v.Count, v.Set, v.Stages = long.Count, true, long.Stages
	d.stages(n.Lookup("stages"), syntax.Join(path, "stages"), "to", len(v.Stages), func(i int) (at *syntax.Node, over, hold Duration) {
		return v.Stages[i].Node, v.Stages[i].Over, v.Stages[i].Hold
	})
}

// stages looks at what the stages of sessions and of arrivals have in common. level
// is the key of the level.
func (d *decoder) stages(list *syntax.Node, path, level string, count int, stage func(i int) (at *syntax.Node, over, hold Duration)) {
	if list == nil || list.Kind != syntax.Seq {
		return
	}
	if count == 0 {
		d.fault(list, path, "there is no stage")
		return
	}
	lasts := false
	for i := range count {
		at, over, hold := stage(i)
		if at == nil || at.Kind != syntax.Map {
			continue
		}
		lasts = lasts || over.D > 0 || hold.D > 0 || at.Lookup("over") != nil && !over.Set || at.Lookup("hold") != nil && !hold.Set
		switch {
		case at.Lookup(level) == nil && at.Lookup("over") != nil:
			d.fault(at.Key("over"), path, "over is the length of a ramp, and there is no %q that it leads to", level)
		case at.Lookup(level) == nil && at.Lookup("hold") == nil && len(at.Pairs) == 0:
			d.fault(at, path, "a stage wants %q, hold or both, e.g. {%s: 20, over: 10s, hold: 1m}", level, level)
		}
	}
	if !lasts {
		d.fault(list, path, "the stages take no time: give them over or hold")
	}
}

// SessionLife ends and renews sessions.
type SessionLife struct {
	Place
	// Iterations after which a session ends and another takes its place.
	Iterations int `json:"iterations" jsonschema:"minimum=1"`
	// Duration after which a session ends and another takes its place, between two iterations.
	Duration *Spread `json:"duration"`
	// Churn ends sessions at a rate, each in its turn; others take their places.
	Churn Rate `json:"churn"`
	// Storm ends many sessions at the same moment, which then all connect again.
	Storm *Storm `json:"storm"`
	// End says how sessions end.
	End *Ends `json:"end"`
}

// Storm ends many sessions at the same moment.
type Storm struct {
	Place
	// Every is the time between two storms; the first comes after that time.
	Every Duration `json:"every" jsonschema:"required"`
	// Share of the sessions that is in it.
	Share *Share `json:"share" jsonschema:"default=1"`
}

// Ends are the ways in which sessions end, by weight.
type Ends struct {
	Place
	// Delete is the way of good clients: DELETE over HTTP, where the version has sessions; the closed stdin over stdio.
	Delete Weight `json:"delete" jsonschema:"default=0"`
	// NoDelete closes the connections, and the server is not told that the session is over.
	NoDelete Weight `json:"no_delete" jsonschema:"default=0"`
	// Drop resets the connections, or kills the process, whatever is under way.
	Drop Weight `json:"drop" jsonschema:"default=0"`
}

// Arrivals of an open load. Of stages, spike, sine, bursts, steps and replay there
// is at most one.
type Arrivals struct {
	Place
	// Process is how arrivals are spread: at equal distances, or by chance with the same mean.
	Process string `json:"process" jsonschema:"enum=constant,enum=poisson,default=constant"`
	// Rate of arrivals, such as 200/s: the one at the start, where it changes.
	Rate Rate `json:"rate"`
	// Stages change the rate over time.
	Stages RateStages `json:"stages"`
	// Spike raises the rate for a while, once or again and again.
	Spike *Spike `json:"spike"`
	// Sine lets the rate swing around rate.
	Sine *Sine `json:"sine"`
	// Bursts have rate for a while and then no arrivals.
	Bursts *Bursts `json:"bursts"`
	// Steps raise the rate by the same amount, again and again.
	Steps *Stairs `json:"steps"`
	// Replay takes recorded times.
	Replay *Replay `json:"replay"`
	// OnLate says what happens to an arrival that the load generator itself could not
	// release in time, within 10 ms: it is released late and its latency counts from
	// when it was due, or it is dropped and counted.
	OnLate string `json:"on_late" jsonschema:"enum=catch_up,enum=skip,default=catch_up"`
}

// RateStages are the stages of an open load.
type RateStages []*RateStage

func (v *RateStages) decode(d *decoder, n *syntax.Node, path string) {
	d.value(n, path, (*[]*RateStage)(v))
	d.stages(n, path, "rate", len(*v), func(i int) (at *syntax.Node, over, hold Duration) {
		return (*v)[i].Node, (*v)[i].Over, (*v)[i].Hold
	})
}

// RateStage changes the rate of arrivals.
type RateStage struct {
	Place
	// Rate at the end of the ramp; 0/s is a pause.
	Rate StageRate `json:"rate"`
	// Over is how long the ramp lasts; without it the change is a jump.
	Over Duration `json:"over"`
	// Hold is how long the rate then stays.
	Hold Duration `json:"hold"`
}

// StageRate is a Rate that may be 0/s.
type StageRate struct{ Rate }

func (v *StageRate) decode(d *decoder, n *syntax.Node, path string) {
	if number, unit, ok := strings.Cut(n.Text, "/"); ok && n.Kind == syntax.String && strings.Trim(strings.TrimSpace(number), "0.") == "" && strings.Contains(number, "0") {
		if _, err := ParseRate("1/"+unit, false); err == nil {
			v.Set = true
			return
		}
	}
	v.Rate.decode(d, n, path)
}

// Spike raises the rate for a while.
type Spike struct {
	Place
	// Rate during the spike.
	Rate Rate `json:"rate" jsonschema:"required"`
	// At is when the first one begins.
	At Duration `json:"at" jsonschema:"required"`
	// For is how long one lasts.
	For Duration `json:"for" jsonschema:"required"`
	// Every is the time from one to the next. Default: there is only one.
	Every Duration `json:"every"`
}

// Sine lets the rate swing.
type Sine struct {
	Place
	// Amplitude is how far the rate goes up and down.
	Amplitude Rate `json:"amplitude" jsonschema:"required"`
	// Period is the time of one swing.
	Period Duration `json:"period" jsonschema:"required"`
}

// Bursts turn the arrivals on and off.
type Bursts struct {
	Place
	// On is how long arrivals come.
	On Duration `json:"on" jsonschema:"required"`
	// Off is how long none come.
	Off Duration `json:"off" jsonschema:"required"`
}

// Stairs raise the rate again and again.
type Stairs struct {
	Place
	// By is what a step adds.
	By Rate `json:"by" jsonschema:"required"`
	// Every is how long a step lasts.
	Every Duration `json:"every" jsonschema:"required"`
	// To is the highest rate. Default: up to the end of the load.
	To Rate `json:"to"`
}

// Replay takes the times of arrivals from a column of a file of comma-separated values.
type Replay struct {
	Place
	// File of comma-separated values with a line of names.
	File string `json:"file" jsonschema:"required"`
	// Column of the file with offsets such as 1.25s, or points in time (RFC 3339); may be left out when there is only one.
	Column string `json:"column"`
	// Speed is by how much time passes faster than in the record.
	Speed Weight `json:"speed" jsonschema:"default=1"`
}

// Warmup is a duration, written also as {duration: D}, or what must be reached.
type Warmup struct {
	Place
	Duration
	Iterations int64
	Stable     *Stable
	Max        Duration
}

// Stable ends the warm-up when the median latency does not change any more.
type Stable struct {
	Place
	// Window is the time over which a median is taken, in whole seconds.
	Window Duration `json:"window" jsonschema:"default=5s"`
	// Within is the greatest difference between the medians of three windows in a row, as a share of the least.
	Within *Share `json:"within" jsonschema:"default=0.1"`
}

func (v *Warmup) decode(d *decoder, n *syntax.Node, path string) {
	v.Node, v.Path = n, path
	if n.Kind != syntax.Map {
		v.Duration.decode(d, n, path)
		return
	}
	var long struct {
		Place
		Duration   Duration `json:"duration"`
		Iterations int      `json:"iterations" jsonschema:"minimum=1"`
		Stable     *Stable  `json:"stable"`
		Max        Duration `json:"max"`
	}
	d.value(n, path, &long)
	ways := 0
	for _, key := range []string{"duration", "iterations", "stable"} {
		if n.Lookup(key) != nil {
			ways++
		}
	}
	switch at := n.Key("max"); {
	case ways == 0:
		d.fault(n, path, "wants a duration, iterations or stable, e.g. {duration: 10s}")
	case ways > 1:
		d.fault(n, path, "duration, iterations and stable are three ways to end the warm-up; keep one (max bounds the time)")
	case at != nil && n.Lookup("duration") != nil:
		d.fault(at, syntax.Join(path, "max"), "max does not go with duration, which is an end already")
	}
	v.Duration, v.Iterations, v.Stable, v.Max = long.Duration, int64(long.Iterations), long.Stable, long.Max
	v.window(d)
}

// window looks at the times of Stable.
func (v *Warmup) window(d *decoder) {
	if v.Stable == nil || !v.Stable.Window.Set {
		return
	}
	const second = 1e9
	if w := v.Stable.Window.D; w < second || w%second != 0 {
		d.fault(v.Stable.Node.Lookup("window"), v.Stable.Path+".window", "must be whole seconds, at least 1s")
	}
}

// Iterations is a number of iterations, of all sessions together or of each.
type Iterations struct {
	Count      int64
	PerSession int64
	Set        bool
}

func (v *Iterations) decode(d *decoder, n *syntax.Node, path string) {
	if n.Kind != syntax.Map {
		v.Count, v.Set = d.integer(n, path, 1), true
		return
	}
	var long struct {
		Place
		Total      int   `json:"total" jsonschema:"minimum=1"`
		PerSession int   `json:"per_session" jsonschema:"minimum=1"`
		Each       Later `json:"each"`
	}
	d.value(n, path, &long)
	if len(n.Pairs) != 1 {
		d.fault(n, path, "wants one of total, per_session and each, e.g. {per_session: 100}")
	}
	v.Count, v.PerSession, v.Set = int64(long.Total), int64(long.PerSession), true
}
