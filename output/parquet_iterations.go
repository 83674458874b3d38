package output

import "mcpbench/metrics"

// iterationColumns are the columns of the table iterations, see iterationRow.
type iterationColumns struct {
	trial             ints[int32]
	group, flow       labels
	iteration         ints[int64]
	session, intended maybeInts[int64]
	start, end        ints[int64]
	lateness, queued  maybeInts[int64]
	outcome           labels
	failedStep        maybeLabels
	steps             ints[int32]
	warmup            flags

	catalog *metrics.Catalog
	// Indexes into the dictionaries of the row group at hand.
	groups   []groupIndexes
	outcomes [metrics.NumIterationOutcomes]int32
}

func (r *iterationColumns) columns() (all []column, sortedBy string) {
	return []column{
		&r.trial, &r.group, &r.flow, &r.iteration, &r.session, &r.intended, &r.start, &r.end,
		&r.lateness, &r.queued, &r.outcome, &r.failedStep, &r.steps, &r.warmup,
	}, ""
}

func (r *iterationColumns) prepare() {
	r.groups = r.groups[:0]
	for i := range r.catalog.Groups {
		g := &r.catalog.Groups[i]
		r.groups = append(r.groups, groupIndexes{group: r.group.of(g.Name), flow: r.flow.of(g.Flow)})
	}
	for o := range r.outcomes {
		r.outcomes[o] = r.outcome.of(metrics.IterationOutcome(o).String())
	}
}

// set puts a sample into a row of the page at hand.
func (r *iterationColumns) set(row int, s *metrics.Sample) {
	group, outcome := &r.groups[s.Group], s.IterOutcome()
	r.trial.set(row, int32(s.Trial))
	r.group.set(row, group.group)
	r.flow.set(row, group.flow)
	r.iteration.set(row, toInt64(s.Iteration))
	r.session.set(row, outcome != metrics.IterDropped && s.Session != metrics.NoSession, int64(s.Session))
	late, open := s.Lateness()
	queued, _ := s.Queued()
	r.intended.set(row, open, int64(s.Intended))
	r.start.set(row, int64(s.Start))
	r.end.set(row, int64(s.End))
	r.lateness.set(row, open, int64(late))
	r.queued.set(row, open, int64(queued))
	r.outcome.set(row, r.outcomes[outcome])
	failed := ""
	if s.Step != metrics.NoStep {
		failed = r.catalog.Steps[s.Step].ID
	}
	r.failedStep.set(row, s.Step != metrics.NoStep, failed)
	r.steps.set(row, int32(s.Seq))
	r.warmup.add(s.Phase != metrics.PhaseMeasured)
}
