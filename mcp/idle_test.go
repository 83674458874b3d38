package mcp_test

import (
	"errors"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

const sec = time.Second

// wantTimeout fails unless err is a timeout of that kind and the exchange took so long.
func wantTimeout(t *testing.T, r mcp.Reply, err error, kind mcp.TimeoutKind, took time.Duration) {
	t.Helper()
	if e, ok := errors.AsType[*mcp.TimeoutError](err); !ok || e.Limit != kind {
		t.Errorf("error %v, want %v", err, kind)
	}
	if got := r.Timing.End - r.Timing.Start; got != took {
		t.Errorf("took %v, want %v", got, took)
	}
	wantOrder(t, r)
}

// The idle limit counts from the send and from each progress of the request; the
// whole limit stays (faults C10, C11).
func TestIdleTimeout(t *testing.T) {
	ticks := func(n int, every time.Duration) []mcptest.Frame {
		var frames []mcptest.Frame
		for i := range n {
			frames = append(frames, tick(every, "$TOKEN", string(rune('1'+i))))
		}
		return frames
	}
	noise := mcptest.Frame{Delay: 2 * sec, JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`}
	foreign := tick(2*sec, `"another"`, "1")
	hang := func(frames ...mcptest.Frame) mcptest.Answer {
		return mcptest.Answer{Frames: append(frames, mcptest.Frame{Delay: time.Hour, JSON: "{}"})}
	}
	tests := []struct {
		name        string
		answer      mcptest.Answer
		idle, total time.Duration
		kind        mcp.TimeoutKind // 0: an answer
		took        time.Duration
		progress    int
	}{
		{"silence", mcptest.Answer{Silent: true}, 3 * sec, 10 * sec, mcp.TimeoutIdle, 3 * sec, 0},
		{"silence without a whole limit", mcptest.Answer{Silent: true}, 3 * sec, 0, mcp.TimeoutIdle, 3 * sec, 0},
		{"progress keeps it alive", mcptest.Answer{Frames: ticks(5, 2*sec), Result: echoed}, 3 * sec, 0, 0, 10 * sec, 5},
		{"then silence", hang(ticks(4, 2*sec)...), 3 * sec, 20 * sec, mcp.TimeoutIdle, 11 * sec, 4},
		{"progress for ever", hang(ticks(9, 2*sec)...), 3 * sec, 7 * sec, mcp.TimeoutTotal, 7 * sec, 3},
		{"whole limit first", mcptest.Answer{Silent: true}, 3 * sec, 2 * sec, mcp.TimeoutTotal, 2 * sec, 0},
		{"both at once", mcptest.Answer{Silent: true}, 3 * sec, 3 * sec, mcp.TimeoutTotal, 3 * sec, 0},
		{"other notifications do not count", hang(noise, noise), 3 * sec, 0, mcp.TimeoutIdle, 3 * sec, 0},
		{"another's progress does not count", hang(foreign, foreign), 3 * sec, 0, mcp.TimeoutIdle, 3 * sec, 0},
		{"progress out of order does", hang(tick(2*sec, "$TOKEN", "2"), tick(2*sec, "$TOKEN", "1")), 3 * sec, 0, mcp.TimeoutIdle, 7 * sec, 1},
		{"an answer at once", mcptest.Answer{Result: echoed}, 3 * sec, 10 * sec, 0, 0, 0},
		{"an answer just in time", mcptest.Answer{Delay: 3*sec - 1, Result: echoed}, 3 * sec, 10 * sec, 0, 3*sec - 1, 0},
	}
	for _, tt := range tests {
		for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
			t.Run(tt.name+" "+string(v), func(t *testing.T) {
				peer := func() *mcptest.Peer {
					return (&mcptest.Peer{SessionID: "s"}).On("tools/call", tt.answer, mcptest.Answer{Result: echoed})
				}
				overBoth(t, peer, func(o over) {
					s := connect(o.T, o.transport, mcp.Options{Version: v})
					req := echo
					req.Timeout, req.Wants = tt.total, &mcp.Wants{IdleTimeout: tt.idle}
					r, err := s.Call(o.Context(), req)
					cancels := 0
					if tt.kind == 0 {
						wantAnswerAfter(o.T, r, err, tt.took)
					} else {
						wantTimeout(o.T, r, err, tt.kind, tt.took)
						cancels = cancelsSent(o, v)
					}
					if r.Progress != tt.progress {
						o.Errorf("%d progress, want %d", r.Progress, tt.progress)
					}
					wantAlive(o, s, cancels)
				})
			})
		}
	}
}

func wantAnswerAfter(t *testing.T, r mcp.Reply, err error, took time.Duration) {
	t.Helper()
	if err != nil || string(r.Result) != echoed || r.Timing.End-r.Timing.Start != took {
		t.Errorf("got %+v, %v; want an answer after %v", r, err, took)
	}
}

// cancelsSent is how many cancellations a request that is given up causes.
func cancelsSent(o over, v mcp.Version) int {
	if closesToCancel(o, v) {
		return 0
	}
	return 1
}

func closesToCancel(o over, v mcp.Version) bool {
	return v.Features().CancelByClose && o.transport.Kind() == "http"
}

// wantAlive fails unless the session still works and the server got so many cancellations.
func wantAlive(o over, s *mcp.Session, cancels int) {
	o.Helper()
	if r, err := s.Call(o.Context(), echo); err != nil || string(r.Result) != echoed {
		o.Errorf("the next call: %+v, %v", r, err)
	}
	time.Sleep(5 * sec) // virtual: for what comes late
	if n := len(o.peer.Received("notifications/cancelled")); n != cancels {
		o.Errorf("%d cancellations, want %d", n, cancels)
	}
}

// Progress on the GET stream keeps a request alive whose own stream is silent.
func TestIdleTimeoutSlidesByTheGetStream(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		var frames []mcptest.Frame
		for _, value := range []string{"1", "2", "3"} {
			f := tick(2*sec, "$TOKEN", value)
			f.OnGet = true
			frames = append(frames, f)
		}
		seen := mcptest.Frame{Delay: ms, OnGet: true, Raw: "\n"}
		hang := mcptest.Frame{Delay: time.Hour, OnGet: true, Raw: "\n"}
		p := (&mcptest.Peer{}).On("GET", mcptest.Answer{Feed: true}).On("tools/call",
			mcptest.Answer{Frames: append(frames[:3:3], seen), Result: echoed}, mcptest.Answer{Frames: append(frames[:3:3], hang), Result: echoed})
		s := connect(t, serveHTTP(t, p, engine), mcp.Options{GetStream: true})
		req := following(mcp.Wants{IdleTimeout: 3 * sec})
		if r, err := s.Call(t.Context(), req); err != nil || r.Timing.End-r.Timing.Start != 6*sec+ms || r.Progress != 3 {
			t.Errorf("got %+v, %v", r, err)
		}
		r, err := s.Call(t.Context(), req)
		wantTimeout(t, r, err, mcp.TimeoutIdle, 9*sec)
	})
}

// The idle limit counts from the send, not from the dial.
func TestIdleTimeoutCountsFromTheSend(t *testing.T) {
	overHTTP(t, func(h onHTTP) {
		t, engine := h.T, h.engine
		p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Cut: true}, mcptest.Answer{Silent: true})
		tr := serveHTTP(t, p, engine)
		slowDials(tr, 5*sec)
		s := connect(t, tr, mcp.Options{})
		if _, err := s.Call(t.Context(), echo); err == nil {
			t.Fatal("the connection was not cut")
		}
		start := time.Now()
		r, err := s.Call(t.Context(), following(mcp.Wants{IdleTimeout: 2 * sec}))
		wantTimeout(t, r, err, mcp.TimeoutIdle, 2*sec)
		if took := time.Since(start); took != 7*sec {
			t.Errorf("took %v with the dial", took)
		}
	})
}

// A server that does not read holds nobody up beyond the whole limit.
func TestLimitsOfWhatIsNeverSent(t *testing.T) {
	overStuck(t, func(t *testing.T, s *mcp.Session) {
		t.Helper()
		req := following(mcp.Wants{IdleTimeout: sec, CancelAfter: 2 * sec})
		req.Timeout = 5 * sec
		start := time.Now()
		r, err := s.Call(t.Context(), req)
		if e, ok := errors.AsType[*mcp.TimeoutError](err); !ok || e.Limit != mcp.TimeoutTotal || time.Since(start) != 5*sec {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		wantOrder(t, r)
	})
}
