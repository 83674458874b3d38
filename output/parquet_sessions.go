package output

import "mcpbench/metrics"

func fillSession(row *sessionRow, s *metrics.Sample) {
	info := s.Extra.Session
	row.Session, row.Trial = sessionNumber(s), int32(s.Trial)
	row.Server, row.Transport = info.Server, info.Transport
	row.Requested = nonzero(info.Requested)
	row.Negotiated = nonzero(info.Negotiated)
	row.Era = nonzero(info.Era)
	row.Spawn = nonzero(int64(info.Spawn))
	row.TCP = nonzero(int64(info.TCP))
	row.TLS = nonzero(int64(info.TLS))
	row.Handshake = nonzero(int64(info.Handshake))
	row.Outcome, row.Error = s.Outcome.String(), nonzero(s.Extra.Message)
	row.Requests, row.EndReason, row.ExitCode = info.Requests, info.EndReason, info.ExitCode
}

// nonzero is a nullable value for columns in which 0 means that there was no such thing.
func nonzero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
