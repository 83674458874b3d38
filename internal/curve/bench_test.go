package curve_test

import (
	"testing"
	"time"

	"mcpbench/internal/curve"
)

func benchCurves(tb testing.TB) map[string]curve.Curve {
	tb.Helper()
	return map[string]curve.Curve{
		"constant":  curve.Constant(50),
		"ramp":      must(tb)(curve.Stages(0, []curve.Stage{{Level: 100, HasLevel: true, Over: 24 * time.Hour}})),
		"ramp down": must(tb)(curve.Stages(100, []curve.Stage{{Level: 1, HasLevel: true, Over: 240 * time.Hour}})),
		"pulse":     must(tb)(curve.Pulse(100, time.Second, time.Second)),
		"spike":     must(tb)(curve.Spike(50, 500, time.Minute, time.Second, time.Minute)),
		"staircase": must(tb)(curve.Staircase(1, 1, time.Minute, 1000)),
		"sine":      must(tb)(curve.Sine(50, 40, time.Minute)),
		"sine to 0": must(tb)(curve.Sine(50, 50, time.Minute)),
	}
}

func BenchmarkWalk(b *testing.B) {
	for name, c := range benchCurves(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			w := c.Walk()
			for n := 0.0; b.Loop(); n++ {
				w.Next(n)
			}
		})
	}
}

func BenchmarkWhen(b *testing.B) {
	for name, c := range benchCurves(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0.0; b.Loop(); n++ {
				c.When(n)
			}
		})
	}
}

// TestNothingAllocates on the way to a time.
func TestNothingAllocates(t *testing.T) {
	for name, c := range benchCurves(t) {
		w := c.Walk()
		n := 0.0
		if got := testing.AllocsPerRun(10_000, func() { w.Next(n); c.When(n); c.Level(5); c.Count(5); n++ }); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
