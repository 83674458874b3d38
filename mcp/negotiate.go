package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// silenceLimit is how long a stdio server may say nothing to server/discover, and
// HTTP+SSE to the GET, before it counts as one that does not know it; half of what
// is left, when that is less.
const silenceLimit = 5 * time.Second

// Decision is what a server was found to speak, and how to reach it.
type Decision struct {
	Transport Transport
	Version   Version
	Tried     []Attempt // in order; the last one succeeded
}

// Attempt is one thing that was tried to find out what a server speaks.
type Attempt struct {
	Transport string // stdio, http or sse
	Method    string // server/discover or initialize; over sse the stream is opened before
	Asked     Version
	Answer    Version       // of a success
	Took      time.Duration // with the connection or the process
	Err       error         // nil on success
}

// String is one line for a person.
func (a Attempt) String() string {
	came := string(a.Answer)
	if a.Err != nil {
		came = a.Err.Error()
		if _, after, ok := strings.Cut(came, a.Method+": "); ok {
			came = after
		}
	}
	return fmt.Sprintf("%s %s %s: %s", a.Transport, a.Method, a.Asked, came)
}

// Probe finds out what a server speaks, as Negotiate does, and closes the session.
func Probe(ctx context.Context, t, fallback Transport, o Options) (Decision, error) {
	o.GetStream, o.ParamHeaders = false, nil // of no use to a session that only opens
	s, d, err := Negotiate(ctx, t, fallback, o)
	if err == nil {
		s.drop(ctx)
	}
	return d, err
}

// Negotiate opens a session in the newest version that both sides know, by asking:
// server/discover first, then initialize, then initialize over fallback, which may
// be nil (specification 2026-07-28, basic/versioning and basic/transports, backward
// compatibility). fallback is HTTP+SSE for the same URL; it is tried when the POST of
// initialize is answered 400, 404 or 405. With a pinned Options.Version only the
// transport is open: nothing is sent but what Connect sends. ctx bounds all of it.
//
// The Decision tells what was tried also when nothing succeeded. On stdio each
// attempt that may have spoilt the process for the next one has a process of its
// own.
func Negotiate(ctx context.Context, t, fallback Transport, o Options) (*Session, Decision, error) {
	n := negotiation{o: o.withDefaults(), fallback: fallback}
	n.decision.Transport = t
	s, err := n.run(ctx, t)
	if err != nil {
		return nil, n.decision, err
	}
	n.decision.Version = s.info.Version
	s.startStream(ctx)
	s.opened(ctx)
	return s, n.decision, nil
}

// negotiation is one Negotiate.
type negotiation struct {
	o        Options
	fallback Transport
	decision Decision
}

func (n *negotiation) run(ctx context.Context, t Transport) (*Session, error) {
	if v := n.o.Version; v != "" {
		if _, err := ParseVersion(string(v)); err != nil {
			return nil, err
		}
		if !v.Features().Handshake {
			return n.pinnedModern(ctx, t, v)
		}
		return n.initialize(ctx, t, nil, v)
	}
	if t.Kind() == "sse" {
		return n.initialize(ctx, t, nil, newestLegacy)
	}
	f, err := n.findEra(ctx, t)
	switch {
	case err != nil || f.modern != nil:
		return f.modern, err
	}
	s, err := n.initialize(ctx, t, f.session, f.ask)
	if err != nil && f.session != nil && ctx.Err() == nil {
		// What refused server/discover, or seemed not to hear it, may be spoilt for
		// initialize: one SDK that hears it late then calls initialize a duplicate.
		return n.initialize(ctx, t, nil, f.ask)
	}
	return s, err
}

func (n *negotiation) pinnedModern(ctx context.Context, t Transport, v Version) (*Session, error) {
	s, err := dialSession(ctx, t, n.o)
	if err != nil {
		return nil, err
	}
	if err := n.discover(ctx, s, v); err != nil {
		s.drop(ctx)
		return nil, err
	}
	return s, nil
}

// initialize opens a legacy session over t, with s unless that is nil, else with a
// new connection, or over the fallback.
func (n *negotiation) initialize(ctx context.Context, t Transport, s *Session, ask Version) (*Session, error) {
	s, err := n.try(ctx, ctx, t, s, ask)
	if err == nil || n.fallback == nil || !refusedPOST(err) {
		return s, err
	}
	// HTTP+SSE has its own way to be silent: a stream without an endpoint event.
	limit := silence(ctx)
	dial, cancel := context.WithTimeoutCause(ctx, limit, &silentError{limit})
	defer cancel()
	s, sseErr := n.try(ctx, dial, n.fallback, nil, ask)
	if sseErr != nil {
		return nil, fmt.Errorf("the server speaks neither Streamable HTTP (%w) nor HTTP+SSE (%w)", err, sseErr)
	}
	n.decision.Transport = n.fallback
	return s, nil
}

// try makes one attempt. dial bounds the opening of the connection.
func (n *negotiation) try(ctx, dial context.Context, t Transport, s *Session, ask Version) (_ *Session, err error) {
	began := n.o.now()
	if s == nil {
		s, err = dialSession(dial, t, n.o)
	} else {
		s.speak(ask) // server/discover was sent in another version
	}
	if err == nil {
		if err = s.initialize(ctx, ask); err != nil {
			s.drop(ctx)
		}
	}
	a := Attempt{Transport: t.Kind(), Method: "initialize", Asked: ask, Took: n.o.now() - began, Err: err}
	if err == nil {
		a.Answer = s.info.Version
	}
	n.decision.Tried = append(n.decision.Tried, a)
	return s, err
}

// silence is how long the next attempt may be silent.
func silence(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(silenceLimit, time.Until(end)/2)
	}
	return silenceLimit
}

// silentError is the cause of a context that ended because nothing was said.
type silentError struct{ limit time.Duration }

func (e *silentError) Error() string {
	return fmt.Sprintf("no answer within %v", e.limit.Round(time.Millisecond))
}

// refusedPOST reports whether err is how a server of HTTP+SSE answers a POST to the
// URL of its stream. An answer that only a modern server gives is none.
func refusedPOST(err error) bool {
	status := 0
	if e, ok := errors.AsType[*HTTPError](err); ok {
		status = e.Status
	}
	if e, ok := errors.AsType[*RPCError](err); ok && !isModern(e) {
		status = e.HTTPStatus
	}
	return slices.Contains([]int{400, 404, 405}, status)
}
