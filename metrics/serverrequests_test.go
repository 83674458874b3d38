package metrics_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
)

func TestServerRequestsCountByMethod(t *testing.T) {
	var r metrics.ServerRequests
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for i := range 100 {
				r.Add("roots/list", time.Duration(i)*time.Millisecond, metrics.Answered)
				r.Add("elicitation/create", time.Hour, metrics.Reply(max(0, 3-i%4)%3))
			}
		})
	}
	wg.Wait()
	got := r.Summary()
	if len(got) != 2 {
		t.Fatalf("methods: got %+v", got)
	}
	elicitation, roots := got[0], got[1]
	if elicitation.Method != "elicitation/create" || elicitation.Count != 1000 || elicitation.Refused != 250 || elicitation.Unanswered != 250 || elicitation.Answer.Count != 500 {
		t.Errorf("elicitation: got %+v, want 1000, 250 of them refused and 250 not answered", elicitation)
	}
	if roots.Method != "roots/list" || roots.Count != 1000 || roots.Refused != 0 || roots.Answer.Max != 99 || roots.Answer.Count != 1000 {
		t.Errorf("roots: got %+v, want 1000 up to 99 ms", roots)
	}
}

// A server chooses the names of its methods.
func TestServerMethodsAreBounded(t *testing.T) {
	var r metrics.ServerRequests
	for i := range 1000 {
		r.Add(fmt.Sprintf("x/%d", i), time.Millisecond, metrics.Refused)
	}
	got := r.Summary()
	if len(got) != 17 || got[0].Method != "other methods" || got[0].Count != 984 || got[0].Refused != 984 || got[0].Answer != nil {
		t.Errorf("got %d methods, the first %+v", len(got), got[0])
	}
	if diff := cmp.Diff([]metrics.ServerRequestSummary(nil), (&metrics.ServerRequests{}).Summary()); diff != "" {
		t.Errorf("of nothing (-want +got):\n%s", diff)
	}
}
