package driver_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// peer is a fake server for what goes beyond plain calls. Zero functions
// answer at once.
type peer struct {
	version   mcp.Version // "": 2025-11-25
	transport string      // "": http
	call      func(ctx context.Context, c *peerSession, req mcp.Request) (mcp.Reply, error)
	subscribe func(ctx context.Context, c *peerSession, f mcp.Filter) (mcp.Reply, error)
	// unsubscribe is called for each request of a subscription's end.
	unsubscribe func(ctx context.Context, c *peerSession, f mcp.Filter) (mcp.Reply, error)
	endsAfter   time.Duration // a subscription is ended by the server; 0 is never
	notify      func(ctx context.Context, method string, params []byte) error
	// news gives, for a subscription or the session itself, what comes and when
	// since it began.
	news func(f mcp.Filter) []mcp.Notification

	mu       sync.Mutex
	log      []string // what was asked, in order
	sessions []*peerSession
	closed   int
}

type peerSession struct {
	*peer
	o     mcp.Options
	began time.Duration
	*stream
}

func (p *peer) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *peer) dial(_ context.Context, _ int, o mcp.Options) (driver.Session, error) {
	s := &peerSession{peer: p, o: o, began: time.Since(o.Base)}
	s.stream = s.newStream(mcp.Filter{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions = append(p.sessions, s)
	return s, nil
}

func (c *peerSession) now() time.Duration { return time.Since(c.o.Base) }

func (c *peerSession) Info() mcp.Info {
	v, transport := c.version, c.transport
	if v == "" {
		v = mcp.V20251125
	}
	if transport == "" {
		transport = "http"
	}
	return mcp.Info{Transport: transport, Version: v}
}

func (c *peerSession) Close(context.Context) error {
	c.peer.mu.Lock()
	defer c.peer.mu.Unlock()
	c.closed++
	return nil
}

// reply is an answer that took from start until now.
func (c *peerSession) reply(start time.Duration) mcp.Reply {
	return mcp.Reply{Result: []byte(`{}`), Rounds: 1, BytesOut: 10, Timing: mcp.Timing{Start: start, FirstByte: c.now(), End: c.now()}}
}

func (c *peerSession) Call(ctx context.Context, req mcp.Request) (mcp.Reply, error) {
	c.note("%s %s", req.Method, req.Params)
	if c.call == nil {
		return c.reply(c.now()), nil
	}
	return c.call(ctx, c, req)
}

func (c *peerSession) Notify(ctx context.Context, method string, params []byte) error {
	c.note("%s %s", method, params)
	if c.notify == nil {
		return nil
	}
	return c.notify(ctx, method, params)
}

func (c *peerSession) SubscribeEach(ctx context.Context, f mcp.Filter, each func(mcp.Reply, error)) (driver.Subscription, error) {
	c.note("subscribe %v %v %v %v", f.Resources, f.ToolsListChanged, f.PromptsListChanged, f.ResourcesListChanged)
	for _, one := range c.requests(f) {
		reply := c.reply(c.now())
		var err error
		if c.subscribe != nil {
			reply, err = c.subscribe(ctx, c, one)
		}
		if reply.Rounds > 0 || err != nil {
			each(reply, err)
		}
		if err != nil {
			return nil, err
		}
	}
	return c.newStream(f), nil
}

// requests are those that a subscription takes: up to 2025-11-25 one for each resource.
func (c *peerSession) requests(f mcp.Filter) []mcp.Filter {
	if c.version == mcp.V20260728 || len(f.Resources) < 2 {
		return []mcp.Filter{f}
	}
	var out []mcp.Filter
	for _, uri := range f.Resources {
		out = append(out, mcp.Filter{Resources: []string{uri}})
	}
	return out
}

// Await knows only what it was told to watch, as a real session does.
func (c *peerSession) Await(ctx context.Context, method string) (mcp.Notification, error) {
	if slices.Contains(c.o.Watch, method) {
		return c.next(ctx, method)
	}
	return mcp.Notification{}, fmt.Errorf("%s is not watched", method)
}

// stream is a list of notifications, each there from its time on.
type stream struct {
	c    *peerSession
	mu   sync.Mutex
	left []mcp.Notification
	end  chan struct{}

	began    time.Duration
	requests []mcp.Filter
}

func (c *peerSession) newStream(f mcp.Filter) *stream {
	s := &stream{c: c, end: make(chan struct{}), began: c.now(), requests: c.requests(f)}
	if c.news != nil {
		for _, n := range c.news(f) {
			n.At += c.now()
			s.left = append(s.left, n)
		}
	}
	return s
}

// Next implements driver.Subscription.
func (s *stream) Next(ctx context.Context) (mcp.Notification, error) { return s.next(ctx, "") }

func (s *stream) next(ctx context.Context, method string) (mcp.Notification, error) {
	s.mu.Lock()
	var n mcp.Notification
	found := false
	for i := range s.left {
		if found = method == "" || s.left[i].Method == method; found {
			n = s.left[i]
			break
		}
	}
	s.mu.Unlock()
	var arrival <-chan time.Time // nil waits for ever
	if found {
		t := time.NewTimer(n.At - s.c.now())
		defer t.Stop()
		arrival = t.C
	}
	var over <-chan time.Time // ended in order, with nothing left to take
	if d := s.c.endsAfter; d > 0 && !found {
		t := time.NewTimer(s.began + d - s.c.now())
		defer t.Stop()
		over = t.C
	}
	select {
	case <-over:
		return mcp.Notification{}, mcp.ErrSubscriptionEnded
	case <-arrival:
	case <-s.end:
		return mcp.Notification{}, &mcp.TransportError{Op: "read", Err: errors.New("the subscription ended")}
	case <-ctx.Done():
		return mcp.Notification{}, fmt.Errorf("gave up: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.left {
		if s.left[i].Method == n.Method && s.left[i].At == n.At {
			s.left = append(s.left[:i:i], s.left[i+1:]...)
			break
		}
	}
	return n, nil
}

func (s *stream) CloseEach(ctx context.Context, each func(mcp.Reply, error)) (failed error) {
	s.c.note("unsubscribe")
	close(s.end)
	for _, one := range s.requests {
		reply := s.c.reply(s.c.now())
		var err error
		if s.c.unsubscribe != nil {
			reply, err = s.c.unsubscribe(ctx, s.c, one)
		}
		each(reply, err)
		failed = cmp.Or(failed, err)
	}
	return failed
}

// played is what came of a scenario against a peer.
type played struct {
	*keep
	plan    *driver.Plan
	runner  *driver.Runner
	summary *metrics.Summary
	logs    *observer.ObservedLogs // warnings and worse
	err     error
}

// play runs a scenario, whose servers, load and flows follow, against a peer.
func play(ctx context.Context, t *testing.T, p *peer, text string) *played {
	t.Helper()
	s, err := scenarios.Load("t.yaml", []byte("version: 1\nservers: {s: {url: \"http://h/\"}}\n"+text), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	program, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if len(program.Unsupported) > 0 {
		t.Fatal(program.Unsupported)
	}
	out := &played{keep: &keep{}}
	if out.plan, err = driver.NewPlan(program, 1, func(int) driver.Dial { return p.dial }); err != nil {
		t.Fatal(err)
	}
	for i := range out.plan.Groups {
		g := &out.plan.Groups[i]
		if g.Feeds, err = program.OpenFeeds(ctx, i, 1, false); err != nil {
			t.Fatal(err)
		}
		if g.SessionFeeds, err = program.OpenFeeds(ctx, i, 1, true); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(g.Feeds.Close(), g.SessionFeeds.Close()); err != nil {
				t.Error(err)
			}
		}()
	}
	c := metrics.NewCollector(metrics.CollectorConfig{Catalog: out.plan.Catalog, Sinks: []metrics.Sink{out.keep}, Warmup: out.plan.Warmup})
	var core zapcore.Core
	core, out.logs = observer.New(zap.WarnLevel)
	out.runner = driver.New(out.plan, c, zap.New(core))
	out.err = out.runner.Run(ctx, nil)
	if err := out.runner.Close(context.WithoutCancel(ctx)); err != nil {
		t.Errorf("Close: %v", err)
	}
	for i := range out.samples {
		if err := out.samples[i].Valid(); err != nil {
			t.Errorf("sample %d: %v", i, err)
		}
	}
	if len(p.sessions) != p.closed {
		t.Errorf("%d sessions opened, %d closed", len(p.sessions), p.closed)
	}
	out.summary = c.Summary(metrics.RunInfo{MeasuredEnd: out.runner.MeasuredEnd(), ServerRequests: out.runner.ServerRequests()})
	return out
}

// step returns the requests of one step, by its id.
func (p *played) step(id string) []metrics.Sample {
	var out []metrics.Sample
	for _, s := range p.of(metrics.KindStep) {
		if p.plan.Catalog.Steps[s.Step].ID == id {
			out = append(out, s)
		}
	}
	return out
}

// sleep waits in the peer, or ends with ctx.
func (c *peerSession) sleep(ctx context.Context, d time.Duration) error {
	if err := wait(ctx, d); err != nil {
		return fmt.Errorf("gave up: %w", err)
	}
	return nil
}
