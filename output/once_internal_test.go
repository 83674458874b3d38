package output

import (
	"testing"
	"time"

	"mcpbench/metrics"
)

// TestRequestsOnceASessionStayOutOfTheLoad: a row of a step before is of the phase
// setup again, also when it ended after the clock had started.
func TestRequestsOnceASessionStayOutOfTheLoad(t *testing.T) {
	cat := &metrics.Catalog{
		Groups: []metrics.GroupInfo{{Name: "g"}}, Protocols: []string{""},
		Steps: []metrics.StepInfo{{ID: "news", Part: metrics.PartBefore}, {ID: "work"}},
	}
	for step, want := range map[string]metrics.Phase{"news": metrics.PhaseSetup, "work": metrics.PhaseWarmup} {
		s, err := namesOf(cat).request(&requestFacts{
			Group: "g", Step: step, Outcome: "ok", Iteration: -1, Start: int64(time.Second), Service: int64(time.Second), Warmup: true,
		})
		if err != nil || s.Phase != want || s.Iteration != metrics.NoIteration {
			t.Errorf("%s: phase %v, iteration %d, error %v; want %v and none", step, s.Phase, s.Iteration, err, want)
		}
	}
}
