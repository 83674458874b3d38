package driver_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// server is a fake server with a known schedule: answer says how long the call
// with the given number takes and what comes of it.
type server struct {
	answer func(ctx context.Context, call int64) error
	refuse func(dial int64) error
	onDial func(o mcp.Options)

	calls, dials, closes atomic.Int64
	mu                   sync.Mutex
	ids                  []string
}

type fakeSession struct {
	server *server
	o      mcp.Options
	closed chan struct{}
}

func (s *server) dial(ctx context.Context, _ int, o mcp.Options) (driver.Session, error) {
	n := s.dials.Add(1)
	if s.refuse != nil {
		if err := s.refuse(n); err != nil {
			return nil, err
		}
	}
	if s.onDial != nil {
		s.onDial(o)
	}
	return &fakeSession{server: s, o: o, closed: make(chan struct{})}, ctx.Err()
}

func (f *fakeSession) Info() mcp.Info {
	return mcp.Info{Transport: "http", Version: mcp.V20251125}
}

func (f *fakeSession) Close(context.Context) error {
	f.server.closes.Add(1)
	close(f.closed)
	return nil
}

// Call behaves as a session does: a request timeout is a *mcp.TimeoutError, an
// end of ctx wraps its cause.
func (f *fakeSession) Call(ctx context.Context, req mcp.Request) (mcp.Reply, error) {
	start := time.Since(f.o.Base)
	n := f.server.calls.Add(1)
	f.server.mu.Lock()
	f.server.ids = append(f.server.ids, string(req.Params))
	f.server.mu.Unlock()
	limited, cancel := context.WithTimeoutCause(ctx, req.Timeout, errLimit)
	defer cancel()
	err := f.server.answer(limited, n)
	select {
	case <-f.closed:
		err = &mcp.TransportError{Op: "read", Err: errors.New("the connection was closed under the request")}
	default:
	}
	if errors.Is(err, errLimit) {
		err = &mcp.TimeoutError{}
	}
	end := time.Since(f.o.Base)
	return mcp.Reply{Timing: mcp.Timing{Start: start, FirstByte: end, End: end}, Rounds: 1}, err
}

var errLimit = errors.New("request limit")

// takes is an answer after d.
func takes(d time.Duration) func(context.Context, int64) error {
	return func(ctx context.Context, _ int64) error { return wait(ctx, d) }
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func hang(ctx context.Context, _ int64) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// keep is a sink that remembers everything.
type keep struct{ samples []metrics.Sample }

func (k *keep) Write(batch []metrics.Sample) error {
	k.samples = append(k.samples, batch...)
	return nil
}

func (k *keep) Close() error { return nil }

func (k *keep) of(kind metrics.Kind) []metrics.Sample {
	var out []metrics.Sample
	for i := range k.samples {
		if k.samples[i].Kind == kind {
			out = append(out, k.samples[i])
		}
	}
	return out
}

// iterations counts the iteration samples by outcome.
func (k *keep) iterations() map[string]int {
	out := map[string]int{}
	for _, s := range k.of(metrics.KindIteration) {
		out[s.IterOutcome().String()]++
	}
	return out
}

// requests counts the request samples by outcome.
func (k *keep) requests() map[string]int {
	out := map[string]int{}
	for _, s := range k.of(metrics.KindStep) {
		out[s.Outcome.String()]++
	}
	return out
}

// load is a run of one group against a fake server.
type load struct {
	group  scenarios.Group
	steps  int
	server *server
	warmup time.Duration
	grace  time.Duration
	limit  time.Duration
	renew  int64
	onLoss scenarios.OnLoss
	watch  func(group int, session uint32, o *mcp.Options)
	// goal ends the warm-up; stepLimit and iterationLimit are timeouts; 0: none.
	goal                      *scenarios.WarmupGoal
	stepLimit, iterationLimit time.Duration
}

func (l load) plan(t *testing.T) *driver.Plan {
	t.Helper()
	l.group.Name = "g"
	if l.group.Sessions == 0 {
		l.group.Sessions = 1
	}
	flow := scenarios.Flow{Name: "f"}
	for i := range max(1, l.steps) {
		flow.Steps = append(flow.Steps, &scenarios.Step{ID: string(rune('a' + i)), Method: "tools/call"})
	}
	flow.Do = scenarios.InOrder(flow.Steps)
	if l.limit == 0 {
		l.limit = time.Hour
	}
	p := &scenarios.Program{
		Name: "test", Servers: []scenarios.Server{{Name: "s", Transport: "http", OnLoss: l.onLoss}},
		Groups: []scenarios.Group{l.group}, Flows: []scenarios.Flow{flow},
		Warmup: l.warmup, WarmupGoal: l.goal, Grace: l.grace,
		Limits: scenarios.Limits{
			RequestTimeout: l.limit, ConnectTimeout: time.Minute, StepTimeout: l.stepLimit, IterationTimeout: l.iterationLimit,
		},
	}
	plan, err := driver.NewPlan(p, 1, func(int) driver.Dial { return l.server.dial })
	if err != nil {
		t.Fatal(err)
	}
	if l.renew > 0 {
		plan.Groups[0].RenewAfter = l.renew
	}
	plan.Watch = l.watch
	return plan
}

// run runs l to its end, with stop as the graceful stop and ctx as the hard one.
func (l load) run(ctx context.Context, t *testing.T, stop <-chan struct{}) (*keep, *driver.Runner, error) {
	t.Helper()
	plan := l.plan(t)
	sink := &keep{}
	warmup := plan.Warmup
	if plan.WarmupGoal != nil {
		warmup = metrics.Endless
	}
	c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog, Sinks: []metrics.Sink{sink}, Warmup: warmup})
	r := driver.New(plan, c, zap.NewNop())
	err := r.Run(ctx, stop)
	if cerr := r.Close(context.WithoutCancel(ctx)); cerr != nil {
		t.Errorf("Close: %v", cerr)
	}
	for i := range sink.samples {
		if verr := sink.samples[i].Valid(); verr != nil {
			t.Errorf("sample %d: %v", i, verr)
		}
	}
	if opened := r.SessionStats().Opened; opened != l.server.closes.Load() {
		t.Errorf("%d sessions opened, %d closed", opened, l.server.closes.Load())
	}
	return sink, r, err
}

func nopLog() *zap.Logger { return zap.NewNop() }
