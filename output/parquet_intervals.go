package output

import (
	"cmp"
	"errors"
	"fmt"

	"mcpbench/metrics"
)

// intervalQuantiles are those of the columns p50_ns to p999_ns.
var intervalQuantiles = [...]float64{50, 90, 99, 99.9}

// WriteIntervals takes the figures of finished seconds.
func (p *Parquet) WriteIntervals(rows []metrics.Interval) error {
	out := make([]intervalRow, len(rows))
	for i := range rows {
		if err := p.fillInterval(&out[i], &rows[i]); err != nil {
			return fmt.Errorf("write %s: %w", p.intervals.path(), err)
		}
	}
	return p.intervals.write(out)
}

func (p *Parquet) fillInterval(row *intervalRow, v *metrics.Interval) (err error) {
	step := &p.catalog.Steps[v.Step]
	group := &p.catalog.Groups[step.Group]
	row.Trial, row.Target = int32(v.Trial), toInt32(group.Target)
	row.Group, row.Step = group.Name, step.ID
	row.ProtocolVersion = p.catalog.Protocols[v.Proto]
	row.Transport = p.catalog.Targets[group.Target].Transport
	row.Second, row.Phase, row.OutcomeClass = v.Second, v.Phase.String(), v.Class.String()
	row.Outcomes = outcomeMap(&v.Outcomes)
	for i, name := range step.Checks {
		c := checkCountRow{Name: name}
		if i < len(v.Passed) {
			c.Passed = v.Passed[i]
		}
		if i < len(v.Failed) {
			c.Failed = v.Failed[i]
		}
		if c.Passed+c.Failed > 0 {
			row.Checks = append(row.Checks, c)
		}
	}
	row.Count, row.BytesSent, row.BytesReceived = v.Count, v.BytesOut, v.BytesIn
	if h := v.Hist; h != nil && h.TotalCount() > 0 {
		// A bucket's upper bound may lie above the greatest value in it.
		top := cmp.Or(int64(v.Max), h.Max())
		figures := [len(intervalQuantiles) + 1]int64{len(intervalQuantiles): top}
		for i, q := range intervalQuantiles {
			figures[i] = min(h.ValueAtQuantile(metrics.NearestRank(q, h.TotalCount())), top)
		}
		row.P50, row.P90, row.P99, row.P999, row.Max = &figures[0], &figures[1], &figures[2], &figures[3], &figures[4]
	}
	if row.Hist, err = p.encoder.encode(v.Hist); err != nil {
		return err
	}
	row.ServiceHist, err = p.encoder.encode(v.Service)
	return err
}

// outcomeMap returns the outcomes that occurred.
func outcomeMap(n *[metrics.NumOutcomes]int64) map[string]int64 {
	m := make(map[string]int64, 2)
	for o, count := range n {
		if count > 0 {
			m[metrics.Outcome(o).String()] = count
		}
	}
	return m
}

// WriteLoad takes the load rows of finished seconds.
func (p *Parquet) WriteLoad(rows []metrics.LoadRow) error {
	out := make([]loadRow, len(rows))
	for i := range rows {
		v := &rows[i]
		lateness, lateErr := p.encoder.encode(v.Lateness)
		queued, queuedErr := p.encoder.encode(v.Queued)
		if err := errors.Join(lateErr, queuedErr); err != nil {
			return fmt.Errorf("write %s: %w", p.load.path(), err)
		}
		out[i] = loadRow{
			Trial: int32(v.Trial), Group: p.catalog.Groups[v.Group].Name,
			Second: v.Second, Phase: v.Phase.String(),
			Intended: v.Intended, Started: v.Started, Completed: v.Completed, Dropped: v.Dropped,
			SessionsWanted: toInt32(v.SessionsWanted), SessionsActive: toInt32(v.SessionsActive),
			SessionsConnecting: toInt32(v.SessionsConnecting), InFlight: toInt32(v.InFlight),
			LatenessHist: lateness, QueuedHist: queued,
		}
	}
	return p.load.write(out)
}
