package output

import (
	"cmp"
	"errors"

	"mcpbench/metrics"
)

// intervalQuantiles are those of the columns p50_ns to p999_ns.
var intervalQuantiles = [...]float64{50, 90, 99, 99.9}

func fillInterval(row *intervalRow, v *metrics.Interval, cat *metrics.Catalog, encoder *histEncoder) (err error) {
	step := &cat.Steps[v.Step]
	group := &cat.Groups[step.Group]
	row.Trial, row.Target = int32(v.Trial), toInt32(group.Target)
	row.Group, row.Step = group.Name, step.ID
	row.ProtocolVersion = cat.Protocols[v.Proto]
	row.Transport = cat.Targets[group.Target].Transport
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
	if row.Hist, err = encoder.encode(v.Hist); err != nil {
		return err
	}
	row.ServiceHist, err = encoder.encode(v.Service)
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

func fillLoad(row *loadRow, v *metrics.LoadRow, cat *metrics.Catalog, encoder *histEncoder) error {
	lateness, lateErr := encoder.encode(v.Lateness)
	queued, queuedErr := encoder.encode(v.Queued)
	*row = loadRow{
		Trial: int32(v.Trial), Group: cat.Groups[v.Group].Name,
		Second: v.Second, Phase: v.Phase.String(),
		Intended: v.Intended, Started: v.Started, Completed: v.Completed, Dropped: v.Dropped,
		SessionsWanted: toInt32(v.SessionsWanted), SessionsActive: toInt32(v.SessionsActive),
		SessionsConnecting: toInt32(v.SessionsConnecting), InFlight: toInt32(v.InFlight),
		LatenessHist: lateness, QueuedHist: queued,
	}
	return errors.Join(lateErr, queuedErr)
}
