package output

import "math"

// The row types below are the schema of the results: the order of the fields
// is that of the columns, and the names are a contract. Nullable columns are
// pointers, into blocks that are reused with the rows where rows are many. The
// library's own optional tag on plain values is no way: parquet-go 0.32 then
// writes the zero value in place of some nulls, by the pattern of the nulls.

type requestRow struct {
	RunID           string             `parquet:"run_id,dict"`
	Group           string             `parquet:"group,dict"`
	Flow            string             `parquet:"flow,dict"`
	Step            string             `parquet:"step,dict"`
	Trial           int32              `parquet:"trial"`
	Target          int32              `parquet:"target"`
	ProtocolVersion string             `parquet:"protocol_version,dict"`
	Transport       string             `parquet:"transport,dict"`
	Session         int64              `parquet:"session,delta"`
	Iteration       int64              `parquet:"iteration,delta"`
	Seq             int64              `parquet:"seq,delta"`
	StartedAt       int64              `parquet:"started_at,delta,timestamp(microsecond:utc)"`
	Start           int64              `parquet:"start_offset_ns,delta"`
	Intended        *int64             `parquet:"intended_offset_ns"`
	Lateness        *int64             `parquet:"lateness_ns"`
	Queued          *int64             `parquet:"queued_ns"`
	Latency         int64              `parquet:"latency_ns"`
	Service         int64              `parquet:"service_ns"`
	TTFB            *int64             `parquet:"ttfb_ns"`
	Connect         *int64             `parquet:"connect_ns"`
	Method          string             `parquet:"method,dict"`
	Name            string             `parquet:"name,dict"`
	Outcome         string             `parquet:"outcome,dict"`
	ErrorCode       *int32             `parquet:"error_code"`
	HTTPStatus      *int32             `parquet:"http_status"`
	ErrorMessage    *string            `parquet:"error_message,dict"`
	RequestBytes    int32              `parquet:"request_bytes"`
	ResponseBytes   int32              `parquet:"response_bytes"`
	Notifications   int32              `parquet:"notifications"`
	Progress        int32              `parquet:"progress"`
	Retries         int32              `parquet:"retries"`
	TaskPolls       int32              `parquet:"task_polls"`
	Rounds          *int32             `parquet:"rounds"`            // exchanges, where they are several
	FirstProgress   *int64             `parquet:"first_progress_ns"` // this and the next from the send, null without progress
	LastProgress    *int64             `parquet:"last_progress_ns"`
	ProgressGaps    []int64            `parquet:"progress_gaps_ns,list"`
	RoundTimes      []int64            `parquet:"round_ns,list"`  // of each exchange, where they are several
	CancelStop      *int64             `parquet:"cancel_stop_ns"` // from the cancellation, null when no end was seen
	CacheTTL        *int64             `parquet:"cache_ttl_ms"`   // null when the answer had no hint
	CacheScope      *string            `parquet:"cache_scope,dict"`
	Checks          []checkRow         `parquet:"checks,list"`
	Tags            *map[string]string `parquet:"tags"`
	TraceID         *string            `parquet:"trace_id"`
	Warmup          bool               `parquet:"warmup"`
}

type checkRow struct {
	Name string `parquet:"name,dict"`
	OK   bool   `parquet:"ok"`
}

type iterationRow struct {
	Trial      int32   `parquet:"trial"`
	Group      string  `parquet:"group,dict"`
	Flow       string  `parquet:"flow,dict"`
	Iteration  int64   `parquet:"iteration,delta"`
	Session    *int64  `parquet:"session"` // null when dropped: no session took it
	Intended   *int64  `parquet:"intended_offset_ns"`
	Start      int64   `parquet:"start_offset_ns,delta"`
	End        int64   `parquet:"end_offset_ns,delta"`
	Lateness   *int64  `parquet:"lateness_ns"`
	Queued     *int64  `parquet:"queued_ns"`
	Outcome    string  `parquet:"outcome,dict"`
	FailedStep *string `parquet:"failed_step,dict"`
	Steps      int32   `parquet:"steps"`
	Warmup     bool    `parquet:"warmup"`
}

type sessionRow struct {
	Session    int64   `parquet:"session,delta"`
	Server     string  `parquet:"server,dict"`
	Trial      int32   `parquet:"trial"`
	Transport  string  `parquet:"transport,dict"`
	Requested  *string `parquet:"requested_version,dict"`  // null when not pinned
	Negotiated *string `parquet:"negotiated_version,dict"` // null when none was agreed
	Era        *string `parquet:"era,dict"`
	Spawn      *int64  `parquet:"spawn_ns"` // this and the next three: null when there was no such phase
	TCP        *int64  `parquet:"tcp_ns"`
	TLS        *int64  `parquet:"tls_ns"`
	Handshake  *int64  `parquet:"handshake_ns"`
	Outcome    string  `parquet:"outcome,dict"` // of the dialling
	Error      *string `parquet:"error,dict"`
	Requests   int64   `parquet:"requests"`
	EndReason  string  `parquet:"end_reason,dict"`
	ExitCode   *int32  `parquet:"exit_code"`
}

type intervalRow struct {
	Trial           int32            `parquet:"trial"`
	Target          int32            `parquet:"target"`
	Group           string           `parquet:"group,dict"`
	Step            string           `parquet:"step,dict"`
	ProtocolVersion string           `parquet:"protocol_version,dict"`
	Transport       string           `parquet:"transport,dict"`
	Second          int64            `parquet:"second,delta"`
	Phase           string           `parquet:"phase,dict"`
	OutcomeClass    string           `parquet:"outcome_class,dict"`
	Outcomes        map[string]int64 `parquet:"outcomes"`
	Checks          []checkCountRow  `parquet:"checks,list"`
	Count           int64            `parquet:"count"`
	BytesSent       int64            `parquet:"bytes_sent"`
	BytesReceived   int64            `parquet:"bytes_received"`
	P50             *int64           `parquet:"p50_ns"` // this and the next four: latency, null without a histogram
	P90             *int64           `parquet:"p90_ns"`
	P99             *int64           `parquet:"p99_ns"`
	P999            *int64           `parquet:"p999_ns"`
	Max             *int64           `parquet:"max_ns"`
	Hist            *[]byte          `parquet:"hist"`
	ServiceHist     *[]byte          `parquet:"service_hist"`
}

type checkCountRow struct {
	Name   string `parquet:"name,dict"`
	Passed int64  `parquet:"passed"`
	Failed int64  `parquet:"failed"`
}

type loadRow struct {
	Trial              int32   `parquet:"trial"`
	Group              string  `parquet:"group,dict"`
	Second             int64   `parquet:"second,delta"`
	Phase              string  `parquet:"phase,dict"`
	Intended           int64   `parquet:"intended"`
	Started            int64   `parquet:"started"`
	Completed          int64   `parquet:"completed"`
	Dropped            int64   `parquet:"dropped"`
	SessionsWanted     int32   `parquet:"sessions_wanted"`
	SessionsActive     int32   `parquet:"sessions_active"`
	SessionsConnecting int32   `parquet:"sessions_connecting"`
	InFlight           int32   `parquet:"in_flight"`
	LatenessHist       *[]byte `parquet:"lateness_hist"` // null in a closed load
	QueuedHist         *[]byte `parquet:"queued_hist"`
}

type runRow struct {
	Trial     int32             `parquet:"trial"`
	Target    int32             `parquet:"target"`
	Labels    map[string]string `parquet:"labels"`
	Versions  runVersions       `parquet:"versions"`
	Host      runHost           `parquet:"host"`
	StartedAt int64             `parquet:"started_at,timestamp(microsecond:utc)"`
	Duration  int64             `parquet:"duration_ns"` // of the measured phase
	Counts    runCounts         `parquet:"counts"`
	Quantiles []runQuantiles    `parquet:"quantiles,list"`
	Verdict   string            `parquet:"verdict,dict"`
}

type runVersions struct {
	Mcpbench   string `parquet:"mcpbench,dict"`
	Go         string `parquet:"go,dict"`
	Protocol   string `parquet:"protocol,dict"` // negotiated
	ServerName string `parquet:"server_name,dict"`
	Server     string `parquet:"server,dict"`
}

type runHost struct {
	Hostname string `parquet:"hostname,dict"`
	OS       string `parquet:"os,dict"`
	Arch     string `parquet:"arch,dict"`
	CPUs     int32  `parquet:"cpus"`
}

type runCounts struct {
	Requests      int64            `parquet:"requests"`
	OK            int64            `parquet:"ok"`
	Failed        int64            `parquet:"failed"`
	Other         int64            `parquet:"other"`
	ChecksFailed  int64            `parquet:"checks_failed"`
	Outcomes      map[string]int64 `parquet:"outcomes"`
	BytesSent     int64            `parquet:"bytes_sent"`
	BytesReceived int64            `parquet:"bytes_received"`
}

// runQuantiles holds one distribution of one step: metric is latency, service,
// ttfb, failed, gap, first_progress or cancel_stop.
type runQuantiles struct {
	Group  string `parquet:"group,dict"`
	Step   string `parquet:"step,dict"`
	Metric string `parquet:"metric,dict"`
	Count  int64  `parquet:"count"`
	Min    int64  `parquet:"min_ns"`
	Mean   int64  `parquet:"mean_ns"`
	P50    int64  `parquet:"p50_ns"`
	P90    int64  `parquet:"p90_ns"`
	P99    int64  `parquet:"p99_ns"`
	P999   int64  `parquet:"p999_ns"`
	Max    int64  `parquet:"max_ns"`
}

// toInt32 and toInt64 convert to the type of a column. What does not fit is
// the greatest that does; nothing that we count comes near it.
func toInt32[T int | uint32](n T) int32 { return int32(min(n, math.MaxInt32)) }

func toInt64(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
