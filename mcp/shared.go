package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Shared is one process of a stdio server, or whatever pipe its transport opens, that
// many sessions use side by side: their requests go over the same pipe and each gets
// its answers. It is opened with the first session, with one handshake for all, and
// closed with the last one. When it has died, which all sessions on it find, the next
// Connect opens another one, for all who come then. Safe for concurrent use.
//
// To the server it is one client. Answers, progress, cancellations, and what a
// subscription is told, are those of the session whose request they belong to; up to
// 2025-11-25 a resource is subscribed to once for all sessions. What names no request
// cannot be told apart: changes of lists go to each subscription that wants them, other
// notifications to each session that watches for them, and what the server asks of the
// client up to 2025-11-25 is answered as the session does that opened the process. That
// one also gets the frames, the anomalies of the pipe and its stderr.
type Shared struct {
	// Transport opens the pipe: a *Stdio.
	Transport Transport

	mu      sync.Mutex // guards the fields below, and users
	now     *joint
	opening *jointOpening // under way
	joined  int64
}

// Joined returns how many sessions had no handshake of their own.
func (h *Shared) Joined() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.joined
}

// joint is what the sessions of a Shared have in common, for as long as it lives.
type joint struct {
	main  *Session // nobody's
	pipe  *pipeConn
	users int
}

// jointOpening is a process that is being started.
type jointOpening struct {
	done chan struct{} // closed when the fields below are there
	err  error
	cut  bool // the context of whoever started it ended
}

// Connect opens a session: the handshake is made, as Negotiate does, when there is no
// process yet. Info has Spawn and Handshake for the session that began it; for the
// others both are 0. The sessions are to ask for the same version and declare the same
// capabilities; those of the one that opens the process count. Options.GetStream and
// ParamHeaders have no meaning.
func (h *Shared) Connect(ctx context.Context, o Options) (*Session, error) {
	o = o.withDefaults()
	o.GetStream, o.ParamHeaders = false, nil
	began := o.now()
	j, opened, err := h.enter(ctx, &o)
	if err != nil {
		return nil, err
	}
	s := &Session{o: o, info: j.main.info, resultType: j.main.resultType}
	if !opened {
		s.info.Spawn, s.info.Handshake, s.info.Start, s.info.End = 0, 0, began, o.now()
	}
	s.conn = &share{of: h, joint: j, gone: make(chan struct{})}
	s.post.prepare(&o)
	s.post.belongTo(&j.main.post)
	s.post.opened()
	if s.Ended() {
		s.post.end(&TransportError{Op: "read", Err: errLost, lost: true})
	}
	return s, nil
}

// enter returns the process with one more user; opened tells that it is a new one.
func (h *Shared) enter(ctx context.Context, o *Options) (j *joint, opened bool, err error) {
	for {
		h.mu.Lock()
		j, other := h.now, h.opening
		switch {
		case j != nil && !j.main.Ended():
			j.users++
			h.joined++
			h.mu.Unlock()
			return j, false, nil
		case other == nil:
			other = &jointOpening{done: make(chan struct{})}
			h.opening = other
			h.mu.Unlock()
			j, err := h.open(ctx, o, other)
			return j, true, err
		}
		h.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, false, gaveUp(ctx)
		}
		if other.err != nil && !other.cut {
			return nil, false, other.err
		}
	}
}

// open starts the process and makes the handshake, for all who wait.
func (h *Shared) open(ctx context.Context, o *Options, told *jointOpening) (*joint, error) {
	own := *o
	own.Watch = nil
	main, _, err := Negotiate(ctx, h.Transport, nil, own)
	var j *joint
	if err == nil {
		if pipe, ok := main.conn.(*pipeConn); ok {
			j = &joint{main: main, pipe: pipe, users: 1}
		} else {
			main.drop(ctx)
			err = fmt.Errorf("sessions cannot share what %s opens", h.Transport.Kind())
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	defer close(told.done)
	h.opening = nil
	told.err, told.cut = err, ctx.Err() != nil
	if err == nil {
		h.now = j
	}
	return j, err
}

// leave takes a user off j and closes it after the last one.
func (h *Shared) leave(ctx context.Context, j *joint) error {
	h.mu.Lock()
	j.users--
	last := j.users == 0
	if last && h.now == j {
		h.now = nil
	}
	h.mu.Unlock()
	if !last {
		return nil
	}
	return j.main.Close(ctx)
}

// share is the Conn of one session of a Shared.
type share struct {
	of    *Shared
	joint *joint
	gone  chan struct{} // closed by Close

	once sync.Once
	err  error
}

// RoundTrip implements Conn.
func (c *share) RoundTrip(ctx context.Context, req Request) (Reply, error) {
	return c.joint.pipe.roundTrip(ctx, req, c.gone)
}

// Notify implements Conn.
func (c *share) Notify(ctx context.Context, method string, params json.RawMessage) error {
	select {
	case <-c.gone:
		return fmt.Errorf("%s: %w", method, closedError())
	default:
	}
	return c.joint.pipe.Notify(ctx, method, params)
}

// SetVersion implements Conn; the version was negotiated once for all.
func (*share) SetVersion(Version) {}

func (c *share) isOver() bool {
	select {
	case <-c.gone:
		return true
	default:
		return c.joint.pipe.isOver()
	}
}

// Close implements Conn: what the session has in flight fails and is cancelled.
func (c *share) Close(ctx context.Context) error {
	c.once.Do(func() {
		close(c.gone)
		c.err = c.of.leave(ctx, c.joint)
	})
	return c.err
}

// depart ends what a session has on the server that outlives it, unless the server
// ends with it.
func (c *share) depart(ctx context.Context, s *Session) {
	c.of.mu.Lock()
	last := c.joint.users == 1
	c.of.mu.Unlock()
	if last || c.isOver() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultGrace)
	defer cancel()
	s.post.mu.Lock()
	mine := s.post.mine()
	s.post.mu.Unlock()
	for _, u := range mine {
		if u.cancel != nil {
			continue // the end of its request says it
		}
		if _, err := u.Close(ctx); err != nil && !errors.Is(err, errClosed) {
			s.o.OnAnomaly(AnomalyCloseFailed, err.Error())
		}
	}
}

// root is where the subscriptions are that a session shares with others on one
// connection; without such it is p.
func (p *post) root() *post {
	if p.common != nil {
		return p.common
	}
	return p
}

// belongTo makes p, before its session is used, one of several that root, the post of
// the connection, tells of what comes.
func (p *post) belongTo(root *post) {
	p.common = root
	p.modern.Store(root.modern.Load())
	p.busy.Store(true)
	root.mu.Lock()
	defer root.mu.Unlock()
	root.members = append(root.members, p)
	if len(p.watched) > 0 {
		root.busy.Store(true)
		root.heard.Store(true)
	}
}

// dismiss takes a post back that belonged to p, with its subscriptions.
func (p *post) dismiss(member *post) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members = slices.DeleteFunc(p.members, func(m *post) bool { return m == member })
	p.subs = slices.DeleteFunc(p.subs, func(u *Subscription) bool { return &u.session.post == member })
}

// mine returns the subscriptions of p's session. The caller holds p.mu.
func (p *post) mine() (all []*Subscription) {
	r := p.root()
	if r == p {
		return p.subs
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.subs {
		if &u.session.post == p {
			all = append(all, u)
		}
	}
	return all
}

// boxes returns the mailboxes for a method of all who watch for it. The caller holds p.mu.
func (p *post) boxes(method string) (all []*mailbox) {
	if box := p.watched[method]; box != nil {
		all = append(all, box)
	}
	for _, m := range p.members {
		if box := m.watched[method]; box != nil {
			all = append(all, box)
		}
	}
	return all
}
