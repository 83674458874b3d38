package driver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// updates are n updates, one each 100 ms, with a change of the tools after every
// second.
func updates(n int) []mcp.Notification {
	var out []mcp.Notification
	for i := range n {
		at := time.Duration(i+1) * 100 * ms
		out = append(out, mcp.Notification{Method: "notifications/resources/updated", At: at, Params: fmt.Appendf(nil, `{"uri":"a:%d"}`, i)})
		if i%2 == 1 {
			out = append(out, mcp.Notification{Method: "notifications/tools/list_changed", At: at + 50*ms})
		}
	}
	return out
}

// TestWaitsAgainstAKnownSchedule waits for updates that come each 100 ms: the
// first wait begins at once, the next ones 30 ms after the one before, and the
// last two in vain.
func TestWaitsAgainstAKnownSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{
			news: func(f mcp.Filter) []mcp.Notification {
				if len(f.Resources) == 0 {
					return nil
				}
				return updates(4)
			},
			call: func(ctx context.Context, c *peerSession, _ mcp.Request) (mcp.Reply, error) {
				start := c.now()
				err := c.sleep(ctx, 30*ms)
				return c.reply(start), err
			},
		}
		got := play(t.Context(), t, p, `
load: {groups: {g: {iterations: 6}}}
flows:
  f:
    before: [{connect: {}}, {subscribe: {uris: ["a:x"], tools: true}, as: news}]
    steps:
      - {id: w, wait_for: {notification: resources/updated, from: news, timeout: 250ms}, check: {right: 'result.uri startsWith "a:"', fast: 'elapsed < duration("90ms")'}}
      - {id: c, ping: {}}
    after: [{unsubscribe: {handle: news}}]
`)
		if got.err != nil {
			t.Fatal(got.err)
		}
		wantCounts(t, "iterations", got.iterations(), map[string]int{"completed": 4, "failed": 2})
		var services []time.Duration
		for _, s := range got.step("w") {
			services = append(services, s.Service())
			if s.Outcome == metrics.Timeout && s.Code != driver.TimeoutWait {
				t.Errorf("code %d of a wait in vain", s.Code)
			}
		}
		if diff := cmp.Diff([]time.Duration{100 * ms, 70 * ms, 70 * ms, 70 * ms, 250 * ms, 250 * ms}, services); diff != "" {
			t.Errorf("service times (-want +got):\n%s", diff)
		}
		for _, c := range got.summary.Checks {
			want := map[string]int64{"right": 4, "fast": 3}[c.Name]
			if c.Passed != want || c.Failed != 6-want {
				t.Errorf("check %s: %d passed, %d failed", c.Name, c.Passed, c.Failed)
			}
		}
		step := got.summary.Steps[1]
		if step.Method != "wait_for" || step.Name != "resources/updated" || step.Outcomes["timeout"] != 2 || step.Latency.Count != 6 {
			t.Errorf("step %+v", step)
		}
		want := []string{"subscribe [a:x] true false false", "ping {}", "ping {}", "ping {}", "ping {}", "unsubscribe"}
		if diff := cmp.Diff(want, p.log); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}

// TestANotificationThatCameBeforeTakesNoTime: the wait for it begins when it is
// there already.
func TestANotificationThatCameBeforeTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{
			news: func(f mcp.Filter) []mcp.Notification {
				if f.Resources != nil {
					return nil
				}
				return []mcp.Notification{{Method: "notifications/message", At: 10 * ms}, {Method: "notifications/message", At: 60 * ms}}
			},
			call: func(ctx context.Context, c *peerSession, _ mcp.Request) (mcp.Reply, error) {
				start := c.now()
				err := c.sleep(ctx, 20*ms)
				return c.reply(start), err
			},
		}
		got := play(t.Context(), t, p, `
load: {groups: {g: {iterations: 2}}}
flows: {f: {steps: [{ping: {}}, {id: w, wait_for: {notification: message}}]}}
`)
		if got.err != nil {
			t.Fatal(got.err)
		}
		var services []time.Duration
		for _, s := range got.step("w") {
			services = append(services, s.Service())
		}
		if diff := cmp.Diff([]time.Duration{0, 20 * ms}, services); diff != "" {
			t.Errorf("service times (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"notifications/message"}, p.sessions[0].o.Watch); diff != "" {
			t.Errorf("watched (-want +got):\n%s", diff)
		}
	})
}

// TestTwoWaitsShareASubscription: each gets its own notification, whichever asks.
func TestTwoWaitsShareASubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{news: func(mcp.Filter) []mcp.Notification { return updates(4) }}
		// Two workers: one takes even arrivals' waits for updates first, and both
		// wait for each kind in turn.
		got := play(t.Context(), t, p, `
load: {groups: {g: {iterations: 2, in_flight: 2}}}
flows:
  f:
    before: [{subscribe: {uris: ["a:x"], tools: true}, as: news}]
    steps:
      - {id: u, wait_for: {notification: resources/updated, from: news, timeout: 3s}}
      - {id: l, wait_for: {notification: tools/list_changed, from: news, timeout: 3s}}
`)
		if got.err != nil {
			t.Fatal(got.err)
		}
		ends := map[string][]time.Duration{}
		for _, id := range []string{"u", "l"} {
			for _, s := range got.step(id) {
				ends[id] = append(ends[id], s.End)
			}
			slices.Sort(ends[id])
		}
		want := map[string][]time.Duration{"u": {100 * ms, 200 * ms}, "l": {250 * ms, 450 * ms}}
		if diff := cmp.Diff(want, ends); diff != "" {
			t.Errorf("ends of the waits (-want +got):\n%s", diff)
		}
	})
}

// TestSubscriptionsOfAnIterationDoNotPileUp: one that no step ends is ended when
// its name is needed again.
func TestSubscriptionsOfAnIterationDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		got := play(t.Context(), t, p, `
load: {groups: {g: {iterations: 3}}}
flows: {f: {steps: [{subscribe: {uris: ["a:${{ iteration.index }}"]}, as: own}, {subscribe: {prompts: true}}]}}
`)
		want := []string{
			"subscribe [a:0] false false false", "subscribe [] false true false",
			"subscribe [a:1] false false false", "unsubscribe", "subscribe [] false true false", "unsubscribe",
			"subscribe [a:2] false false false", "unsubscribe", "subscribe [] false true false", "unsubscribe",
		}
		if diff := cmp.Diff(want, p.log); diff != "" || got.err != nil {
			t.Errorf("error %v, asked (-want +got):\n%s", got.err, diff)
		}
		wantCounts(t, "requests", got.requests(), map[string]int{"ok": 6})
	})
}

// TestSubscribingThatAsksNothingMakesNoRow: up to 2025-11-25 changes of lists
// come unasked.
func TestSubscribingThatAsksNothingMakesNoRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{subscribe: func(context.Context, *peerSession, mcp.Filter) (mcp.Reply, error) { return mcp.Reply{}, nil }}
		got := play(t.Context(), t, p, `
load: {groups: {g: {iterations: 3}}}
flows: {f: {steps: [{subscribe: {tools: true}, as: own}, {unsubscribe: {handle: own}}]}}
`)
		if n := len(got.step("subscribe")); n != 0 || got.err != nil || len(got.step("unsubscribe own")) != 3 {
			t.Errorf("%d rows of subscribing, error %v", n, got.err)
		}
	})
}

// TestSubscriptionsHaveTheMethodOfTheVersion looks at the method column.
func TestSubscriptionsHaveTheMethodOfTheVersion(t *testing.T) {
	for version, want := range map[mcp.Version][2]string{
		mcp.V20251125: {"resources/subscribe", "resources/unsubscribe"},
		mcp.V20260728: {"subscriptions/listen", "subscriptions/listen"},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := play(t.Context(), t, &peer{version: version}, `
load: {groups: {g: {iterations: 1}}}
flows: {f: {steps: [{subscribe: {uris: ["a:x"]}, as: own}, {unsubscribe: {handle: own}}]}}
`)
			if s := got.summary.Steps; s[0].Method != want[0] || s[1].Method != want[1] {
				t.Errorf("%s: methods %s, %s", version, s[0].Method, s[1].Method)
			}
		})
	}
}

func TestSubscribeFailsAndTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		p := &peer{subscribe: func(ctx context.Context, c *peerSession, _ mcp.Filter) (mcp.Reply, error) {
			if n++; n == 1 {
				return c.reply(c.now()), &mcp.RPCError{Code: -32602, Message: "no such resource"}
			}
			return mcp.Reply{}, c.sleep(ctx, time.Hour)
		}}
		got := play(t.Context(), t, p, `
load: {groups: {g: {iterations: 2}}}
flows: {f: {steps: [{id: s, subscribe: {uris: ["a:x"]}, as: own, timeout: 150ms}, {unsubscribe: {handle: own}}]}}
`)
		wantCounts(t, "requests", got.requests(), map[string]int{"rpc_error": 1, "timeout": 1})
		rows := got.step("s")
		if rows[0].Code != -32602 || rows[1].Code != int32(mcp.TimeoutTotal) || rows[1].Service() != 150*ms {
			t.Errorf("codes %d, %d, service time %v", rows[0].Code, rows[1].Code, rows[1].Service())
		}
	})
}

// TestNotify has a row for each notification, and none where the version has no
// notifications of the client.
func TestNotify(t *testing.T) {
	const text = `
load: {groups: {g: {iterations: 2}}}
flows: {f: {steps: [{ping: {}}, {tools/list: {}}, {id: n, notify: {method: x-vendor/seen, params: {n: "${{ iteration.index }}"}}, timeout: 1s}, {notify: {method: notifications/roots/list_changed}}]}}
`
	for _, tc := range []struct {
		name      string
		version   mcp.Version
		transport string
		want      []string
	}{
		{"legacy", mcp.V20251125, "http", []string{"ping {}", "tools/list {}", `x-vendor/seen {"n":0}`, "notifications/roots/list_changed {}"}},
		{"modern stdio", mcp.V20260728, "stdio", []string{"tools/list {}", `x-vendor/seen {"n":0}`}},
		{"modern http", mcp.V20260728, "http", []string{"tools/list {}"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peer{version: tc.version, transport: tc.transport, notify: func(ctx context.Context, _ string, _ []byte) error {
					return wait(ctx, 3*ms)
				}}
				got := play(t.Context(), t, p, text)
				if got.err != nil {
					t.Fatal(got.err)
				}
				if diff := cmp.Diff(tc.want, p.log[:len(p.log)/2]); diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
				wantCounts(t, "requests", got.requests(), map[string]int{"ok": 2 * len(tc.want)})
				for _, s := range got.step("n") {
					if s.Service() != 3*ms || s.Rounds != 0 {
						t.Errorf("service time %v, rounds %d", s.Service(), s.Rounds)
					}
				}
			})
		})
	}
}

func TestNotifyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{notify: func(context.Context, string, []byte) error { return &mcp.HTTPError{Status: 400, Body: "no"} }}
		got := play(t.Context(), t, p, "load: {groups: {g: {iterations: 1}}}\nflows: {f: {steps: [{notify: {method: x/y}}]}}\n")
		wantCounts(t, "requests", got.requests(), map[string]int{"http_error": 1})
		wantCounts(t, "iterations", got.iterations(), map[string]int{"failed": 1})
	})
}

// TestRawRequest sends what the scenario says, and its checks see any result.
func TestRawRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{call: func(_ context.Context, c *peerSession, _ mcp.Request) (mcp.Reply, error) {
			reply := c.reply(c.now())
			reply.Result = []byte(`{"stats":{"n":[1,2]}}`)
			return reply, nil
		}}
		got := play(t.Context(), t, p, `
load: {groups: {g: {iterations: 1}}}
flows: {f: {steps: [{request: {method: x-vendor/stats, params: {a: [1, "${{ session.index }}"]}}, check: {two: "len(result.stats.n) == 2", no: result.stats.m == 1}}]}}
`)
		if diff := cmp.Diff([]string{`x-vendor/stats {"a":[1,0]}`}, p.log); diff != "" || got.err != nil {
			t.Errorf("error %v, sent (-want +got):\n%s", got.err, diff)
		}
		if c := got.summary.Checks; c[0].Passed != 1 || c[1].Failed != 1 {
			t.Errorf("checks %+v", c)
		}
	})
}

// TestServerRequestsAreCounted tells the runner of questions, as a session does.
func TestServerRequestsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{call: func(_ context.Context, c *peerSession, _ mcp.Request) (mcp.Reply, error) {
			c.o.OnAsked(mcp.Asked{Method: "roots/list", At: c.now(), Took: 2 * ms})
			c.o.OnAsked(mcp.Asked{Method: "elicitation/create", At: c.now(), Took: ms, Refused: true})
			c.o.OnAsked(mcp.Asked{Method: "elicitation/create", At: c.now(), Took: ms, Cancelled: true})
			return c.reply(c.now()), nil
		}}
		got := play(t.Context(), t, p, "load: {groups: {g: {iterations: 3}}}\nflows: {f: {steps: [{tools/call: {name: x}}]}}\n")
		r := got.summary.ServerRequests
		if len(r) != 2 || r[0].Method != "elicitation/create" || r[0].Count != 6 || r[0].Refused != 3 || r[0].Unanswered != 3 || r[1].Count != 3 || r[1].Answer.Max != 2 {
			t.Errorf("server requests %+v", r)
		}
	})
}

// TestWaitOnALostSession opens the next one, and subscribes anew before it.
func TestWaitOnALostSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		p := &peer{call: func(_ context.Context, c *peerSession, _ mcp.Request) (mcp.Reply, error) {
			if n++; n == 2 {
				return c.reply(c.now()), &mcp.HTTPError{Status: 404, Lost: true}
			}
			return c.reply(c.now()), nil
		}}
		got := play(t.Context(), t, p, `
load: {groups: {g: {iterations: 4}}}
flows:
  f:
    before: [{subscribe: {uris: ["a:x"]}, as: news}]
    steps: [{tools/list: {}}]
    after: [{unsubscribe: {handle: news}}]
`)
		want := []string{"subscribe [a:x] false false false", "tools/list {}", "tools/list {}", "subscribe [a:x] false false false", "tools/list {}", "tools/list {}", "unsubscribe"}
		if diff := cmp.Diff(want, p.log); diff != "" || got.err != nil {
			t.Errorf("error %v, asked (-want +got):\n%s", got.err, diff)
		}
	})
}

// A session that can only be called, as those of older tests, does plain flows.
func TestStepsThatNeedAListenerSaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: takes(0)}
		l := load{group: closed(1, 0, 1), server: s}
		plan := l.plan(t)
		plan.Groups[0].Steps[0].Kind = scenarios.StepNotify
		sink := &keep{}
		c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog, Sinks: []metrics.Sink{sink}})
		r := driver.New(plan, c, nopLog())
		if err := errors.Join(r.Run(t.Context(), nil), r.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "requests", sink.requests(), map[string]int{"script_error": 1})
	})
}
