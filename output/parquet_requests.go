package output

import (
	"maps"
	"runtime"
	"slices"
	"time"

	"mcpbench/metrics"
)

// requestColumns are the columns of the table requests, see requestRow.
type requestColumns struct {
	runID, group, flow, step                    labels
	trial, target                               ints[int32]
	protocolVersion, transport                  labels
	session, iteration, seq, startedAt, start   ints[int64]
	intended, lateness, queued                  maybeInts[int64]
	latency, service                            ints[int64]
	ttfb, connect                               maybeInts[int64]
	method, name, outcome                       labels
	errorCode, httpStatus                       maybeInts[int32]
	errorMessage                                maybeLabels
	requestBytes, responseBytes                 ints[int32]
	notifications, progress, retries, taskPolls ints[int32]
	rounds                                      maybeInts[int32]
	firstProgress, lastProgress                 maybeInts[int64]
	progressGaps, roundTimes                    maybeInts[int64] // lists
	cancelStop, cacheTTL                        maybeInts[int64]
	cacheScope                                  maybeLabels
	checkName                                   maybeLabels
	checkOK                                     flags
	tagKey, tagValue                            maybeLabels
	traceID                                     maybeTexts
	warmup                                      flags

	checks, tags levels // each of two columns

	catalog *metrics.Catalog
	run     string
	t0      int64 // Unix microseconds

	// Indexes into the dictionaries of the row group at hand.
	runIndex  int32
	groups    []groupIndexes
	steps     []stepIndexes
	protocols []int32
	outcomes  [metrics.NumOutcomes]int32
	keys      []string // reused
}

type groupIndexes struct{ group, flow, transport, target int32 }

type stepIndexes struct {
	step, method, name int32
	checks             []int32
	tags               []tagIndexes
}

type tagIndexes struct{ key, value int32 }

func (r *requestColumns) columns() (all []column, sortedBy string) {
	r.checkName.levels, r.checkOK.levels = &r.checks, &r.checks
	r.tagKey.levels, r.tagValue.levels = &r.tags, &r.tags
	for _, c := range []column{
		&r.connect, &r.errorMessage, &r.traceID, &r.rounds, &r.firstProgress, &r.lastProgress, &r.progressGaps, &r.roundTimes, &r.cancelStop, &r.cacheTTL, &r.cacheScope,
	} {
		if l := c.base(); l.levels == nil {
			l.levels = &levels{rare: true}
		}
	}
	return []column{
		&r.runID, &r.group, &r.flow, &r.step, &r.trial, &r.target, &r.protocolVersion, &r.transport,
		&r.session, &r.iteration, &r.seq, &r.startedAt, &r.start, &r.intended, &r.lateness, &r.queued,
		&r.latency, &r.service, &r.ttfb, &r.connect, &r.method, &r.name, &r.outcome,
		&r.errorCode, &r.httpStatus, &r.errorMessage, &r.requestBytes, &r.responseBytes,
		&r.notifications, &r.progress, &r.retries, &r.taskPolls,
		&r.rounds, &r.firstProgress, &r.lastProgress, &r.progressGaps, &r.roundTimes, &r.cancelStop, &r.cacheTTL, &r.cacheScope,
		&r.checkName, &r.checkOK, &r.tagKey, &r.tagValue, &r.traceID, &r.warmup,
	}, "start_offset_ns"
}

func (r *requestColumns) prepare() {
	c := r.catalog
	r.runIndex = r.runID.of(r.run)
	r.groups, r.steps, r.protocols = r.groups[:0], r.steps[:0], r.protocols[:0]
	for i := range c.Groups {
		g := &c.Groups[i]
		r.groups = append(r.groups, groupIndexes{
			group: r.group.of(g.Name), flow: r.flow.of(g.Flow),
			transport: r.transport.of(c.Targets[g.Target].Transport), target: toInt32(g.Target),
		})
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		indexes := stepIndexes{step: r.step.of(s.ID), method: r.method.of(s.Method), name: r.name.of(s.Name)}
		for _, check := range s.Checks {
			indexes.checks = append(indexes.checks, r.checkName.of(check))
		}
		indexes.tags = r.tagsOf(nil, s.Tags)
		r.steps = append(r.steps, indexes)
	}
	for _, p := range c.Protocols {
		r.protocols = append(r.protocols, r.protocolVersion.of(p))
	}
	for o := range r.outcomes {
		r.outcomes[o] = r.outcome.of(metrics.Outcome(o).String())
	}
}

// tagsOf appends the indexes of tags, in the order of their keys.
func (r *requestColumns) tagsOf(dst []tagIndexes, tags map[string]string) []tagIndexes {
	r.keys = slices.AppendSeq(r.keys[:0], maps.Keys(tags))
	slices.Sort(r.keys)
	for _, key := range r.keys {
		dst = append(dst, tagIndexes{r.tagKey.of(key), r.tagValue.of(tags[key])})
	}
	return dst
}

// set puts a sample into a row of the page at hand.
func (r *requestColumns) set(row int, s *metrics.Sample) {
	group, step := &r.groups[s.Group], &r.steps[s.Step]
	r.runID.set(row, r.runIndex)
	r.group.set(row, group.group)
	r.flow.set(row, group.flow)
	r.step.set(row, step.step)
	r.trial.set(row, int32(s.Trial))
	r.target.set(row, group.target)
	r.protocolVersion.set(row, r.protocols[s.Proto])
	r.transport.set(row, group.transport)
	r.session.set(row, sessionNumber(s))
	r.iteration.set(row, iterationNumber(s))
	r.seq.set(row, int64(s.Seq))
	r.setTimes(row, s)
	r.method.set(row, step.method)
	r.name.set(row, step.name)
	r.outcome.set(row, r.outcomes[s.Outcome])
	r.errorCode.set(row, hasCode(s.Outcome), s.Code)
	r.httpStatus.set(row, s.HTTPStatus != 0, int32(s.HTTPStatus))
	r.requestBytes.set(row, toInt32(s.BytesOut))
	r.responseBytes.set(row, toInt32(s.BytesIn))
	r.notifications.set(row, int32(s.Notifications))
	r.progress.set(row, int32(s.Progress))
	if s.Rounds > 1 {
		r.rounds.set(row, true, int32(s.Rounds))
	}
	r.setChecks(row, s, step.checks)
	r.warmup.add(s.Phase != metrics.PhaseMeasured)
	r.setExtra(row, s, step)
}

func (r *requestColumns) setTimes(row int, s *metrics.Sample) {
	r.startedAt.set(row, r.t0+floorMicro(s.Start))
	r.start.set(row, int64(s.Start))
	late, open := s.Lateness()
	queued, _ := s.Queued()
	r.intended.set(row, open, int64(s.Intended))
	r.lateness.set(row, open, int64(late))
	r.queued.set(row, open, int64(queued))
	r.latency.set(row, int64(s.Latency()))
	r.service.set(row, int64(s.Service()))
	ttfb, ok := s.TTFB()
	r.ttfb.set(row, ok, int64(ttfb))
}

// setChecks adds one verdict for each check of the step: none when the outcome
// carries no verdicts, all failed when no answer could be checked.
func (r *requestColumns) setChecks(row int, s *metrics.Sample, checks []int32) {
	if !s.Outcome.CountsChecks() {
		checks = nil
	}
	r.checks.set(row, len(checks))
	for i, name := range checks {
		r.checkName.addIndex(name)
		r.checkOK.add(s.Outcome.Answered() && s.ChecksFailed&(1<<i) == 0)
	}
}

// setExtra puts in what only some samples have.
func (r *requestColumns) setExtra(row int, s *metrics.Sample, step *stepIndexes) {
	tags := step.tags
	var retries, polls int32
	if x := s.Extra; x != nil {
		retries, polls = int32(x.Retries), int32(x.TaskPolls)
		if x.Tags != nil { // they include those of the step
			tags = r.tagsOf(nil, x.Tags)
		}
		r.setRare(row, s.HasConnect, x)
	}
	r.retries.set(row, retries)
	r.taskPolls.set(row, polls)
	r.tags.set(row, len(tags))
	for _, tag := range tags {
		r.tagKey.addIndex(tag.key)
		r.tagValue.addIndex(tag.value)
	}
}

// setRare sets columns whose levels are rare.
func (r *requestColumns) setRare(row int, hasConnect bool, x *metrics.Extra) {
	if hasConnect {
		r.connect.set(row, true, int64(x.Connect))
	}
	if x.Message != "" {
		r.errorMessage.set(row, true, x.Message)
	}
	if x.TraceID != "" {
		r.traceID.set(row, true, x.TraceID)
	}
	if x.HasProgress {
		r.firstProgress.set(row, true, int64(x.FirstProgress))
		r.lastProgress.set(row, true, int64(x.LastProgress))
		r.progressGaps.levels.set(row, len(x.Gaps))
		for _, gap := range x.Gaps {
			r.progressGaps.add(int64(gap))
		}
	}
	if len(x.Rounds) > 0 {
		r.roundTimes.levels.set(row, len(x.Rounds))
		for _, round := range x.Rounds {
			r.roundTimes.add(int64(round))
		}
	}
	if x.HasCancelStop {
		r.cancelStop.set(row, true, int64(x.CancelStop))
	}
	if x.HasCache {
		r.cacheTTL.set(row, true, x.CacheTTL)
		if x.CacheScope != "" {
			r.cacheScope.set(row, true, x.CacheScope)
		}
	}
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
	for order := b.order.byStart(); len(order) > 0; runtime.Gosched() {
		n := min(len(order), yieldRows, p.rows.free())
		for i, index := range order[:n] {
			b.requests.set(p.rows.inPage+i, &b.pending[index])
		}
		if err := p.add(n); err != nil {
			return err
		}
		order = order[n:]
	}
	b.pending = b.pending[:0]
	return p.endGroup()
}

// sessionNumber is -1 for a request that came to no session: the column is
// part of the key and never null.
func sessionNumber(s *metrics.Sample) int64 {
	if s.Session == metrics.NoSession {
		return -1
	}
	return int64(s.Session)
}

// iterationNumber is -1 for a request of a step that a session has once: with the
// session it is the key of the row.
func iterationNumber(s *metrics.Sample) int64 {
	if s.Iteration == metrics.NoIteration {
		return -1
	}
	return toInt64(s.Iteration)
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
