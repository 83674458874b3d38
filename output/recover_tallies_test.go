package output_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
	"mcpbench/output"
)

// TestRecoveredRunHasAnomaliesAndServerRequests kills a run after its tenth
// reading, whole and with that one cut short: the summary has the counts of the
// last reading that is whole.
func TestRecoveredRunHasAnomaliesAndServerRequests(t *testing.T) {
	var asked metrics.ServerRequests
	var tallies []metrics.Tallies
	dir := killed(t, output.ParquetConfig{}, func(sink testSink) {
		sink.must(t, sink.Write(connects(2)))
		for i := range 10 {
			asked.Add("roots/list", time.Duration(i)*ms, metrics.Answered)
			asked.Add("ping", ms, metrics.Reply(i%3))
			asked.Add("elicitation/create", ms, metrics.Unanswered)
			at := metrics.Tallies{Anomalies: map[string]int64{"odd_event": int64(i + 1), "resumed": 7}, ServerRequests: asked.Summary()}
			tallies = append(tallies, at)
			sink.must(t, sink.Write(arrival(uint64(i), time.Duration(i)*100*ms, 1)), sink.WriteTallies(at),
				sink.WriteGauges(time.Duration(i+1)*100*ms, []metrics.Gauges{{}, {Intended: int64(i + 1), SessionsWanted: 1}}))
		}
	})
	cut := copyFolder(t, dir)
	marks := wal(cut, "marks-0.wal")
	info, err := os.Stat(marks)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(marks, info.Size()-3); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, dir string
		want      metrics.Tallies
	}{{"whole", dir, tallies[9]}, {"the last mark torn", cut, tallies[8]}} {
		t.Run(tt.name, func(t *testing.T) {
			if report, err := output.Recover(tt.dir); err != nil || report.Err() != nil {
				t.Fatalf("Recover: %v, %v", err, report.Err())
			}
			s := readSummary(t, tt.dir)
			if diff := cmp.Diff(tt.want, metrics.Tallies{Anomalies: s.Anomalies, ServerRequests: s.ServerRequests}); diff != "" {
				t.Errorf("tallies (-want +got):\n%s", diff)
			}
			finished(t, tt.dir)
		})
	}
}
