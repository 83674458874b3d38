package mcp

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Connections is a pool of HTTP connections to one server that several Conns share:
// those of all transports that name it and have the same URL, TLS and engine. A
// request takes the connection that was given back last, opens one when there are
// fewer than the pool may have, or else waits for its turn, first come, first served;
// each wait is an AnomalyConnectionWait and is over before Timing.Start.
//
// Whoever waits has no connection, so that waiting always ends. What is open for as
// long as the server likes, streams and subscriptions/listen, has connections of its
// own beside the pool. What the server or a waiting request may depend on,
// cancellations and answers to the server, takes one of the pool if it is free, else
// one beside it that is closed afterwards. Safe for concurrent use.
type Connections struct {
	places chan struct{} // one in it for each connection in use

	mu    sync.Mutex // guards the fields below
	users int        // engines
	idle  []*fastConn
	std   *http.Transport // nil before it is needed
}

// NewConnections returns a pool of at most most connections, at least one. It opens
// none by itself, and has none left when the last Conn that uses it was closed.
func NewConnections(most int) *Connections {
	return &Connections{places: make(chan struct{}, max(1, most))}
}

// way is how a message gets its connection where there is a pool.
type way uint8

const (
	wayPooled way = iota // in its turn
	wayUrgent            // from the pool if one is free, else beside it
	wayBeside            // one of its own
)

// seat is the part that an engine has in a pool; without one its zero value.
type seat struct {
	pool *Connections
	down chan struct{} // closed with the engine
	tell func(Anomaly, string)
}

func (p *Connections) join(tell func(Anomaly, string)) seat {
	if p == nil {
		return seat{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users++
	return seat{pool: p, down: make(chan struct{}), tell: tell}
}

// leave gives the seat up, once. With the last one all connections are closed.
func (s *seat) leave() {
	p := s.pool
	if p == nil {
		return
	}
	close(s.down)
	p.mu.Lock()
	p.users--
	var idle []*fastConn
	var std *http.Transport
	if p.users == 0 {
		idle, std = p.idle, p.std
		p.idle, p.std = nil, nil
	}
	p.mu.Unlock()
	for _, c := range idle {
		c.shut()
	}
	if std != nil {
		std.CloseIdleConnections()
	}
}

// enter takes a place in the pool for r, which may mean to wait; placed is false when
// r goes beside it. r.limit bounds the wait.
func (s *seat) enter(ctx context.Context, r *httpRequest) (placed bool, err error) {
	p := s.pool
	if p == nil || r.way == wayBeside {
		return false, nil
	}
	select {
	case p.places <- struct{}{}:
		return true, nil
	default:
	}
	if r.way == wayUrgent {
		return false, nil
	}
	s.tell(AnomalyConnectionWait, "all connections of the pool are in use")
	var expired <-chan time.Time
	if r.limit > 0 {
		timer := time.NewTimer(r.limit)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case p.places <- struct{}{}:
		return true, nil
	case <-expired:
		return false, &TimeoutError{Limit: TimeoutTotal}
	case <-ctx.Done():
		return false, &TransportError{Op: "dial", Err: ctx.Err()}
	case <-s.down:
		return false, &TransportError{Op: "dial", Err: net.ErrClosed}
	}
}

// exit gives the place back that enter has taken. What may be used again was put
// back before, so that there are never more connections than places.
func (s *seat) exit() { <-s.pool.places }

// takeShared is take where there is a pool.
func (e *fastEngine) takeShared(ctx context.Context, r *httpRequest, t *stamps) (*fastConn, time.Duration, error) {
	placed, err := e.seat.enter(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	for placed {
		c := e.seat.pool.kept()
		if c == nil {
			break
		}
		same := e.base.Equal(c.engine.base) // its moments count from there
		c.engine = e
		if !e.add(c) {
			c.shut() // the engine is closed, and dial says so
			break
		}
		c.wire.now, c.idleFor = e.now, e.now()-c.idleSince
		if same && (c.idleFor < probeAfter || alive(c.wire.Conn, e.tls != nil)) {
			c.placed = true
			return c, e.now(), nil
		}
		c.discard()
	}
	c, err := e.dial(ctx, r, t)
	switch {
	case err == nil:
		c.placed = placed
	case placed:
		e.seat.exit()
	}
	return c, e.now(), err
}

// kept returns the connection that was given back last, nil when there is none.
func (p *Connections) kept() *fastConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	c := p.idle[n-1]
	p.idle = slices.Delete(p.idle, n-1, n)
	return c
}

// keepShared is keep where there is a pool: a connection beside it is not kept.
func (e *fastEngine) keepShared(c *fastConn) bool {
	if !c.placed {
		return false
	}
	e.mu.Lock()
	if e.closed { // which has closed it, or is about to
		e.mu.Unlock()
		return false
	}
	delete(e.open, c)
	e.mu.Unlock()
	c.placed = false
	p := e.seat.pool
	p.mu.Lock()
	p.idle = append(p.idle, c)
	p.mu.Unlock()
	e.seat.exit()
	return true
}

// shared returns the pool's transport of net/http, which e configures if it is the first.
func (e *netEngine) shared() *http.Transport {
	p := e.seat.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.std == nil {
		p.std = e.transport.Clone()
		p.std.MaxConnsPerHost = cap(p.places)
		p.std.DialContext = dialForEngine
	}
	return p.std
}

// engineKey is where the context of a request has its engine.
type engineKey struct{}

// dialForEngine opens a connection that the pool will own, for whichever engine asks.
func dialForEngine(ctx context.Context, network, addr string) (net.Conn, error) {
	e, ok := ctx.Value(engineKey{}).(*netEngine)
	if !ok {
		return nil, net.ErrClosed // never: do sets it
	}
	began := e.now()
	conn, err := e.dialing.connect(ctx, network, addr)
	if err == nil {
		e.opened(e.now() - began)
	}
	return conn, err
}

// opened notes how long the first connection took to open.
func (e *netEngine) opened(took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tcp == 0 {
		e.tcp = took
	}
}

// place has r wait for its turn and says by which transport it goes. leave ends its
// use of the pool; while it lasts the end of the engine ends l.
func (e *netEngine) place(ctx context.Context, r *httpRequest, l *limit) (_ context.Context, _ http.RoundTripper, leave func(), err error) {
	placed, err := e.seat.enter(ctx, r)
	if err != nil || !placed {
		return ctx, e.transport, func() {}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		e.seat.exit()
		return nil, nil, nil, &TransportError{Op: "dial", Err: net.ErrClosed}
	}
	if e.running == nil {
		e.running = make(map[*limit]struct{})
	}
	e.running[l] = struct{}{}
	leave = sync.OnceFunc(func() {
		e.mu.Lock()
		delete(e.running, l)
		e.mu.Unlock()
		e.seat.exit()
	})
	return context.WithValue(ctx, engineKey{}, e), e.shared(), leave, nil
}
