package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"

	"mcpbench/mcp"
	"mcpbench/scenarios"
)

// errStopped is the end of a probe that the user stopped.
var errStopped = errors.New("stopped by the user")

// decide finds out what each server speaks that a group uses and for which no
// version is pinned, once and before the load: every session is then opened so, and
// the catalog tells it. Where that cannot be found out the sessions fail with the
// reason, so that they show among the failed ones.
func (e *execution) decide(work context.Context, log *zap.Logger) {
	ctx, stop := context.WithCancelCause(work)
	defer stop(nil)
	var watch sync.WaitGroup
	done := make(chan struct{})
	watch.Go(func() {
		select {
		case <-e.signal.Stop:
			stop(errStopped)
		case <-done:
		}
	})
	defer watch.Wait()
	defer close(done)
	mask := e.scenario.Masker()
	for i := range e.program.Servers {
		s := &e.program.Servers[i]
		used := slices.ContainsFunc(e.program.Groups, func(g scenarios.Group) bool { return g.Server == i })
		if !used || s.Protocol != "" {
			continue
		}
		d, err := e.found(ctx, work, i, log)
		if err == nil { // as if it had been pinned so
			s.Transport, s.AnyHTTP, s.Protocol = d.Transport.Kind(), false, string(d.Version)
		}
		tried := attempts(d.Tried, mask)
		e.apply(s, d.Version, tried, err)
		tellProbe(log, s, tried, err)
	}
}

// apply makes known what was found out about a server.
func (e *execution) apply(s *scenarios.Server, v mcp.Version, tried []string, err error) {
	for _, dialer := range e.dialers {
		if dialer.server == s {
			dialer.failed = err
		}
	}
	for i := range e.plan.Catalog.Targets {
		if t := &e.plan.Catalog.Targets[i]; t.Server == s.Name {
			t.Transport, t.Era, t.Probe = s.Transport, v.Era(), tried
		}
	}
}

// tellProbe logs a probe, aloud when it was not over at the first attempt.
func tellProbe(log *zap.Logger, s *scenarios.Server, tried []string, err error) {
	fields := []zap.Field{zap.String("server", s.Name), zap.Strings("tried", tried)}
	if err != nil { // which the failing sessions tell
		log.Debug("server not probed", fields...)
		return
	}
	tell := log.Debug
	if len(tried) > 1 {
		tell = log.Info
	}
	tell("server probed", append(fields, zap.String("transport", s.Transport), zap.String("protocol", s.Protocol), zap.String("era", mcp.Version(s.Protocol).Era()))...)
}

// found returns what one server speaks: what is known since it was asked for the
// tool's schema, or what it says now.
func (e *execution) found(ctx, work context.Context, server int, log *zap.Logger) (mcp.Decision, error) {
	s := &e.program.Servers[server]
	if d := e.flags.decided; d != nil && len(e.program.Servers) == 1 {
		return *d, nil
	}
	d, err := e.probe(ctx, work, server, log)
	if s.Embedded {
		e.asked += int64(len(d.Tried))
	}
	return d, err
}

// probe asks the server within ctx. The end of the session is orderly, until work ends.
func (e *execution) probe(ctx, work context.Context, server int, log *zap.Logger) (mcp.Decision, error) {
	s := &e.program.Servers[server]
	dialer := &dialer{
		server: s, seed: e.flags.seed, engine: mcp.Engine(e.flags.engine), limits: wireLimits(e.program),
		outgoing: &e.shared[server].outgoing,
	}
	for i := range e.program.Groups {
		if &e.program.Servers[e.program.Groups[i].Server] == s {
			dialer.feeds = e.plan.Groups[i].SessionFeeds
			break
		}
	}
	transport, fallback, err := dialer.transport(ctx, 0)
	if err != nil {
		return mcp.Decision{}, err
	}
	limit := e.program.Limits.ConnectTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &connectTimeoutError{limit})
	defer cancel()
	o := mcp.Options{
		Client: mcp.Implementation{Name: "mcpbench", Version: version}, Limits: dialer.limits,
		OnAnomaly: func(kind mcp.Anomaly, detail string) {
			log.Debug("anomaly of the probe", zap.Stringer("kind", kind), zap.String("detail", detail))
		},
	}
	e.frames.watchProbe(s.Name, &o)
	for i, l := range e.logs {
		if l != nil && &e.program.Servers[i] == s {
			o.Stderr = l.Probe()
		}
	}
	var odd noise
	odd.watch(&o)
	session, d, err := mcp.Negotiate(ctx, transport, fallback, o)
	if err != nil {
		return d, odd.explain(err)
	}
	closing, cut := context.WithTimeout(work, closeTime)
	defer cut()
	if err := session.Close(closing); err != nil {
		log.Debug("session of the probe not closed in order", zap.Error(err))
	}
	return d, nil
}

// attempts says in words what was tried. Servers may repeat secrets.
func attempts(tried []mcp.Attempt, mask *scenarios.Masker) []string {
	out := make([]string, len(tried))
	for i, a := range tried {
		out[i] = clean(mask.Text(a.String()))
	}
	return out
}

// listed counts the requests by which sessions learnt of headers for arguments of
// the demo target's tools.
func (e *execution) listed() (n int64) {
	for i := range e.shared {
		if e.program.Servers[i].Embedded {
			n += e.shared[i].params.Requests()
		}
	}
	return n
}
