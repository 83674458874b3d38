package metrics_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
)

// collect records samples of the benchCatalog and returns the collector after Run.
func collect(t *testing.T, samples ...metrics.Sample) *metrics.Collector {
	t.Helper()
	return collectWith(t, benchCatalog(), samples...)
}

func collectWith(t *testing.T, cat *metrics.Catalog, samples ...metrics.Sample) *metrics.Collector {
	t.Helper()
	c, stop := startCollector(t, metrics.CollectorConfig{Catalog: cat})
	for _, s := range samples {
		c.Record(s)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return c
}

// valueOf evaluates the left side of a threshold.
func valueOf(t *testing.T, c *metrics.Collector, expr string) *float64 {
	t.Helper()
	th, err := metrics.ParseThreshold(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return c.Evaluate([]metrics.Threshold{th})[0].Value
}

func TestPercentilesAgainstSortedValues(t *testing.T) {
	shapes := map[string]func(*rand.Rand) time.Duration{
		"uniform":    func(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(int64(time.Second))) },
		"long tail":  func(r *rand.Rand) time.Duration { return time.Duration(float64(time.Millisecond) / (1 - r.Float64())) },
		"one value":  func(*rand.Rand) time.Duration { return 123_456_789 },
		"below 1 us": func(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(1000)) },
		"two humps": func(r *rand.Rand) time.Duration {
			return time.Duration(1+r.IntN(2)*999)*time.Millisecond + time.Duration(r.IntN(1000))
		},
	}
	for name, draw := range shapes {
		for _, n := range []int{1, 2, 3, 10, 999, 5000} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				r := rand.New(rand.NewPCG(7, uint64(n)))
				var samples []metrics.Sample
				var values []time.Duration
				for range n {
					v := min(draw(r), time.Hour)
					values = append(values, v)
					samples = append(samples, request(2*time.Hour, v))
				}
				c := collect(t, samples...)
				slices.Sort(values)
				for _, q := range []float64{0, 0.1, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100} {
					got := valueOf(t, c, fmt.Sprintf("p%v(latency) < 1s", q))
					want := sortedFigures(values).at(q)
					if q == 0 {
						want = values[0]
					}
					within(t, fmt.Sprintf("p%v", q), time.Duration(*got*1e6+0.5), want, 3)
				}
			})
		}
	}
}

func TestValuesBeyondAnHourKeepTheirMaximum(t *testing.T) {
	c := collect(t, request(0, 3*time.Hour), request(0, time.Second), request(0, 2*time.Hour))
	q := c.Summary(metrics.RunInfo{}).Steps[0].Latency
	if q.Over != 2 || q.Count != 3 {
		t.Errorf("%d of %d values above an hour, want 2 of 3", q.Over, q.Count)
	}
	exact(t, "max", q.Max, 3*3600*1000)
	exact(t, "mean", q.Mean, (5*3600*1000+1000)/3.0)
	if q.P99 < 3_600_000 || q.P99 > 3_603_000 {
		t.Errorf("p99 = %v ms, want an hour", q.P99)
	}
}

// TestFiguresThatFallOnATimeout has n fast answers, m slow ones and k timeouts at 5 s.
func TestFiguresThatFallOnATimeout(t *testing.T) {
	tests := []struct {
		name                 string
		fast, same, timeouts int
		slow                 int
		want                 []string
	}{
		{name: "no timeout", fast: 100},
		{name: "all", timeouts: 4, want: []string{"min", "p50", "p90", "p99", "p999", "max"}},
		{name: "one of a hundred is the maximum and the p999", fast: 99, timeouts: 1, want: []string{"p999", "max"}},
		{name: "two of a hundred are the p99 too", fast: 98, timeouts: 2, want: []string{"p99", "p999", "max"}},
		{name: "half", fast: 50, timeouts: 50, want: []string{"p90", "p99", "p999", "max"}},
		{name: "more than half", fast: 49, timeouts: 51, want: []string{"p50", "p90", "p99", "p999", "max"}},
		{name: "answers of the same cell count as faster", fast: 85, same: 10, timeouts: 5, want: []string{"p99", "p999", "max"}},
		{name: "slower answers exist", fast: 80, timeouts: 15, slow: 5, want: []string{"p90"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var samples []metrics.Sample
			add := func(n int, took time.Duration, o metrics.Outcome) {
				for range n {
					s := request(time.Minute, took)
					s.Outcome = o
					samples = append(samples, s)
				}
			}
			add(tt.fast, 10*time.Millisecond, metrics.OK)
			add(tt.same, 5*time.Second-100*time.Microsecond, metrics.OK)
			add(tt.timeouts, 5*time.Second, metrics.Timeout)
			add(tt.slow, 9*time.Second, metrics.OK)
			c := collect(t, samples...)
			st := c.Summary(metrics.RunInfo{}).Steps[0]
			if diff := cmp.Diff(tt.want, st.Latency.AtTimeout); diff != "" {
				t.Errorf("latency (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, st.Service.AtTimeout); diff != "" {
				t.Errorf("service (-want +got):\n%s", diff)
			}
			for _, f := range []string{"p50", "p90", "p99", "p99.9", "max"} {
				th, err := metrics.ParseThreshold(f + "(latency) < 1m")
				if err != nil {
					t.Fatal(err)
				}
				want := slices.Contains(tt.want, strings.ReplaceAll(f, ".", ""))
				if r := c.Evaluate([]metrics.Threshold{th})[0]; r.AtTimeout != want {
					t.Errorf("%s falls on a timeout: %v, want %v", f, r.AtTimeout, want)
				}
			}
		})
	}
}

// TestTrendOfEqualParts has one request in each tenth of a second, with a
// latency of one millisecond for each second passed.
func TestTrendOfEqualParts(t *testing.T) {
	tests := []struct {
		name      string
		seconds   int
		scheduled time.Duration
		want      []float64 // ms, first values
		parts     int
	}{
		{"none", 0, 0, nil, 0},
		{"one second", 1, 0, []float64{1}, 1},
		{"ten", 10, 0, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 10},
		{"sixteen", 16, 0, []float64{1, 2, 3}, 16},
		{"seventeen: two seconds each", 17, 0, []float64{1, 3, 5, 7, 9, 11, 13, 15, 17}, 9},
		{"a hundred: eight seconds each", 100, 0, []float64{4, 12, 20}, 13},
		{"what ended late counts in the last part", 12, 10 * time.Second, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 11}, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var samples []metrics.Sample
			for i := range 10 * tt.seconds {
				samples = append(samples, request(time.Duration(i)*100*time.Millisecond, time.Duration(i/10+1)*time.Millisecond))
			}
			trend := collect(t, samples...).Summary(metrics.RunInfo{MeasuredEnd: tt.scheduled}).Steps[0].Trend
			if len(trend) != tt.parts {
				t.Fatalf("%d parts, want %d", len(trend), tt.parts)
			}
			for i, want := range tt.want {
				within(t, fmt.Sprintf("part %d", i), time.Duration(*trend[i]*1e6), time.Duration(want*1e6), 2)
			}
		})
	}
}

func TestTrendShowsAGapAsNull(t *testing.T) {
	trend := collect(t, request(500*time.Millisecond, time.Millisecond), request(2500*time.Millisecond, time.Millisecond)).
		Summary(metrics.RunInfo{}).Steps[0].Trend
	if len(trend) != 3 || trend[0] == nil || trend[1] != nil || trend[2] == nil {
		t.Errorf("trend %v, want a value, null, a value", trend)
	}
}

func TestErrorsAndCodesAreBounded(t *testing.T) {
	var samples []metrics.Sample
	for i := range 5000 {
		s := request(time.Second, time.Millisecond)
		s.Outcome, s.Code = metrics.RPCError, int32(i)
		s.Extra = &metrics.Extra{Message: strings.Repeat("é", 150)}
		samples = append(samples, s)
	}
	s := collect(t, samples...).Summary(metrics.RunInfo{})
	if len(s.Errors) != 1001 || len(s.Steps[0].Codes) != 65 {
		t.Errorf("%d kinds of errors and %d codes, want 1001 and 65", len(s.Errors), len(s.Steps[0].Codes))
	}
	var errs, codes int64
	for _, e := range s.Errors {
		errs += e.Count
		if len(e.Message) > 200 || !strings.HasPrefix(strings.Repeat("é", 150), e.Message) && e.Message != "other messages" {
			t.Errorf("message %q", e.Message)
		}
	}
	for _, n := range s.Steps[0].Codes {
		codes += n
	}
	if errs != 5000 || codes != 5000 || s.Steps[0].Codes["rpc_error:other"] != 5000-64 || s.Steps[0].Codes["rpc_error:0"] != 1 {
		t.Errorf("%d errors, %d codes, %v", errs, codes, s.Steps[0].Codes)
	}
	if e := s.Errors[0]; e.Message != "other messages" || e.Count != 4000 || e.Code != 0 || e.Step != "" {
		t.Errorf("first entry %+v", e)
	}
}
