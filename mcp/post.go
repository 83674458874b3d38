package mcp

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Notifications that post understands.
const (
	methodUpdated          = "notifications/resources/updated"
	methodToolsChanged     = "notifications/tools/list_changed"
	methodPromptsChanged   = "notifications/prompts/list_changed"
	methodResourcesChanged = "notifications/resources/list_changed"
	methodAcknowledged     = "notifications/subscriptions/acknowledged"
	methodCancelled        = "notifications/cancelled"
	methodProgress         = "notifications/progress"
	methodMessage          = "notifications/message"

	// metaSubscription is in _meta of all that belongs to a subscriptions/listen
	// request: its id.
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// maxPast is of how many subscriptions that are over a late notification is still
// known as one.
const maxPast = 1024

// post sorts the notifications of a session into the mailboxes of those who want
// them. Its Conn tells it of each notification and of its own end. A nil *post
// wants nothing. Safe for concurrent use.
type post struct {
	base    time.Time
	tell    func(kind Anomaly, detail string)
	watched map[string]*mailbox // by method; not changed any more
	modern  atomic.Bool         // subscriptions/listen, otherwise resources/subscribe
	busy    atomic.Bool         // notifications matter
	common  *post               // of a shared connection, which has the subscriptions; nil: p has its own
	heard   atomic.Bool         // one of members watches

	mu       sync.Mutex // guards the fields below; that of common comes after it
	members  []*post    // those whose common p is
	open     bool       // the session is: its Conn's end is its own
	over     error      // why there will be no more, nil before
	subs     []*Subscription
	subjects map[string]*subject  // by URI
	gone     int                  // of the subjects those that nobody subscribes to
	listens  map[int64]*listening // by the id of the request, those that go on
	past     map[int64]struct{}   // ids of those that we ended
	cancels  map[int]context.CancelCauseFunc
	lastRun  int
	running  sync.WaitGroup
}

// prepare makes p, which is zero, ready for a session with these options.
func (p *post) prepare(o *Options) {
	p.base, p.tell = o.Base, o.OnAnomaly
	if len(o.Watch) == 0 {
		return
	}
	p.watched = make(map[string]*mailbox, len(o.Watch))
	for _, method := range o.Watch {
		p.watched[method] = new(mailbox)
	}
	p.busy.Store(true)
}

// speak sets the rules of the version, also anew after server/discover was refused.
// Where there is subscriptions/listen, what comes outside it is a breach, whether
// anybody subscribes or not. Nobody subscribes yet.
func (p *post) speak(f Features) {
	modern := f.Has("subscriptions/listen")
	p.modern.Store(modern)
	p.busy.Store(modern || len(p.watched) > 0)
}

// opened says that the session is open.
func (p *post) opened() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = true
}

// end makes err the end of everything, unless the session is not open yet, or has
// ended already: a Conn may fail in the course of opening and be replaced.
func (p *post) end(err error) {
	if p == nil {
		return
	}
	p.mu.Lock()
	if p.open {
		p.finish(err)
	}
	members := slices.Clone(p.members)
	p.mu.Unlock()
	for _, m := range members {
		m.end(err)
	}
}

// close ends everything and waits for what p runs.
func (p *post) close(err error) {
	p.mu.Lock()
	p.finish(err)
	p.mu.Unlock()
	p.running.Wait()
	if p.common != nil {
		p.common.dismiss(p)
	}
}

// finish is for end and close, which hold p.mu.
func (p *post) finish(err error) {
	if p.over != nil {
		return
	}
	p.over = err
	for _, box := range p.watched {
		box.end(err)
	}
	for _, u := range p.mine() {
		u.box.end(err)
	}
	for _, cancel := range p.cancels {
		cancel(err)
	}
}

// run runs f beside the callers until the context that it gets ends, by cancel or
// by the end of the session, which waits for it. ctx bounds nothing.
func (p *post) run(ctx context.Context, f func(ctx context.Context)) (cancel context.CancelCauseFunc, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != nil {
		return nil, p.over
	}
	ctx, cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if p.cancels == nil {
		p.cancels = make(map[int]context.CancelCauseFunc)
	}
	p.lastRun++
	n := p.lastRun
	p.cancels[n] = cancel
	p.running.Go(func() {
		defer func() {
			cancel(nil)
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.cancels, n)
		}()
		f(ctx)
	})
	return cancel, nil
}

// add has u told of what it wants.
func (p *post) add(u *Subscription) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != nil {
		return p.over
	}
	r := p.root()
	if r != p {
		r.mu.Lock()
		defer r.mu.Unlock()
	}
	r.subs = append(r.subs, u)
	r.busy.Store(true)
	return nil
}

// remove ends u.
func (p *post) remove(u *Subscription, err error) {
	u.box.end(err)
	p = p.root()
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.subs, u); i >= 0 {
		p.subs = slices.Delete(p.subs, i, i+1)
	}
}

// deliver takes a notification, whose text is data. from is the listen request on
// whose own stream it came, nil when it came elsewhere.
func (p *post) deliver(m *message, data []byte, from *listening) {
	if p == nil || !p.busy.Load() || from == nil && len(p.watched) == 0 && !p.heard.Load() && isUsual(m) {
		return
	}
	n := Notification{Method: m.methodName(), Params: m.params, At: time.Since(p.base)}
	good := true
	switch modern := p.modern.Load(); n.Method {
	case methodUpdated, methodToolsChanged, methodPromptsChanged, methodResourcesChanged:
		if modern {
			good = p.listened(&n, data, from)
		} else {
			p.unsolicited(&n, data)
		}
	case methodAcknowledged:
		good = !modern || p.acknowledged(&n, data, from)
	case methodCancelled:
		good = !modern || p.cancelled(&n, data, from)
	case methodProgress, methodMessage:
		// They go with the request they are about (specification 2026-07-28,
		// basic/transports, streamable HTTP).
		if good = from == nil; !good {
			p.unasked(&n, data, "on the stream of a subscription")
		}
	}
	switch box := p.watched[n.Method]; {
	case !good:
	case p.heard.Load():
		p.mu.Lock()
		boxes := p.boxes(n.Method)
		p.mu.Unlock()
		for _, b := range boxes {
			p.put(b, n)
		}
	case box != nil:
		p.put(box, n)
	}
}

// watches reports whether anybody waits for notifications of some method.
func (p *post) watches() bool { return p != nil && len(p.watched) > 0 }

// isUsual reports whether m is one of those that come with a plain call.
func isUsual(m *message) bool {
	return string(m.method) == `"`+methodProgress+`"` || string(m.method) == `"`+methodMessage+`"`
}

func (p *post) unasked(n *Notification, data []byte, why string) {
	p.tell(AnomalyUnaskedNotification, fmt.Sprintf("%s %s: %s", n.Method, why, excerpt(data)))
}

// put keeps a copy of n.
func (p *post) put(box *mailbox, n Notification) {
	n.Params = bytes.Clone(n.Params)
	for range box.put(n) {
		p.tell(AnomalyNotificationDropped, fmt.Sprintf("%s: more than %d wait to be taken", n.Method, mailboxSize))
	}
}

// unsolicited delivers a change of a legacy session to the subscriptions that
// want it. An update that fits none is a breach, but not one that may be late, and
// nobody can tell when the caller makes requests of its own and watches.
func (p *post) unsolicited(n *Notification, data []byte) {
	uri, _ := lookupString(n.Params, "uri")
	var boxes []*mailbox
	p.mu.Lock()
	for _, u := range p.subs {
		if u.filter.wants(n.Method, uri) {
			boxes = append(boxes, &u.box)
		}
	}
	stray := n.Method == methodUpdated && len(boxes) == 0 && len(p.subjects) > 0 && len(p.boxes(methodUpdated)) == 0
	for base := range p.subjects {
		stray = stray && !within(base, uri)
	}
	p.mu.Unlock()
	if stray {
		p.unasked(n, data, "of a resource that is not subscribed")
	}
	for _, box := range boxes {
		p.put(box, *n)
	}
}

// wants reports whether f asks for a notification. uri is that of an update.
func (f *Filter) wants(method, uri string) bool {
	switch method {
	case methodToolsChanged:
		return f.ToolsListChanged
	case methodPromptsChanged:
		return f.PromptsListChanged
	case methodResourcesChanged:
		return f.ResourcesListChanged
	case methodUpdated:
		return slices.ContainsFunc(f.Resources, func(base string) bool { return within(base, uri) })
	}
	return false
}

// within reports whether uri is base or a part of it: servers may report a
// sub-resource of the one subscribed (schema, ResourceUpdatedNotification).
func within(base, uri string) bool {
	rest, ok := strings.CutPrefix(uri, base)
	return ok && (rest == "" || strings.HasSuffix(base, "/") || strings.IndexByte("/?#", rest[0]) >= 0)
}
