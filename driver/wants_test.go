package driver_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/mcp"
	"mcpbench/metrics"
)

const ms = time.Millisecond

// TestProgressIsTimedFromTheSend has a server that tells of progress after 10,
// 30 and 70 ms and answers after 80.
func TestProgressIsTimedFromTheSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{call: func(ctx context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error) {
			if want := (mcp.Wants{Progress: true, IdleTimeout: 50 * ms, LogLevel: "info"}); req.Wants == nil || *req.Wants != want {
				return mcp.Reply{}, fmt.Errorf("wants %+v, not %+v", req.Wants, want)
			}
			start := c.now()
			err := c.sleep(ctx, 80*ms)
			reply := c.reply(start)
			reply.Notifications, reply.Progress = 4, 3
			reply.More = &mcp.More{First: start + 10*ms, Last: start + 70*ms, Gaps: []time.Duration{20 * ms, 40 * ms}}
			return reply, err
		}}
		got := play(t.Context(), t, p, `
load: {groups: {g: {iterations: 5}}}
flows: {f: {steps: [{id: a, tools/call: {name: x}, progress: true, idle_timeout: 50ms, log_level: info}]}}
`)
		if got.err != nil {
			t.Fatal(got.err)
		}
		wantCounts(t, "requests", got.requests(), map[string]int{"ok": 5})
		for _, s := range got.step("a") {
			want := metrics.Extra{HasProgress: true, FirstProgress: 10 * ms, LastProgress: 70 * ms, Gaps: []time.Duration{20 * ms, 40 * ms}}
			if diff := cmp.Diff(want, *s.Extra); diff != "" || s.Progress != 3 || s.Notifications != 4 || s.Service() != 80*ms {
				t.Errorf("progress %d of %d, service time %v, extra (-want +got):\n%s", s.Progress, s.Notifications, s.Service(), diff)
			}
		}
		step := got.summary.Steps[0]
		if step.Gap == nil || step.Gap.Count != 10 || step.Gap.Min != 20 || step.Gap.Max != 40 || step.FirstProgress.Count != 5 || step.FirstProgress.Max != 10 {
			t.Errorf("summary: gap %+v, first progress %+v", step.Gap, step.FirstProgress)
		}
	})
}

// TestCacheHintsAreRecordedAndNotObeyed has lists that may be kept for a minute
// and more: each is asked for all the same. A call has no hints, whatever it says.
func TestCacheHintsAreRecordedAndNotObeyed(t *testing.T) {
	for version, want := range map[mcp.Version]*metrics.CacheSummary{
		mcp.V20260728: {Count: 4, TTLMin: 60_000, TTLMax: 60_003, Scopes: map[string]int64{"public": 2, "private": 2}},
		mcp.V20251125: nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			p := &peer{version: version, call: func(_ context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error) {
				reply := c.reply(c.now())
				scope := []string{"public", "private"}[n%2]
				reply.Result = fmt.Appendf(nil, `{"tools":[],"content":[],"ttlMs":%d,"cacheScope":%q}`, 60_000+n, scope)
				if req.Method == "tools/list" {
					n++
				}
				return reply, nil
			}}
			got := play(t.Context(), t, p, "load: {groups: {g: {iterations: 4}}}\nflows: {f: {steps: [{id: l, tools/list: {}}, {id: c, tools/call: {name: x}}]}}\n")
			if n != 4 {
				t.Errorf("%s: %d lists were asked for, want 4", version, n)
			}
			if diff := cmp.Diff(want, got.summary.Steps[0].Cache); diff != "" || got.summary.Steps[1].Cache != nil {
				t.Errorf("%s: of the call %+v, of the list (-want +got):\n%s", version, got.summary.Steps[1].Cache, diff)
			}
		})
	}
}

// TestPlainCallsWantNothing keeps the measured path as it is.
func TestPlainCallsWantNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{call: func(_ context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error) {
			if req.Wants != nil {
				t.Errorf("wants %+v", req.Wants)
			}
			return c.reply(c.now()), nil
		}}
		got := play(t.Context(), t, p, "load: {groups: {g: {iterations: 2}}}\nflows: {f: {steps: [{tools/call: {name: x}}]}}\n")
		for _, s := range got.of(metrics.KindStep) {
			if s.Extra != nil {
				t.Errorf("extra %+v", s.Extra)
			}
		}
	})
}

// cancels answers every second call after 10 ms and lets the others run until
// they are cancelled; it stops 7 ms after that, or gives no sign at every fourth.
func cancels() func(context.Context, *peerSession, mcp.Request) (mcp.Reply, error) {
	n := 0
	return func(ctx context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error) {
		n++
		start := c.now()
		if n%2 == 0 {
			err := c.sleep(ctx, 10*ms)
			return c.reply(start), err
		}
		if err := c.sleep(ctx, req.Wants.CancelAfter); err != nil {
			return c.reply(start), err
		}
		cancelled := &mcp.CancelledError{Sent: c.now()}
		if n%4 == 1 {
			cancelled.Stopped = c.now() + 7*ms
			if err := c.sleep(ctx, 7*ms); err != nil {
				return c.reply(start), err
			}
		}
		return c.reply(start), cancelled
	}
}

func TestCancelledIsNoFailureAndNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := play(t.Context(), t, &peer{call: cancels()}, `
load: {groups: {g: {iterations: 8}}}
flows: {f: {steps: [{id: a, tools/call: {name: x}, cancel: {after: 40ms}, check: {never: false}}]}}
`)
		if got.err != nil {
			t.Fatal(got.err)
		}
		wantCounts(t, "requests", got.requests(), map[string]int{"ok": 4, "cancelled": 4})
		wantCounts(t, "iterations", got.iterations(), map[string]int{"completed": 8})
		for i, s := range got.step("a") {
			var want *metrics.Extra
			service := 10 * ms
			switch i % 4 {
			case 0:
				want, service = &metrics.Extra{HasCancelStop: true, CancelStop: 7 * ms}, 47*ms
			case 2:
				want, service = &metrics.Extra{}, 40*ms
			}
			if diff := cmp.Diff(want, s.Extra); diff != "" || s.Service() != service || s.Code != 0 {
				t.Errorf("call %d: service time %v, want %v; extra (-want +got):\n%s", i, s.Service(), service, diff)
			}
		}
		r, step := got.summary.Requests, got.summary.Steps[0]
		if r.Failed != 0 || r.Other != 4 || step.Latency.Count != 4 || step.Latency.Max != 10 || step.Failed != nil || r.ChecksFailed != 4 {
			t.Errorf("requests %+v, latency %+v, failed %+v", r, step.Latency, step.Failed)
		}
		if step.CancelStop.Count != 2 || step.CancelStop.Max != 7 || len(got.summary.Errors) != 0 {
			t.Errorf("cancel stop %+v, errors %v", step.CancelStop, got.summary.Errors)
		}
	})
}

// TestCancelTimesDependOnTheArrivalOnly: the same seed cancels the same arrival
// at the same time, whichever session has it.
func TestCancelTimesDependOnTheArrivalOnly(t *testing.T) {
	after := func(t *testing.T, sessions int, spread string) []time.Duration {
		t.Helper()
		out := make([]time.Duration, 400)
		synctest.Test(t, func(t *testing.T) {
			p := &peer{call: func(ctx context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error) {
				start := c.now()
				err := c.sleep(ctx, req.Wants.CancelAfter)
				if err == nil {
					err = &mcp.CancelledError{Sent: c.now()}
				}
				return c.reply(start), err
			}}
			got := play(t.Context(), t, p, fmt.Sprintf(`
load: {groups: {g: {iterations: 400, sessions: %d}}}
flows: {f: {steps: [{id: a, tools/call: {name: x}, cancel: {after: %s}}]}}
`, sessions, spread))
			for _, s := range got.step("a") {
				out[s.Iteration] = s.Service()
			}
		})
		return out
	}
	for spread, limits := range map[string]struct{ low, high, mean, tolerance time.Duration }{
		"{uniform: [20ms, 80ms]}":              {20 * ms, 80 * ms, 50 * ms, 3 * ms},
		"{exponential: 300ms, max: 100s}":      {1, 100 * time.Second, 300 * ms, 45 * ms},
		"{exponential: 300ms, max: 300ms}":     {1, 300 * ms, 190 * ms, 20 * ms}, // 300 (1 - 1/e)
		"{constant: 5ms}":                      {5 * ms, 5 * ms, 5 * ms, 0},
		"{uniform: [\"0s\", \"${NO:-10ms}\"]}": {1, 10 * ms, 5 * ms, ms},
	} {
		one, four := after(t, 1, spread), after(t, 4, spread)
		if diff := cmp.Diff(one, four); diff != "" {
			t.Errorf("%s: one session and four differ:\n%s", spread, diff)
		}
		var sum time.Duration
		for _, d := range one {
			sum += d
		}
		if slices.Min(one) < limits.low || slices.Max(one) > limits.high || (sum/400-limits.mean).Abs() > limits.tolerance {
			t.Errorf("%s: from %v to %v, mean %v; want %+v", spread, slices.Min(one), slices.Max(one), sum/400, limits)
		}
	}
}
