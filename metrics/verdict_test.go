package metrics_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
)

// TestDecideFollowsThePrecedence tries every combination of facts and compares
// with the order written as a list.
func TestDecideFollowsThePrecedence(t *testing.T) {
	verdicts := map[int]string{
		2: "error", 1: "error", 130: "interrupted", 143: "interrupted", 3: "unsound", 99: "failed", 0: "passed",
	}
	n := 0
	for bits := range 32 {
		for _, sig := range []syscall.Signal{0, syscall.SIGINT, syscall.SIGTERM} {
			f := metrics.VerdictFacts{
				BadUsage: bits&1 != 0, CannotFinish: bits&2 != 0, Unsound: bits&4 != 0,
				UserThresholds: bits&8 != 0, ThresholdsFailed: bits&16 != 0, Signal: sig,
			}
			applies := map[int]bool{
				2: f.BadUsage, 1: f.CannotFinish, 130: sig == syscall.SIGINT, 143: sig == syscall.SIGTERM,
				3: f.Unsound && f.UserThresholds, 99: f.ThresholdsFailed, 0: true,
			}
			order := []int{2, 1, 130, 143, 3, 99, 0}
			want := order[slices.IndexFunc(order, func(code int) bool { return applies[code] })]
			verdict, code := f.Decide()
			if code != want || verdict != verdicts[want] {
				t.Errorf("%+v: %s, %d, want %s, %d", f, verdict, code, verdicts[want], want)
			}
			n++
		}
	}
	if n != 96 {
		t.Errorf("%d combinations, want 96", n)
	}
}

func TestJudge(t *testing.T) {
	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	tests := []struct {
		name    string
		facts   metrics.SoundnessFacts
		verdict string
		reasons []string
	}{
		{"nothing", metrics.SoundnessFacts{}, "sound", nil},
		{"at the floor", metrics.SoundnessFacts{LatenessP99: ms(2)}, "sound", nil},
		{"above the floor", metrics.SoundnessFacts{LatenessP99: ms(2.5)}, "doubtful", []string{"arrivals were released late: p99 2.5ms, more than 2ms"}},
		{"at the upper floor", metrics.SoundnessFacts{LatenessP99: ms(10)}, "doubtful", []string{"arrivals were released late: p99 10ms, more than 2ms"}},
		{"above the upper floor", metrics.SoundnessFacts{LatenessP99: ms(10.5)}, "unsound", []string{"arrivals were released late: p99 10.5ms, more than 10ms"}},
		{"a tenth of the median", metrics.SoundnessFacts{LatenessP99: ms(30), ServiceP50: ms(300)}, "sound", nil},
		{"above a tenth", metrics.SoundnessFacts{LatenessP99: ms(31), ServiceP50: ms(300)}, "doubtful", []string{"arrivals were released late: p99 31ms, more than 30ms"}},
		{"half of the median", metrics.SoundnessFacts{LatenessP99: ms(150), ServiceP50: ms(300)}, "doubtful", []string{"arrivals were released late: p99 150ms, more than 30ms"}},
		{"above half", metrics.SoundnessFacts{LatenessP99: ms(151), ServiceP50: ms(300)}, "unsound", []string{"arrivals were released late: p99 151ms, more than 150ms"}},
		{"small median", metrics.SoundnessFacts{LatenessP99: ms(1.9), ServiceP50: ms(1)}, "sound", nil},
		{"slab wait", metrics.SoundnessFacts{SlabWaits: 1}, "unsound", []string{"recording could not keep up: work waited for it once"}},
		{"5% throttled", metrics.SoundnessFacts{ThrottledShare: 0.05}, "sound", nil},
		{"6% throttled", metrics.SoundnessFacts{ThrottledShare: 0.06}, "unsound", []string{"the CPU limit of this machine's control group throttled us in 6% of the seconds"}},
		{"cut off", metrics.SoundnessFacts{CutOff: true, Interrupted: 7}, "unsound", []string{"the run was cut off: 7 iterations were due or under way without a known end"}},
		{"cut off with one", metrics.SoundnessFacts{CutOff: true, Interrupted: 1}, "unsound", []string{"the run was cut off: 1 iteration was due or under way without a known end"}},
		{"client errors at the limit of descriptors", metrics.SoundnessFacts{ClientErrors: 2, Own: metrics.OwnUse{FDs: 950, FDsLimit: 1000}}, "unsound", []string{
			"requests or dials failed by our own fault (client_error) 2 times; 950 of 1000 file descriptors were open: raise the limit (ulimit -n), or open fewer sessions",
		}},
		{"client errors below it", metrics.SoundnessFacts{ClientErrors: 1, Own: metrics.OwnUse{FDs: 949, FDsLimit: 1000}}, "unsound", []string{
			"requests or dials failed by our own fault (client_error) once",
		}},
		{"the limit without client errors", metrics.SoundnessFacts{Own: metrics.OwnUse{FDs: 1000, FDsLimit: 1000, Ports: 1000, PortsLimit: 1000}}, "sound", nil},
		{"client errors without ports", metrics.SoundnessFacts{ClientErrors: 1, Own: metrics.OwnUse{Ports: 96, PortsLimit: 100}}, "unsound", []string{
			"requests or dials failed by our own fault (client_error) once; 96 of 100 local ports were in use to one target: give more source addresses (--source-ip), or open fewer sessions",
		}},
		{"client errors with ports in TIME-WAIT", metrics.SoundnessFacts{ClientErrors: 1, Own: metrics.OwnUse{Ports: 6, TimeWait: 90, PortsLimit: 100}}, "unsound", []string{
			"requests or dials failed by our own fault (client_error) once; 6 of 100 local ports were in use to one target and 90 connections in TIME-WAIT: give more source addresses (--source-ip), or keep connections longer",
		}},
		{"all processors, closed", metrics.SoundnessFacts{Own: metrics.OwnUse{CPUShareMax: new(1.0), GCPauseMax: time.Second}}, "sound", nil},
		{"client errors", metrics.SoundnessFacts{ClientErrors: 2}, "unsound", []string{"requests or dials failed by our own fault (client_error) 2 times"}},
		{
			"several",
			metrics.SoundnessFacts{LatenessP99: ms(3), SlabWaits: 7},
			"unsound",
			[]string{"arrivals were released late: p99 3ms, more than 2ms", "recording could not keep up: work waited for it 7 times"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			verdict, reasons := tt.facts.Judge()
			if tt.reasons == nil {
				tt.reasons = []string{}
			}
			if diff := cmp.Diff(tt.reasons, reasons); verdict != tt.verdict || diff != "" {
				t.Errorf("%s, want %s; reasons (-want +got):\n%s", verdict, tt.verdict, diff)
			}
		})
	}
}

// TestSummaryDecides goes through the facts that a summary finds by itself.
func TestSummaryDecides(t *testing.T) {
	connected := metrics.Sample{Kind: metrics.KindConnect, Intended: metrics.NoOffset, Release: metrics.NoOffset, End: 1}
	refused := connected
	refused.Outcome = metrics.TransportError
	late := request(time.Second, time.Millisecond)
	late.Kind, late.Step, late.Intended, late.Release = metrics.KindIteration, metrics.NoStep, 0, 50*time.Millisecond
	failed := request(time.Second, time.Millisecond)
	failed.Outcome = metrics.ToolError
	ours := failed
	ours.Outcome = metrics.ClientError
	good := request(time.Second, time.Millisecond)
	lenient := []string{"count(requests) >= 0"}
	tests := []struct {
		name       string
		info       metrics.RunInfo
		thresholds []string
		samples    []metrics.Sample
		want       string
	}{
		{"passed", metrics.RunInfo{}, nil, []metrics.Sample{connected, good}, "passed 0"},
		{"all failed", metrics.RunInfo{}, nil, []metrics.Sample{connected, failed}, "failed 99"},
		{"some failed", metrics.RunInfo{}, nil, []metrics.Sample{connected, failed, good}, "passed 0"},
		{"no session", metrics.RunInfo{}, nil, []metrics.Sample{refused}, "error 1"},
		{"no connect sample, but a session", metrics.RunInfo{SessionOpened: true}, nil, []metrics.Sample{good}, "passed 0"},
		{"error", metrics.RunInfo{Err: errDisk}, nil, []metrics.Sample{connected, good}, "error 1"},
		{"signal", metrics.RunInfo{Signal: syscall.SIGTERM}, nil, []metrics.Sample{connected, failed}, "interrupted 143"},
		{"unsound without thresholds", metrics.RunInfo{}, nil, []metrics.Sample{connected, good, late}, "passed 0"},
		{"unsound with a threshold", metrics.RunInfo{}, lenient, []metrics.Sample{connected, good, late}, "unsound 3"},
		{"client error with a threshold", metrics.RunInfo{}, lenient, []metrics.Sample{connected, good, ours}, "unsound 3"},
		{"throttled with a threshold", metrics.RunInfo{ThrottledShare: 0.5}, lenient, []metrics.Sample{connected, good}, "unsound 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, expr := range tt.thresholds {
				th, err := metrics.ParseThreshold(expr)
				if err != nil {
					t.Fatal(err)
				}
				tt.info.Thresholds = append(tt.info.Thresholds, th)
			}
			s := collect(t, tt.samples...).Summary(tt.info)
			if got := fmt.Sprint(s.Verdict, " ", s.ExitCode); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if (s.Verdict == "error") != (s.Error != "") {
				t.Errorf("verdict %s with error %q", s.Verdict, s.Error)
			}
		})
	}
}

// TestOutcomesBelongToOneClassOnly ties the predicates of the outcomes together.
func TestOutcomesBelongToOneClassOnly(t *testing.T) {
	seen := map[string]bool{}
	for i := range metrics.NumOutcomes {
		o := metrics.Outcome(i)
		if seen[o.String()] || o.String() == "" || o.String() == "invalid" {
			t.Errorf("outcome %d is named %q", i, o)
		}
		seen[o.String()] = true
		want := metrics.ClassOther
		switch {
		case o.Timed():
			want = metrics.ClassTimed
		case o.Failed():
			want = metrics.ClassFailed
		}
		if o.Class() != want {
			t.Errorf("%v is of class %v, want %v", o, o.Class(), want)
		}
		if o.Answered() && !o.CountsChecks() {
			t.Errorf("%v is answered, but its checks do not count", o)
		}
	}
	if got := metrics.Outcome(200).String(); got != "invalid" {
		t.Errorf("an outcome that does not exist prints %q", got)
	}
}
