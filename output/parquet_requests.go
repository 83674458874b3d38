package output

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"mcpbench/metrics"
)

// requestTable collects the samples of one row group and hands them to a
// goroutine of its own, which sorts and writes them: a row group takes some
// tenths of a second, and the collector must not stand still that long.
// Samples come in the order of their ends, and a slab of them may be older
// than the one before it, so only a whole row group can be sorted.
//
// There are two blocks of samples, so that at most two row groups are in
// memory; when one is full before the other is written, add waits.
type requestTable struct {
	pending []metrics.Sample
	limit   int   // rows of a row group
	err     error // first failure that came back

	full    chan []metrics.Sample // to the goroutine, which ends when it is closed
	written chan block            // back from it
}

// block is a block of samples that was written, empty again.
type block struct {
	samples []metrics.Sample
	err     error
}

// requestWriter is what the goroutine of a requestTable owns.
type requestWriter struct {
	*partWriter[requestRow]
	catalog *metrics.Catalog
	runID   string
	t0      *atomic.Int64
	order   []orderKey
	buffer  rowBuffer[requestRow, requestNulls]
	checks  []checkRow
}

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

// startRequests starts the goroutine; requestTable.close ends it.
func startRequests(w *requestWriter) *requestTable {
	r := &requestTable{
		limit:   int(w.groups),
		full:    make(chan []metrics.Sample),
		written: make(chan block, 1),
	}
	r.written <- block{} // the second block
	go func() {
		for samples := range r.full {
			w.writeGroup(samples)
			clear(samples) // lets go of what the samples point to
			r.written <- block{samples: samples[:0], err: w.err}
		}
		r.written <- block{err: w.close()}
		close(r.written)
	}()
	return r
}

// add takes one request. Skipped steps are no requests and make no row.
func (r *requestTable) add(s *metrics.Sample) {
	if s.Outcome == metrics.Skipped || r.err != nil {
		return
	}
	r.pending = append(r.pending, *s)
	if len(r.pending) == r.limit {
		r.handOver()
	}
}

func (r *requestTable) handOver() {
	back := <-r.written
	r.full <- r.pending
	r.pending, r.err = back.samples, back.err
}

// close writes what is pending, completes the table and waits for the goroutine.
func (r *requestTable) close() error {
	if len(r.pending) > 0 && r.err == nil {
		r.handOver()
	}
	close(r.full)
	for back := range r.written {
		if back.err != nil {
			r.err = back.err // the last one is that of the whole table
		}
	}
	return r.err
}

// writeGroup writes samples as one row group, sorted by their starts.
func (r *requestWriter) writeGroup(samples []metrics.Sample) {
	r.order = r.order[:0]
	for i := range samples {
		r.order = append(r.order, orderKey{samples[i].Start, i})
	}
	slices.SortFunc(r.order, func(a, b orderKey) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.index, b.index))
	})
	for _, k := range r.order {
		row, nulls := r.buffer.next()
		r.fill(row, nulls, &samples[k.index])
		if r.buffer.full() {
			r.flushRows()
		}
	}
	r.flushRows()
	r.endGroup()
}

func (r *requestWriter) flushRows() {
	r.buffer.flush(r.partWriter)
	r.checks = r.checks[:0]
}

func (r *requestWriter) fill(row *requestRow, nulls *requestNulls, s *metrics.Sample) {
	c := r.catalog
	group, step := &c.Groups[s.Group], &c.Steps[s.Step]
	row.RunID, row.Group, row.Flow, row.Step = r.runID, group.Name, group.Flow, step.ID
	row.Trial, row.Target = int32(s.Trial), toInt32(group.Target)
	row.ProtocolVersion = c.Protocols[s.Proto]
	row.Transport = c.Targets[group.Target].Transport
	row.Session, row.Iteration, row.Seq = sessionNumber(s), toInt64(s.Iteration), int64(s.Seq)
	row.StartedAt = r.t0.Load() + floorMicro(s.Start)
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
	row.Checks = r.verdicts(s, step.Checks)
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
func (r *requestWriter) verdicts(s *metrics.Sample, names []string) []checkRow {
	if len(names) == 0 || !s.Outcome.CountsChecks() {
		return nil
	}
	first := len(r.checks)
	for i, name := range names {
		ok := s.Outcome.Answered() && s.ChecksFailed&(1<<i) == 0
		r.checks = append(r.checks, checkRow{Name: name, OK: ok})
	}
	return r.checks[first:len(r.checks):len(r.checks)]
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
