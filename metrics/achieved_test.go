package metrics_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"mcpbench/metrics"
)

// TestAchievedIsTheShareOfTheOfferedRate has 201 arrivals in 2 s on a server
// that starts one each 20 ms instead of each 10 ms.
func TestAchievedIsTheShareOfTheOfferedRate(t *testing.T) {
	tests := []struct {
		name    string
		between time.Duration // starts
		started int
		want    float64
	}{
		{"in time", 10 * time.Millisecond, 201, 100},
		{"half the rate, all in the end", 20 * time.Millisecond, 201, 50},
		{"half the rate, cut at the end", 20 * time.Millisecond, 101, 50},
		{"none started", 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var samples []metrics.Sample
			for i := range 201 {
				s := metrics.Sample{Kind: metrics.KindIteration, Step: metrics.NoStep, Iteration: uint64(i)}
				s.Intended = time.Duration(i) * 10 * time.Millisecond
				s.Release, s.Start = s.Intended, time.Duration(i)*tt.between
				s.Seq = 1
				if i >= tt.started {
					s.Outcome, s.Start, s.Seq = metrics.Outcome(metrics.IterInterrupted), 4*time.Second, 0
				}
				s.End = s.Start
				samples = append(samples, s)
			}
			got := valueOf(t, collect(t, samples...), "rate(achieved) > 95%")
			if got == nil || math.Abs(*got-tt.want) > 0.5 {
				t.Errorf("achieved %v, want %v%%", got, tt.want)
			}
		})
	}
}

func FuzzParseThreshold(f *testing.F) {
	for _, tt := range allForms {
		f.Add(tt.expr)
	}
	f.Add("p99(latency{step=\"\\xff\"}) < 1s")
	f.Add("p1e5(latency) < 1s")
	f.Add("slope(server_rss) < 1MiB/min")
	f.Fuzz(func(t *testing.T, expr string) {
		th, err := metrics.ParseThreshold(expr)
		if err != nil {
			te, ok := errors.AsType[*metrics.ThresholdError](err)
			if !ok || te.Offset < 0 || te.Offset > len(expr) || te.Message == "" || te.Expr != expr {
				t.Fatalf("%q: error %#v", expr, err)
			}
			return
		}
		canonical := th.String()
		again, err := metrics.ParseThreshold(canonical)
		if err != nil {
			t.Fatalf("%q is written %q, which does not parse: %v", expr, canonical, err)
		}
		again.Expr = th.Expr
		if !again.Equal(th) || again.Value != th.Value || len(again.Tags) != len(th.Tags) {
			t.Fatalf("%q parses to %+v, its form %q to %+v", expr, th, canonical, again)
		}
		for i, tag := range th.Tags {
			if again.Tags[i].Key != tag.Key || again.Tags[i].Value != tag.Value {
				t.Fatalf("%q: tag %+v became %+v", expr, tag, again.Tags[i])
			}
		}
		_ = th.Resolve(oracleCatalog())
	})
}
