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

// TestEachRequestOfASubscriptionIsARow subscribes to three resources, each of
// which takes 10 ms more than the one before, and ends that, which the second
// refuses. In the third iteration the second is refused at once.
func TestEachRequestOfASubscriptionIsARow(t *testing.T) {
	for version, want := range map[mcp.Version]map[string][]string{
		mcp.V20251125: {
			"s": {"ok 10ms 0", "ok 20ms 1", "ok 30ms 2", "ok 10ms 0", "ok 20ms 1", "ok 30ms 2", "ok 10ms 0", "rpc_error 0s 1"},
			"u": {"ok 10ms 3", "rpc_error 20ms 4", "ok 30ms 5", "ok 10ms 3", "rpc_error 20ms 4", "ok 30ms 5"},
		},
		mcp.V20260728: {"s": {"ok 60ms 0", "ok 60ms 0", "ok 60ms 0"}, "u": {"rpc_error 60ms 1", "rpc_error 60ms 1", "rpc_error 60ms 1"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := play(t.Context(), t, slowSubscriptions(version), `
load: {groups: {g: {iterations: 3}}}
flows: {f: {steps: [{id: s, subscribe: {uris: ["a:1", "a:2", "a:3"]}, as: own, check: {any: true}}, {id: u, unsubscribe: {handle: own}}]}}
`)
			wantCounts(t, "iterations", got.iterations(), map[string]int{"failed": 3})
			for step, rows := range want {
				var have []string
				for _, s := range got.step(step) {
					have = append(have, fmt.Sprint(s.Outcome, s.Service(), " ", s.Seq))
				}
				if diff := cmp.Diff(rows, have); diff != "" {
					t.Errorf("%s, %s (-want +got):\n%s", version, step, diff)
				}
			}
			if r := got.of(metrics.KindSession)[0].Extra.Session.Requests; int(r) != len(want["s"])+len(want["u"]) {
				t.Errorf("%s: the session counts %d requests", version, r)
			}
		})
	}
}

// slowSubscriptions takes 10 ms for the resource a:1, 20 for a:2, 30 for a:3. It
// refuses the eighth request to subscribe, at once, and each that ends a:2.
func slowSubscriptions(version mcp.Version) *peer {
	took := map[string]time.Duration{"a:1": 10 * ms, "a:2": 20 * ms, "a:3": 30 * ms}
	refusal := &mcp.RPCError{Code: -32602, Message: "no"}
	work := func(ctx context.Context, c *peerSession, f mcp.Filter) (mcp.Reply, error) {
		start := c.now()
		var d time.Duration
		for _, uri := range f.Resources {
			d += took[uri]
		}
		err := c.sleep(ctx, d)
		return c.reply(start), err
	}
	n := 0
	return &peer{
		version: version,
		subscribe: func(ctx context.Context, c *peerSession, f mcp.Filter) (mcp.Reply, error) {
			if n++; n == 8 {
				return c.reply(c.now()), refusal
			}
			return work(ctx, c, f)
		},
		unsubscribe: func(ctx context.Context, c *peerSession, f mcp.Filter) (mcp.Reply, error) {
			reply, err := work(ctx, c, f)
			if err == nil && slices.Contains(f.Resources, "a:2") {
				err = refusal
			}
			return reply, err
		},
	}
}
