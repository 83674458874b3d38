package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Filter says what a subscription is about.
type Filter struct {
	Resources                                                  []string // URIs
	ToolsListChanged, PromptsListChanged, ResourcesListChanged bool
}

// Notification is a notification that was kept. Its Params are its own.
type Notification struct {
	Method string
	Params json.RawMessage
	At     time.Duration // it arrived, since Options.Base
}

// ErrSubscriptionEnded is the end of a subscription that the server ended in order.
var ErrSubscriptionEnded = errors.New("the server ended the subscription")

var errUnsubscribed = errors.New("the subscription was closed")

// Subscription is a running subscription of a Session. Safe for concurrent use.
//
// It keeps the newest 64 notifications that were not taken; older ones are
// dropped, each an AnomalyNotificationDropped.
type Subscription struct {
	session *Session
	filter  Filter
	box     mailbox
	closed  atomic.Bool

	// Of subscriptions/listen.
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when all is over
	opened chan opening  // has room for one
	fed    atomic.Bool   // a notification came
}

// Subscribe starts a subscription: resources/subscribe for each URI up to
// 2025-11-25, where list changes come unasked; subscriptions/listen in 2026-07-28.
// It returns when the server has acknowledged it, or when ctx ends. The Reply is
// that of the last request made; its Result is that of resources/subscribe, or the
// params of notifications/subscriptions/acknowledged, which say what the server
// agreed to. What it did not agree to is an AnomalySubscriptionPartly.
//
// Up to 2025-11-25 subscriptions to one resource share that of the server; a
// subscription for which no request had to be made has a Reply with Rounds 0. When
// one of several resources fails, those before it are unsubscribed again.
//
// In 2026-07-28 over HTTP a stream that ends without a word is opened again after
// a pause, each time an AnomalyListenReopened; what changed meanwhile is not told.
func (s *Session) Subscribe(ctx context.Context, f Filter) (*Subscription, Reply, error) {
	reply := s.noReply()
	u, err := s.SubscribeEach(ctx, f, func(r Reply, _ error) { reply = r })
	return u, reply, err
}

// SubscribeEach is Subscribe for a caller who wants to know of each request that it
// takes. each is called as one ends, before the next is made, with what came of it;
// not for those that undo a part. An error without a request is only returned.
func (s *Session) SubscribeEach(ctx context.Context, f Filter, each func(Reply, error)) (*Subscription, error) {
	u := &Subscription{session: s, filter: f}
	u.filter.Resources = slices.Clone(f.Resources)
	slices.Sort(u.filter.Resources)
	u.filter.Resources = slices.Compact(u.filter.Resources)
	if ctx.Err() != nil {
		return nil, gaveUp(ctx)
	}
	subscribe := s.subscribe
	if s.post.modern.Load() {
		subscribe = s.listen
	}
	// From now on: a notification may overtake the answer.
	if err := s.post.add(u); err != nil {
		return nil, err
	}
	if err := subscribe(ctx, u, each); err != nil {
		s.post.remove(u, err)
		return nil, err
	}
	return u, nil
}

// noReply is the Reply when no request was made.
func (s *Session) noReply() Reply {
	now := s.o.now()
	return Reply{Timing: Timing{Start: now, FirstByte: now, End: now}}
}

// Next returns the oldest notification of the subscription that was not taken,
// or waits for one. Errors wrap the cause of ctx, are ErrSubscriptionEnded, or say
// why there will be no further notification; SessionLost tells when that is the end
// of the session.
func (u *Subscription) Next(ctx context.Context) (Notification, error) { return u.box.take(ctx) }

// Close ends the subscription: resources/unsubscribe for each URI that no other
// subscription of the session has; in 2026-07-28 the end of the stream, or
// notifications/cancelled over stdio, which have no answer. The Reply is that of
// the last request made, or of the first that failed, with Rounds 0 when there was none.
func (u *Subscription) Close(ctx context.Context) (Reply, error) {
	reply, failed := u.session.noReply(), false
	err := u.CloseEach(ctx, func(r Reply, err error) {
		if !failed {
			reply, failed = r, err != nil
		}
	})
	if reply.Rounds == 0 && err == nil {
		reply.Timing.End = u.session.o.now()
		reply.Timing.FirstByte = reply.Timing.End
	}
	return reply, err
}

// CloseEach is Close for a caller who wants to know of each request that it takes,
// as SubscribeEach does. The error is the first.
func (u *Subscription) CloseEach(ctx context.Context, each func(Reply, error)) error {
	s := u.session
	if u.closed.Swap(true) {
		return nil
	}
	s.post.remove(u, errUnsubscribed)
	if u.cancel == nil {
		return s.unsubscribe(ctx, u.filter.Resources, each)
	}
	u.cancel(errUnsubscribed)
	select {
	case <-u.done:
		return nil
	case <-ctx.Done():
		return gaveUp(ctx)
	}
}

// Await returns the oldest notification with that method that was not taken, or
// waits for one. The method must be one of Options.Watch. In 2026-07-28 those about
// changes count only when they belong to a subscription. Errors wrap the cause of
// ctx, or say how the session ended.
func (s *Session) Await(ctx context.Context, method string) (Notification, error) {
	box := s.post.watched[method]
	if box == nil {
		return Notification{}, fmt.Errorf("await %s: it is not among those that the session watches", method)
	}
	return box.take(ctx)
}

// subject is a resource of a legacy session that was subscribed to at some time.
// Whoever deals with the server about it has the turn, so that two subscriptions
// share the server's one, however they come and go.
type subject struct {
	turn chan struct{} // holds one
	told bool          // the server was, and agreed; with the turn
	refs int           // subscriptions; guarded by post.mu
}

// hold returns the subject with one more subscription to it.
func (p *post) hold(uri string) *subject {
	p = p.root()
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.subjects[uri]
	switch {
	case t == nil:
		t = &subject{turn: make(chan struct{}, 1)}
		t.turn <- struct{}{}
		if p.subjects == nil {
			p.subjects = make(map[string]*subject)
		}
		p.subjects[uri] = t
	case t.refs == 0:
		p.gone--
	}
	t.refs++
	return t
}

// letGo takes one subscription off a subject. Subjects without any are kept for a
// while, so that a late update is known as one.
func (p *post) letGo(uri string) *subject {
	p = p.root()
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.subjects[uri]
	if t.refs--; t.refs > 0 {
		return t
	}
	p.gone++
	for old, g := range p.subjects {
		if p.gone <= maxPast {
			break
		}
		if g.refs == 0 && old != uri {
			delete(p.subjects, old)
			p.gone--
		}
	}
	return t
}

func (p *post) isHeld(t *subject) bool {
	p = p.root()
	p.mu.Lock()
	defer p.mu.Unlock()
	return t.refs > 0
}

// subscribe makes the server tell of u's resources.
func (s *Session) subscribe(ctx context.Context, u *Subscription, each func(Reply, error)) error {
	if c, ok := s.conn.(streamer); ok && len(u.filter.Resources) > 0 {
		c.awaitStream(ctx)
	}
	for i, uri := range u.filter.Resources {
		r, err := s.deal(ctx, s.post.hold(uri), "resources/subscribe", uri)
		if err != nil {
			err = fmt.Errorf("resources/subscribe %s: %w", uri, err)
		}
		if r.Rounds > 0 || err != nil {
			each(r, err)
		}
		if err == nil {
			continue
		}
		s.post.letGo(uri)
		if undone := s.unsubscribe(ctx, u.filter.Resources[:i], func(Reply, error) {}); undone != nil {
			err = fmt.Errorf("%w (and unsubscribing from the others: %s)", err, undone.Error()) // one cause
		}
		return err
	}
	return nil
}

// unsubscribe lets all the resources go, even after a failure, and returns the
// first one.
func (s *Session) unsubscribe(ctx context.Context, uris []string, each func(Reply, error)) error {
	var failed error
	for _, uri := range uris {
		r, err := s.deal(ctx, s.post.letGo(uri), "resources/unsubscribe", uri)
		if err != nil {
			err = fmt.Errorf("resources/unsubscribe %s: %w", uri, err)
		}
		if r.Rounds > 0 || err != nil {
			each(r, err)
		}
		failed = cmp.Or(failed, err)
	}
	return failed
}

// deal brings the server in line with who subscribes to t, by that request if one
// is needed.
func (s *Session) deal(ctx context.Context, t *subject, method, uri string) (Reply, error) {
	if ctx.Err() != nil {
		return s.noReply(), gaveUp(ctx)
	}
	select {
	case <-t.turn:
	case <-ctx.Done():
		return s.noReply(), gaveUp(ctx)
	}
	defer func() { t.turn <- struct{}{} }()
	wanted := method == "resources/subscribe"
	if t.told == wanted || s.post.isHeld(t) != wanted {
		return s.noReply(), nil
	}
	params := append([]byte(`{"uri":`), appendString(nil, uri)...)
	reply, err := s.Call(ctx, Request{Method: method, Params: append(params, '}')})
	// After a failure nobody knows; then it is as well to ask again.
	t.told = err == nil && wanted
	return reply, err
}
