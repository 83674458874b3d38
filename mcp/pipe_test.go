package mcp_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// Wire test 46, faults A1, A4, A5, C1, C2, C17: what a server may print between
// and instead of messages.
func TestLines(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":$ID,"result":` + echoed + `}`
	type counts = map[mcp.Anomaly]int
	noise := func(n int) counts { return counts{mcp.AnomalyStdoutNoise: n} }
	tests := []struct {
		name  string
		raw   string
		fault mcp.ProtocolFault // 0: the result arrives
		want  counts
	}{
		{"plain", answer + "\n", 0, counts{}},
		{"CRLF", answer + "\r\n", 0, counts{}},
		{"blank lines", "\n\r\n  \n" + answer + "\n\n", 0, counts{}},
		{"banner", "Server v1.2 started\n" + answer + "\n", 0, noise(1)},
		{"log line in JSON", `{"level":"info","msg":"x"}` + "\n" + answer + "\n", 0, noise(1)},
		{"log line with our id", `{"id":$ID,"msg":"x"}` + "\n" + answer + "\n", 0, noise(1)},
		{"log line with a method", `{"method":"GET","path":"/"}` + "\n" + answer + "\n", 0, noise(1)},
		{"number, string, array of them", "7\n\"x\"\n[1,2]\n" + answer + "\n", 0, counts{mcp.AnomalyStdoutNoise: 4, mcp.AnomalyBatch: 1}},
		{"invalid UTF-8 before", "\xff\xfe\n" + answer + "\n", 0, noise(1)},
		{"other ids first", `{"jsonrpc":"2.0","id":999,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":"$ID","result":{}}` + "\n" + answer + "\n", 0, counts{mcp.AnomalyUnknownID: 2}},
		{"error without id first", `{"jsonrpc":"2.0","error":{"code":1,"message":""}}` + "\n" + answer + "\n", 0, counts{mcp.AnomalyUnknownID: 1}},
		{"no line feed at all", answer, 0, counts{}},
		{"broken answer, id first", `{"jsonrpc":"2.0","id":$ID,"result":{"a":nope}}` + "\n", mcp.FaultBadJSON, counts{}},
		{"broken answer, id last", `{"result":{"a":nope},"jsonrpc":"2.0","id":$ID}` + "\n", mcp.FaultBadJSON, counts{}},
		{"both", `{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":""}}` + "\n", mcp.FaultResultAndError, counts{}},
		{"no jsonrpc", `{"id":$ID,"result":{}}` + "\n", mcp.FaultBadJSONRPC, counts{}},
		{"array", "[" + answer + "]\n", mcp.FaultBatch, counts{mcp.AnomalyBatch: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ends := !strings.HasSuffix(tt.raw, "\n")
				p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Raw: tt.raw, Cut: ends}, mcptest.Answer{Result: echoed})
				var a mcptest.Anomalies
				s := connect(t, p.Stdio(t), mcp.Options{OnAnomaly: a.Tell})
				r, err := s.Call(t.Context(), echo)
				if tt.fault != 0 {
					wantFault(t, err, tt.fault)
				} else if err != nil || string(r.Result) != echoed {
					t.Errorf("got %+v, %v", r, err)
				}
				if d := cmp.Diff(tt.want, a.Counts()); d != "" {
					t.Errorf("anomalies (-want +got)\n%s", d)
				}
				if _, err := s.Call(t.Context(), echo); err != nil && !ends {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}

// A pretty-printed answer is noise line by line, and the call ends by its limit.
func TestPrettyPrintedAnswerTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Raw: "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": $ID,\n  \"result\": {}\n}\n"})
		var a mcptest.Anomalies
		s := connect(t, p.Stdio(t), mcp.Options{OnAnomaly: a.Tell})
		req := echo
		req.Timeout = time.Second
		_, err := s.Call(t.Context(), req)
		contains(t, err, "ran out")
		if a.Counts()[mcp.AnomalyStdoutNoise] != 5 {
			t.Errorf("anomalies %v", a.Texts())
		}
	})
}

// Whose answer an oversized line was is told by an id at either end of it; else
// it is an anomaly and the call ends by its limit.
func TestOversizedLine(t *testing.T) {
	big := strings.Repeat("x", 300_000)
	tests := []struct {
		name, raw string
		told      bool
	}{
		{"id first", `{"jsonrpc":"2.0","id":$ID,"result":{"x":"` + big + `"}}`, true},
		{"id last (TypeScript SDK)", `{"result":{"x":"` + big + `"},"jsonrpc":"2.0","id":$ID}`, true},
		{"id before jsonrpc at the end", `{"result":{"x":"` + big + `"},"id":$ID,"jsonrpc":"2.0"}`, true},
		{"id of something inside", `{"jsonrpc":"2.0","result":{"x":"` + big + `","id":$ID}}`, false},
		{"a notification", `{"jsonrpc":"2.0","method":"x","params":{"x":"` + big + `","id":$ID}}`, false},
		{"noise", big, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Raw: tt.raw + "\n"}, mcptest.Answer{Result: echoed})
				var a mcptest.Anomalies
				s := connect(t, p.Stdio(t), mcp.Options{Limits: mcp.Limits{MessageBytes: 1000}, OnAnomaly: a.Tell})
				req := echo
				req.Timeout = time.Second
				_, err := s.Call(t.Context(), req)
				if tt.told {
					contains(t, err, "message_bytes over 1000")
				} else {
					contains(t, err, "ran out")
				}
				if got := a.Counts()[mcp.AnomalyOversized]; (got == 0) != tt.told {
					t.Errorf("anomalies %v", a.Texts())
				}
				if _, err := s.Call(t.Context(), req); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}

// Parameters may be pretty-printed by whoever wrote them; a line stays a line.
func TestParamsWithLineBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &mcptest.Peer{}
		s := connect(t, p.Stdio(t), mcp.Options{})
		if _, err := s.Call(t.Context(), mcp.Request{Method: "tools/call", Params: []byte("{\r\n\"name\":\n\"echo\"\n}")}); err != nil {
			t.Error(err)
		}
		if got := p.Received("tools/call"); len(got) != 1 {
			t.Errorf("received %v", p.Methods())
		}
	})
}

// The far side ends: everything in flight fails at once.
func TestPipeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Silent: true}, mcptest.Answer{Silent: true}, mcptest.Answer{Delay: time.Second, Cut: true})
		s := connect(t, p.Stdio(t), mcp.Options{})
		start := time.Now()
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() {
				_, err := s.Call(t.Context(), echo)
				errs <- err
			}()
		}
		for range cap(errs) {
			if err := <-errs; !mcp.SessionLost(err) {
				t.Errorf("error %v", err)
			}
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
		if _, err := s.Call(t.Context(), echo); !mcp.SessionLost(err) {
			t.Errorf("afterwards: %v", err)
		}
	})
}
