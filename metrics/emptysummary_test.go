package metrics_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpbench/metrics"
)

// TestEmptySummaryPrintsNoNull is the summary of a run in which nothing happened.
func TestEmptySummaryPrintsNoNull(t *testing.T) {
	c, stop := startCollector(t, metrics.CollectorConfig{Catalog: oracleCatalog()})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s := c.Summary(metrics.RunInfo{RunID: "r", StartedAt: time.Date(2026, 12, 1, 10, 0, 0, 123456789, time.FixedZone("x", 3600))})
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	allowed := []string{
		"connect_ms", "latency_ms", "service_ms", "ttfb_ms", "failed_ms", "lateness_ms", "queued_ms", "floor_us", "value",
		"cpu_share_max", "goroutines_max", "fds_max", "fds_limit", "ports_max", "ports_limit", "time_wait_max",
	}
	walk(tree, "", func(path string, v any) {
		key := path[strings.LastIndex(path, ".")+1:]
		if v == nil && !slices.Contains(allowed, key) {
			t.Errorf("%s is null", path)
		}
	})
	if s.Verdict != "error" || s.ExitCode != 1 || s.Error == "" {
		t.Errorf("verdict %s, exit code %d, error %q of a run without a session", s.Verdict, s.ExitCode, s.Error)
	}
	if !strings.Contains(string(text), `"started_at":"2026-12-01T09:00:00.123456Z"`) {
		t.Errorf("started_at is not in microseconds UTC: %s", text)
	}
	if len(s.Steps) != 3 || len(s.Targets) != 2 || len(s.Trials) != 1 || len(s.Thresholds) != 2 {
		t.Errorf("%d steps, %d targets, %d trials, %d thresholds", len(s.Steps), len(s.Targets), len(s.Trials), len(s.Thresholds))
	}
}

func walk(v any, path string, visit func(string, any)) {
	visit(path, v)
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			walk(e, path+"."+k, visit)
		}
	case []any:
		for _, e := range v {
			walk(e, path, visit)
		}
	}
}
