package mcp_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"

	"github.com/google/go-cmp/cmp"
)

// The answer of a cancelled request that comes elsewhere is late and nobody's: on the
// GET stream, on the stream of another request, as the body of another answer.
func TestCancelledAnswerElsewhere(t *testing.T) {
	const late = `{"jsonrpc":"2.0","id":2,"result":{"secret":1}}`
	for _, byTimeout := range []bool{false, true} {
		overHTTP(t, func(h onHTTP) {
			t, engine := h.T, h.engine
			p := (&mcptest.Peer{}).On("GET", mcptest.Answer{Feed: true})
			p.On("tools/call", mcptest.Answer{Silent: true})
			p.On("prompts/get",
				mcptest.Answer{Frames: []mcptest.Frame{{JSON: late}}, Result: `{"own":1}`},
				mcptest.Answer{Frames: []mcptest.Frame{{JSON: late}}, Result: `{"own":2}`})
			p.On("prompts/list", mcptest.Answer{JSON: late})
			p.On("resources/list", mcptest.Answer{Frames: []mcptest.Frame{{JSON: late, OnGet: true}, {Delay: ms, OnGet: true, Raw: "\n"}}, Result: `{}`})
			for i, method := range []string{"prompts/get", "prompts/list", "resources/list"} {
				var a mcptest.Anomalies
				s := connect(t, serveHTTP(t, p, engine), mcp.Options{GetStream: i == 2, OnAnomaly: a.Tell})
				req := purposely(0)
				if byTimeout {
					req = echo
					req.Timeout = sec
				}
				if _, err := s.Call(t.Context(), req); err == nil {
					t.Error("not given up")
				}
				r, err := s.Call(t.Context(), mcp.Request{Method: method})
				if strings.Contains(string(r.Result), "secret") {
					t.Errorf("%s got the answer of another request", method)
				}
				if method == "prompts/list" {
					wantFault(t, err, mcp.FaultForeignID)
				} else if err != nil {
					t.Errorf("%s: %v", method, err)
				}
				want := map[mcp.Anomaly]int{mcp.AnomalyLateAnswer: 1}
				if method == "prompts/get" { // the same once more is no longer known
					if r, err = s.Call(t.Context(), mcp.Request{Method: method}); err != nil || string(r.Result) != `{"own":2}` {
						t.Errorf("got %+v, %v", r, err)
					}
					want[mcp.AnomalyUnknownID] = 1
				}
				if d := cmp.Diff(want, a.Counts()); d != "" {
					t.Errorf("%s: anomalies (-want +got)\n%s", method, d)
				}
				closeSession(t, s)
			}
		})
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

// Many calls of a session at once, of all sorts: each gets what is its own.
func TestWantsAtOnce(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
		peer := func() *mcptest.Peer {
			p := (&mcptest.Peer{}).On("GET", mcptest.Answer{Feed: true})
			p.On("tools/call", mcptest.Answer{Frames: []mcptest.Frame{tick(300*ms, "$TOKEN", "1"), tick(300*ms, "$TOKEN", "2")}, Result: `{"id":$ID}`})
			return p.On("prompts/get", mcptest.Answer{Silent: true})
		}
		overBoth(t, peer, func(o over) {
			t, tr := o.T, o.transport
			s := connect(t, tr, mcp.Options{Version: v, GetStream: true})
			rng := rand.New(rand.NewPCG(1, 2))
			var mu sync.Mutex
			seen := map[string]bool{}
			var calls sync.WaitGroup
			for range 200 {
				what, pause := rng.IntN(4), time.Duration(rng.Int64N(int64(sec)))
				calls.Go(func() {
					time.Sleep(pause) // virtual
					req := following(mcp.Wants{IdleTimeout: 400 * ms})
					switch what {
					case 0:
						req.Wants = nil
					case 1:
						req = following(mcp.Wants{IdleTimeout: 200 * ms})
					case 2:
						req = following(mcp.Wants{CancelAfter: 450 * ms})
					}
					r, err := s.Call(t.Context(), req)
					switch what {
					case 1:
						wantTimeout(t, r, err, mcp.TimeoutIdle, 200*ms)
						return
					case 2:
						if v.Features().CancelByClose && tr.Kind() == "http" {
							wantCancelled(t, r, err, 450*ms, 0, 450*ms)
						} else {
							wantCancelled(t, r, err, 450*ms, 600*ms, 600*ms)
						}
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if err != nil || seen[string(r.Result)] || r.Progress != 2*min(1, what) {
						t.Errorf("got %+v, %v", r, err)
					}
					seen[string(r.Result)] = true
				})
			}
			calls.Wait()
		})
	}
}

// FuzzMoments checks limits, progress and cancellation at any moments against the
// rules, written down once more.
func FuzzMoments(f *testing.F) {
	f.Add(uint8(0), uint8(30), uint8(10), uint8(0), uint8(25), []byte{5, 9, 3})
	f.Add(uint8(1), uint8(0), uint8(0), uint8(10), uint8(15), []byte{})
	f.Add(uint8(2), uint8(25), uint8(4), uint8(10), uint8(40), []byte{3, 3, 3, 3})
	f.Add(uint8(3), uint8(12), uint8(0), uint8(10), uint8(14), []byte{1})
	f.Add(uint8(4), uint8(0), uint8(7), uint8(9), uint8(60), []byte{6, 6})
	f.Add(uint8(5), uint8(200), uint8(3), uint8(6), uint8(255), []byte{2, 2, 2, 2, 2, 2})
	f.Fuzz(func(t *testing.T, way, total, idle, cancel, answer uint8, pauses []byte) {
		if len(pauses) > 20 {
			return
		}
		// The server acts between the moments of the limits, so that none coincides.
		unit, half := 100*ms, 50*ms
		scale := func(n uint8) time.Duration { return time.Duration(n) * unit }
		var frames []mcptest.Frame
		var ticks []time.Duration
		at := half
		for i, pause := range pauses {
			if at += scale(pause); at > scale(answer) {
				break
			}
			wait := at
			if i > 0 {
				wait = at - ticks[i-1]
			}
			ticks = append(ticks, at)
			frames = append(frames, tick(wait, "$TOKEN", strconv.Itoa(i)))
		}
		answerAt := scale(answer) + half
		last := answerAt
		if n := len(ticks); n > 0 {
			last -= ticks[n-1]
		}
		frames = append(frames, mcptest.Frame{Delay: last, JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`})
		v := []mcp.Version{mcp.V20251125, mcp.V20260728}[way%2]
		synctest.Test(t, func(t *testing.T) {
			p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: frames, Result: echoed})
			var tr mcp.Transport = p.Stdio(t)
			if n := int(way / 2 % 3); n < len(engines) {
				tr = serveHTTP(t, p, engines[n])
			}
			s := connect(t, tr, mcp.Options{Version: v})
			req := following(mcp.Wants{IdleTimeout: scale(idle), CancelAfter: scale(cancel)})
			if idle > 0 {
				req.Wants.IdleTimeout += 10 * ms
			}
			req.Timeout = scale(total)
			r, err := s.Call(t.Context(), req)
			want := momentsOracle(req.Timeout, req.Wants, v.Features().CancelByClose && tr.Kind() == "http", ticks, answerAt)
			got := moments{end: r.Timing.End - r.Timing.Start, progress: r.Progress}
			if e, ok := errors.AsType[*mcp.TimeoutError](err); ok {
				got.timeout = e.Limit
			}
			if e, ok := errors.AsType[*mcp.CancelledError](err); ok {
				got.sent = e.Sent - r.Timing.Start
				if e.Stopped != 0 {
					got.stopped = e.Stopped - r.Timing.Start
				}
			} else if err != nil && got.timeout == 0 {
				t.Fatalf("error %v", err)
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	})
}

// moments are what becomes of a call, in times after its start.
type moments struct {
	end, sent, stopped time.Duration
	timeout            mcp.TimeoutKind
	progress           int
}

// momentsOracle says what becomes of a call, walking through time.
func momentsOracle(total time.Duration, w *mcp.Wants, byClose bool, ticks []time.Duration, answer time.Duration) moments {
	m := moments{}
	heard, until := time.Duration(0), time.Duration(0)
	for now := time.Duration(0); ; now += 10 * ms {
		cancelled := m.sent > 0
		switch {
		case cancelled && (now >= until || total > 0 && now >= total):
			m.end = now
			return m
		case total > 0 && now >= total:
			m.end, m.timeout = now, mcp.TimeoutTotal
			return m
		case !cancelled && w.IdleTimeout > 0 && now >= heard+w.IdleTimeout:
			m.end, m.timeout = now, mcp.TimeoutIdle
			return m
		case !cancelled && w.CancelAfter > 0 && now >= w.CancelAfter:
			m.sent, until = now, now+2*sec
			if byClose {
				m.end = now
				return m
			}
		}
		for _, at := range ticks {
			if at == now {
				m.progress++
				heard = now
			}
		}
		if now == answer {
			m.end = now
			if m.sent > 0 {
				m.stopped = now
			}
			return m
		}
	}
}
