package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// A retry without questions is made at once; one that fails is the outcome.
func TestRetryThatFails(t *testing.T) {
	tests := []struct {
		name   string
		answer mcptest.Answer
		check  func(err error) bool
	}{
		{"tool error", mcptest.Answer{Result: `{"isError":true,"content":[]}`}, func(err error) bool { return err == nil }},
		{"JSON-RPC error", mcptest.Answer{Error: `{"code":-32602,"message":"bad state"}`}, func(err error) bool { _, ok := errors.AsType[*mcp.RPCError](err); return ok }},
		{"resultType", mcptest.Answer{Result: `{"resultType":"weird"}`}, func(err error) bool {
			e, ok := errors.AsType[*mcp.ProtocolError](err)
			return ok && e.Kind == mcp.FaultResultType
		}},
		{"bad isError", mcptest.Answer{Result: `{"isError":1}`}, func(err error) bool {
			e, ok := errors.AsType[*mcp.ProtocolError](err)
			return ok && e.Kind == mcp.FaultBadResult
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", asksFor(`,"requestState":"s"`), tt.answer)
			}
			overBoth(t, peer, func(o over) {
				r, err := modern(o, &answerer{f: instant}, mcp.Options{}).Call(o.Context(), echo)
				if !tt.check(err) || r.Rounds != 2 || r.ToolError != (err == nil) {
					o.Errorf("got %+v, %v", r, err)
				}
				wantTrips(o.T, r, 0, 0)
			})
		})
	}
}

// The time limit is one for all rounds, whatever takes the time; the exchange
// that it cuts is cancelled, and nothing is when there is none.
func TestTimeoutOfTheWhole(t *testing.T) {
	for _, tt := range []limited{
		{"in the first exchange", 9 * time.Second, 0, 0, 1},
		{"while answering", time.Second, 9 * time.Second, 0, 1},
		{"in the second exchange", time.Second, time.Second, 9 * time.Second, 2},
	} {
		for _, byContext := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, by context %v", tt.name, byContext), func(t *testing.T) {
				peer := func() *mcptest.Peer {
					first := asksFor(askRoots)
					first.Delay = tt.first
					return (&mcptest.Peer{}).On("tools/call", first, mcptest.Answer{Delay: tt.retry, Result: done}, mcptest.Answer{Result: done})
				}
				overBoth(t, peer, func(o over) { tt.test(o, byContext) })
			})
		}
	}
}

// limited is a call with a limit of three seconds: how long its parts would take,
// and how many exchanges are begun.
type limited struct {
	name                  string
	first, answers, retry time.Duration
	exchanges             int
}

func (tt *limited) test(o over, byContext bool) {
	o.Helper()
	const limit = 3 * time.Second
	a := &answerer{f: after(tt.answers)}
	s := modern(o, a, mcp.Options{})
	req, ctx, cause := echo, o.Context(), errors.New("enough")
	if byContext {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, cause)
		defer cancel()
	} else {
		req.Timeout = limit
	}
	start := time.Now()
	r, err := s.Call(ctx, req)
	if took := time.Since(start); took != limit || r.Timing.End-r.Timing.Start != limit || r.Rounds != tt.exchanges {
		o.Errorf("took %v, got %+v", took, r)
	}
	if e, ok := errors.AsType[*mcp.TimeoutError](err); ok == byContext || ok && e.Limit != mcp.TimeoutTotal || byContext && !errors.Is(err, cause) {
		o.Errorf("error %v", err)
	}
	wantOrder(o.T, r)
	if told := a.told(); tt.answers > limit && (len(told) != 1 || !told[0].Cancelled || told[0].Took != limit-tt.first) {
		o.Errorf("told %+v", told)
	}
	time.Sleep(time.Minute) // virtual: for what comes late
	tt.wantCancelled(o)
	if _, err := s.Call(o.Context(), echo); err != nil {
		o.Errorf("the next call: %v", err)
	}
}

// wantCancelled checks that the exchange that the limit cut was cancelled: over
// HTTP by closing its stream, which sends nothing.
func (tt *limited) wantCancelled(o over) {
	o.Helper()
	cancels, calls := o.peer.Received("notifications/cancelled"), o.peer.Received("tools/call")
	if o.transport.Kind() == "http" || tt.answers > tt.first {
		if len(cancels) != 0 {
			o.Errorf("cancelled %+v", cancels)
		}
		return
	}
	if len(cancels) != 1 || !strings.Contains(string(cancels[0].Params), `"requestId":`+calls[tt.exchanges-1].ID) {
		o.Errorf("cancelled %+v", cancels)
	}
}

// A cancellation on purpose that falls between two exchanges ends the request: the
// server has nothing under way that could be cancelled.
func TestCancelOnPurposeBetweenRounds(t *testing.T) {
	peer := func() *mcptest.Peer {
		return (&mcptest.Peer{}).On("tools/call", asksFor(askRoots), mcptest.Answer{Result: done})
	}
	overBoth(t, peer, func(o over) {
		s := modern(o, &answerer{f: after(time.Minute)}, mcp.Options{})
		req := echo
		req.Wants = &mcp.Wants{CancelAfter: time.Second}
		req.Timeout = 2 * time.Second
		r, err := s.Call(o.Context(), req)
		e, ok := errors.AsType[*mcp.CancelledError](err)
		if !ok || e.Sent != r.Timing.End || e.Stopped != e.Sent || r.Timing.End-r.Timing.Start != time.Second {
			o.Errorf("got %+v, %v", r, err)
		}
		if req.Wants.CancelAfter != time.Second || len(o.peer.Received("notifications/cancelled")) != 0 {
			o.Errorf("wants %+v", req.Wants)
		}
	})
}

// A question that the Answerer refuses cannot be refused towards the server: the
// request is not made again, the other questions end, and it is not the server's error.
func TestAnswererRefusesInput(t *testing.T) {
	cause := errors.New("no data left")
	for _, refusal := range []error{cause, &mcp.RPCError{Code: -1, Message: "rejected"}} {
		peer := func() *mcptest.Peer {
			return (&mcptest.Peer{}).On("tools/call", asksFor(`,"inputRequests":{"a":{"method":"sampling/createMessage","params":{}},"b":{"method":"roots/list"}}`))
		}
		overBoth(t, peer, func(o over) {
			a := &answerer{f: func(ctx context.Context, q mcp.Question) (json.RawMessage, error) {
				if q.Method == "roots/list" {
					_, _ = after(time.Second)(ctx, q)
					return nil, refusal
				}
				return after(time.Hour)(ctx, q)
			}}
			s := modern(o, a, mcp.Options{})
			r, err := s.Call(o.Context(), echo)
			e, ok := errors.AsType[*mcp.AnswerError](err)
			if !ok || e.Method != "roots/list" || !errors.Is(e.Err, refusal) || errors.Is(err, cause) != errors.Is(refusal, cause) {
				o.Errorf("error %v", err)
			}
			if _, ok := errors.AsType[*mcp.RPCError](err); ok {
				o.Error("passes for an error of the server")
			}
			if r.Rounds != 1 || r.Timing.End-r.Timing.Start != time.Second || len(o.peer.Received("tools/call")) != 1 {
				o.Errorf("got %+v", r)
			}
			told := a.told()
			if len(told) != 2 || !told[0].Refused || !told[1].Cancelled {
				o.Errorf("told %+v", told)
			}
		})
	}
}

// A result with very many questions has them answered all the same, a bounded
// number at a time.
func TestManyInputRequests(t *testing.T) {
	const many, bound = 3000, 1024
	entries := make([]string, many)
	for i := range entries {
		entries[i] = fmt.Sprintf(`"k%d":{"method":"roots/list"}`, i)
	}
	synctest.Test(t, func(t *testing.T) {
		p := (&mcptest.Peer{}).On("tools/call", asksFor(`,"inputRequests":{`+strings.Join(entries, ",")+`}`), mcptest.Answer{Result: done})
		a := &answerer{f: after(time.Second)}
		s := modern(over{t, p, p.Stdio(t)}, a, mcp.Options{})
		r, err := s.Call(t.Context(), echo)
		if err != nil || r.Timing.End-r.Timing.Start != 3*time.Second || a.most != bound || len(a.told()) != many {
			t.Errorf("got %+v, %v; %d at once", r.Timing, err, a.most)
		}
		var responses map[string]json.RawMessage
		if err := json.Unmarshal(params(t, p, 1, "tools/call")["inputResponses"], &responses); err != nil || len(responses) != many {
			t.Errorf("%d responses, %v", len(responses), err)
		}
	})
}

// Questions that were declared, but that nobody answers.
func TestInputWithoutAnAnswerer(t *testing.T) {
	peer := func() *mcptest.Peer { return (&mcptest.Peer{}).On("tools/call", asksFor(askRoots)) }
	overBoth(t, peer, func(o over) {
		s := connect(o.T, o.transport, mcp.Options{Version: mcp.V20260728, Capabilities: every})
		_, err := s.Call(o.Context(), echo)
		if _, ok := errors.AsType[*mcp.AnswerError](err); !ok {
			o.Errorf("error %v", err)
		}
		contains(o.T, err, "roots/list", "no Answerer")
	})
}

// Wire test 44: the URLs that a user would have to open are in the text; nobody opens them.
func TestURLElicitationRequired(t *testing.T) {
	entry := `{"mode":"url","url":"https://u.invalid/%d","elicitationId":"e","message":"m"}`
	var seven []string
	for i := range 7 {
		seven = append(seven, fmt.Sprintf(entry, i))
	}
	tests := []struct{ data, text string }{
		{`{"elicitations":[` + seven[0] + `,` + seven[1] + `]}`, "more; to be opened by the user: https://u.invalid/0 https://u.invalid/1"},
		{`{"elicitations":[` + strings.Join(seven, ",") + `]}`, "https://u.invalid/4 and 2 more"},
		{`{"elicitations":[]}`, "more"},
		{`{"elicitations":7}`, "more"},
		{`null`, "more"},
	}
	for _, tt := range tests {
		for _, v := range mcp.Versions() {
			peer := func() *mcptest.Peer {
				return (&mcptest.Peer{}).On("tools/call", mcptest.Answer{Error: `{"code":-32042,"message":"more","data":` + tt.data + `}`})
			}
			overBoth(t, peer, func(o over) {
				a := &answerer{f: instant}
				s := connect(o.T, o.transport, mcp.Options{Version: v, Capabilities: every, Answers: a})
				_, err := s.Call(o.Context(), echo)
				e, ok := errors.AsType[*mcp.RPCError](err)
				if !ok || e.Code != -32042 || !strings.HasSuffix(err.Error(), tt.text) {
					o.Errorf("%s: error %v", v, err)
				}
				if len(o.peer.Received("tools/call")) != 1 || a.most != 0 {
					o.Error("it was asked or repeated")
				}
			})
		}
	}
}
