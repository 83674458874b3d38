package driver_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/driver"
	"mcpbench/metrics"
)

// abortsAt parses a threshold that ends the run.
func abortsAt(t *testing.T, expr string, after, window time.Duration) metrics.Threshold {
	t.Helper()
	out, err := metrics.ParseThreshold(expr)
	if err != nil {
		t.Fatal(err)
	}
	out.Abort = &metrics.Abort{After: after, Window: window}
	return out
}

// watch runs l with thresholds and returns its summary and rows.
func (l load) watched(t *testing.T, thresholds ...metrics.Threshold) (*keep, *metrics.Summary) {
	t.Helper()
	plan, sink := l.plan(t), &keep{}
	c := metrics.NewCollector(metrics.CollectorConfig{
		Catalog: plan.Catalog, Sinks: []metrics.Sink{sink}, Warmup: plan.Warmup, Thresholds: thresholds,
	})
	r := driver.New(plan, c, nopLog())
	if err := r.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sink, c.Summary(metrics.RunInfo{MeasuredEnd: r.MeasuredEnd(), SessionOpened: true, Thresholds: thresholds})
}

// TestThresholdEndsTheRun: the server is slow, or fails, from the 12th second on, the
// warm-up of 2 s included. Each threshold ends the run at the end of the second that
// the values of its window say.
func TestThresholdEndsTheRun(t *testing.T) {
	const turn = 12 * time.Second
	for _, tt := range []struct {
		name          string
		threshold     metrics.Threshold
		slow          time.Duration // after turn
		fails         bool
		at            time.Duration // of the end
		value, within float64       // in the window
	}{
		// 10 requests a second: of 50 in 5 s the p90 is slow when more than 5 are, in the
		// first second after the turn but for those that are not answered by its end.
		{"p90", abortsAt(t, "p90(latency) < 50ms", 5*time.Second, 5*time.Second), 100 * time.Millisecond, false, 13 * time.Second, 100, 0.02},
		// The median needs 26 of 50: in the third second.
		{"p50", abortsAt(t, "p50(latency) < 50ms", 5*time.Second, 5*time.Second), 100 * time.Millisecond, false, 15 * time.Second, 100, 0.02},
		{"max", abortsAt(t, "max(service_time) < 50ms", 0, time.Second), 100 * time.Millisecond, false, 13 * time.Second, 100, 1e-9},
		{"not before after", abortsAt(t, "p90(latency) < 50ms", 15*time.Second, 5*time.Second), 100 * time.Millisecond, false, 17 * time.Second, 100, 0.02},
		{"errors", abortsAt(t, "rate(errors) < 30%", 5*time.Second, 10*time.Second), 0, true, 15 * time.Second, 30, 0.04},
		{"silence", abortsAt(t, "rate(requests) > 0/s", 5*time.Second, 3*time.Second), time.Hour, false, 15 * time.Second, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := turning(turn, tt.slow, tt.fails)
				sink, summary := load{group: open(10, 20, 60*time.Second), server: s, warmup: 2 * time.Second, grace: time.Second}.watched(t, tt.threshold)
				r := summary.Thresholds[0]
				if r.Aborted == nil || r.OK || summary.ExitCode != metrics.ExitThreshold {
					t.Fatalf("threshold %+v, exit %d", r, summary.ExitCode)
				}
				at := time.Duration(r.Aborted.AtS * float64(time.Second))
				if at != tt.at {
					t.Errorf("the run was ended at %v, want %v", at, tt.at)
				}
				if v := *r.Aborted.Value; v < tt.value*(1-tt.within) || v > tt.value*(1+tt.within) {
					t.Errorf("the value was %v, want %v", v, tt.value)
				}
				last := slices.MaxFunc(sink.of(metrics.KindIteration), func(a, b metrics.Sample) int { return int(a.Intended - b.Intended) })
				if (last.Intended - at).Abs() > 200*time.Millisecond {
					t.Errorf("the last arrival was at %v", last.Intended)
				}
			})
		})
	}
}

// turning is a server that answers within 10 ms, and after turn takes slow or fails.
func turning(turn, slow time.Duration, fails bool) *server {
	began := time.Now()
	return &server{answer: func(ctx context.Context, _ int64) error {
		switch {
		case time.Since(began) < turn:
			return wait(ctx, 10*time.Millisecond)
		case fails:
			return errors.Join(wait(ctx, 10*time.Millisecond), errors.New("broken"))
		}
		return wait(ctx, slow)
	}}
}

// TestThresholdThatHoldsEndsNothing, nor one with nothing measured, nor the warm-up.
func TestThresholdThatHoldsEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &server{answer: func(ctx context.Context, _ int64) error {
			if time.Since(began) < 5*time.Second { // the warm-up
				return wait(ctx, time.Second)
			}
			return wait(ctx, 10*time.Millisecond)
		}}
		_, summary := load{group: open(0.3, 20, 30*time.Second), server: s, warmup: 5 * time.Second, grace: time.Second}.watched(
			t, abortsAt(t, "p50(latency) < 50ms", 0, time.Second), abortsAt(t, "p99(latency) < 50ms", 0, 10*time.Second))
		if n := summary.Iterations.Completed; n != 9 || summary.ExitCode != 0 || summary.Thresholds[0].Aborted != nil {
			t.Errorf("%d iterations, exit %d, %+v", n, summary.ExitCode, summary.Thresholds)
		}
	})
}
