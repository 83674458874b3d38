package output

import (
	"math"
	"time"

	"mcpbench/metrics"
)

// WriteRuns writes the runs table, one row a trial of s, as one complete file.
// It belongs to the end of a run: the summary is made after the sinks are closed.
func WriteRuns(c ParquetConfig, s *metrics.Summary) error {
	meta := c.meta()
	tc, err := tablesOf(c.Folder.Path(), &meta)
	if err != nil {
		return err
	}
	p, err := newPart[runRow](&tc, "runs", 0, nil)
	if err != nil {
		return err
	}
	rows := make([]runRow, len(s.Trials))
	for i := range s.Trials {
		fillRun(&rows[i], &c, s, &s.Trials[i])
	}
	_ = p.write(rows...) // the part keeps it
	if err := p.complete(); err != nil {
		return err
	}
	return p.publish()
}

func fillRun(row *runRow, c *ParquetConfig, s *metrics.Summary, t *metrics.TrialSummary) {
	row.Trial, row.Target = toInt32(t.Trial), toInt32(t.Target)
	row.Labels = s.Tags
	if c.Run != nil {
		row.Versions.Mcpbench, row.Versions.Go = c.Run.Mcpbench, c.Run.normal().Go
		row.Host = runHost{
			Hostname: c.Run.Host.Hostname, OS: c.Run.Host.OS, Arch: c.Run.Host.Arch,
			CPUs: toInt32(c.Run.Host.CPUs),
		}
	}
	if t.Target < len(s.Targets) {
		target := &s.Targets[t.Target]
		row.Versions.Protocol = target.ProtocolVersion
		row.Versions.ServerName, row.Versions.Server = target.ServerInfo.Name, target.ServerInfo.Version
	}
	row.StartedAt = t.StartedAt.UnixMicro()
	row.Duration = nanoseconds(t.DurationS * 1e3)
	r := &t.Requests
	row.Counts = runCounts{
		Requests: r.Total, OK: r.OK, Failed: r.Failed, Other: r.Other, ChecksFailed: r.ChecksFailed,
		Outcomes: r.Outcomes, BytesSent: r.BytesSent, BytesReceived: r.BytesReceived,
	}
	for i := range t.Steps {
		step := &t.Steps[i]
		for _, d := range []struct {
			metric string
			q      *metrics.Quantiles
		}{
			{"latency", step.Latency},
			{"service", step.Service},
			{"ttfb", step.TTFB},
			{"failed", step.Failed},
			{"gap", step.Gap},
			{"first_progress", step.FirstProgress},
			{"cancel_stop", step.CancelStop},
		} {
			if d.q != nil {
				row.Quantiles = append(row.Quantiles, quantilesRow(step, d.metric, d.q))
			}
		}
	}
	row.Verdict = s.Verdict
}

func quantilesRow(step *metrics.StepSummary, metric string, q *metrics.Quantiles) runQuantiles {
	return runQuantiles{
		Group: step.Group, Step: step.Step, Metric: metric, Count: q.Count,
		Min: nanoseconds(q.Min), Mean: nanoseconds(q.Mean), P50: nanoseconds(q.P50), P90: nanoseconds(q.P90),
		P99: nanoseconds(q.P99), P999: nanoseconds(q.P999), Max: nanoseconds(q.Max),
	}
}

// nanoseconds turns the milliseconds of a summary back into whole nanoseconds.
func nanoseconds(ms float64) int64 { return int64(math.Round(ms * float64(time.Millisecond))) }
