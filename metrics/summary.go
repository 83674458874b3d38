package metrics

import "time"

// Summary is the JSON object of --json and summary.json, schema version 1.
// Durations are milliseconds; a nil pointer prints as null. Keys are a
// contract: added to, never renamed.
type Summary struct {
	SchemaVersion int               `json:"schema_version"`
	RunID         string            `json:"run_id"`
	Scenario      string            `json:"scenario"`
	Verdict       string            `json:"verdict"` // passed, failed, unsound, error, interrupted
	ExitCode      int               `json:"exit_code"`
	Error         string            `json:"error,omitempty"` // why the run could not finish
	StartedAt     time.Time         `json:"started_at"`      // microseconds, UTC
	DurationS     float64           `json:"duration_s"`      // the measured phase
	WarmupS       float64           `json:"warmup_s"`
	Seed          uint64            `json:"seed"`
	ResultsDir    string            `json:"results_dir"`
	Tags          map[string]string `json:"tags,omitempty"`
	Targets       []TargetSummary   `json:"targets"`
	Sessions      SessionsSummary   `json:"sessions"`
	Iterations    IterationsSummary `json:"iterations"`
	Requests      RequestsSummary   `json:"requests"`
	Steps         []StepSummary     `json:"steps"`
	Checks        []CheckSummary    `json:"checks"`
	Thresholds    []ThresholdResult `json:"thresholds"`
	Anomalies     map[string]int64  `json:"anomalies"`
	// ServerRequests are what the servers asked of the clients, over the whole run.
	ServerRequests []ServerRequestSummary `json:"server_requests,omitempty"`
	Errors         []ErrorSummary         `json:"errors"`
	Load           []LoadSummary          `json:"load"`
	Soundness      Soundness              `json:"soundness"`
	Find           *FindSummary           `json:"find,omitempty"` // of --find
	Trials         []TrialSummary         `json:"trials"`
	Servers        []ServerSummary        `json:"servers"`
}

// TargetSummary is one entry of targets.
type TargetSummary struct {
	Server          string     `json:"server"`
	Transport       string     `json:"transport"`
	ProtocolVersion string     `json:"protocol_version"`
	Era             string     `json:"era"` // legacy or modern, "" when nothing is known
	ServerInfo      ServerInfo `json:"server_info"`
	HTTPEngine      string     `json:"http_engine,omitempty"` // fast or std
	Probe           []string   `json:"probe,omitempty"`       // what was tried, when nothing was pinned
}

// ServerInfo is the name and version that the server gave.
type ServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// SessionsSummary counts sessions over the whole run, warm-up and setup included.
type SessionsSummary struct {
	Opened   int64            `json:"opened"`
	Failed   int64            `json:"failed"`
	Reopened int64            `json:"reopened"` // opened in place of one that was lost
	Closed   int64            `json:"closed"`   // closed in order at the end
	Connect  *Quantiles       `json:"connect_ms"`
	Outcomes map[string]int64 `json:"outcomes"`
}

// IterationsSummary counts the iterations of the measured phase. The six counts
// after Total add up to it. Latency is that of completed and failed ones.
type IterationsSummary struct {
	Total       int64      `json:"total"`
	Completed   int64      `json:"completed"`
	Failed      int64      `json:"failed"`
	Dropped     int64      `json:"dropped"`
	Interrupted int64      `json:"interrupted"`
	ScriptError int64      `json:"script_error"`
	AgentLost   int64      `json:"agent_lost"`
	Latency     *Quantiles `json:"latency_ms"`
}

// RequestsSummary counts the requests of the measured phase; Total = OK + Failed + Other.
type RequestsSummary struct {
	Total         int64            `json:"total"`
	OK            int64            `json:"ok"`
	Failed        int64            `json:"failed"`
	Other         int64            `json:"other"`
	ChecksFailed  int64            `json:"checks_failed"` // requests with at least one failed check
	RatePerS      float64          `json:"rate_per_s"`
	Outcomes      map[string]int64 `json:"outcomes"`
	BytesSent     int64            `json:"bytes_sent"`
	BytesReceived int64            `json:"bytes_received"`
	// Open are the ages of the requests that were still open when the load ended and
	// were then interrupted; absent when there was none.
	Open *Quantiles `json:"open_ms,omitempty"`
}

// StepSummary holds the measured phase of one step on one target.
type StepSummary struct {
	Step            string           `json:"step"`
	Group           string           `json:"group"`
	Method          string           `json:"method"`
	Name            string           `json:"name"`
	Target          int              `json:"target"`
	Server          string           `json:"server"`
	Transport       string           `json:"transport"`
	ProtocolVersion string           `json:"protocol_version"`
	Count           int64            `json:"count"`
	Outcomes        map[string]int64 `json:"outcomes"`
	Codes           map[string]int64 `json:"codes"` // "rpc_error:-32603"
	Latency         *Quantiles       `json:"latency_ms"`
	Service         *Quantiles       `json:"service_ms"`
	TTFB            *Quantiles       `json:"ttfb_ms"`
	Failed          *Quantiles       `json:"failed_ms"`
	// Gap, FirstProgress, Round and CancelStop are there for steps that have such values.
	Gap           *Quantiles `json:"gap_ms,omitempty"`            // between progress notifications
	FirstProgress *Quantiles `json:"first_progress_ms,omitempty"` // from the send
	Round         *Quantiles `json:"round_ms,omitempty"`          // each exchange of the requests that took several
	CancelStop    *Quantiles `json:"cancel_stop_ms,omitempty"`    // from the cancellation to the end, where it was seen
	// Cache has the hints that answers of 2026-07-28 carried; nil when none did.
	Cache *CacheSummary `json:"cache,omitempty"`
	// Part is before or after for a step that a session has once, whose requests
	// are no part of the load and not counted here.
	Part string `json:"part,omitempty"`
	// Trend is the p50 latency of equal parts of the measured phase, for the
	// sparkline; null where a part had no sample.
	Trend []*float64 `json:"trend_ms"`
}

// Quantiles are the figures of one distribution, in milliseconds. A nil
// *Quantiles means no sample. AtTimeout lists the figures ("p99", "max", …) that fall on a request
// that timed out; they are lower bounds and print as ">5s".
type Quantiles struct {
	Count     int64    `json:"count"`
	Min       float64  `json:"min"`
	Mean      float64  `json:"mean"`
	P50       float64  `json:"p50"`
	P90       float64  `json:"p90"`
	P99       float64  `json:"p99"`
	P999      float64  `json:"p999"`
	Max       float64  `json:"max"`
	Over      int64    `json:"over,omitempty"` // values above an hour; percentiles take them as one hour
	AtTimeout []string `json:"at_timeout,omitempty"`
}

// CheckSummary counts one check by name over the measured phase.
type CheckSummary struct {
	Name   string `json:"name"`
	Step   string `json:"step"`
	Passed int64  `json:"passed"`
	Failed int64  `json:"failed"`
}

// ThresholdResult is one threshold and its value; Value is nil when nothing was
// measured for it, and OK is then false. Unit is that of Value: "ms" for every
// time, "%" or "" (0 to 1) for a share, "/s" for a rate, the unit as written
// for bytes, "" for a count.
type ThresholdResult struct {
	Expr    string   `json:"expr"`
	Value   *float64 `json:"value"`
	Unit    string   `json:"unit,omitempty"`
	OK      bool     `json:"ok"`
	Default bool     `json:"default,omitempty"` // the user named none
	// AtTimeout says that Value falls on a request that timed out and is a lower bound.
	AtTimeout bool `json:"at_timeout,omitempty"`
	// Aborted says that the threshold ended the run; OK is then false, also when
	// Value is within it. It did AbortedAtS seconds after the start of the measured
	// phase, when WindowValue, in Unit, was seen over the last WindowS seconds.
	Aborted     bool     `json:"aborted,omitempty"`
	AbortedAtS  float64  `json:"aborted_at_s,omitempty"`
	WindowValue *float64 `json:"window_value,omitempty"`
	WindowS     float64  `json:"window_s,omitempty"`
}

// ErrorSummary is one kind of failure: the same outcome, code and masked
// message, of the requests of the measured phase and of all attempts to open a
// session (Step is then ""). FirstS and LastS are seconds since the clock
// started, negative before. Kinds beyond the thousandth are counted as "other messages".
type ErrorSummary struct {
	Outcome string  `json:"outcome"`
	Code    int32   `json:"code"`
	Message string  `json:"message"`
	Step    string  `json:"step,omitempty"`
	Count   int64   `json:"count"`
	FirstS  float64 `json:"first_s"`
	LastS   float64 `json:"last_s"`
}

// LoadSummary says, for one group, what was asked for and what was reached in the measured phase.
type LoadSummary struct {
	Group        string     `json:"group"`
	Model        string     `json:"model"`           // open or closed
	Pacer        string     `json:"pacer,omitempty"` // of an open load: economical or precise
	Intended     int64      `json:"intended"`
	Started      int64      `json:"started"`
	Dropped      int64      `json:"dropped"`
	RatePerS     float64    `json:"rate_per_s"`     // intended arrivals per second; closed: iterations begun
	AchievedPerS float64    `json:"achieved_per_s"` // rate at which iterations really started
	Lateness     *Quantiles `json:"lateness_ms"`
	Queued       *Quantiles `json:"queued_ms"`
	Sessions     int        `json:"sessions"`
}

// Soundness says whether the load generator itself was the limit.
type Soundness struct {
	Verdict  string     `json:"verdict"` // sound, doubtful, unsound
	Reasons  []string   `json:"reasons"`
	Notes    []string   `json:"notes"` // to bear in mind; they make the run no less sound
	Lateness *Quantiles `json:"lateness_ms"`
	// What this process used of the machine; see OwnUse. A nil is not known.
	CPUS          float64  `json:"cpu_s"`
	CPUUserS      float64  `json:"cpu_user_s"`
	CPUSystemS    float64  `json:"cpu_system_s"`
	CPUShareMax   *float64 `json:"cpu_share_max"`
	GCPause       float64  `json:"gc_pause_ms_max"`
	GoroutinesMax *int64   `json:"goroutines_max"`
	FDsMax        *int64   `json:"fds_max"`
	FDsLimit      *int64   `json:"fds_limit"`
	PortsMax      *int64   `json:"ports_max"`
	PortsLimit    *int64   `json:"ports_limit"`
	TimeWaitMax   *int64   `json:"time_wait_max"`
	FloorUS       *float64 `json:"floor_us"` // the greatest of Calibration; nil: not calibrated
	// Calibration has this machine's own floor for each kind of transport in use.
	Calibration []Calibration `json:"calibration,omitempty"`
}

// TrialSummary is one run of one target.
type TrialSummary struct {
	Trial     int             `json:"trial"`
	Target    int             `json:"target"`
	StartedAt time.Time       `json:"started_at"`
	DurationS float64         `json:"duration_s"`
	Requests  RequestsSummary `json:"requests"`
	Steps     []StepSummary   `json:"steps"`
	Soundness Soundness       `json:"soundness"`
}

// ServerSummary is what was seen of a server's process.
type ServerSummary struct {
	Name string `json:"name"`
}

// FindSummary is what a search for the highest load found, before the run that the
// rest of the summary is about, which was made at Held, or at From when nothing held.
type FindSummary struct {
	Expr      string      `json:"expr"`
	Over      string      `json:"over"` // rate, in arrivals per second, or sessions
	From      float64     `json:"from"`
	To        float64     `json:"to"`
	Held      float64     `json:"held"`      // the highest at which the expression held; 0: none
	Failed    *float64    `json:"failed"`    // the lowest above it at which it did not; null: none
	Confirmed bool        `json:"confirmed"` // it held three times
	Probes    []FindProbe `json:"probes"`
}

// FindProbe is one try of a search.
type FindProbe struct {
	Level  float64           `json:"level"`
	Held   bool              `json:"held"`
	Sound  string            `json:"soundness"` // an unsound try does not hold
	RatePS float64           `json:"rate_per_s"`
	P50    float64           `json:"p50_ms"` // of the latency
	P99    float64           `json:"p99_ms"`
	Errors int64             `json:"errors"`
	Values []ThresholdResult `json:"values"`
}
