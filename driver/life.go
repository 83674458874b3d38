package driver

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"mcpbench/mcp"
	"mcpbench/pool"
	"mcpbench/scenarios"
)

// life is what decides when a session ends while the load goes on. Whoever wants
// that orders it; the last worker to leave the session then ends it, so that no
// iteration loses its session.
type life struct {
	users  atomic.Int64 // iterations that run on the session
	due    atomic.Bool  // it was ordered to end
	once   sync.Once
	over   chan struct{} // closed when due is set
	reason string        // set before over is closed
	ended  atomic.Bool   // a worker has taken it on to end it
	gone   chan struct{} // closed when its place is free
	expiry *time.Timer   // orders its end by time; nil: none
	ending mcp.Ending
}

// order makes the session end as soon as no iteration runs on it. Only the first
// reason counts. It may be called by anybody.
func (l *life) order(reason string) {
	l.once.Do(func() {
		l.reason = reason
		l.due.Store(true)
		close(l.over)
	})
}

// enter begins an iteration on the session; false when it is about to end.
func (l *life) enter() bool {
	l.users.Add(1)
	if !l.due.Load() {
		return true
	}
	l.users.Add(-1)
	return false
}

// leave ends an iteration, or gives up a session that is due, and ends it when it
// is due and nobody is on it.
func (w *worker) leave(ctx context.Context, live *pool.Live[*session], entered bool) {
	l := &live.Session.life
	n := l.users.Load()
	if entered {
		n = l.users.Add(-1)
	}
	if n == 0 && l.due.Load() && l.ended.CompareAndSwap(false, true) {
		w.record()
		w.end(ctx, live, l.reason, pool.ErrRenew)
	}
}

// begin gives the session's life its end, from draws that depend on the number of
// the session.
func (g *group) begin(s *session) {
	s.life.over, s.life.gone = make(chan struct{}), make(chan struct{})
	life := &g.plan.Life
	if life.Duration.IsZero() && life.Ends == (scenarios.Ends{}) {
		return
	}
	rng := g.stream("life", uint64(s.number))
	if !life.Duration.IsZero() {
		s.life.expiry = time.AfterFunc(max(life.Duration.Draw(rng), 1), func() { s.life.order("expired") })
	}
	e := life.Ends
	switch at := rng.Float64() * (e.Delete + e.NoDelete + e.Drop); {
	case at < e.Delete:
	case at < e.Delete+e.NoDelete:
		s.life.ending = mcp.EndSilent
	case e.Drop > 0:
		s.life.ending = mcp.EndDrop
	}
}

// closerAs is a session that knows more than one way to end.
type closerAs interface {
	CloseAs(ctx context.Context, e mcp.Ending) error
}

// stream returns random numbers that depend on the seed of the run, the group's
// name, what they are for, and a number.
func (g *group) stream(what string, number uint64) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(what + "/" + g.plan.Name)) // never fails
	return rand.New(rand.NewPCG(g.runner.plan.Seed^number*0x9e3779b97f4a7c15, h.Sum64()))
}
