// Package metrics turns samples into distributions, counts, thresholds and verdicts.
package metrics

import "time"

// Kind tells what a Sample measured.
type Kind uint8

const (
	// KindStep is one request; it makes one row of the requests table.
	KindStep Kind = iota
	// KindIteration is one arrival; it makes one row of the iterations table.
	KindIteration
	// KindConnect is one attempt to open a session; it feeds the connect
	// metric and makes no row. One that succeeded carries Extra.Session as far as
	// it is known then, so that the session has a row when the run is killed.
	KindConnect
	// KindSession is the end of one session, or an attempt that failed; it
	// makes one row of the sessions table and always carries Extra.Session.
	KindSession
)

// Phase tells in which part of the run a sample's intended start (closed load:
// start) fell.
type Phase uint8

// Phases. Setup is before the clock started: sessions dialled up front.
const (
	PhaseMeasured Phase = iota
	PhaseWarmup
	PhaseSetup
)

// String returns the name as it stands in results.
func (p Phase) String() string { return [...]string{"measured", "warmup", "setup"}[p] }

// NoOffset marks an offset that does not exist (Intended and Release in a closed load).
const NoOffset time.Duration = -1 << 63

// Sample is one finished thing, passed by value. Offsets count from the start
// of the run's clock on the monotonic clock; sessions dialled before it have
// negative ones. Invariant, where present: Intended ≤ Release ≤ Start ≤ FirstByte ≤ End;
// FirstByte equals End when no byte of an answer arrived, see TTFB; samples
// other than requests may leave it 0.
//
// For the first step of an iteration of an open load Intended is the arrival's
// intended start and Release the moment the pacer let it go. For later steps
// Intended is the end of the step before plus the drawn think time, and Release
// equals Start. In a closed load both are NoOffset.
//
// For KindIteration, Start is when a session took the arrival and End when its
// last step ended; a dropped arrival has Start = End = the moment of the drop.
type Sample struct {
	Intended, Release, Start, FirstByte, End time.Duration

	Iteration     uint64 // arrival index within the group, or NoIteration
	Session       uint32 // session number within the run; each reconnect is a new one; or NoSession
	Step          uint16 // index into Catalog.Steps; KindIteration: the first failed step, or NoStep
	Seq           uint16 // request's number within its iteration, from 0; KindIteration: requests made
	Code          int32  // meaning depends on Outcome: JSON-RPC code, errno class, limit, exit code
	HTTPStatus    uint16 // 0 when there was none
	Kind          Kind
	Phase         Phase
	Outcome       Outcome // KindIteration: an IterationOutcome, see IterOutcome
	Proto         uint8   // index into Catalog.Protocols
	Rounds        uint8   // exchanges made for this one step, normally 1; 0 for a wait or a notification
	Group         uint8   // index into Catalog.Groups
	BytesOut      uint32  // of the JSON-RPC messages sent
	BytesIn       uint32  // of the JSON-RPC messages received
	ChecksFailed  uint32  // bit i is set when check i of the step failed; see Outcome.CountsChecks
	Trial         uint16
	Notifications uint16 // received for this request
	Progress      uint16 // progress notifications among them
	HasConnect    bool   // Connect of Extra is valid: a new connection was opened for it
	Extra         *Extra // nil on the plain path
}

// NoStep in Sample.Step of an iteration: no step failed.
const NoStep = ^uint16(0)

// NoIteration in Sample.Iteration: the request is of a step that a session has once.
const NoIteration = ^uint64(0)

// NoSession in Sample.Session: no session had to do with it.
const NoSession = ^uint32(0)

// IterOutcome returns the outcome of a KindIteration sample.
func (s *Sample) IterOutcome() IterationOutcome { return IterationOutcome(s.Outcome) }

// Service returns the service time: from the send to the full answer.
func (s *Sample) Service() time.Duration { return s.End - s.Start }

// Latency returns the response time: from the intended start to the full
// answer in an open load, the service time in a closed one.
func (s *Sample) Latency() time.Duration {
	if s.Intended == NoOffset {
		return s.End - s.Start
	}
	return s.End - s.Intended
}

// Lateness returns how much later than intended our pacer released the work;
// ok is false in a closed load.
func (s *Sample) Lateness() (d time.Duration, ok bool) {
	if s.Intended == NoOffset {
		return 0, false
	}
	return s.Release - s.Intended, true
}

// Queued returns how long released work waited for a free session; ok is false
// in a closed load.
func (s *Sample) Queued() (d time.Duration, ok bool) {
	if s.Intended == NoOffset {
		return 0, false
	}
	return s.Start - s.Release, true
}

// TTFB returns the time from the send to the first byte of the answer; ok is
// false when none arrived. Where FirstByte equals End, which also holds for an
// answer read at once, the outcome tells.
func (s *Sample) TTFB() (d time.Duration, ok bool) {
	if s.FirstByte < s.Start || s.FirstByte > s.End {
		return 0, false
	}
	switch s.Outcome {
	case OK, CheckFailed, ToolError, RPCError, HTTPError:
		return s.FirstByte - s.Start, true
	case Timeout, ProtocolError, LimitExceeded, TransportError, ProcessExit, Cancelled, Interrupted,
		ClientError, ScriptError, Skipped, Dropped, AgentLost:
		return s.FirstByte - s.Start, s.FirstByte > s.Start && s.FirstByte < s.End
	}
	return 0, false
}

// Extra holds what only some samples carry.
type Extra struct {
	Connect   time.Duration // time to open a new connection for this request
	Retries   uint16
	TaskPolls uint16
	TraceID   string
	Tags      map[string]string
	Message   string // error text, masked and cut to 200 bytes by the one who sets it
	Session   *SessionInfo

	// FirstProgress and LastProgress count from the send to the first and the
	// last progress notification; valid when HasProgress. Gaps are the times
	// between them, of as many as were timed.
	FirstProgress, LastProgress time.Duration
	Gaps                        []time.Duration
	// Rounds are the times of the exchanges of a request that took several, in order.
	Rounds []time.Duration
	// CancelStop is the time from the cancellation until the server was seen to
	// have stopped; valid when HasCancelStop.
	CancelStop time.Duration

	// CacheTTL in milliseconds and CacheScope (public, private, other, or "" when
	// missing) are the hints on the result; valid when HasCache.
	CacheTTL   int64
	CacheScope string

	HasProgress, HasCancelStop, HasCache bool
}

// SessionInfo is what a row of the sessions table holds beyond its Sample.
// Durations are 0 where a phase did not happen. The Sample's Start and End are
// the start and end of the dialling; Outcome is that of the dialling.
type SessionInfo struct {
	Server, Transport          string
	Requested, Negotiated      string // protocol versions; Requested is "" when not pinned
	Era                        string // legacy or modern
	Spawn, TCP, TLS, Handshake time.Duration
	Ended                      time.Duration // offset of the session's end
	Requests                   int64
	// EndReason is run_end, lost, renewed, error, connect_failed or before_failed;
	// run_cut for a session that was open when the run was killed.
	EndReason string
	ExitCode  *int32 // of a stdio server that ended during the run
}
