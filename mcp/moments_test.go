package mcp_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// Many calls of a session at once, of all sorts: each gets what is its own.
func TestWantsAtOnce(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
		peer := func() *mcptest.Peer {
			ticks := []mcptest.Frame{tick(300*ms, "$TOKEN", "1"), tick(300*ms, "$TOKEN", "2")}
			return (&mcptest.Peer{}).On("GET", mcptest.Answer{Feed: true}).On("tools/call", mcptest.Answer{Frames: ticks, Result: `{"id":$ID}`})
		}
		overBoth(t, peer, func(o over) {
			s := connect(o.T, o.transport, mcp.Options{Version: v, GetStream: true})
			rng := rand.New(rand.NewPCG(1, 2))
			results := make(chan string, 200)
			var calls sync.WaitGroup
			for i := range cap(results) {
				pause := time.Duration(rng.Int64N(int64(sec)))
				calls.Go(func() {
					time.Sleep(pause) // virtual
					results <- oneOfMany(o, s, v, i%4)
				})
			}
			calls.Wait()
			seen := map[string]bool{}
			for range cap(results) {
				if result := <-results; result != "" {
					if seen[result] {
						o.Errorf("result %s came twice", result)
					}
					seen[result] = true
				}
			}
			if len(seen) != cap(results)/2 {
				o.Errorf("%d results", len(seen))
			}
		})
	}
}

// oneOfMany makes a call of one of four sorts, checks its outcome, and returns its result.
func oneOfMany(o over, s *mcp.Session, v mcp.Version, sort int) string {
	wants := []*mcp.Wants{nil, {Progress: true, IdleTimeout: 400 * ms}, {IdleTimeout: 200 * ms}, {Progress: true, CancelAfter: 450 * ms}}
	req := echo
	req.Wants = wants[sort]
	r, err := s.Call(o.Context(), req)
	switch {
	case sort == 2:
		wantTimeout(o.T, r, err, mcp.TimeoutIdle, 200*ms)
	case sort == 3 && closesToCancel(o, v):
		wantCancelled(o.T, r, err, 450*ms, 0, 450*ms)
	case sort == 3:
		wantCancelled(o.T, r, err, 450*ms, 600*ms, 600*ms)
	case err != nil || r.Progress != 2*sort:
		o.Errorf("got %+v, %v", r, err)
	}
	return string(r.Result)
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
		scale := func(n uint8) time.Duration { return time.Duration(n) * 100 * ms }
		// The server acts between the moments of the limits, so that none coincides.
		ticks := []time.Duration{}
		at := 50 * ms
		for _, pause := range pauses {
			if at += scale(pause); at <= scale(answer) {
				ticks = append(ticks, at)
			}
		}
		answered := scale(answer) + 50*ms
		req := following(mcp.Wants{IdleTimeout: scale(idle), CancelAfter: scale(cancel)})
		req.Timeout = scale(total)
		if idle > 0 {
			req.Wants.IdleTimeout += 10 * ms
		}
		v := []mcp.Version{mcp.V20251125, mcp.V20260728}[way%2]
		synctest.Test(t, func(t *testing.T) {
			p := (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Frames: atMoments(ticks, answered), Result: echoed})
			tr := p.Stdio(t)
			if n := int(way / 2 % 3); n < len(engines) {
				tr = serveHTTP(t, p, engines[n])
			}
			s := connect(t, tr, mcp.Options{Version: v})
			r, err := s.Call(t.Context(), req)
			got := momentsOf(t, r, err)
			want := momentsOracle(&req, closesToCancel(over{T: t, transport: tr}, v), ticks, answered)
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	})
}

// atMoments are frames with progress at these times, and another at the end.
func atMoments(ticks []time.Duration, end time.Duration) []mcptest.Frame {
	var frames []mcptest.Frame
	now := time.Duration(0)
	for i, at := range ticks {
		frames = append(frames, tick(at-now, "$TOKEN", strconv.Itoa(i)))
		now = at
	}
	return append(frames, mcptest.Frame{Delay: end - now, JSON: `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`})
}

// moments are what becomes of a call, in times after its start.
type moments struct {
	end, sent, stopped time.Duration
	timeout            mcp.TimeoutKind
	progress           int
}

func momentsOf(t *testing.T, r mcp.Reply, err error) moments {
	t.Helper()
	m := moments{end: r.Timing.End - r.Timing.Start, progress: r.Progress}
	if e, ok := errors.AsType[*mcp.TimeoutError](err); ok {
		m.timeout = e.Limit
	} else if e, ok := errors.AsType[*mcp.CancelledError](err); ok {
		m.sent = e.Sent - r.Timing.Start
		m.stopped = max(0, e.Stopped-r.Timing.Start)
	} else if err != nil {
		t.Errorf("error %v", err)
	}
	return m
}

// momentsOracle says what becomes of a call, walking through time.
func momentsOracle(req *mcp.Request, byClose bool, ticks []time.Duration, answer time.Duration) moments {
	m, total, w := moments{}, req.Timeout, req.Wants
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
		for len(ticks) > 0 && ticks[0] == now {
			ticks = ticks[1:]
			m.progress++
			heard = now
		}
		if now == answer {
			if m.end = now; m.sent > 0 {
				m.stopped = now
			}
			return m
		}
	}
}
