package output

import "mcpbench/metrics"

type iterationNulls struct {
	session, intended, lateness, queued int64
	failedStep                          string
}

func fillIteration(row *iterationRow, nulls *iterationNulls, s *metrics.Sample, cat *metrics.Catalog) {
	group := &cat.Groups[s.Group]
	row.Trial, row.Group, row.Flow = int32(s.Trial), group.Name, group.Flow
	row.Iteration = toInt64(s.Iteration)
	outcome := s.IterOutcome()
	if outcome != metrics.IterDropped && s.Session != metrics.NoSession {
		row.Session = set(&nulls.session, int64(s.Session))
	}
	row.Start, row.End = int64(s.Start), int64(s.End)
	if late, open := s.Lateness(); open {
		queued, _ := s.Queued()
		row.Intended = set(&nulls.intended, int64(s.Intended))
		row.Lateness = set(&nulls.lateness, int64(late))
		row.Queued = set(&nulls.queued, int64(queued))
	}
	row.Outcome = outcome.String()
	if s.Step != metrics.NoStep {
		row.FailedStep = set(&nulls.failedStep, cat.Steps[s.Step].ID)
	}
	row.Steps = int32(s.Seq)
	row.Warmup = s.Phase != metrics.PhaseMeasured
}

type sessionNulls struct {
	spawn, tcp, tls, handshake             int64
	requested, negotiated, era, errMessage string
}

func fillSession(row *sessionRow, nulls *sessionNulls, s *metrics.Sample) {
	info := s.Extra.Session
	row.Session, row.Trial = sessionNumber(s), int32(s.Trial)
	row.Server, row.Transport = info.Server, info.Transport
	row.Requested = setNonzero(&nulls.requested, info.Requested)
	row.Negotiated = setNonzero(&nulls.negotiated, info.Negotiated)
	row.Era = setNonzero(&nulls.era, info.Era)
	row.Spawn = setNonzero(&nulls.spawn, int64(info.Spawn))
	row.TCP = setNonzero(&nulls.tcp, int64(info.TCP))
	row.TLS = setNonzero(&nulls.tls, int64(info.TLS))
	row.Handshake = setNonzero(&nulls.handshake, int64(info.Handshake))
	row.Outcome, row.Error = s.Outcome.String(), setNonzero(&nulls.errMessage, s.Extra.Message)
	row.Requests, row.EndReason, row.ExitCode = info.Requests, info.EndReason, info.ExitCode
}
