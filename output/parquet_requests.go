package output

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"mcpbench/metrics"
)

// orderKey is kept apart from the samples, which are costly to move.
type orderKey struct {
	start time.Duration
	index int
}

type requestNulls struct {
	intended, lateness, queued, ttfb, connect int64
	code, status                              int32
	message, trace                            string
	tags                                      map[string]string
}

// writeGroup writes the pending requests as one row group, sorted by their
// starts. Samples come in the order of their ends, and a slab of them may be
// older than the one before it, so only a whole row group can be sorted.
func (t *segmentTables) writeGroup() error {
	p, err := t.openRequests()
	if err != nil {
		return err
	}
	b := t.block
	b.order = b.order[:0]
	for i := range b.pending {
		b.order = append(b.order, orderKey{b.pending[i].Start, i})
	}
	slices.SortFunc(b.order, func(x, y orderKey) int {
		return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.index, y.index))
	})
	for _, k := range b.order {
		row, nulls := b.requestRows.next()
		t.fillRequest(row, nulls, &b.pending[k.index])
		if len(b.requestRows.rows) == chunkRows {
			t.flushRequests(p)
		}
	}
	t.flushRequests(p)
	p.endGroup()
	clear(b.pending) // lets go of what the samples point to
	b.pending = b.pending[:0]
	return p.err
}

// flushRequests writes one chunk and lets others run first: nobody waits for
// the compaction, and it must not make anybody wait.
func (t *segmentTables) flushRequests(p *part[requestRow]) {
	t.block.requestRows.flush(p)
	t.block.checks = t.block.checks[:0]
	runtime.Gosched()
}

func (t *segmentTables) fillRequest(row *requestRow, nulls *requestNulls, s *metrics.Sample) {
	c := t.catalog
	group, step := &c.Groups[s.Group], &c.Steps[s.Step]
	row.RunID, row.Group, row.Flow, row.Step = t.runID, group.Name, group.Flow, step.ID
	row.Trial, row.Target = int32(s.Trial), toInt32(group.Target)
	row.ProtocolVersion = c.Protocols[s.Proto]
	row.Transport = c.Targets[group.Target].Transport
	row.Session, row.Iteration, row.Seq = sessionNumber(s), toInt64(s.Iteration), int64(s.Seq)
	row.StartedAt = t.t0 + floorMicro(s.Start)
	row.Start = int64(s.Start)
	if late, open := s.Lateness(); open {
		queued, _ := s.Queued()
		row.Intended = set(&nulls.intended, int64(s.Intended))
		row.Lateness = set(&nulls.lateness, int64(late))
		row.Queued = set(&nulls.queued, int64(queued))
	}
	row.Latency, row.Service = int64(s.Latency()), int64(s.Service())
	if ttfb, ok := s.TTFB(); ok {
		row.TTFB = set(&nulls.ttfb, int64(ttfb))
	}
	row.Method, row.Name = step.Method, step.Name
	row.Outcome = s.Outcome.String()
	if hasCode(s.Outcome) {
		row.ErrorCode = set(&nulls.code, s.Code)
	}
	row.HTTPStatus = setNonzero(&nulls.status, int32(s.HTTPStatus))
	row.RequestBytes, row.ResponseBytes = toInt32(s.BytesOut), toInt32(s.BytesIn)
	row.Notifications, row.Progress = int32(s.Notifications), int32(s.Progress)
	row.Warmup = s.Phase != metrics.PhaseMeasured
	row.Checks = t.verdicts(s, step.Checks)
	if x := s.Extra; x != nil {
		if s.HasConnect {
			row.Connect = set(&nulls.connect, int64(x.Connect))
		}
		row.ErrorMessage = setNonzero(&nulls.message, x.Message)
		row.TraceID = setNonzero(&nulls.trace, x.TraceID)
		row.Retries, row.TaskPolls = int32(x.Retries), int32(x.TaskPolls)
	}
	if tags := tagsOf(s, step); len(tags) > 0 {
		row.Tags = set(&nulls.tags, tags)
	}
}

// tagsOf returns the tags of the sample, which include those of its step, or
// the step's where the sample brings none of its own.
func tagsOf(s *metrics.Sample, step *metrics.StepInfo) map[string]string {
	if s.Extra != nil && s.Extra.Tags != nil {
		return s.Extra.Tags
	}
	return step.Tags
}

// verdicts returns one row for each check of the step: none when the outcome
// carries no verdicts, all failed when no answer could be checked.
func (t *segmentTables) verdicts(s *metrics.Sample, names []string) []checkRow {
	if len(names) == 0 || !s.Outcome.CountsChecks() {
		return nil
	}
	b := t.block
	first := len(b.checks)
	for i, name := range names {
		ok := s.Outcome.Answered() && s.ChecksFailed&(1<<i) == 0
		b.checks = append(b.checks, checkRow{Name: name, OK: ok})
	}
	return b.checks[first:len(b.checks):len(b.checks)]
}

// sessionNumber is -1 for a request that came to no session: the column is
// part of the key and never null.
func sessionNumber(s *metrics.Sample) int64 {
	if s.Session == metrics.NoSession {
		return -1
	}
	return int64(s.Session)
}

// hasCode reports whether Sample.Code means something for the outcome.
func hasCode(o metrics.Outcome) bool {
	switch o {
	case metrics.CheckFailed, metrics.Timeout, metrics.RPCError, metrics.ProtocolError, metrics.LimitExceeded,
		metrics.HTTPError, metrics.TransportError, metrics.ProcessExit, metrics.ClientError:
		return true
	case metrics.OK, metrics.ToolError, metrics.Cancelled, metrics.Interrupted, metrics.ScriptError,
		metrics.Skipped, metrics.Dropped, metrics.AgentLost:
		return false
	}
	return false
}

// floorMicro rounds down, so that offsets before the clock's start do not
// move up to it.
func floorMicro(d time.Duration) int64 {
	us := int64(d / time.Microsecond)
	if d%time.Microsecond < 0 {
		us--
	}
	return us
}
