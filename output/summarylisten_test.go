package output_test

import "mcpbench/metrics"

// listeningRun is a run with all that a client does beyond plain calls: progress,
// a cancelled step, subscriptions and waits, and a server that asks back.
func listeningRun() *metrics.Summary {
	s := failingRun()
	s.Verdict, s.ExitCode, s.Errors, s.Checks, s.Thresholds = metrics.VerdictPassed, 0, nil, nil, nil
	search := &s.Steps[0]
	search.Gap, search.FirstProgress = quantiles(20, 25, 40, 41, 42), quantiles(5, 6, 7, 8, 9)
	prompts := &s.Steps[2]
	prompts.CancelStop = quantiles(0.4, 1.2, 7, 30, 31)
	s.Steps = append([]metrics.StepSummary{
		{Step: "subscribe", Group: "steady", Method: "subscriptions/listen", Name: "catalog://news", Part: "before"},
	}, s.Steps...)
	s.Steps = append(s.Steps, metrics.StepSummary{
		Step: "wait_for resources/updated", Group: "steady", Method: "wait_for", Name: "resources/updated",
		Count: 120, Outcomes: map[string]int64{"ok": 119, "timeout": 1}, Latency: quantiles(90, 200, 2900, 3000, 3000),
	})
	s.ServerRequests = []metrics.ServerRequestSummary{
		{Method: "elicitation/create", Count: 40, Refused: 2, Unanswered: 1, Answer: quantiles(1200, 2000, 3900, 4000, 4000)},
		{Method: "ping", Count: 3, Answer: quantiles(0.05, 0.06, 0.07, 0.08, 0.09)},
		{Method: "sampling/createMessage", Count: 1, Refused: 1},
	}
	return s
}
