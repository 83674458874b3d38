package output_test

import (
	"strings"
	"time"

	"mcpbench/metrics"
)

func quantiles(p50, p90, p99, p999, top float64) *metrics.Quantiles {
	return &metrics.Quantiles{Count: 1, Min: p50 / 2, Mean: p50, P50: p50, P90: p90, P99: p99, P999: p999, Max: top}
}

func trendOf(values ...float64) []*float64 {
	out := make([]*float64, len(values))
	for i := range values {
		if values[i] >= 0 {
			out[i] = &values[i]
		}
	}
	return out
}

// failingRun is the run of the design document: 20 sessions, three steps, one
// of three thresholds failed.
func failingRun() *metrics.Summary {
	lateness := quantiles(0.05, 0.1, 0.4, 0.9, 1.2)
	return &metrics.Summary{
		SchemaVersion: 1, RunID: "01JDX3K7ZZZZZZZZZZZZZZZZZZ", Scenario: "catalog-read-mostly",
		Verdict: metrics.VerdictFailed, ExitCode: 99,
		StartedAt: time.Date(2026, 12, 1, 10, 0, 0, 123456789, time.UTC), DurationS: 80, WarmupS: 10, Seed: 1,
		ResultsDir: "results/01JDX3K7ZZZZZZZZZZZZZZZZZZ",
		Targets: []metrics.TargetSummary{{
			Server: "catalog", Transport: "http", ProtocolVersion: "2026-07-28",
			ServerInfo: metrics.ServerInfo{Name: "catalog", Version: "1.2"},
		}},
		Sessions: metrics.SessionsSummary{Opened: 20, Closed: 20, Connect: quantiles(3.1, 5, 9.8, 9.8, 9.8), Outcomes: map[string]int64{"ok": 20}},
		Iterations: metrics.IterationsSummary{
			Total: 18104, Completed: 18073, Failed: 31, Latency: quantiles(12, 25, 101, 260, 500),
		},
		Requests: metrics.RequestsSummary{
			Total: 48210, OK: 48167, Failed: 31, Other: 12, ChecksFailed: 579, RatePerS: 602.625,
			Outcomes:  map[string]int64{"ok": 48167, "rpc_error": 22, "timeout": 8, "transport_error": 1, "cancelled": 12},
			BytesSent: 9856614, BytesReceived: 64172851,
		},
		Steps: []metrics.StepSummary{
			{
				Step: "search", Group: "steady", Method: "tools/call", Name: "search", Server: "catalog", Transport: "http", ProtocolVersion: "2026-07-28",
				Count: 18104, Outcomes: map[string]int64{"ok": 18082, "rpc_error": 14, "timeout": 8}, Codes: map[string]int64{"rpc_error:-32603": 14},
				Latency: quantiles(8.2, 21, 88, 240, 411), Service: quantiles(8.1, 20, 80, 220, 400), TTFB: quantiles(8, 19, 70, 200, 390),
				Failed: quantiles(2, 3, 4, 5, 6), Trend: trendOf(8, 8, 8, 11, 22, 11, 8, 8),
			},
			{
				Step: "resources/read", Group: "steady", Method: "resources/read",
				Count: 18090, Outcomes: map[string]int64{"ok": 18090},
				Latency: quantiles(2.1, 3.9, 12, 31, 77), Trend: trendOf(2, 2, 2.1, 2, 4, 2, 2, 2),
			},
			{
				Step: "prompts/get", Group: "steady", Method: "prompts/get",
				Count: 12016, Outcomes: map[string]int64{"ok": 11995, "rpc_error": 8, "transport_error": 1, "cancelled": 12},
				Latency: quantiles(1, 1.6, 4.4, 9, 15), Trend: trendOf(1, 1, -1, 1, 1, 1, 1, 1),
			},
		},
		Checks: []metrics.CheckSummary{
			{Name: "ok", Step: "search", Passed: 18090, Failed: 14},
			{Name: "some", Step: "search", Passed: 17996, Failed: 108},
			{Name: "fast", Step: "search", Passed: 17525, Failed: 579},
			{Name: "unused", Step: "search"},
		},
		Thresholds: []metrics.ThresholdResult{
			{Expr: "p99(latency) < 250ms", Value: new(54.0), Unit: "ms", OK: true},
			{Expr: "rate(errors) < 0.1%", Value: new(0.0643), Unit: "%", OK: true},
			{Expr: "rate(checks) > 99.5%", Value: new(98.7), Unit: "%"},
		},
		Errors: []metrics.ErrorSummary{
			{Outcome: "rpc_error", Code: -32603, Message: "internal", Step: "search", Count: 14, FirstS: 0.4, LastS: 69},
			{Outcome: "timeout", Code: 1, Message: "timeout 5s", Step: "search", Count: 8},
			{Outcome: "rpc_error", Code: -32603, Message: "internal", Step: "prompts/get", Count: 8},
			{Outcome: "transport_error", Code: 104, Message: "connection reset", Count: 1},
		},
		Load: []metrics.LoadSummary{{
			Group: "steady", Model: "open", Intended: 18104, Started: 18104, RatePerS: 226.3, Sessions: 20,
			Lateness: lateness, Queued: quantiles(0.001, 0.01, 0.2, 3, 5),
		}},
		Soundness: metrics.Soundness{Verdict: metrics.Sound, Lateness: lateness},
	}
}

func okRun() *metrics.Summary {
	return &metrics.Summary{
		RunID: "01JDX3K8AAAAAAAAAAAAAAAAAA", Scenario: "echo", Verdict: metrics.VerdictPassed, DurationS: 5,
		ResultsDir: "results/01JDX3K8AAAAAAAAAAAAAAAAAA",
		Targets:    []metrics.TargetSummary{{Server: "everything", Transport: "stdio", ProtocolVersion: "2025-11-25"}},
		Sessions:   metrics.SessionsSummary{Opened: 1, Closed: 1, Connect: quantiles(412, 412, 412, 412, 412), Outcomes: map[string]int64{"ok": 1}},
		Iterations: metrics.IterationsSummary{Total: 40123, Completed: 40123, Latency: quantiles(0.085, 0.12, 0.34, 1, 12)},
		Requests: metrics.RequestsSummary{
			Total: 40123, OK: 40123, RatePerS: 8024.6, Outcomes: map[string]int64{"ok": 40123}, BytesSent: 900, BytesReceived: 12345,
		},
		Steps: []metrics.StepSummary{{
			Step: "echo", Group: "main", Method: "tools/call", Name: "echo", Count: 40123, Outcomes: map[string]int64{"ok": 40123},
			Latency: quantiles(0.085, 0.12, 0.34, 1, 12), Service: quantiles(0.085, 0.12, 0.34, 1, 12), Trend: trendOf(0.08, 0.09, 0.085, 0.085, 0.084),
		}},
		Thresholds: defaults(true, true),
		Load:       []metrics.LoadSummary{{Group: "main", Model: "closed", Intended: 40123, Started: 40123, RatePerS: 8024.6, Sessions: 1}},
		Soundness:  metrics.Soundness{Verdict: metrics.Sound},
	}
}

func defaults(ok, errors bool) []metrics.ThresholdResult {
	return []metrics.ThresholdResult{
		{Expr: "count(ok) > 0", Value: new(0.0), OK: ok, Default: true},
		{Expr: "rate(errors) < 100%", Value: new(100.0), Unit: "%", OK: errors, Default: true},
	}
}

// nothingOpened is a server that refuses every session.
func nothingOpened() *metrics.Summary {
	return &metrics.Summary{
		RunID: "01JDX3K8BBBBBBBBBBBBBBBBBB", Scenario: "quick", Verdict: metrics.VerdictError, ExitCode: 1,
		Error:      "open session: dial http://127.0.0.1:9/mcp: connection refused: is the server running? (\x1b]0;owned\x07)",
		ResultsDir: "results/01JDX3K8BBBBBBBBBBBBBBBBBB",
		Targets:    []metrics.TargetSummary{{Server: "server", Transport: "http"}},
		Sessions:   metrics.SessionsSummary{Failed: 20, Outcomes: map[string]int64{"transport_error": 20}},
		Thresholds: defaults(false, true),
		Errors:     []metrics.ErrorSummary{{Outcome: "transport_error", Code: 111, Message: "dial tcp 127.0.0.1:9: connection refused", Count: 20}},
		Steps:      []metrics.StepSummary{{Step: "echo", Group: "main", Method: "tools/call", Name: "echo"}},
		Load:       []metrics.LoadSummary{{Group: "main", Model: "closed"}},
		Soundness:  metrics.Soundness{Verdict: metrics.Sound},
	}
}

// queueingRun is an open load against a server that freezes 400 ms after each
// 300 calls.
func queueingRun() *metrics.Summary {
	s := okRun()
	s.Scenario, s.DurationS = "freezes", 4
	s.Iterations = metrics.IterationsSummary{Total: 800, Completed: 800, Latency: quantiles(1.2, 280, 395, 401, 402)}
	s.Requests = metrics.RequestsSummary{Total: 800, OK: 800, RatePerS: 200, Outcomes: map[string]int64{"ok": 800}}
	s.Steps[0].Count, s.Steps[0].Outcomes = 800, map[string]int64{"ok": 800}
	s.Steps[0].Latency, s.Steps[0].Service = quantiles(1.2, 280, 395, 401, 402), quantiles(1.1, 1.4, 1.9, 400, 401)
	s.Steps[0].Trend = trendOf(1.1, 1.2, 1.2, 1.1)
	s.Load = []metrics.LoadSummary{{
		Group: "main", Model: "open", Intended: 800, Started: 800, RatePerS: 200, Sessions: 2,
		Lateness: quantiles(0.06, 0.1, 0.3, 0.5, 0.6), Queued: quantiles(0.002, 279, 394, 400, 400),
	}}
	s.Soundness = metrics.Soundness{Verdict: metrics.Sound, Lateness: s.Load[0].Lateness}
	return s
}

func unsoundRun() *metrics.Summary {
	s := queueingRun()
	s.Verdict, s.ExitCode = metrics.VerdictUnsound, 3
	s.Load[0].Started, s.Load[0].Dropped = 640, 160
	s.Load[0].Lateness = quantiles(5, 12, 31, 60, 71)
	s.Iterations.Total, s.Iterations.Completed, s.Iterations.Dropped = 800, 640, 160
	s.Requests.Total, s.Requests.OK, s.Requests.RatePerS = 640, 600, 160
	s.Requests.Other, s.Requests.Outcomes = 40, map[string]int64{"ok": 600, "client_error": 40}
	s.Soundness = metrics.Soundness{
		Verdict: metrics.Unsound, Lateness: s.Load[0].Lateness,
		Reasons: []string{"arrivals were released late: p99 31ms, more than 10ms", "requests or dials failed by our own fault (client_error) 40 times"},
		Notes:   []string{"over http 200 requests/s were planned, more than half of the 390/s that this machine reaches against nothing"},
		Calibration: []metrics.Calibration{
			{Transport: "http", FloorUS: 62, CeilingPS: 390.4, Sessions: 2, RatePerS: 200, Lateness99: new(0.31), PlannedPerS: 200, P50US: new(8900.0)},
			{Transport: "stdio", FloorUS: 31, CeilingPS: 12345.6, Sessions: 64},
		},
	}
	s.Thresholds = []metrics.ThresholdResult{{Expr: "p99(latency) < 500ms", Value: new(395.0), Unit: "ms", OK: true}}
	s.Errors = []metrics.ErrorSummary{{Outcome: "client_error", Code: 24, Message: "too many open files", Count: 40}}
	return s
}

func interruptedRun() *metrics.Summary {
	s := okRun()
	s.Verdict, s.ExitCode = metrics.VerdictInterrupted, 130
	s.Requests.OK, s.Requests.Failed, s.Requests.Other = 40100, 3, 20
	s.Requests.Outcomes = map[string]int64{"ok": 40100, "timeout": 3, "interrupted": 18, "script_error": 2}
	s.Steps[0].Latency.AtTimeout = []string{"p999", "max"}
	s.Steps[0].Latency.P999, s.Steps[0].Latency.Max = 5000, 5000
	s.Iterations.Completed, s.Iterations.Failed, s.Iterations.Interrupted, s.Iterations.ScriptError = 40100, 3, 18, 2
	s.Sessions.Reopened, s.Sessions.Opened = 1, 2
	s.Anomalies = map[string]int64{"stdout_noise": 3, "late_answer": 12}
	s.Thresholds = []metrics.ThresholdResult{
		{Expr: "p99.9(latency) < 1s", Value: new(5000.0), Unit: "ms", AtTimeout: true},
		{Expr: "max(latency{step=nothing}) < 1s", Unit: "ms"},
	}
	return s
}

// hostileRun is a server that puts escape sequences, direction marks and long
// text into everything that it can name.
func hostileRun() *metrics.Summary {
	evil := "\x1b[2J\x1b]0;t\x07\u202eevil\u009b31m\r\nnew\x00\xff"
	s := okRun()
	s.Scenario = evil
	s.Verdict, s.ExitCode = metrics.VerdictFailed, 99
	s.Targets = []metrics.TargetSummary{
		{Server: evil, Transport: "http", ProtocolVersion: evil, ServerInfo: metrics.ServerInfo{Name: evil, Version: evil}},
		{Server: "other", Transport: "stdio", ProtocolVersion: "2025-11-25"},
	}
	s.Requests.OK, s.Requests.Failed = 0, s.Requests.Total
	s.Steps = []metrics.StepSummary{
		{Step: evil, Group: "one", Method: evil, Name: evil, Server: evil, Transport: "http", ProtocolVersion: evil, Count: 1234567, Outcomes: map[string]int64{"tool_error": 1234567}},
		{Step: "say", Group: "two", Method: "tools/call", Name: "a_tool_with_a_name_that_is_much_longer_than_the_column_can_hold_日本語の名前", Target: 1, Server: "other", Transport: "stdio", ProtocolVersion: "2025-11-25", Count: 5, Outcomes: map[string]int64{"ok": 5}, Latency: quantiles(1200, 12000, 99000, 130000, 4000000)},
	}
	s.Checks = []metrics.CheckSummary{{Name: evil, Step: evil, Failed: 3}, {Name: evil, Step: "say", Passed: 1}}
	s.Anomalies = map[string]int64{evil: 1}
	s.Load = []metrics.LoadSummary{
		{Group: "one", Model: "closed", Sessions: 3},
		{Group: "two" + evil, Model: "open", Intended: 10, Started: 9, RatePerS: 1.5, Dropped: 1},
	}
	s.Thresholds = defaults(false, false)
	for i := range 12 {
		s.Errors = append(s.Errors, metrics.ErrorSummary{Outcome: "tool_error", Message: strings.Repeat("x", i) + evil + strings.Repeat(" word", 30), Count: int64(100 - i)})
	}
	return s
}

// twoGroupsRun runs the same two steps over both transports, with many checks.
func twoGroupsRun() *metrics.Summary {
	s := okRun()
	s.Scenario = "quickstart"
	s.Targets = []metrics.TargetSummary{
		{Server: "web", Transport: "http", ProtocolVersion: "2025-11-25"},
		{Server: "pipe", Transport: "stdio", ProtocolVersion: "2025-11-25"},
	}
	s.Load = []metrics.LoadSummary{
		{Group: "http", Model: "closed", Sessions: 4}, {Group: "stdio", Model: "open", Intended: 100, Started: 100, RatePerS: 20, Lateness: quantiles(0.1, 0.1, 0.2, 0.2, 0.2), Queued: quantiles(0.1, 0.1, 0.2, 0.2, 0.2)},
	}
	s.Soundness = metrics.Soundness{Verdict: metrics.Doubtful, Reasons: []string{"arrivals were released late: p99 3ms, more than 2ms"}}
	s.Steps, s.Checks = nil, nil
	for i, group := range []string{"http", "stdio"} {
		for _, name := range []string{"echo", "add"} {
			s.Steps = append(s.Steps, metrics.StepSummary{
				Step: "tools/call " + name, Group: group, Method: "tools/call", Name: name, Target: i,
				Server: s.Targets[i].Server, Transport: s.Targets[i].Transport, ProtocolVersion: s.Targets[i].ProtocolVersion,
				Count: 20000, Outcomes: map[string]int64{"ok": 20000}, Latency: quantiles(1, 2, 3, 4, 5), Service: quantiles(1, 2, 3, 4, 5),
				Trend: trendOf(1, 2, 1, 2, 1, 2, 1, 2, 1, 2),
			})
			for _, check := range []string{"ok", "same", "small", name} {
				s.Checks = append(s.Checks, metrics.CheckSummary{Name: check, Step: "tools/call " + name, Passed: 20000})
			}
		}
	}
	s.Checks[1].Passed, s.Checks[1].Failed = 19000, 1000
	return s
}

// noFolder is a run whose results could not be written.
func noFolder() *metrics.Summary {
	return &metrics.Summary{
		RunID: "01JDX3K8CCCCCCCCCCCCCCCCCC", Scenario: "quick", Verdict: metrics.VerdictError, ExitCode: 1,
		Error:      "write /results/requests/agent=local/part-00000.parquet: no space left on device: free some space\nwrite /results/load\nwrite /results/runs",
		Thresholds: []metrics.ThresholdResult{{Expr: "p99(latency) < 1s"}},
		Soundness:  metrics.Soundness{Verdict: metrics.Sound},
	}
}
