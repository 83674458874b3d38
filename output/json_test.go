package output_test

import (
	"bytes"
	"encoding/json"
	"math"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
	"mcpbench/output"
)

// contractKeys are the keys of the example in the design of the interface, by
// path; [] stands for the elements of a list. They are added to, never renamed.
var contractKeys = strings.Fields(`
schema_version run_id scenario verdict exit_code started_at duration_s warmup_s seed results_dir
targets targets[].server targets[].transport targets[].protocol_version targets[].server_info
targets[].server_info.name targets[].server_info.version
sessions sessions.opened sessions.failed sessions.reopened sessions.closed sessions.connect_ms
sessions.connect_ms.p50 sessions.connect_ms.p99 sessions.outcomes
iterations iterations.total iterations.completed iterations.failed iterations.dropped
iterations.interrupted iterations.script_error iterations.agent_lost
requests requests.total requests.ok requests.failed requests.other requests.checks_failed
requests.rate_per_s requests.outcomes requests.bytes_sent requests.bytes_received
steps steps[].step steps[].method steps[].name steps[].target steps[].server steps[].transport
steps[].protocol_version steps[].count steps[].outcomes steps[].codes steps[].latency_ms
steps[].latency_ms.min steps[].latency_ms.mean steps[].latency_ms.p50 steps[].latency_ms.p90
steps[].latency_ms.p99 steps[].latency_ms.p999 steps[].latency_ms.max steps[].service_ms
steps[].ttfb_ms steps[].failed_ms
checks checks[].name checks[].passed checks[].failed
thresholds thresholds[].expr thresholds[].value thresholds[].ok
anomalies
errors errors[].outcome errors[].code errors[].message errors[].count errors[].first_s errors[].last_s
soundness soundness.verdict soundness.reasons soundness.lateness_ms soundness.lateness_ms.p50
soundness.lateness_ms.p99 soundness.cpu_s soundness.gc_pause_ms_max soundness.floor_us
trials trials[].trial trials[].target trials[].started_at trials[].duration_s trials[].requests
trials[].steps trials[].soundness
servers
`)

// addedKeys are those that came after, each with the reason for it in the
// comment of its field.
var addedKeys = strings.Fields(`
targets[].era sessions.connect_ms.* iterations.latency_ms steps[].group steps[].trend_ms checks[].step
thresholds[].unit errors[].step
load load[].group load[].model load[].intended load[].started load[].dropped load[].rate_per_s load[].achieved_per_s
load[].lateness_ms load[].queued_ms load[].sessions
soundness.notes soundness.cpu_user_s soundness.cpu_system_s soundness.cpu_share_max soundness.goroutines_max soundness.fds_max
soundness.fds_limit soundness.ports_max soundness.ports_limit soundness.time_wait_max
`)

// keys collects the paths of an object, without the keys of maps of counts.
func keys(prefix string, v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if strings.HasSuffix(prefix, "outcomes.") || strings.HasSuffix(prefix, "codes.") || prefix == "anomalies." {
			return
		}
		for k, e := range v {
			into[prefix+k] = true
			keys(prefix+k+".", e, into)
		}
	case []any:
		for _, e := range v {
			keys(strings.TrimSuffix(prefix, ".")+"[].", e, into)
		}
	}
}

func TestJSONKeysAreTheContract(t *testing.T) {
	s := failingRun()
	s.Trials = []metrics.TrialSummary{{Requests: s.Requests}}
	got := decode(t, s)
	have := map[string]bool{}
	keys("", got, have)
	for _, k := range contractKeys {
		if !have[k] {
			t.Errorf("key %s is missing", k)
		}
	}
	known := map[string]bool{}
	for _, k := range append(contractKeys, addedKeys...) {
		known[k] = true
	}
	var unknown []string
	for k := range have {
		parent, leaf := k[:strings.LastIndex(k, ".")+1], k[strings.LastIndex(k, ".")+1:]
		isFigure := strings.HasSuffix(parent, "_ms.") && strings.Contains(" count min mean p50 p90 p99 p999 max ", " "+leaf+" ")
		inTrial := strings.HasPrefix(k, "trials[].requests.") || strings.HasPrefix(k, "trials[].steps") || strings.HasPrefix(k, "trials[].soundness.")
		if !known[k] && !isFigure && !inTrial {
			unknown = append(unknown, k)
		}
	}
	sort.Strings(unknown)
	if len(unknown) > 0 {
		t.Errorf("keys that are not listed here: %s", strings.Join(unknown, " "))
	}
}

func decode(t *testing.T, s *metrics.Summary) map[string]any {
	t.Helper()
	var b bytes.Buffer
	if err := output.WriteJSON(&b, s); err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(&b)
	var got map[string]any
	if err := dec.Decode(&got); err != nil {
		t.Fatalf("decode: %v", err)
	}
	if rest := strings.TrimSpace(b.String()); rest != "" || dec.More() {
		t.Errorf("more than one object: %q", rest)
	}
	return got
}

func TestJSONGolden(t *testing.T) {
	for _, c := range []struct {
		name    string
		summary *metrics.Summary
	}{
		{"failing", failingRun()},
		{"listening", listeningRun()},
		{"nothing-opened", nothingOpened()},
		{"empty", &metrics.Summary{Trials: []metrics.TrialSummary{{}}, Steps: []metrics.StepSummary{{}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := output.WriteJSON(&b, c.summary); err != nil {
				t.Fatal(err)
			}
			golden(t, "json/"+c.name+".json", b.String())
		})
	}
}

// TestJSONHasNoNullListsAndNoControls covers text from a hostile server: the
// object goes to a terminal as well as into programs.
func TestJSONHasNoNullListsAndNoControls(t *testing.T) {
	evil := "a\x1b[31m\u009bb\x7f\u202ec\u2028"
	s := nothingOpened()
	s.Errors[0].Message = evil
	var b bytes.Buffer
	if err := output.WriteJSON(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.String() {
		if r != '\n' && (r < 0x20 || (r >= 0x7f && r < 0xa0) || r == 0x202e || r == 0x2028) {
			t.Errorf("character %U stands in the object", r)
		}
	}
	got := decode(t, s)
	if message := got["errors"].([]any)[0].(map[string]any)["message"]; message != evil {
		t.Errorf("message: got %q, want %q", message, evil)
	}
	for k, v := range got {
		if v == nil {
			t.Errorf("%s is null", k)
		}
	}
}

func TestJSONRefusesNaN(t *testing.T) {
	s := okRun()
	s.Steps[0].Latency.P99 = math.NaN()
	if err := output.WriteJSON(&bytes.Buffer{}, s); err == nil {
		t.Error("got no error for a figure that is not a number")
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain", "a\x1b[0m", "\xff\xfe", "\u202e\u2066", "日本\n\t\r", "\u009b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := output.Escape(s)
		for _, r := range got {
			if r < 0x20 || (r >= 0x7f && r < 0xa0) || (r >= 0x202a && r <= 0x202e) || r == 0xfffd && !strings.ContainsRune(s, 0xfffd) {
				t.Fatalf("Escape(%q) = %q holds %U", s, got, r)
			}
		}
		if again := output.Escape(got); again != got {
			t.Fatalf("Escape is not stable: %q, then %q", got, again)
		}
	})
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain ✓": "plain ✓", "a\nb\tc\r": `a\nb\tc\r`, "\x1b[31m": `\x1b[31m`, "\u009b": `\x9b`, "\u202e": `\u202e`, "\xff": `\xff`, "\x00": `\x00`,
	} {
		if diff := cmp.Diff(want, output.Escape(in)); diff != "" {
			t.Errorf("Escape(%q) (-want +got):\n%s", in, diff)
		}
	}
}
