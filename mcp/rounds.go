package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// defaultRounds is Options.MaxRounds when it is 0.
const defaultRounds = 10

// errAsksInput is what judge says of a result that asks for input; goOn deals
// with it.
var errAsksInput = errors.New("input required")

// inputRequired is such a result (specification 2026-07-28,
// basic/patterns/mrtr). Its parts alias the result.
type inputRequired struct {
	asks  []ask
	asked bool            // there are inputRequests, though perhaps none in them
	state json.RawMessage // requestState as it came, nil for none
}

// ask is one entry of inputRequests.
type ask struct {
	Question
	key    []byte          // as it came, without its quotes
	answer json.RawMessage // nil before
}

// readInputRequired reads a result that asks for input, and judges whether the
// server may ask for that. Of equal keys the last counts.
func readInputRequired(method string, result json.RawMessage, may *declared, f Features) (inputRequired, error) {
	fault := func(format string, args ...any) (inputRequired, error) {
		return inputRequired{}, &ProtocolError{Kind: FaultInputRequired, Detail: fmt.Sprintf(format, args...)}
	}
	if !asksByResult[method] {
		return fault("a result of %s must not ask for it", method)
	}
	requests, state := present(result, "inputRequests"), present(result, "requestState")
	var in inputRequired
	switch {
	case requests == nil && state == nil:
		return fault("neither inputRequests nor requestState in %s", excerpt(result))
	case requests != nil && requests[0] != '{':
		return fault("inputRequests is no object: %s", excerpt(requests))
	case state != nil && state[0] != '"':
		return fault("requestState is no string: %s", excerpt(state))
	}
	in.asked, in.state = requests != nil, state
	places := make(map[string]int)
	s := scanObject(requests)
	for m, ok := s.next(); ok; m, ok = s.next() {
		raw := requests[m.start:m.end]
		name, ok := lookupString(raw, "method")
		if !ok {
			return fault("%s is no request: %s", m.key, excerpt(raw))
		}
		one := ask{key: m.key, Question: Question{Method: name, Params: present(raw, "params")}}
		if e := may.refuse(f, &one.Question); e != nil {
			return fault("%s, which the client did not declare: %s", name, excerpt(raw))
		}
		key := string(m.unescaped())
		if at, twice := places[key]; twice {
			in.asks[at] = one
			continue
		}
		places[key] = len(in.asks)
		in.asks = append(in.asks, one)
	}
	return in, nil
}

// present returns a member of an object, nil also for null.
func present(object json.RawMessage, name string) json.RawMessage {
	if raw := lookup(object, name); string(raw) != "null" {
		return raw
	}
	return nil
}

// params returns the params of the next round: those of the request, with the
// answers and the state in place of any they have themselves.
func (in *inputRequired) params(original []byte) []byte {
	p := []byte{'{'}
	comma := func() {
		if len(p) > 1 {
			p = append(p, ',')
		}
	}
	s := scanObject(original)
	for m, ok := s.next(); ok; m, ok = s.next() {
		if !m.named("inputResponses") && !m.named("requestState") {
			comma()
			p = append(p, original[m.at:m.end]...)
		}
	}
	if in.asked {
		comma()
		p = append(p, `"inputResponses":{`...)
		for i := range in.asks {
			if i > 0 {
				p = append(p, ',')
			}
			p = append(append(append(p, '"'), in.asks[i].key...), `":`...)
			p = append(p, in.asks[i].answer...)
		}
		p = append(p, '}')
	}
	if in.state != nil {
		comma()
		p = append(append(p, `"requestState":`...), in.state...)
	}
	return append(p, '}')
}

// goOn takes a request whose first answer asks for input to its end. The reply is
// that of the whole.
func (s *Session) goOn(ctx context.Context, req Request, reply Reply) (Reply, error) {
	whole := reply
	whole.More = &More{Trips: []Timing{reply.Timing}}
	whole.More.join(reply.More)
	features := s.info.Version.Features()
	capabilities := lookup(lookup(req.Params, "_meta"), metaCapabilities)
	if capabilities == nil {
		capabilities = s.o.Capabilities
	}
	may := readDeclared(capabilities)
	for round := 1; ; round++ {
		in, err := readInputRequired(req.Method, reply.Result, &may, features)
		if err != nil {
			return whole, err
		}
		if round >= s.o.MaxRounds {
			return whole, &LimitError{Limit: LimitRounds, Max: int64(s.o.MaxRounds)}
		}
		next, err := s.nextRound(ctx, &req, &in, &whole.Timing)
		if err != nil {
			whole.Timing.End = max(s.o.now(), whole.Timing.End)
			return whole, err
		}
		reply, err = s.conn.RoundTrip(ctx, next)
		if err == nil {
			err = s.judge(req.Method, &reply)
		}
		whole.add(&reply)
		if err == nil || !errors.Is(err, errAsksInput) {
			return whole, err
		}
	}
}

// nextRound has the questions answered and returns the request that brings the
// answers, with what is left of the limits of req. so is the timing up to now.
func (s *Session) nextRound(ctx context.Context, req *Request, in *inputRequired, so *Timing) (Request, error) {
	next := *req
	spent := s.o.now() - so.Start
	limit, cause := time.Duration(0), error(nil)
	if req.Timeout > 0 {
		limit, cause = req.Timeout-spent, &TimeoutError{Limit: TimeoutTotal}
	}
	if w := req.Wants; w != nil && w.CancelAfter > 0 && (limit == 0 || w.CancelAfter-spent < limit) {
		limit, cause = w.CancelAfter-spent, &CancelledError{}
	}
	answering, end := ctx, context.CancelFunc(func() {})
	if cause != nil {
		answering, end = context.WithTimeoutCause(ctx, limit, cause)
	}
	defer end()
	err := s.answerAll(answering, in.asks, so.End)
	switch {
	case ctx.Err() != nil:
		return next, gaveUp(ctx)
	case answering.Err() != nil:
		if e, ok := errors.AsType[*CancelledError](cause); ok { // nothing is under way at the server
			e.Sent = s.o.now()
			e.Stopped = e.Sent
		}
		return next, cause
	case err != nil:
		return next, err
	}
	spent = s.o.now() - so.Start
	next.Params = in.params(req.Params)
	if req.Timeout > 0 {
		next.Timeout = max(req.Timeout-spent, 1)
	}
	if req.Wants != nil && req.Wants.CancelAfter > 0 {
		w := *req.Wants
		w.CancelAfter = max(w.CancelAfter-spent, 1)
		next.Wants = &w
	}
	return next, nil
}

// answerAll has the questions answered at the same time, at most maxQuestions of
// them. at is when they came. The first that is not answered ends the others.
func (s *Session) answerAll(ctx context.Context, asks []ask, at time.Duration) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var started atomic.Int64
	var answering sync.WaitGroup
	var failed atomic.Pointer[AnswerError]
	for range min(len(asks), maxQuestions) {
		answering.Go(func() {
			for i := started.Add(1) - 1; i < int64(len(asks)) && ctx.Err() == nil; i = started.Add(1) - 1 {
				if err := s.answerOne(ctx, &asks[i], at); err != nil && failed.CompareAndSwap(nil, err) {
					stop(err)
				}
			}
		})
	}
	answering.Wait()
	if err := failed.Load(); err != nil {
		return err
	}
	return nil
}

func (s *Session) answerOne(ctx context.Context, a *ask, at time.Duration) *AnswerError {
	answer, err := s.o.ask(ctx, &a.Question)
	told := Asked{Method: a.Method, At: at, Took: s.o.now() - at, Refused: err != nil, Err: err}
	if ctx.Err() != nil {
		told.Refused, told.Cancelled, told.Err = false, true, context.Cause(ctx)
	}
	s.o.OnAsked(told)
	if err != nil {
		return &AnswerError{Method: a.Method, Err: err}
	}
	a.answer = answer
	return nil
}

// add makes a further exchange part of the reply.
func (r *Reply) add(next *Reply) {
	r.Result, r.ToolError, r.HTTPStatus = next.Result, next.ToolError, next.HTTPStatus
	r.scanned, r.isError, r.resultType = next.scanned, next.isError, next.resultType
	r.BytesOut += next.BytesOut
	r.BytesIn += next.BytesIn
	r.Rounds += next.Rounds
	r.Notifications += next.Notifications
	r.Progress += next.Progress
	r.Timing.FirstByte, r.Timing.End = next.Timing.FirstByte, next.Timing.End
	r.Timing.Connect += next.Timing.Connect
	r.More.Trips = append(r.More.Trips, next.Timing)
	r.More.join(next.More)
}

// join adds the progress of a further exchange.
func (m *More) join(next *More) {
	if next == nil {
		return
	}
	if m.First == 0 {
		m.First = next.First
	}
	if next.Last != 0 {
		m.Last = next.Last
	}
	m.Gaps = append(m.Gaps, next.Gaps[:min(len(next.Gaps), MaxGaps-len(m.Gaps))]...)
}
