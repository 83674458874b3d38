package driver

import (
	"context"
	"slices"
	"sync"

	"mcpbench/mcp"
)

// Listener is what a Session can do beyond requests.
type Listener interface {
	Notify(ctx context.Context, method string, params []byte) error
	// Await returns the oldest notification of that method that none took, or
	// waits for one.
	Await(ctx context.Context, method string) (mcp.Notification, error)
	// SubscribeEach starts a subscription. each is told of each request that it takes,
	// as it ends.
	SubscribeEach(ctx context.Context, f mcp.Filter, each func(mcp.Reply, error)) (Subscription, error)
}

// Subscription is a running subscription, as *mcp.Subscription provides it.
type Subscription interface {
	// Next returns the oldest notification that none took, or waits for one.
	Next(ctx context.Context) (mcp.Notification, error)
	CloseEach(ctx context.Context, each func(mcp.Reply, error)) error
}

// listenerOf returns what a session can do beyond requests, nil for nothing.
func listenerOf(s Session) Listener {
	switch s := s.(type) {
	case *mcp.Session:
		return client{s}
	case Listener:
		return s
	}
	return nil
}

// client is an *mcp.Session as a Listener.
type client struct{ session *mcp.Session }

func (c client) Notify(ctx context.Context, method string, params []byte) error {
	return c.session.Notify(ctx, method, params)
}

func (c client) Await(ctx context.Context, method string) (mcp.Notification, error) {
	return c.session.Await(ctx, method)
}

func (c client) SubscribeEach(ctx context.Context, f mcp.Filter, each func(mcp.Reply, error)) (Subscription, error) {
	u, err := c.session.SubscribeEach(ctx, f, each)
	if err != nil { // a nil *mcp.Subscription in the interface would not be nil
		return nil, err
	}
	return u, nil
}

// subscriptions are those of one session. Safe for concurrent use.
type subscriptions struct {
	mu   sync.Mutex // guards open
	open map[subscriptionKey]*subscription
}

// subscriptionKey says whose a name is: that of a worker, or of the session when
// worker is nil.
type subscriptionKey struct {
	worker *worker
	name   string
}

// put takes u under key and returns what was there, or nil.
func (s *subscriptions) put(key subscriptionKey, u Subscription) (old *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[subscriptionKey]*subscription{}
	}
	old = s.open[key]
	s.open[key] = &subscription{Subscription: u, changed: make(chan struct{})}
	return old
}

// find returns the subscription that a worker means by name, nil when there is
// none. With take it is there no more.
func (s *subscriptions) find(w *worker, name string, take bool) *subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range []subscriptionKey{{w, name}, {nil, name}} {
		if u := s.open[key]; u != nil {
			if take {
				delete(s.open, key)
			}
			return u
		}
	}
	return nil
}

// maxAside bounds the notifications of a subscription that came while another
// one was waited for; the oldest go first.
const maxAside = 1024

// subscription lets several workers wait for different notifications of one
// Subscription: one of them at a time asks for the next, and puts aside what
// is not its own.
type subscription struct {
	Subscription

	mu      sync.Mutex // guards the rest
	asking  bool
	aside   []mcp.Notification
	changed chan struct{} // closed when asking ended; a new one for each time
}

// await returns the oldest notification of that method that none took.
func (u *subscription) await(ctx context.Context, method string) (mcp.Notification, error) {
	for {
		n, ok, changed := u.take(method)
		switch {
		case ok:
			return n, nil
		case changed != nil:
			select {
			case <-changed:
			case <-ctx.Done():
				return mcp.Notification{}, context.Cause(ctx)
			}
		default:
			n, err := u.Next(ctx)
			u.put(n, err == nil)
			if err != nil {
				return mcp.Notification{}, err
			}
		}
	}
}

// take returns a notification that was put aside. Without one it is either the
// caller's turn to ask, or changed says when to look again.
func (u *subscription) take(method string) (n mcp.Notification, ok bool, changed <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.aside {
		if u.aside[i].Method == method {
			n = u.aside[i]
			u.aside = slices.Delete(u.aside, i, i+1)
			return n, true, nil
		}
	}
	if u.asking {
		return n, false, u.changed
	}
	u.asking = true
	return n, false, nil
}

// put ends the caller's turn.
func (u *subscription) put(n mcp.Notification, came bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if came {
		if len(u.aside) >= maxAside {
			u.aside = slices.Delete(u.aside, 0, 1)
		}
		u.aside = append(u.aside, n)
	}
	u.asking = false
	close(u.changed)
	u.changed = make(chan struct{})
}
