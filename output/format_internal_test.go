package output

import (
	"strings"
	"testing"

	"mcpbench/metrics"
)

func TestFormatMS(t *testing.T) {
	for _, c := range []struct {
		ms   float64
		want string
	}{
		{0, "0ms"},
		{0.0001, "1µs"},
		{0.085, "85µs"},
		{0.0994, "99µs"},
		{0.0996, "0.1ms"},
		{0.1, "0.1ms"},
		{0.34, "0.34ms"},
		{0.4, "0.4ms"},
		{0.994, "0.99ms"},
		{0.996, "1.0ms"},
		{1, "1.0ms"},
		{8.24, "8.2ms"},
		{9.94, "9.9ms"},
		{9.96, "10ms"},
		{54.4, "54ms"},
		{999.4, "999ms"},
		{999.6, "1.0s"},
		{1234, "1.2s"},
		{9960, "10s"},
		{54000, "54s"},
		{99600, "1m40s"},
		{125000, "2m05s"},
		{4_000_000, "1h06m40s"},
		{-8.2, "-8.2ms"},
	} {
		if got := formatMS(c.ms); got != c.want {
			t.Errorf("formatMS(%v): got %s, want %s", c.ms, got, c.want)
		}
	}
}

func TestFormats(t *testing.T) {
	thin := func(s string) string { return strings.ReplaceAll(s, "_", thinSpace) }
	for _, c := range []struct{ name, got, want string }{
		{"digits", groupDigits(18104), thin("18_104")},
		{"digits below a thousand", groupDigits(999), "999"},
		{"digits of a million", groupDigits(-1234567), thin("-1_234_567")},
		{"span", formatSpan(80), "1m20s"},
		{"span of seconds", formatSpan(4.25), "4.2s"},
		{"span of a round minute", formatSpan(59.96), "1m00s"},
		{"rate", perSecond(602.625), "602.6/s"},
		{"rate rounded up", perSecond(999.96), thin("1_000.0/s")},
		{"small rate", perSecond(0.5), "0.5/s"},
		{"bytes", formatBytes(1023), "1023 B"},
		{"kibibytes", formatBytes(1024), "1.0 KiB"},
		{"mebibytes", formatBytes(9856614), "9.4 MiB"},
		{"bytes rounded up", formatBytes(1024*1024 - 1), "1.0 MiB"},
		{"share", percent(31, 48210), "0.06%"},
		{"share of nothing", percent(0, 10), "0%"},
		{"share that is not all", percent(99999, 100000), "99.9%"},
		{"share that is not nothing", percent(1, 1000000), "<0.01%"},
		{"share of all", percent(3, 3), "100%"},
		{"share of a tenth", percent(125, 1000), "12.5%"},
		{"error share", errorShare(22, 18104), "0.1%"},
		{"error share without requests", errorShare(0, 0), "–"},
		{"error share that is not all", errorShare(9999, 10000), "99.9%"},
		{"at timeout", atTimeout(5000), ">5s"},
		{"at timeout", atTimeout(1250), ">1.2s"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
	}
}

func TestThresholdValue(t *testing.T) {
	v := func(f float64) *float64 { return &f }
	for _, c := range []struct {
		t    metrics.ThresholdResult
		want string
	}{
		{metrics.ThresholdResult{}, "no sample"},
		{metrics.ThresholdResult{Value: v(54), Unit: "ms"}, "54ms"},
		{metrics.ThresholdResult{Value: v(5000), Unit: "ms", AtTimeout: true}, ">5s"},
		{metrics.ThresholdResult{Value: v(98.74), Unit: "%"}, "98.7%"},
		{metrics.ThresholdResult{Value: v(99.996), Unit: "%"}, "99.99%"},
		{metrics.ThresholdResult{Value: v(0.0643), Unit: "%"}, "0.06%"},
		{metrics.ThresholdResult{Value: v(0.0012), Unit: "%"}, "0.0012%"},
		{metrics.ThresholdResult{Value: v(100), Unit: "%"}, "100%"},
		{metrics.ThresholdResult{Value: v(0), Unit: "%"}, "0%"},
		{metrics.ThresholdResult{Value: v(602.6), Unit: "/s"}, "602.6/s"},
		{metrics.ThresholdResult{Value: v(18104)}, "18" + thinSpace + "104"},
		{metrics.ThresholdResult{Value: v(0.0625)}, "0.0625"},
		{metrics.ThresholdResult{Value: v(512.5), Unit: "MiB"}, "512.5MiB"},
	} {
		if got := thresholdValue(&c.t); got != c.want {
			t.Errorf("%v %s: got %s, want %s", c.t.Value, c.t.Unit, got, c.want)
		}
	}
}

func TestSparkline(t *testing.T) {
	at := func(values ...float64) []*float64 {
		out := make([]*float64, len(values))
		for i := range values {
			if values[i] >= 0 {
				out[i] = &values[i]
			}
		}
		return out
	}
	for _, c := range []struct {
		name   string
		values []*float64
		want   string
	}{
		{"nothing", nil, ""},
		{"flat", at(8, 8, 8.4, 8), "▂▂▂▂"},
		{"zero", at(0, 0), "▂▂"},
		{"rising", at(1, 2, 3, 4, 5, 6, 7), "▂▃▄▅▆▇█"},
		{"a gap", at(1, -1, 3), "▂ █"},
		{"more than fit, the greatest of each", at(1, 1, 1, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), "▂█▂▂▂▂▂▂"},
	} {
		if got := sparkline(c.values, 8); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
