package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// args are given, so that the command need not ask the server for a schema.
const args = `{"message":"hi"}`

// A server that stands still 400 ms after each 300 calls: what the arrivals
// had to wait for must show in the latency and in queued, not in the service
// time of others nor in our own lateness.
func TestFreezeShowsInLatency(t *testing.T) {
	var f *fake
	var r *runResult
	// When the machine had no time for the command, the run says so itself and
	// proves nothing about it.
	for range 3 {
		z := &freezer{every: 300, length: 400 * time.Millisecond}
		f = startFake(t, &fake{answer: z.answer})
		r = bench(t, []string{"--url", f.url, "-t", "echo", "-a", args, "-r", "200", "-c", "2", "-d", "4s"})
		if r.summary == nil || r.summary.Soundness.Verdict == "sound" {
			break
		}
		t.Logf("once more: the run was %s: %v", r.summary.Soundness.Verdict, r.summary.Soundness.Reasons)
	}
	if r.exit != 0 {
		t.Errorf("exit code %d, want 0", r.exit)
	}
	r.checkCounts(t)
	if len(r.iterations) != 800 || f.calls != 800 {
		t.Errorf("%d rows in iterations and %d calls at the server, want 800", len(r.iterations), f.calls)
	}
	var latency, service, lateness, queued []float64
	for i, row := range r.requests {
		if row.Lateness == nil || row.Queued == nil {
			t.Fatalf("row %d has no lateness or queued", i)
		}
		if row.Latency != *row.Lateness+*row.Queued+row.Service {
			t.Fatalf("row %d: latency %d is not lateness %d + queued %d + service time %d",
				i, row.Latency, *row.Lateness, *row.Queued, row.Service)
		}
		latency = append(latency, float64(row.Latency)/ms)
		service = append(service, float64(row.Service)/ms)
		lateness = append(lateness, float64(*row.Lateness)/ms)
		queued = append(queued, float64(*row.Queued)/ms)
	}
	if got := quantile(latency, 0.99); got <= 300 {
		t.Errorf("p99 latency %.1f ms, want over 300", got)
	}
	if got := quantile(service, 0.5); got >= 5 {
		t.Errorf("p50 service time %.2f ms, want under 5", got)
	}
	if got := quantile(lateness, 0.99); got >= 5 {
		t.Errorf("p99 lateness %.2f ms, want under 5", got)
	}
	if got := quantile(queued, 0.99); got <= 200 {
		t.Errorf("p99 queued %.1f ms, want over 200", got)
	}
	if len(r.summary.Load) != 1 || r.summary.Load[0].Lateness == nil || r.summary.Load[0].Queued == nil {
		t.Errorf("the summary shows no lateness and queued: %+v", r.summary.Load)
	}
	if r.summary.Soundness.Verdict == "unsound" {
		t.Errorf("unsound: %v", r.summary.Soundness.Reasons)
	}
}

// No answer that is not a success may be counted as one.
func TestFailuresAreNeverOK(t *testing.T) {
	tests := []struct {
		name    string
		answer  func(w http.ResponseWriter, id json.RawMessage, call int)
		outcome string
		code    string
	}{
		{
			name: "a tool that returns isError",
			answer: func(w http.ResponseWriter, id json.RawMessage, _ int) {
				reply(w, id, `{"content":[{"type":"text","text":"no"}],"isError":true}`)
			},
			outcome: "tool_error",
		},
		{
			name: "a JSON-RPC error in SSE with status 200",
			answer: func(w http.ResponseWriter, id json.RawMessage, _ int) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,\"message\":\"boom\"}}\n\n", id)
			},
			outcome: "rpc_error", code: "rpc_error:-32603",
		},
		{
			name:    "an empty body with status 200",
			answer:  func(http.ResponseWriter, json.RawMessage, int) {},
			outcome: "protocol_error",
		},
		{
			name: "status 500",
			answer: func(w http.ResponseWriter, _ json.RawMessage, _ int) {
				http.Error(w, "boom", http.StatusInternalServerError)
			},
			outcome: "http_error", code: "http_error:500",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := startFake(t, &fake{answer: tt.answer})
			r := bench(t, []string{"--url", f.url, "-t", "echo", "-a", args, "-c", "2", "-n", "40", "-d", "20s"})
			r.checkFailed(t, 99, tt.outcome)
			if total := r.summary.Requests.Total; total != 40 || f.calls != 40 {
				t.Errorf("%d requests, %d at the server, want 40", total, f.calls)
			}
			if codes := r.summary.Steps[0].Codes; tt.code != "" && codes[tt.code] != 40 {
				t.Errorf("codes %v, want %s 40 times", codes, tt.code)
			}
		})
	}
}

func TestUnknownToolFails(t *testing.T) {
	url := serve(t, bin.gosdkserver)
	r := bench(t, []string{"--url", url, "-t", "no_such_tool", "-a", args, "-c", "2", "-n", "40", "-d", "20s"})
	r.checkFailed(t, 99, "rpc_error")
}

// checkFailed demands that the run ended with this exit code, and that each of
// its requests failed with this outcome.
func (r *runResult) checkFailed(t *testing.T, exit int, outcome string) {
	t.Helper()
	if r.exit != exit {
		t.Errorf("exit code %d, want %d", r.exit, exit)
	}
	r.checkCounts(t)
	if c := r.summary.Requests; c.OK != 0 || c.Total == 0 || c.Outcomes[outcome] != c.Total || c.Failed != c.Total {
		t.Errorf("requests %+v, want only %s", c, outcome)
	}
	if c := r.summary.Iterations; c.Completed != 0 {
		t.Errorf("%d iterations completed, want none", c.Completed)
	}
}

func TestRefusedSessionsCannotFinish(t *testing.T) {
	f := startFake(t, &fake{refuse: true})
	r := bench(t, []string{"--url", f.url, "-t", "echo", "-a", args, "-c", "3", "-d", "1s"})
	if r.exit != 1 {
		t.Errorf("exit code %d, want 1", r.exit)
	}
	if r.summary == nil {
		t.Fatal("no summary was printed")
	}
	if s := r.summary; s.Verdict != "error" || s.Requests.OK != 0 || s.Sessions.Opened != 0 || s.Sessions.Failed == 0 || s.Error == "" {
		t.Errorf("verdict %q, %d ok, %d sessions opened, %d failed, error %q, want error, 0, 0, some, a text",
			s.Verdict, s.Requests.OK, s.Sessions.Opened, s.Sessions.Failed, s.Error)
	}
}

// A lost session costs one failed request, is opened anew once, and is not
// hidden by a retry.
func TestLostSessionIsReopenedOnce(t *testing.T) {
	f := startFake(t, &fake{forget: func(call int) bool { return call == 30 }})
	r := bench(t, []string{"--url", f.url, "-t", "echo", "-a", args, "-c", "2", "-n", "100", "-d", "20s"})
	if r.exit != 0 {
		t.Errorf("exit code %d, want 0", r.exit)
	}
	r.checkCounts(t)
	if c := r.summary.Requests; c.Total != 100 || c.OK != 99 || c.Outcomes["http_error"] != 1 {
		t.Errorf("requests %+v, want 99 ok and 1 http_error", c)
	}
	if got := r.summary.Steps[0].Codes["http_error:404"]; got != 1 {
		t.Errorf("codes %v, want http_error:404 once", r.summary.Steps[0].Codes)
	}
	if s := r.summary.Sessions; s.Reopened != 1 || s.Opened != 3 || s.Failed != 0 {
		t.Errorf("sessions %+v, want 3 opened, 1 of them reopened", s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// One of them was that of the probe.
	if f.calls != 100 || f.opened != 4 || f.deleted != 3 {
		t.Errorf("the server saw %d calls, %d sessions opened, %d deleted, want 100, 4, 3", f.calls, f.opened, f.deleted)
	}
}
