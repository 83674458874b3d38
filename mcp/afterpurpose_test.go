package mcp_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// The answer of a request given up that comes elsewhere is late and nobody's: on the
// stream of another request, as another body, on the GET stream.
func TestCancelledAnswerElsewhere(t *testing.T) {
	const late = `{"jsonrpc":"2.0","id":2,"result":{"secret":1}}`
	onGet := []mcptest.Frame{{JSON: late, OnGet: true}, {Delay: ms, OnGet: true, Raw: "\n"}}
	tests := []struct {
		name   string
		answer mcptest.Answer
		fault  mcp.ProtocolFault // 0: the call has its own result
	}{
		{"event", mcptest.Answer{Frames: []mcptest.Frame{{JSON: late}}, Result: echoed}, 0},
		{"body", mcptest.Answer{JSON: late}, mcp.FaultForeignID},
		{"GET stream", mcptest.Answer{Frames: onGet, Result: echoed}, 0},
	}
	timed := echo
	timed.Timeout = sec
	for _, tt := range tests {
		for _, req := range []mcp.Request{purposely(0), timed} {
			t.Run(tt.name, func(t *testing.T) {
				overHTTP(t, func(h onHTTP) {
					t, engine := h.T, h.engine
					p := (&mcptest.Peer{}).On("GET", mcptest.Answer{Feed: true}).On("tools/call", mcptest.Answer{Silent: true}, tt.answer)
					var a mcptest.Anomalies
					s := connect(t, serveHTTP(t, p, engine), mcp.Options{GetStream: true, OnAnomaly: a.Tell})
					if _, err := s.Call(t.Context(), req); err == nil {
						t.Error("not given up")
					}
					once := map[mcp.Anomaly]int{mcp.AnomalyLateAnswer: 1}
					// The same once more is no longer known.
					twice := map[mcp.Anomaly]int{mcp.AnomalyLateAnswer: 1, mcp.AnomalyUnknownID: 1}
					for _, want := range []map[mcp.Anomaly]int{once, twice} {
						r, err := s.Call(t.Context(), echo)
						wantOwn(t, r, err, tt.fault)
						if d := cmp.Diff(want, a.Counts()); d != "" {
							t.Errorf("anomalies (-want +got)\n%s", d)
						}
					}
				})
			})
		}
	}
}

func wantOwn(t *testing.T, r mcp.Reply, err error, fault mcp.ProtocolFault) {
	t.Helper()
	if fault != 0 {
		wantFault(t, err, fault)
	} else if err != nil || string(r.Result) != echoed {
		t.Errorf("got %+v, %v", r, err)
	}
}

// Over stdio an answer within the wait is the sign, one after it is late, a second
// one a duplicate, and progress goes on until the answer.
func TestCancelledOverStdio(t *testing.T) {
	answer := `{"jsonrpc":"2.0","id":$ID,"result":{}}` + "\n"
	for _, v := range mcp.Versions() {
		synctest.Test(t, func(t *testing.T) {
			p := (&mcptest.Peer{}).On("tools/call",
				mcptest.Answer{Frames: []mcptest.Frame{tick(500*ms, "$TOKEN", "1"), tick(sec, "$TOKEN", "2"), {Delay: ms, Raw: answer}, {Delay: ms, Raw: answer}, tick(ms, "$TOKEN", "3")}},
				mcptest.Answer{Frames: []mcptest.Frame{{Delay: 5 * sec, Raw: answer}}})
			var a mcptest.Anomalies
			s := connect(t, p.Stdio(t), mcp.Options{Version: v, OnAnomaly: a.Tell})
			r, err := s.Call(t.Context(), following(mcp.Wants{CancelAfter: sec}))
			wantCancelled(t, r, err, sec, 1501*ms, 1501*ms)
			wantProgress(t, r, []time.Duration{500 * ms, 1500 * ms})
			r, err = s.Call(t.Context(), purposely(0))
			wantCancelled(t, r, err, sec, 0, 3*sec)
			time.Sleep(5 * sec) // virtual
			want := map[mcp.Anomaly]int{mcp.AnomalyDuplicateAnswer: 1, mcp.AnomalyLateAnswer: 1, mcp.AnomalyProgressLate: 1}
			if d := cmp.Diff(want, a.Counts()); d != "" {
				t.Errorf("anomalies (-want +got)\n%s", d)
			}
		})
	}
}

// A session that a cancellation brings down is told as lost, not as cancelled.
func TestCancellationThatLosesTheSession(t *testing.T) {
	t.Run("stdio", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Silent: true}).On("notifications/cancelled", mcptest.Answer{Delay: ms, Cut: true})
			s := connect(t, p.Stdio(t), mcp.Options{})
			_, err := s.Call(t.Context(), purposely(0))
			if _, ok := errors.AsType[*mcp.TransportError](err); !ok || !mcp.SessionLost(err) {
				t.Errorf("error %v", err)
			}
		})
	})
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Delay: 1500 * ms, Status: 404})
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{})
		_, err := s.Call(t.Context(), purposely(0))
		if e, ok := errors.AsType[*mcp.HTTPError](err); !ok || e.Status != 404 || !mcp.SessionLost(err) {
			t.Errorf("error %v", err)
		}
	})
}

// A server that refuses the cancellation, or never answers it, changes nothing
// (fault B40), and Close during the wait ends it.
func TestPurposeAgainstTheServersWill(t *testing.T) {
	for name, answer := range map[string]mcptest.Answer{"refused": {Status: 400}, "never answered": {Silent: true}, "session gone": {Status: 404}} {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, func(h onHTTP) {
				t, engine := h.T, h.engine
				p := (&mcptest.Peer{SessionID: "s"}).On("tools/call", mcptest.Answer{Silent: true}).On("notifications/cancelled", answer)
				var a mcptest.Anomalies
				s := connect(t, serveHTTP(t, p, engine), mcp.Options{OnAnomaly: a.Tell})
				r, err := s.Call(t.Context(), purposely(0))
				wantCancelled(t, r, err, sec, 0, 3*sec)
				if s.Ended() != (name == "session gone") {
					t.Errorf("ended %v", s.Ended())
				}
				time.Sleep(10 * sec) // virtual
				if d := cmp.Diff(map[mcp.Anomaly]int{mcp.AnomalyCancelFailed: 1}, a.Counts()); d != "" {
					t.Errorf("anomalies (-want +got)\n%s", d)
				}
			})
		})
	}
	overBoth(t, func() *mcptest.Peer { return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Silent: true}) }, func(o over) {
		t, tr := o.T, o.transport
		s := connect(t, tr, mcp.Options{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			r, err := s.Call(t.Context(), purposely(0))
			if tr.Kind() == "stdio" {
				if !mcp.SessionLost(err) {
					t.Errorf("error %v", err)
				}
				return
			}
			wantCancelled(t, r, err, sec, 0, 2*sec)
		}()
		time.Sleep(2 * sec) // virtual
		closeSession(t, s)
		<-done
	})
}
