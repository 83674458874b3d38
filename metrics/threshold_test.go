package metrics_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
)

// allForms are expressions that parse, with their canonical forms.
var allForms = []struct{ expr, want string }{
	{"p99(latency) < 250ms", "p99(latency) < 250ms"},
	{"rate(errors) < 0.1%", "rate(errors) < 0.1%"},
	{"p95(latency{step=search}) < 120ms", "p95(latency{step=search}) < 120ms"},
	{"rate(checks) > 99.5%", "rate(checks) > 99.5%"},
	{"rate(dropped) == 0", "rate(dropped) == 0"},
	{"p99(lateness) < 5ms", "p99(lateness) < 5ms"},
	{"rate(requests) > 500/s", "rate(requests) > 500/s"},
	{"count(ok) > 0", "count(ok) > 0"},
	{"rate(errors) < 100%", "rate(errors) < 100%"},
	{"rate(achieved)>=95%", "rate(achieved) >= 95%"},
	{" p099.90 ( service_time { step = \"a \\\"b\\\"\" , group=g } )<=1.50 s ", "p99.9(service_time{step=\"a \\\"b\\\"\",group=g}) <= 1.5s"},
	{"p0(ttfb) != 3µs", "p0(ttfb) != 3us"},
	{"p100(connect) != 3μs", "p100(connect) != 3us"},
	{"mean(iteration) < 2m", "mean(iteration) < 2m"},
	{"min(queued) < 2h", "min(queued) < 2h"},
	{"max(latency) < 100ns", "max(latency) < 100ns"},
	{"sum(latency) < 10s", "sum(latency) < 10s"},
	{"count(latency) > 10", "count(latency) > 10"},
	{"rate(ok) > 0.99", "rate(ok) > 0.99"},
	{"rate(ok) > 99/s", "rate(ok) > 99/s"},
	{"rate(errors{outcome=timeout}) < 1/s", "rate(errors{outcome=timeout}) < 1/s"},
	{"rate(requests{outcome=cancelled}) < 1%", "rate(requests{outcome=cancelled}) < 1%"},
	{"rate(iterations{outcome=failed}) < 1%", "rate(iterations{outcome=failed}) < 1%"},
	{"count(iterations{group=g}) == 800", "count(iterations{group=g}) == 800"},
	{"count(checks{check=fast}) > 1", "count(checks{check=fast}) > 1"},
	{"sum(bytes_sent) < 1.5MiB", "sum(bytes_sent) < 1.5MiB"},
	{"rate(bytes_received) < 20KB/s", "rate(bytes_received) < 20KB/s"},
	{"p50(latency{name=catalog://item/x, method=resources/read}) < 1s", "p50(latency{name=catalog://item/x,method=resources/read}) < 1s"},
	{"p50(latency{name=\"item/{id}\"}) < 1s", "p50(latency{name=\"item/{id}\"}) < 1s"},
	{"p50(latency{step=tools/call search}) < 1s", "p50(latency{step=tools/call search}) < 1s"},
}

func TestParseThreshold(t *testing.T) {
	for _, tt := range allForms {
		t.Run(tt.expr, func(t *testing.T) {
			th, err := metrics.ParseThreshold(tt.expr)
			if err != nil {
				t.Fatal(err)
			}
			if th.Expr != tt.expr || th.String() != tt.want || th.Default {
				t.Errorf("got %q of %q, want %q", th, th.Expr, tt.want)
			}
			again, err := metrics.ParseThreshold(th.String())
			if err != nil || again.String() != tt.want {
				t.Errorf("the canonical form parses to %q, %v", again, err)
			}
		})
	}
}

func TestParseThresholdParts(t *testing.T) {
	th, err := metrics.ParseThreshold(`p99.9(latency{step="a,b",kind=read}) >= 2.5s`)
	if err != nil {
		t.Fatal(err)
	}
	if th.Agg != "p99.9" || th.Metric != "latency" || th.Op != ">=" || th.Value != 2.5 || th.Unit != "s" ||
		len(th.Tags) != 2 || th.Tags[0].Value != "a,b" || th.Tags[1].Key != "kind" {
		t.Errorf("got %+v", th)
	}
}

func TestParseThresholdErrors(t *testing.T) {
	tests := []struct {
		expr    string
		offset  int
		message string
		notYet  string
	}{
		{"", 0, `expected an aggregate such as p99, mean or rate, found the end`, ""},
		{"latency < 5ms", 0, `latency is a metric and needs an aggregate around it, as in p99(latency)`, ""},
		{"p99 latency < 5ms", 4, `expected "(" after the aggregate, as in p99(latency) < 250ms, found "latency"`, ""},
		{"p101(latency) < 5ms", 0, `there is no percentile p101: write p0 to p100, with decimals as in p99.9`, ""},
		{"p999(latency) < 5ms", 0, `there is no percentile p999: write p0 to p100, with decimals as in p99.9`, ""},
		{"p9.9.9(latency) < 5ms", 0, `there is no percentile p9.9.9: write p0 to p100, with decimals as in p99.9`, ""},
		{"mena(latency) < 5ms", 0, `unknown aggregate "mena" (did you mean "mean"?)`, ""},
		{"last(latency) < 5ms", 0, `last is not supported yet in thresholds`, "last"},
		{"slope(server_rss) < 1MiB/min", 0, `slope is not supported yet in thresholds`, "slope"},
		{"drift(latency) < 5%", 0, `drift is not supported yet in thresholds`, "drift"},
		{"max(server_rss) < 512MiB", 4, `server_rss is not supported yet in thresholds`, "server_rss"},
		{"p99(session) < 1s", 4, `session is not supported yet in thresholds`, "session"},
		{"p99(latencey) < 5ms", 4, `unknown metric "latencey" (did you mean "latency"?)`, ""},
		{"p99() < 5ms", 4, `expected a metric such as latency or errors, found ")"`, ""},
		{"p99(latency < 5ms", 12, `expected ")" after the metric, found "<"`, ""},
		{"p99(errors) < 5", 0, `p99 does not fit errors: write count, rate(errors)`, ""},
		{"rate(latency) < 5/s", 0, `rate does not fit latency: write p99, mean, min, max, sum, count(latency)`, ""},
		{"rate(iteration) < 5/s", 0, `rate does not fit iteration: write p99, mean, min, max, sum, count(iteration), or rate(iterations)`, ""},
		{"count(bytes_sent) > 1", 0, `count does not fit bytes_sent: write sum, rate(bytes_sent)`, ""},
		{"count(achieved) > 1", 0, `count does not fit achieved: write rate(achieved)`, ""},
		{"p99(latency) = 5ms", 13, `"=" does not compare: write "=="`, ""},
		{"p99(latency) =< 5ms", 13, `expected one of < <= > >= == !=, found "=<"`, ""},
		{"p99(latency)", 12, `expected one of < <= > >= == !=, found the end`, ""},
		{"p99(latency) <", 14, `expected a number, found the end`, ""},
		{"p99(latency) < -5ms", 15, `expected a number, found "-5ms"`, ""},
		{"p99(latency) < 1.2.3ms", 15, `"1.2.3" is not a number`, ""},
		{"p99(latency) < 250", 18, `p99(latency) is a time and needs a unit: ns, us, ms, s, m or h`, ""},
		{"p99(latency) < 5%", 16, `p99(latency) is a time and needs a unit: ns, us, ms, s, m or h`, ""},
		{"p99(latency) < 5min", 16, `p99(latency) is a time and needs a unit: ns, us, ms, s, m or h`, ""},
		{"p99(latency) < 1m30s", 17, `unexpected "30s" after the value: write one number and one unit, such as 90s`, ""},
		{"p99(latency) < 5ms please", 19, `unexpected "please" after the value: write one number and one unit, such as 90s`, ""},
		{"count(ok) > 5%", 13, `count(ok) is a number without a unit, found "%"`, ""},
		{"rate(requests) > 500", 20, `rate(requests) is per second: write a value such as 500/s`, ""},
		{"rate(requests) > 5%", 18, `rate(requests) is per second: write a value such as 500/s`, ""},
		{"rate(checks) > 5/s", 16, `rate(checks) is a share of evaluated checks: write a value in %`, ""},
		{"rate(errors) < 5", 15, `rate(errors) without a unit is a share from 0 to 1: write a value in % or /s`, ""},
		{"rate(errors) < 101%", 15, `rate(errors) cannot be above 100%`, ""},
		{"rate(errors) < 5ms", 16, `rate(errors) has no unit "ms": write a value in % or /s`, ""},
		{"rate(achieved) > 5/s", 18, `rate(achieved) is a share of the offered rate: write a value in %`, ""},
		{"sum(bytes_sent) < 5", 19, `sum(bytes_sent) is in bytes and needs a unit: B, kB, MB, GB, KiB, MiB or GiB`, ""},
		{"rate(bytes_sent) < 5MB", 20, `rate(bytes_sent) is in bytes per second and needs a unit such as MiB/s`, ""},
		{"p99(latency{}) < 5ms", 12, `expected a tag such as step=NAME, found "})"`, ""},
		{"p99(latency{step}) < 5ms", 16, `expected "=" after the tag step, found "})"`, ""},
		{"p99(latency{step=}) < 5ms", 17, `expected the value of a tag, found "})"`, ""},
		{"p99(latency{step=a) < 5ms", 25, `expected "}" after the value of step, found the end`, ""},
		{"p99(latency{step=\"a}) < 5ms", 17, `the quoted value does not end`, ""},
		{"p99(latency{step=a,step=b}) < 5ms", 19, `the tag step stands twice`, ""},
		{"p99(latency{outcome=ok}) < 5ms", 12, `the tag outcome selects among requests, errors and iterations, not latency`, ""},
		{"count(errors{outcome=tiemout}) < 5", 21, `errors has no outcome "tiemout" (did you mean "timeout"?)`, ""},
		{"count(errors{outcome=cancelled}) < 5", 21, `errors has no outcome "cancelled"`, ""},
		{"count(ok{check=fast}) > 5", 9, `the tag check selects among checks, not ok`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			_, err := metrics.ParseThreshold(tt.expr)
			te, ok := errors.AsType[*metrics.ThresholdError](err)
			if !ok {
				t.Fatalf("got %v, want a *ThresholdError", err)
			}
			want := metrics.ThresholdError{Expr: tt.expr, Offset: tt.offset, Message: tt.message, NotYet: tt.notYet}
			if diff := cmp.Diff(want, *te); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultThresholdsAreWhatTheySay(t *testing.T) {
	for _, d := range metrics.DefaultThresholds() {
		parsed, err := metrics.ParseThreshold(d.Expr)
		parsed.Default = true
		if err != nil || !d.Equal(parsed) {
			t.Errorf("%q parses to %v, %v, want %v", d.Expr, parsed, err, d)
		}
	}
}

func TestResolve(t *testing.T) {
	unknownVersion, closed := oracleCatalog(), oracleCatalog()
	unknownVersion.Targets[0].ProtocolVersion = ""
	closed.Groups[0].Open = false
	tests := []struct {
		expr    string
		cat     *metrics.Catalog
		offset  int
		message string // "" when it resolves
	}{
		{"p99(latency) < 5ms", oracleCatalog(), 0, ""},
		{"p99(latency{step=search}) < 5ms", oracleCatalog(), 0, ""},
		{"p99(latency{step=search,group=open,method=tools/call,name=search,server=cat,transport=http,kind=read}) < 5ms", oracleCatalog(), 0, ""},
		{"p99(latency{step=serach}) < 5ms", oracleCatalog(), 17, `no step is "serach" (did you mean "search"?)`},
		{"p99(latency{setp=search}) < 5ms", oracleCatalog(), 12, `nothing carries a tag "setp" (did you mean "step"?)`},
		{"p99(latency{kind=write}) < 5ms", oracleCatalog(), 17, `no kind is "write" (there are: read)`},
		{"p99(latency{kidn=read}) < 5ms", oracleCatalog(), 12, `nothing carries a tag "kidn" (did you mean "kind"?)`},
		{"p99(latency{step=search,method=ping}) < 5ms", oracleCatalog(), 12, `nothing has all of step=search, method=ping`},
		{"p99(latency{protocol_version=2025-11-25}) < 5ms", oracleCatalog(), 0, ""},
		{"p99(latency{protocol_version=2024-11-05}) < 5ms", oracleCatalog(), 29, `no protocol_version is "2024-11-05" (did you mean "2025-11-25"?)`},
		{"p99(latency{protocol_version=2024-11-05}) < 5ms", unknownVersion, 0, ""},
		{"p99(lateness{group=open}) < 5ms", oracleCatalog(), 0, ""},
		{"p99(lateness{step=search}) < 5ms", oracleCatalog(), 13, `lateness is not measured by step: it takes group, server, transport, protocol_version`},
		{"p99(lateness) < 5ms", closed, 4, `lateness is measured in an open load only, and no group has arrivals`},
		{"rate(achieved) > 5%", closed, 5, `achieved is measured in an open load only, and no group has arrivals`},
		{"rate(dropped) == 0", closed, 0, ""},
		{"count(errors{outcome=timeout}) == 0", oracleCatalog(), 0, ""},
		{"rate(checks) > 99%", oracleCatalog(), 0, ""},
		{"rate(checks{check=fast}) > 99%", oracleCatalog(), 0, ""},
		{"rate(checks{check=fats}) > 99%", oracleCatalog(), 18, `no check is named "fats" (did you mean "fast"?)`},
		{"rate(checks{check=fast,step=get}) > 99%", oracleCatalog(), 18, `no check is named "fast" (there are: ok)`},
		{"rate(checks{step=ping}) > 99%", oracleCatalog(), 5, `no step that the threshold selects has a check`},
		{"rate(checks) > 99%", benchCatalog(), 5, `no step that the threshold selects has a check`},
		{"p99(gap) < 5ms", oracleCatalog(), 0, ""},
		{"p99(gap{step=ping}) < 5ms", oracleCatalog(), 0, ""},
		{"p99(gap{step=search}) < 5ms", oracleCatalog(), 4, `gap is the time between progress notifications, and no step that the threshold selects has progress: true`},
		{"p99(latency{step=news}) < 5ms", onceCatalog(), 17, `step "news" runs once a session and is no part of the load`},
		{"p99(latency{step=nesw}) < 5ms", onceCatalog(), 17, `no step is "nesw" (there are: search, get, ping)`},
		{"p99(latency{method=resources/subscribe}) < 5ms", onceCatalog(), 19, `no method is "resources/subscribe" (there are: tools/call, prompts/get, ping)`},
		{"p99(latency{step=search}) < 5ms", onceCatalog(), 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			th, err := metrics.ParseThreshold(tt.expr)
			if err != nil {
				t.Fatal(err)
			}
			err = th.Resolve(tt.cat)
			if tt.message == "" {
				if err != nil {
					t.Errorf("got %v, want none", err)
				}
				return
			}
			te, ok := errors.AsType[*metrics.ThresholdError](err)
			if !ok {
				t.Fatalf("got %v, want a *ThresholdError", err)
			}
			if te.Offset != tt.offset || te.Message != tt.message || te.NotYet != "" {
				t.Errorf("at %d %q, want at %d %q", te.Offset, te.Message, tt.offset, tt.message)
			}
		})
	}
}

// onceCatalog is oracleCatalog with a step that a session has once.
func onceCatalog() *metrics.Catalog {
	cat := oracleCatalog()
	cat.Steps = append(cat.Steps, metrics.StepInfo{ID: "news", Method: "resources/subscribe", Part: metrics.PartBefore})
	return cat
}

// evaluationSamples is 10 s of the oracleCatalog: 6 ok, 2 timeouts, 1 tool
// error and 1 cancelled search, 2 pings, and 10 arrivals, one of them dropped.
func evaluationSamples() []metrics.Sample {
	var out []metrics.Sample
	for i := range 10 {
		s := request(time.Duration(i+1)*time.Second, time.Duration(i+1)*10*time.Millisecond)
		s.Intended = s.Start - 2*time.Millisecond
		s.Release, s.BytesOut, s.BytesIn = s.Start-time.Millisecond, 100, 1<<20
		s.Outcome = []metrics.Outcome{0, 0, 0, 0, 0, 0, metrics.Timeout, metrics.Timeout, metrics.ToolError, metrics.Cancelled}[i]
		if i == 0 {
			s.ChecksFailed = 2 // not fast
		}
		out = append(out, s)
		s.Kind, s.Step, s.Outcome, s.ChecksFailed = metrics.KindIteration, metrics.NoStep, 0, 0
		if i == 9 {
			s.Outcome, s.End = metrics.Outcome(metrics.IterDropped), s.Start
		}
		out = append(out, s)
	}
	for i := range 2 {
		s := request(time.Second, time.Duration(i+1)*time.Second)
		s.Step, s.Group = 2, 1
		s.Extra = &metrics.Extra{Gaps: []time.Duration{time.Duration(i+1) * 20 * time.Millisecond}}
		out = append(out, s)
	}
	connect := request(0, 3*time.Millisecond)
	connect.Kind = metrics.KindConnect
	return append(out, connect)
}

func TestEvaluate(t *testing.T) {
	none := math.NaN()
	tests := []struct {
		expr  string
		value float64 // NaN is nil
		unit  string
		ok    bool
	}{
		{"count(ok) > 7", 8, "", true},
		{"count(ok) > 8", 8, "", false},
		{"count(requests) == 12", 12, "", true},
		{"count(requests) != 12", 12, "", false},
		{"count(requests{step=ping}) >= 2", 2, "", true},
		{"count(requests{outcome=timeout}) <= 2", 2, "", true},
		{"rate(requests{outcome=timeout,step=search}) < 20%", 20, "%", false},
		{"rate(requests) > 1/s", 1.2, "/s", true},
		{"count(errors) < 3", 3, "", false},
		{"rate(errors) <= 25%", 25, "%", true},
		{"rate(errors) < 0.25", 0.25, "", false},
		{"rate(errors{step=search}) == 30%", 30, "%", true},
		{"rate(errors{outcome=tool_error}) < 1/s", 0.1, "/s", true},
		{"rate(ok) > 60%", 8. / 12 * 100, "%", true},
		{"count(checks) == 18", 18, "", true},
		{"rate(checks) > 50%", 13. / 18 * 100, "%", true},
		{"rate(checks{check=fast}) > 70%", 6. / 9 * 100, "%", false},
		{"count(dropped) == 1", 1, "", true},
		{"rate(dropped) == 0", 0.1, "", false},
		{"rate(dropped) <= 10%", 10, "%", true},
		{"rate(dropped{group=closed}) == 0", none, "", false},
		{"count(iterations) == 9", 9, "", true},
		{"rate(iterations) > 0.5/s", 0.9, "/s", true},
		{"rate(iterations{outcome=dropped}) < 20%", 10, "%", true},
		{"sum(bytes_sent) < 1KB", 1, "KB", false},
		{"sum(bytes_received) == 10MiB", 10, "MiB", true},
		{"rate(bytes_received) < 2MiB/s", 1, "MiB/s", true},
		{"max(latency{step=search}) < 1s", 82, "ms", true},
		{"min(latency) < 12ms", 12, "ms", false},
		{"mean(service_time{step=ping}) == 1.5s", 1500, "ms", true},
		{"sum(service_time{step=ping}) == 3s", 3000, "ms", true},
		{"count(latency) == 10", 10, "", true},
		{"p100(latency) <= 2000000us", 2000, "ms", true},
		{"p0(latency) == 12ms", 12, "ms", true},
		{"max(connect) < 1s", 3, "ms", true},
		{"max(connect{group=closed}) < 1s", none, "ms", false},
		{"max(lateness) == 1ms", 1, "ms", true},
		{"max(queued) == 1ms", 1, "ms", true},
		{"max(iteration) < 1s", 92, "ms", true},
		{"max(ttfb{step=search}) < 1s", 60, "ms", true},
		{"p99(latency{step=get}) < 1s", none, "ms", false},
		{"max(gap{step=ping}) < 50ms", 40, "ms", true},
		{"mean(gap) == 30ms", 30, "ms", true},
		{"count(gap) == 2", 2, "", true},
		{"count(latency{step=get}) == 0", 0, "", true},
		{"count(requests{step=get}) == 0", 0, "", true},
		{"rate(requests{step=get}) < 1/s", 0, "/s", true},
		{"rate(errors{step=get}) < 100%", none, "%", false},
	}
	cat := oracleCatalog()
	c := collectWith(t, cat, evaluationSamples()...)
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			th, err := metrics.ParseThreshold(tt.expr)
			if err != nil {
				t.Fatal(err)
			}
			if err := th.Resolve(cat); err != nil {
				t.Fatal(err)
			}
			got := c.Evaluate([]metrics.Threshold{th})[0]
			if got.Expr != tt.expr || got.Unit != tt.unit || got.OK != tt.ok {
				t.Errorf("got %+v, want ok %v in %q", got, tt.ok, tt.unit)
			}
			switch {
			case math.IsNaN(tt.value) && got.Value != nil:
				t.Errorf("value %v, want none", *got.Value)
			case !math.IsNaN(tt.value) && got.Value == nil:
				t.Errorf("no value, want %v", tt.value)
			case got.Value != nil:
				exact(t, "value", *got.Value, tt.value)
			}
		})
	}
}
