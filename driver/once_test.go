package driver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
)

const beforeAndAfter = `
load:
  grace: 2s
  groups: {g: {sessions: 3, duration: 990ms}}
flows:
  f:
    before:
      - connect: {}
      - tools/list: {}
      - {id: level, logging/setLevel: {level: info}}
    steps: [{id: work, ping: {}}]
    after:
      - {id: bye, tools/call: {name: bye, arguments: {n: "${{ randInt(1, 1000000) }}"}}}
      - {id: stats, request: {method: x/stats}}
`

// slowly answers a plain call after 50 ms, the call of a tool after 300.
func slowly(ctx context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error) {
	d := 50 * ms
	if req.Method == "tools/call" {
		d = 300 * ms
	}
	start := c.now()
	err := c.sleep(ctx, d)
	return c.reply(start), err
}

// TestBeforeAndAfterRunOnceASession looks at rows, times and order.
func TestBeforeAndAfterRunOnceASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{call: slowly}
		got := play(t.Context(), t, p, beforeAndAfter)
		if got.err != nil {
			t.Fatal(got.err)
		}
		checkOnce(t, got)
		if n := len(got.step("work")); n != 60 || got.summary.Requests.Total != 60 || got.summary.DurationS != 1 {
			t.Errorf("%d rows of the load, %d requests, %v s; want 60 in 1 s", n, got.summary.Requests.Total, got.summary.DurationS)
		}
		sessions := got.of(metrics.KindSession)
		for _, s := range sessions {
			if x := s.Extra.Session; x.Requests != 24 || x.EndReason != "run_end" {
				t.Errorf("session: %d requests, %s; want 20 of the load and 4", x.Requests, x.EndReason)
			}
		}
		for _, s := range got.summary.Steps {
			if want := map[string]string{"tools/list": "before", "level": "before", "bye": "after", "stats": "after"}[s.Step]; s.Part != want {
				t.Errorf("step %s: part %q, want %q", s.Step, s.Part, want)
			}
		}
		if n := len(drawnBy(p)); n != 3 {
			t.Errorf("drew %d numbers: sessions draw different ones", n)
		}
	})
}

// checkOnce checks the rows of the steps before and after: the clock starts 100 ms
// after the first, when all sessions are ready.
func checkOnce(t *testing.T, got *played) {
	t.Helper()
	times := map[string][2]time.Duration{
		"tools/list": {-100 * ms, -50 * ms}, "level": {-50 * ms, 0},
		"bye": {time.Second, 1300 * ms}, "stats": {1300 * ms, 1350 * ms},
	}
	seqs := map[string]uint16{"tools/list": 0, "level": 1, "bye": 2, "stats": 3}
	for id, want := range times {
		rows := got.step(id)
		if len(rows) != 3 {
			t.Errorf("%s: %d rows, want one for each session", id, len(rows))
		}
		for _, s := range rows {
			if s.Start != want[0] || s.End != want[1] || s.Phase != metrics.PhaseSetup ||
				s.Iteration != metrics.NoIteration || s.Seq != seqs[id] || s.Intended != metrics.NoOffset {
				t.Errorf("%s: from %v to %v, phase %v, iteration %d, seq %d", id, s.Start, s.End, s.Phase, s.Iteration, s.Seq)
			}
		}
	}
}

// drawnBy returns what the sessions have drawn for the step bye.
func drawnBy(p *peer) map[string]bool {
	drawn := map[string]bool{}
	for _, line := range p.log {
		if strings.Contains(line, "bye") {
			drawn[line] = true
		}
	}
	return drawn
}

// TestConnectTimeIsThatOfTheDialAlone: steps before may take longer than the
// connect timeout.
func TestConnectTimeIsThatOfTheDialAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := play(t.Context(), t, &peer{call: slowly}, "limits: {connect_timeout: 20ms}\n"+beforeAndAfter[1:])
		if got.err != nil || got.summary.Sessions.Opened != 3 || got.summary.Sessions.Connect.Max != 0 {
			t.Errorf("error %v, sessions %+v", got.err, got.summary.Sessions)
		}
	})
}

func TestStepsBeforeThatTheVersionLacksAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := play(t.Context(), t, &peer{version: mcp.V20260728, call: slowly}, strings.Replace(beforeAndAfter, "ping", "tools/list", 1))
		if got.err != nil || len(got.step("level")) != 0 || len(got.step("bye")) != 3 {
			t.Errorf("error %v, %d rows of logging/setLevel", got.err, len(got.step("level")))
		}
	})
}

// TestBeforeThatFailsCountsAsADialThatFailed: the first two sessions fail, and
// are opened anew after a while.
func TestBeforeThatFailsCountsAsADialThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		p := &peer{call: func(ctx context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error) {
			if req.Method == "logging/setLevel" && n.Add(1) <= 2 {
				return c.reply(c.now()), &mcp.RPCError{Code: -32603, Message: "not on session 17"}
			}
			return slowly(ctx, c, req)
		}}
		got := play(t.Context(), t, p, beforeAndAfter)
		if got.err != nil {
			t.Fatal(got.err)
		}
		if s := got.summary.Sessions; s.Opened != 3 || s.Failed != 2 || s.Outcomes["rpc_error"] != 2 {
			t.Errorf("sessions %+v", s)
		}
		if stats := got.runner.SessionStats(); stats.Opened != 3 || stats.Failed != 2 || stats.Reopened != 0 {
			t.Errorf("stats %+v", stats)
		}
		e := got.summary.Errors
		if len(e) != 1 || e[0].Count != 2 || e[0].Code != -32603 || e[0].Message != "before: step level: rpc_error: not on session #" {
			t.Errorf("errors %+v", e)
		}
		reasons := map[string]int{}
		for _, s := range got.of(metrics.KindSession) {
			reasons[s.Extra.Session.EndReason]++
			if x := s.Extra.Session; x.EndReason == "before_failed" && (s.Outcome != metrics.RPCError || x.Requests != 2 || x.Negotiated == "") {
				t.Errorf("session row %+v, outcome %v", x, s.Outcome)
			}
		}
		wantCounts(t, "ends of sessions", reasons, map[string]int{"run_end": 3, "before_failed": 2})
		if rows := got.step("level"); len(rows) != 5 {
			t.Errorf("%d rows of the step, want 5", len(rows))
		}
	})
}

func TestBeforeThatAlwaysFailsEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{call: func(_ context.Context, c *peerSession, _ mcp.Request) (mcp.Reply, error) {
			reply := c.reply(c.now())
			reply.ToolError, reply.Result = true, []byte(`{"isError":true,"content":[{"type":"text","text":"never"}]}`)
			return reply, nil
		}}
		got := play(t.Context(), t, p, `
load: {groups: {g: {iterations: 3}}}
flows: {f: {before: [{tools/call: {name: x}}], steps: [{ping: {}}]}}
`)
		if !errors.Is(got.err, driver.ErrNoSession) || !strings.Contains(got.err.Error(), "before: step tools/call x: tool_error: never") {
			t.Errorf("error %v", got.err)
		}
	})
}

// A check of a step before is a verdict and no failure, as everywhere.
func TestScriptErrorBeforeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := play(t.Context(), t, &peer{}, `
vars: {list: [1]}
load: {groups: {g: {sessions: 2, iterations: 3}}}
flows: {f: {before: [{tools/call: {name: "${{ vars.list[session.index] }}"}}], steps: [{ping: {}}]}}
`)
		if got.err != nil || got.summary.Sessions.Opened != 1 || got.summary.Sessions.Outcomes["script_error"] == 0 {
			t.Errorf("error %v, sessions %+v", got.err, got.summary.Sessions)
		}
	})
}

// TestAfterHasAGracePeriod cuts what hangs.
func TestAfterHasAGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{call: func(ctx context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error) {
			start := c.now()
			err := c.sleep(ctx, map[string]time.Duration{"ping": 50 * ms, "tools/call": time.Hour}[req.Method])
			return c.reply(start), err
		}}
		began := time.Now()
		got := play(t.Context(), t, p, beforeAndAfter)
		if took := time.Since(began); took != 3*time.Second || got.err != nil {
			t.Errorf("took %v, error %v; want 0.99 s of load, 10 ms for its end and 2 s of grace", took, got.err)
		}
		wantCounts(t, "requests", got.requests(), map[string]int{"ok": 3*2 + 60, "interrupted": 3})
		if n := len(got.step("stats")); n != 0 {
			t.Errorf("%d rows of the step after the one that was cut", n)
		}
	})
}

func TestAfterIsCutWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 1200*ms, errors.New("a second signal"))
		defer cancel()
		got := play(ctx, t, &peer{call: slowly}, beforeAndAfter)
		wantCounts(t, "requests", got.requests(), map[string]int{"ok": 3*2 + 60, "interrupted": 3})
	})
}

// TestAfterRunsBeforeASessionIsRenewed, and not on one that was lost.
func TestAfterRunsBeforeASessionIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: takes(ms)}
		plan := load{group: closed(1, 0, 6), server: s, renew: 2}.plan(t)
		g := &plan.Groups[0]
		g.After, g.DoAfter, g.FirstAfter = g.Steps[:1], g.Do[:1], 0
		sink := &keep{}
		c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog, Sinks: []metrics.Sink{sink}})
		r := driver.New(plan, c, nopLog())
		if err := errors.Join(r.Run(t.Context(), nil), r.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, s := range sink.of(metrics.KindStep) {
			order = append(order, fmt.Sprintf("%d:%t", s.Session, s.Iteration == metrics.NoIteration))
		}
		want := []string{"0:false", "0:false", "0:true", "1:false", "1:false", "1:true", "2:false", "2:false", "2:true"}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("session:after of the requests (-want +got):\n%s", diff)
		}
	})
}

// An open load has its requests before and after without an intended start.
func TestBeforeOfAnOpenLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := play(t.Context(), t, &peer{call: slowly}, `
load: {groups: {g: {arrivals: {rate: 10/s}, max_sessions: 2, duration: 990ms}}}
flows: {f: {before: [{id: b, ping: {}}], steps: [{id: work, ping: {}}], after: [{id: a, ping: {}}]}}
`)
		if got.err != nil {
			t.Fatal(got.err)
		}
		wantCounts(t, "iterations", got.iterations(), map[string]int{"completed": 10})
		for _, s := range append(got.step("b"), got.step("a")...) {
			if _, open := s.Lateness(); open || s.Phase != metrics.PhaseSetup {
				t.Errorf("step %d has an intended start", s.Step)
			}
		}
		if n := got.summary.Soundness.Lateness; n == nil || n.Count != 10 {
			t.Errorf("lateness %+v", n)
		}
	})
}
