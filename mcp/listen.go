package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ackLimit is how long a server has to acknowledge a stream that was opened again.
// The first time the caller's context is the limit.
const ackLimit = 30 * time.Second

var (
	errServerEnded = errors.New("ended by the server")
	errNoAck       = errors.New("not acknowledged in time")
)

// listening is one subscriptions/listen request. Its Conn calls started once the
// request has its id, and answered when its result is there.
type listening struct {
	post   *post
	u      *Subscription
	cancel context.CancelCauseFunc // of the request
	limit  *time.Timer             // for the acknowledgement, nil: none

	// Guarded by post.mu.
	id        int64
	ownStream bool // what belongs to it comes on a stream of its own, and only there
	soFar     func() (Reply, bool)
	acked     bool
	ended     bool // by notifications/cancelled
	over      bool // answered
}

// opening is how the first request of a subscription went.
type opening struct {
	reply Reply
	err   error
}

// listening returns the subscription that req opens, nil when it is another request.
func (r *Request) listening() *listening {
	if r.Wants == nil {
		return nil
	}
	return r.Wants.listen
}

// started says which id the request has, before it is sent. soFar returns what is
// known of the exchange, false when it was not sent yet.
func (l *listening) started(id int64, ownStream bool, soFar func() (Reply, bool)) {
	p := l.post
	p.mu.Lock()
	defer p.mu.Unlock()
	l.id, l.ownStream, l.soFar = id, ownStream, soFar
	if p.listens == nil {
		p.listens = make(map[int64]*listening)
	}
	p.listens[id] = l
}

// soFar returns what is known of an exchange whose answer is not there yet.
func (x *exchange) soFar() (Reply, bool) {
	r := x.reply
	r.Timing.Start = or(x.stamps.sent, x.stamps.began)
	r.Timing.Connect = x.stamps.connect
	r.Timing.FirstByte = max(or(x.first, x.stamps.first), r.Timing.Start)
	return r, true
}

// answered says that the result is there. Nothing may follow it.
func (l *listening) answered() {
	l.post.mu.Lock()
	defer l.post.mu.Unlock()
	l.over = true
	delete(l.post.listens, l.id)
}

// forget takes a request that is over from the table. What still comes of one that
// was given up is late.
func (p *post) forget(l *listening, givenUp bool) (acked, ended bool) {
	p = p.root()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.listens, l.id)
	if l.id == 0 || l.over || !givenUp {
		return l.acked, l.ended
	}
	if p.past == nil {
		p.past = make(map[int64]struct{})
	}
	for old := range p.past {
		if len(p.past) < maxPast {
			break
		}
		delete(p.past, old)
	}
	p.past[l.id] = struct{}{}
	return l.acked, l.ended
}

// tolerates reports whether an answer to that id, for which nobody waits, is the
// end of a subscription that we ended: servers send one all the same.
func (p *post) tolerates(id int64) bool {
	if p == nil || !p.modern.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, past := p.past[id]
	delete(p.past, id)
	return past || p.listens[id] != nil // the latter is about to be forgotten
}

// addressee returns the request with that id, nil when what names it is a breach:
// there is none, or it came elsewhere than on the stream of that request. late tells
// that it came after we ended the subscription.
func (p *post) addressee(raw json.RawMessage, from *listening) (l *listening, acked, late bool) {
	id, ok := (&message{id: raw}).numericID()
	if !ok {
		return nil, false, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l = p.listens[id]
	if l == nil {
		_, late = p.past[id]
		return nil, false, late
	}
	if from != nil && from != l || l.ownStream && from == nil {
		return nil, false, false
	}
	return l, l.acked, false
}

// subscriptionID returns the id in params._meta.
func subscriptionID(params json.RawMessage) json.RawMessage {
	return lookup(lookup(params, "_meta"), metaSubscription)
}

// listened delivers a change to the subscription it names (specification
// 2026-07-28, basic/patterns/subscriptions); false when there is none that asked.
func (p *post) listened(n *Notification, data []byte, from *listening) bool {
	id := subscriptionID(n.Params)
	l, acked, late := p.addressee(id, from)
	uri, _ := lookupString(n.Params, "uri")
	switch {
	case late:
		return false
	case id == nil:
		p.unasked(n, data, "without a subscriptionId")
		return false
	case l == nil:
		p.unasked(n, data, "with a foreign subscriptionId")
		return false
	case !acked:
		p.unasked(n, data, "before the acknowledgement")
		return false
	case !l.u.filter.wants(n.Method, uri):
		p.unasked(n, data, "that was not asked for")
		return false
	}
	l.u.fed.Store(true)
	p.put(&l.u.box, *n)
	return true
}

// acknowledged handles the first word of a subscription.
func (p *post) acknowledged(n *Notification, data []byte, from *listening) bool {
	l, acked, late := p.addressee(subscriptionID(n.Params), from)
	if late {
		return false
	}
	if l == nil || acked {
		p.unasked(n, data, "of no subscription that waits for it")
		return false
	}
	reply, sent := l.soFar()
	if !sent {
		p.unasked(n, data, "before the request")
		return false
	}
	if l.limit != nil {
		l.limit.Stop()
	}
	p.mu.Lock()
	l.acked = true
	p.mu.Unlock()
	if lacks := l.u.filter.lacks(n.Params); len(lacks) > 0 {
		p.tell(AnomalySubscriptionPartly, "not acknowledged: "+excerpt([]byte(strings.Join(lacks, ", "))))
	}
	if !l.ownStream {
		reply.BytesIn += len(data)
	}
	reply.Result = bytes.Clone(n.Params)
	reply.Timing.End = max(n.At, reply.Timing.Start)
	if first := &reply.Timing.FirstByte; *first == 0 {
		*first = reply.Timing.End
	}
	l.u.tell(opening{reply: reply})
	return true
}

// cancelled handles the end of a subscription by the server; it may cancel nothing
// else (specification 2026-07-28, basic/patterns/cancellation).
func (p *post) cancelled(n *Notification, data []byte, from *listening) bool {
	l, _, late := p.addressee(lookup(n.Params, "requestId"), from)
	if late {
		return false
	}
	if l == nil {
		p.unasked(n, data, "of no subscription")
		return false
	}
	p.mu.Lock()
	l.ended = true
	p.mu.Unlock()
	l.cancel(errServerEnded)
	return true
}

// lacks names what an acknowledgement leaves out of f. What is malformed in it is
// left out too.
func (f *Filter) lacks(params json.RawMessage) []string {
	var got struct {
		Notifications struct {
			Tools     bool     `json:"toolsListChanged"`
			Prompts   bool     `json:"promptsListChanged"`
			Resources bool     `json:"resourcesListChanged"`
			URIs      []string `json:"resourceSubscriptions"`
		} `json:"notifications"`
	}
	_ = json.Unmarshal(params, &got) // see above
	n := &got.Notifications
	var lacks []string
	for _, one := range []struct {
		name         string
		asked, given bool
	}{
		{"toolsListChanged", f.ToolsListChanged, n.Tools},
		{"promptsListChanged", f.PromptsListChanged, n.Prompts},
		{"resourcesListChanged", f.ResourcesListChanged, n.Resources},
	} {
		if one.asked && !one.given {
			lacks = append(lacks, one.name)
		}
	}
	given := make(map[string]bool, len(n.URIs))
	for _, uri := range n.URIs {
		given[uri] = true
	}
	for _, uri := range f.Resources {
		if !given[uri] {
			lacks = append(lacks, uri)
		}
	}
	return lacks
}

// listenParams returns the params of subscriptions/listen.
func (f *Filter) listenParams() ([]byte, error) {
	var params struct {
		Notifications struct {
			Tools     bool     `json:"toolsListChanged,omitempty"`
			Prompts   bool     `json:"promptsListChanged,omitempty"`
			Resources bool     `json:"resourcesListChanged,omitempty"`
			URIs      []string `json:"resourceSubscriptions,omitempty"`
		} `json:"notifications"`
	}
	n := &params.Notifications
	n.Tools, n.Prompts, n.Resources, n.URIs = f.ToolsListChanged, f.PromptsListChanged, f.ResourcesListChanged, f.Resources
	return json.Marshal(params)
}

// tell reports how the first request went, if nobody did yet.
func (u *Subscription) tell(o opening) {
	select {
	case u.opened <- o:
	default:
	}
}

// listen opens u by subscriptions/listen. The request goes on after the
// acknowledgement, beside the callers, until u or the session is closed.
func (s *Session) listen(ctx context.Context, u *Subscription, each func(Reply, error)) error {
	params, err := u.filter.listenParams()
	if err != nil {
		return fmt.Errorf("subscriptions/listen: %w", err)
	}
	u.opened, u.done = make(chan opening, 1), make(chan struct{})
	u.cancel, err = s.post.run(ctx, func(life context.Context) {
		defer close(u.done)
		u.box.end(u.keepListening(life, params))
	})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { u.cancel(context.Cause(ctx)) })
	o := <-u.opened // ctx ends it too
	if !stop() || o.err != nil {
		u.cancel(errUnsubscribed)
		<-u.done
		if o.err == nil {
			o.err = gaveUp(ctx)
		}
	}
	each(o.reply, o.err)
	return o.err
}

// keepListening makes the request, and over HTTP makes it again when the stream
// ended without a result. It returns why there is no more.
func (u *Subscription) keepListening(life context.Context, params []byte) error {
	p := &u.session.post
	wait, idle := firstRetry, 0
	for again := false; ; again = true {
		u.fed.Store(false)
		began := time.Now()
		acked, err := u.listenOnce(life, params, again)
		switch {
		case life.Err() != nil:
			return context.Cause(life)
		case !acked && !again, !mayListenAgain(err):
			return err
		case u.fed.Load() || acked && time.Since(began) >= lastRetry:
			wait, idle = firstRetry, 0
		default:
			idle++
		}
		if idle >= maxIdleStreams {
			p.tell(AnomalyListenLost, fmt.Sprintf("%d streams in a row without a notification; last: %v", idle, err))
			return err
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-life.Done():
			pause.Stop()
			return context.Cause(life)
		}
		wait = min(2*wait, lastRetry)
		p.tell(AnomalyListenReopened, err.Error())
	}
}

// mayListenAgain reports whether a subscription may be opened again that ended by
// err: the stream broke, or brought what nobody can read, but the server did not
// refuse it.
func mayListenAgain(err error) bool {
	if e, ok := errors.AsType[*HTTPError](err); ok {
		return e.Status/100 == 5
	}
	_, refused := errors.AsType[*RPCError](err)
	return !refused && !SessionLost(err) && !errors.Is(err, ErrSubscriptionEnded)
}

// listenOnce makes one request and returns how it ended.
func (u *Subscription) listenOnce(life context.Context, params []byte, again bool) (acked bool, err error) {
	s := u.session
	ctx, cancel := context.WithCancelCause(life)
	defer cancel(nil)
	l := &listening{post: s.post.root(), u: u, cancel: cancel}
	if again {
		l.limit = time.AfterFunc(ackLimit, func() { cancel(errNoAck) })
		defer l.limit.Stop()
	}
	reply, err := s.conn.RoundTrip(ctx, Request{Method: "subscriptions/listen", Params: params, Wants: &Wants{listen: l}})
	acked, ended := s.post.forget(l, ctx.Err() != nil)
	if err == nil {
		err = s.judge("subscriptions/listen", &reply)
	}
	if errors.Is(err, errAsksInput) {
		err = &ProtocolError{Kind: FaultInputRequired, Detail: "a result of subscriptions/listen must not ask for it"}
	}
	switch {
	case ended, err == nil && acked:
		err = ErrSubscriptionEnded
	case err == nil:
		err = &ProtocolError{Kind: FaultNoAck, Detail: excerpt(reply.Result)}
	}
	if !acked {
		u.tell(opening{reply, err})
	}
	return acked, err
}
