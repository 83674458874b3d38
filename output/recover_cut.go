package output

import (
	"maps"
	"slices"
	"time"

	"mcpbench/metrics"
)

// endReasonCut is the end_reason of a session that was open when its run was
// cut off.
const endReasonCut = "run_cut"

// cutOff is what the run was doing when it was cut off: the iterations that were
// due or under way and the sessions that were open have no sample of their end.
type cutOff struct {
	cat    *metrics.Catalog
	warmup time.Duration
	marks  []*mark // those with a reading of the gauges

	lastEnd  time.Duration // the latest End of a row
	groups   []cutGroup
	ended    indexSet                 // numbers of the sessions that have a row
	opened   map[uint32]*openSession  // those that have none
	begun    map[begunKey]*begunState // iterations that have requests and no row
	seconds  map[string]map[int64]bool
	sessions []int // most that each group wanted
}

type cutGroup struct {
	seen                      indexSet // arrivals that have a row
	lastWarmup, firstMeasured int64    // arrival indexes; -1 is none
}

type openSession struct {
	sample   metrics.Sample // of the connect
	requests int64
}

type begunKey struct {
	group     uint8
	iteration uint64
}

type begunState struct {
	first    metrics.Sample // its first request
	requests uint16
}

// iterationFacts and sessionFacts are what this needs of the tables.
type (
	iterationFacts struct {
		Group     string `parquet:"group"`
		Iteration int64  `parquet:"iteration"`
		End       int64  `parquet:"end_offset_ns"`
		Warmup    bool   `parquet:"warmup"`
	}
	sessionFacts struct {
		Session int64 `parquet:"session"`
	}
)

// readCut reads what has rows already.
func (r *recovery) readCut(meta *journalMeta) (*cutOff, error) {
	groups := len(meta.Catalog.Groups)
	c := &cutOff{
		cat: meta.Catalog, warmup: meta.Warmup, groups: make([]cutGroup, groups), opened: map[uint32]*openSession{},
		begun: map[begunKey]*begunState{}, seconds: map[string]map[int64]bool{"intervals": {}, "load": {}}, sessions: make([]int, groups),
	}
	for i := range c.groups {
		c.groups[i].lastWarmup, c.groups[i].firstMeasured = -1, -1
	}
	for _, m := range r.marks {
		if len(m.groups) == groups && groups > 0 {
			c.marks = append(c.marks, m)
			for g := range m.groups {
				c.sessions[g] = max(c.sessions[g], m.groups[g].SessionsWanted)
			}
		}
	}
	n := namesOf(meta.Catalog)
	err := eachOfTable(r, "iterations", func(row *iterationFacts) error {
		g, ok := n.groups[row.Group]
		if ok && row.Iteration >= 0 {
			c.groups[g].add(row)
		}
		c.lastEnd = max(c.lastEnd, time.Duration(row.End))
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = eachOfTable(r, "sessions", func(row *sessionFacts) error {
		if row.Session >= 0 {
			c.ended.add(uint64(row.Session))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, r.readSeconds(c, n)
}

// readSeconds notes the seconds that the run wrote figures of.
func (r *recovery) readSeconds(c *cutOff, n *names) error {
	err := eachOfTable(r, "intervals", func(row *intervalFacts) error {
		c.seconds["intervals"][row.Second] = true
		return nil
	})
	if err != nil {
		return err
	}
	return eachOfTable(r, "load", func(row *loadFacts) error {
		c.seconds["load"][row.Second] = true
		if g, ok := n.groups[row.Group]; ok {
			c.sessions[g] = max(c.sessions[g], int(row.Wanted))
		}
		return nil
	})
}

func (g *cutGroup) add(row *iterationFacts) {
	g.seen.add(uint64(row.Iteration)) //nolint:gosec // the caller has looked at it
	switch {
	case row.Warmup:
		g.lastWarmup = max(g.lastWarmup, row.Iteration)
	case g.firstMeasured < 0 || row.Iteration < g.firstMeasured:
		g.firstMeasured = row.Iteration
	}
}

// connect takes an attempt to open a session.
func (c *cutOff) connect(s *metrics.Sample) {
	if s.Outcome == metrics.OK && !c.ended.has(uint64(s.Session)) {
		c.opened[s.Session] = &openSession{sample: *s}
	}
}

// request takes a request, after all connects.
func (c *cutOff) request(s *metrics.Sample) {
	c.lastEnd = max(c.lastEnd, s.End)
	if o := c.opened[s.Session]; o != nil {
		o.requests++
	}
	if s.Iteration == metrics.NoIteration || c.groups[s.Group].seen.has(s.Iteration) {
		return
	}
	key := begunKey{s.Group, s.Iteration}
	b := c.begun[key]
	if b == nil {
		b = &begunState{first: *s}
		c.begun[key] = b
	}
	if s.Seq < b.first.Seq {
		b.first = *s
	}
	b.requests++
}

// at is the last sign of life of the run, as an offset.
func (c *cutOff) at() time.Duration {
	if n := len(c.marks); n > 0 {
		return max(c.lastEnd, c.marks[n-1].at)
	}
	return c.lastEnd
}

// eachIteration calls do with a sample for each arrival that has no row. It was
// due or under way when the run was cut off, or it ended in the last instants of
// which nothing came into the journal.
func (c *cutOff) eachIteration(do func(metrics.Sample) error) error {
	at := c.at()
	for g := range c.groups {
		total := c.groups[g].seen.next
		if n := len(c.marks); n > 0 {
			total = max(total, uint64(max(c.marks[n-1].groups[g].Intended, 0)))
		}
		for i := range c.groups[g].seen.missing(total) {
			s := metrics.Sample{
				Kind: metrics.KindIteration, Outcome: metrics.Outcome(metrics.IterInterrupted), Group: uint8(g), //nolint:gosec // a catalog has at most 256
				Step: metrics.NoStep, Session: metrics.NoSession, Iteration: i, Phase: c.phase(g, int64(i)), //nolint:gosec // an index is not that large
				Intended: metrics.NoOffset, Release: metrics.NoOffset, Start: at, FirstByte: at, End: at,
			}
			if b := c.begun[begunKey{s.Group, i}]; b != nil {
				s.Session, s.Seq, s.Phase, s.Start, s.Proto = b.first.Session, b.requests, b.first.Phase, b.first.Start, b.first.Proto
				if b.first.Seq == 0 { // later requests have an intended start of their own
					s.Intended, s.Release = b.first.Intended, b.first.Release
				}
			}
			if err := do(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// phase says to which phase an arrival without a row belongs. Arrivals come in
// the order of their indexes; those between the last of the warm-up and the
// first after it are told apart by the reading at its end.
func (c *cutOff) phase(g int, i int64) metrics.Phase {
	group := &c.groups[g]
	switch {
	case c.warmup == 0, group.firstMeasured >= 0 && i > group.firstMeasured:
		return metrics.PhaseMeasured
	case i <= group.lastWarmup:
		return metrics.PhaseWarmup
	}
	if n := len(c.marks); n > 0 {
		if warmup := c.marks[n-1].warmup; g < len(warmup) && i >= warmup[g] {
			return metrics.PhaseMeasured
		}
		return metrics.PhaseWarmup
	}
	if c.at() < c.warmup {
		return metrics.PhaseWarmup
	}
	return metrics.PhaseMeasured
}

// eachSession calls do with a sample for each session that was open.
func (c *cutOff) eachSession(do func(metrics.Sample) error) error {
	for _, number := range slices.Sorted(maps.Keys(c.opened)) {
		open := c.opened[number]
		s, info := open.sample, metrics.SessionInfo{}
		if s.Extra != nil && s.Extra.Session != nil {
			info = *s.Extra.Session
		}
		info.Ended, info.Requests, info.EndReason = c.at(), open.requests, endReasonCut
		s.Kind, s.Extra = metrics.KindSession, &metrics.Extra{Session: &info}
		if err := do(s); err != nil {
			return err
		}
	}
	return nil
}

// loadRows returns the load rows of the seconds that the run did not come to
// write, from the readings of the gauges. delays holds the lateness and the
// queueing of the iterations that ended in them.
func (c *cutOff) loadRows(delays []metrics.LoadRow) []metrics.LoadRow {
	var rows []metrics.LoadRow
	known := c.seconds["load"]
	if n := len(c.marks); n > 0 {
		last := int64((c.marks[n-1].at - 1) / time.Second)
		for second := max(int64(c.marks[0].at/time.Second), 0); second <= last; second++ {
			if !known[second] {
				rows = c.secondOf(rows, second)
			}
		}
	}
	for i := range delays {
		d := &delays[i]
		if known[d.Second] {
			continue
		}
		same := func(r metrics.LoadRow) bool { return r.Second == d.Second && r.Group == d.Group }
		at := slices.IndexFunc(rows, func(r metrics.LoadRow) bool { return same(r) && r.Phase == d.Phase })
		if at < 0 { // of another phase than the second
			row := metrics.LoadRow{Second: d.Second, Group: d.Group, Trial: d.Trial}
			if i := slices.IndexFunc(rows, same); i >= 0 {
				row = rows[i]
				row.Intended, row.Started, row.Completed, row.Dropped = 0, 0, 0, 0
			}
			row.Phase = d.Phase
			rows, at = append(rows, row), len(rows)
		}
		rows[at].Lateness, rows[at].Queued = d.Lateness, d.Queued
	}
	return rows
}

// secondOf appends the rows of one second: what changed between the first
// readings after its start and after its end. The last second is cut short.
func (c *cutOff) secondOf(rows []metrics.LoadRow, second int64) []metrics.LoadRow {
	start, end := c.reading(second), c.reading(second+1)
	phase := metrics.PhaseMeasured
	if time.Duration(second)*time.Second < c.warmup {
		phase = metrics.PhaseWarmup
	}
	for g := range end {
		now, before := &end[g], metrics.Gauges{}
		if second > 0 {
			before = start[g]
		}
		rows = append(rows, metrics.LoadRow{
			Second: second, Group: uint8(g), Phase: phase,
			Intended: now.Intended - before.Intended, Started: now.Started - before.Started,
			Completed: now.Completed - before.Completed, Dropped: now.Dropped - before.Dropped,
			SessionsWanted: now.SessionsWanted, SessionsActive: now.SessionsActive,
			SessionsConnecting: now.SessionsConnecting, InFlight: now.InFlight,
		})
	}
	return rows
}

// reading returns the first reading from the start of a second on, else the last.
func (c *cutOff) reading(second int64) []metrics.Gauges {
	from := time.Duration(second) * time.Second
	at, _ := slices.BinarySearchFunc(c.marks, from, func(m *mark, from time.Duration) int { return int(m.at - from) })
	return c.marks[min(at, len(c.marks)-1)].groups
}
