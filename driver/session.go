package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/pool"
	"mcpbench/scenarios"
)

// session is a live session with what its row of the sessions table needs.
type session struct {
	Session
	number   uint32
	proto    uint8
	version  mcp.Version
	skipped  []bool         // by step: its method does not exist in this version; nil: all do
	opened   metrics.Sample // its KindConnect sample, offsets since base
	requests atomic.Int64
	calls    calls
	life     life

	listener Listener // nil when it is none
	subs     subscriptions
	saved    map[string]any // by the steps before; only read once it is in use
	onceSeq  uint16         // requests of the steps before and after so far
	finished atomic.Bool    // the steps after have begun
}

// Close lets calls in flight have their answers, within ctx: that one call has
// found the session lost, or that it is due for renewal, is not their fault.
func (s *session) Close(ctx context.Context) error {
	if s.life.expiry != nil {
		s.life.expiry.Stop()
	}
	select {
	case <-s.calls.over():
	case <-ctx.Done():
	}
	if c, ok := s.Session.(closerAs); ok && s.life.ending != mcp.EndOrderly {
		return c.CloseAs(ctx, s.life.ending) //nolint:wrapcheck // as Close does
	}
	return s.Session.Close(ctx)
}

// lacks reports whether the session's version does not have the step with that index.
func (s *session) lacks(step int) bool { return s.skipped != nil && s.skipped[step] }

// calls counts the calls in flight of one session.
type calls struct {
	n    atomic.Int64
	idle atomic.Pointer[chan struct{}] // gets a token when n falls to 0; nil while nobody waits
}

func (c *calls) begin() { c.n.Add(1) }

func (c *calls) end() {
	if c.n.Add(-1) > 0 {
		return
	}
	if idle := c.idle.Load(); idle != nil {
		select {
		case *idle <- struct{}{}:
		default: // one is there
		}
	}
}

// over returns a channel that gets a token when no call is in flight. It is for
// one caller, the one that closes the session.
func (c *calls) over() <-chan struct{} {
	idle := make(chan struct{}, 1)
	c.idle.Store(&idle)
	if c.n.Load() == 0 { // after the store: an end from now on sees the channel
		select {
		case idle <- struct{}{}:
		default:
		}
	}
	return idle
}

// dial opens a session and records the attempt.
func (g *group) dial(ctx context.Context, slot int) (*session, error) {
	r := g.runner
	s := metrics.Sample{
		Kind: metrics.KindConnect, Group: g.index, Step: metrics.NoStep, Session: r.sessions.Add(1) - 1,
		Intended: metrics.NoOffset, Release: metrics.NoOffset,
		Start: time.Since(r.base),
	}
	opened, err := g.open(ctx, slot, &s)
	if err != nil {
		if s.Outcome == metrics.Interrupted {
			return nil, err // the end of the run, not an attempt that failed
		}
		s.Extra = &metrics.Extra{Message: message(err)}
		g.recordFailedDial(s)
		r.log.Debug("session not opened", zap.String("group", g.plan.Name), zap.Error(err))
		return nil, err
	}
	info := opened.Info()
	s.Proto = protoIndex(info.Version)
	live := &session{
		Session: opened, number: s.Session, proto: s.Proto, version: info.Version,
		opened: s, listener: listenerOf(opened),
	}
	g.begin(live)
	live.skipped = lacking(g.plan.Steps, info)
	if err := g.learnTools(ctx, opened); err != nil {
		return nil, g.unprepared(ctx, live, fmt.Errorf("tools: %w", err))
	}
	if err := g.prepare(ctx, live, slot); err != nil {
		return nil, err
	}
	opening := live.opened
	opening.Extra = &metrics.Extra{Session: g.sessionInfo(&info)}
	r.recordSinceBase(opening)
	return live, nil
}

// open dials within the connect timeout and puts what came of it into s.
func (g *group) open(ctx context.Context, slot int, s *metrics.Sample) (Session, error) {
	if g.plan.ConnectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, g.plan.ConnectTimeout, pool.ErrDialTimeout)
		defer cancel()
	}
	r := g.runner
	o := mcp.Options{Base: r.base, OnAnomaly: r.onAnomaly, OnAsked: r.onAsked, Watch: g.plan.Watched}
	if r.plan.Watch != nil {
		r.plan.Watch(int(g.index), s.Session, &o)
	}
	opened, err := g.plan.Dial(ctx, slot, o)
	s.End = time.Since(r.base)
	s.FirstByte = s.End
	s.Outcome, s.Code = Classify(ctx, mcp.Reply{}, err)
	return opened, err
}

// lacking tells of each step whether a session of that kind does not have it;
// nil when it has all.
func lacking(steps []*scenarios.Step, info mcp.Info) []bool {
	var out []bool
	for i, step := range steps {
		if lacks(step, info) {
			if out == nil {
				out = make([]bool, len(steps))
			}
			out[i] = true
		}
	}
	return out
}

// lacks reports whether a session of that kind does not have a step.
// Subscriptions and waits exist in all versions, in one form or another.
func lacks(step *scenarios.Step, info mcp.Info) bool {
	f := info.Version.Features()
	switch step.Kind {
	case scenarios.StepRequest:
		return !f.Has(step.Method)
	case scenarios.StepNotify:
		// Where closing a stream cancels, the client has no notification over
		// HTTP at all (specification 2026-07-28, basic/transports).
		return !f.Has(step.Method) || f.CancelByClose && info.Transport != "stdio"
	case scenarios.StepSubscribe, scenarios.StepUnsubscribe, scenarios.StepWait:
	}
	return false
}

// sessionInfo is what is known of a session once it is open.
func (g *group) sessionInfo(info *mcp.Info) *metrics.SessionInfo {
	return &metrics.SessionInfo{
		Server: g.target().Server, Transport: info.Transport,
		Requested: string(info.Requested), Negotiated: string(info.Version), Era: info.Version.Era(),
		Spawn: info.Spawn, TCP: info.TCP, TLS: info.TLS, Handshake: info.Handshake,
	}
}

func (g *group) recordFailedDial(s metrics.Sample) {
	g.runner.recordSinceBase(s)
	s.Kind = metrics.KindSession
	extra := *s.Extra
	extra.Session = &metrics.SessionInfo{
		Server: g.target().Server, Transport: g.target().Transport,
		Ended: s.End, EndReason: "connect_failed",
	}
	s.Extra = &extra
	g.runner.recordSinceBase(s)
}

// endSession records the row of a session that is over. cause is nil at the
// end of the run.
func (g *group) endSession(s *session, reason string, cause error) {
	r := g.runner
	info := s.Info()
	row := s.opened
	row.Kind = metrics.KindSession
	si := g.sessionInfo(&info)
	si.Ended, si.Requests, si.EndReason = time.Since(r.base), s.requests.Load(), reason
	row.Extra = &metrics.Extra{Session: si}
	if cause != nil {
		row.Extra.Message = message(cause)
		if e, ok := errors.AsType[*mcp.ExitError](cause); ok {
			code := clampCode(int64(e.Code))
			if e.Signal != 0 {
				code = clampCode(int64(128 + e.Signal)) // as a shell has it
			}
			si.ExitCode = &code
		}
	}
	r.recordSinceBase(row)
}

// endSessions records the rows of the sessions that lived to the end.
func (g *group) endSessions() {
	for _, slot := range g.pool.Slots() {
		if l := slot.Live(); l != nil {
			g.endSession(l.Session, "run_end", nil)
		}
	}
}

// describeTarget fills in the catalog what the group's first session
// negotiated, and returns how many sessions the group has.
func (g *group) describeTarget() (sessions int, err error) {
	for _, slot := range g.pool.Slots() {
		l := slot.Live()
		if l == nil {
			continue
		}
		if sessions++; sessions > 1 {
			continue
		}
		info := l.Session.Info()
		t := g.target()
		t.Transport, t.Era = cmp.Or(info.Transport, t.Transport), info.Version.Era()
		if t.ProtocolVersion == "" {
			t.ProtocolVersion = string(info.Version)
			t.ServerName, t.ServerVersion = info.Server.Name, info.Server.Version
			t.HTTPEngine = string(info.Engine)
		}
		g.nameSubscriptions(info.Version)
		if err := g.checkSteps(l.Session); err != nil {
			return sessions, err
		}
	}
	return sessions, nil
}

// nameSubscriptions gives the steps that subscribe the method that the version
// has for it. Nothing is recorded yet.
func (g *group) nameSubscriptions(v mcp.Version) {
	if v.Features().Has("resources/subscribe") {
		return
	}
	cat := g.runner.plan.Catalog
	for _, part := range []struct {
		first uint16
		steps []*scenarios.Step
	}{{g.plan.FirstBefore, g.plan.Before}, {g.plan.FirstStep, g.plan.Steps}, {g.plan.FirstAfter, g.plan.After}} {
		for i, step := range part.steps {
			if step.Kind == scenarios.StepSubscribe || step.Kind == scenarios.StepUnsubscribe {
				cat.Steps[int(part.first)+i].Method = "subscriptions/listen"
			}
		}
	}
}

func (g *group) target() *metrics.TargetInfo { return &g.runner.plan.Catalog.Targets[g.plan.Target] }
