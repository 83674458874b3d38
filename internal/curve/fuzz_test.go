package curve_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"mcpbench/internal/curve"
)

// FuzzCurve makes stages of any bytes, and walks through what comes of them.
func FuzzCurve(f *testing.F) {
	stage := func(level float64, over, hold time.Duration) []byte {
		b := binary.LittleEndian.AppendUint64(nil, math.Float64bits(level))
		b = binary.LittleEndian.AppendUint64(b, uint64(over))
		return binary.LittleEndian.AppendUint64(b, uint64(hold))
	}
	f.Add(0.0, 1.0, []byte{})
	f.Add(100.0, 1.0, stage(0, 10*time.Second, 0))
	f.Add(0.0, 0.5, append(stage(100, 10*time.Second, time.Minute), stage(0, 0, time.Minute)...))
	f.Add(1e12, 1e-9, append(stage(1e-300, 1, math.MaxInt64), stage(1e12, math.MaxInt64, 1)...))
	// So much comes in 110 years that the first arrivals vanish, seen from the end.
	f.Add(303.0, 5588.578125, stage(0, 3472328296227680304, time.Hour))
	f.Fuzz(func(t *testing.T, start, scale float64, data []byte) {
		c, err := curve.Stages(start, stagesOf(data))
		if err != nil {
			t.Skip("refused")
		}
		c = c.Scale(scale).After(time.Second, start)
		walkThrough(t, c)
		crossThrough(t, c)
	})
}

func stagesOf(data []byte) (stages []curve.Stage) {
	for ; len(data) >= 24 && len(stages) < 50; data = data[24:] {
		l := math.Float64frombits(binary.LittleEndian.Uint64(data))
		stages = append(stages, curve.Stage{
			Level: l, HasLevel: !math.IsNaN(l),
			Over: time.Duration(binary.LittleEndian.Uint64(data[8:])), Hold: time.Duration(binary.LittleEndian.Uint64(data[16:])),
		})
	}
	return stages
}

func walkThrough(t *testing.T, c curve.Curve) {
	t.Helper()
	w := c.Walk()
	last := time.Duration(0)
	for k := range 2000 {
		n := float64(k)
		at, ok := w.Next(n)
		if !ok {
			if all := c.Count(math.MaxInt64); all > n+1 {
				t.Fatalf("%d never comes, but %v do", k, all)
			}
			return
		}
		count, l := c.Count(at), c.Level(at)
		if at < last || math.IsNaN(count) || math.IsNaN(l) || l < 0 || l > c.Max() {
			t.Fatalf("%d at %v after %v: count %v, level %v", k, at, last, count, l)
		}
		// Rounding to a nanosecond moves it by the level × 1 ns.
		if math.Abs(count-n) > 1+c.Max()*2e-9 {
			t.Fatalf("%d at %v, where the count is %v", k, at, count)
		}
		last = at
	}
}

func crossThrough(t *testing.T, c curve.Curve) {
	t.Helper()
	k := c.Crossings(100)
	on := 0
	for x, ok := k.Next(); ok; x, ok = k.Next() {
		if on++; !x.On {
			on -= 2
		}
		if w := min(100, c.Whole(x.At)); x.On && w < on || !x.On && w > on {
			t.Fatalf("%+v, but %d are wanted", x, w)
		}
	}
}
