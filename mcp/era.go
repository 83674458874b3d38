package mcp

import (
	"context"
	"errors"
	"fmt"
)

// finding is what server/discover told.
type finding struct {
	modern *Session // the session that it opened, nil: the server is a legacy one

	ask     Version  // for initialize
	session *Session // on whose connection initialize may be sent; nil: on a new one
}

// findEra sends server/discover and decides by the answer (specification
// 2026-07-28, basic/versioning). It never goes by one code alone: legacy servers
// refuse what they do not know in many ways.
func (n *negotiation) findEra(ctx context.Context, t Transport) (finding, error) {
	s, err := dialSession(ctx, t, n.o)
	if err != nil {
		return finding{}, err
	}
	refused := map[Version]bool{}
	for ask := Versions()[0]; ; {
		err := n.discover(ctx, s, ask)
		if err == nil {
			return finding{modern: s}, nil
		}
		refused[ask] = true
		answered := len(s.info.Supported) > 0 // with a result, not with an error
		e, listed := errors.AsType[*VersionError](err)
		if !listed {
			f, err := n.judge(ctx, t, s, err)
			if f.session == nil {
				s.drop(ctx)
			}
			return f, err
		}
		next, ok := newest(e.Offered, refused)
		switch {
		case !ok:
			s.drop(ctx)
			return finding{}, fmt.Errorf("no common protocol version: %w", err)
		case !next.Features().Handshake:
			ask = next
		case answered || t.Kind() != "stdio":
			// On stdio a request that succeeded has made the process a modern one for good.
			s.drop(ctx)
			return finding{ask: next}, nil
		default:
			return finding{ask: next, session: s}, nil
		}
	}
}

// discover makes one attempt.
func (n *negotiation) discover(ctx context.Context, s *Session, ask Version) error {
	began, bounded := n.o.now(), ctx
	if s.info.Transport == "stdio" && n.o.Version == "" {
		var cancel context.CancelFunc
		limit := silence(ctx)
		bounded, cancel = context.WithTimeoutCause(ctx, limit, &silentError{limit})
		defer cancel()
	}
	s.info.Supported = nil
	err := s.discover(bounded, ask)
	a := Attempt{Transport: s.info.Transport, Method: "server/discover", Asked: ask, Took: n.o.now() - began, Err: err}
	if err == nil {
		a.Answer = s.info.Version
	}
	n.decision.Tried = append(n.decision.Tried, a)
	return err
}

// newest returns the newest version of offered that is known and not among refused.
func newest(offered []string, refused map[Version]bool) (Version, bool) {
	for _, v := range Versions() {
		for _, o := range offered {
			if o == string(v) && !refused[v] {
				return v, true
			}
		}
	}
	return "", false
}

// judge decides on an answer to server/discover that lists no version. The error is
// returned when it is no evidence that the server is a legacy one.
func (n *negotiation) judge(ctx context.Context, t Transport, s *Session, err error) (finding, error) {
	rpc, isRPC := errors.AsType[*RPCError](err)
	switch {
	case ctx.Err() != nil:
		return finding{}, err
	case isRPC && isModern(rpc):
		return finding{}, fmt.Errorf("the server is a modern one, but refuses us: %w", err)
	case t.Kind() == "stdio":
		return judgeStdio(s, err)
	}
	return judgeHTTP(err)
}

func judgeStdio(s *Session, err error) (finding, error) {
	legacy := finding{ask: newestLegacy}
	_, refused := errors.AsType[*RPCError](err)
	_, tooLarge := errors.AsType[*LimitError](err)
	_, silent := errors.AsType[*silentError](err)
	switch {
	case tooLarge:
		return finding{}, err
	case refused || silent:
		legacy.session = s
	}
	// What ended the process, or made it say nonsense, need not happen to one that is
	// asked something that it knows.
	return legacy, nil
}

func judgeHTTP(err error) (finding, error) {
	status := 0
	if e, ok := errors.AsType[*RPCError](err); ok {
		status = e.HTTPStatus
	}
	if e, ok := errors.AsType[*HTTPError](err); ok {
		status = e.Status
	}
	if e, ok := errors.AsType[*ProtocolError](err); ok && e.Kind != FaultBadHTTP {
		status = 200 // it answered, with something else
	}
	switch {
	case status == 401 || status == 403 || status == 407:
		return finding{}, fmt.Errorf("authentication comes first: %w", err)
	case status == 408 || status == 429:
	case status/100 == 2 || status/100 == 4:
		return finding{ask: newestLegacy}, nil
	}
	return finding{}, err // tells nothing about versions
}

// isModern reports whether only a server of 2026-07-28 gives that error.
func isModern(e *RPCError) bool {
	switch e.Code {
	case codeHeaderMismatch, codeMissingCapability, codeUnsupportedVersion:
		return true
	}
	return false
}
