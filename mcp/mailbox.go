package mcp

import (
	"context"
	"slices"
	"sync"
)

const (
	// mailboxSize is how many notifications a mailbox keeps.
	mailboxSize = 64
	// mailboxBytes bounds their params, but for the newest.
	mailboxBytes = 4 << 20
)

// mailbox keeps notifications until they are taken, the newest ones when there are
// too many. The zero value is an empty one. Safe for concurrent use.
type mailbox struct {
	mu      sync.Mutex // guards the fields below
	kept    []Notification
	bytes   int                 // of their params
	waiting []chan Notification // in order of arrival; each has room for one
	over    error               // why there will be no more, nil before
}

// put keeps n, which belongs to the mailbox from now on, and returns how many older
// ones had to go.
func (b *mailbox) put(n Notification) (dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over != nil {
		return 0
	}
	if len(b.waiting) > 0 {
		b.waiting[0] <- n
		b.waiting = slices.Delete(b.waiting, 0, 1)
		return 0
	}
	b.kept = append(b.kept, n)
	b.bytes += len(n.Params)
	for len(b.kept)-dropped > mailboxSize || b.bytes > mailboxBytes && len(b.kept)-dropped > 1 {
		b.bytes -= len(b.kept[dropped].Params)
		dropped++
	}
	b.kept = slices.Delete(b.kept, 0, dropped)
	return dropped
}

// take returns the oldest notification, or waits for one. Those that are there can
// be taken after the end too.
func (b *mailbox) take(ctx context.Context) (Notification, error) {
	if ctx.Err() != nil {
		return Notification{}, gaveUp(ctx)
	}
	n, comes, err := b.first()
	if comes == nil {
		return n, err
	}
	select {
	case n, ok := <-comes:
		if !ok {
			return n, b.reason()
		}
		return n, nil
	case <-ctx.Done():
	}
	if b.leave(comes) {
		return Notification{}, gaveUp(ctx)
	}
	// One came at this very moment, or the end.
	n, ok := <-comes
	if !ok {
		return n, b.reason()
	}
	return n, nil
}

// first returns the oldest notification, or the end, or else where one will come.
func (b *mailbox) first() (n Notification, comes chan Notification, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.kept) > 0:
		n = b.kept[0]
		b.kept = slices.Delete(b.kept, 0, 1)
		b.bytes -= len(n.Params)
		return n, nil, nil
	case b.over != nil:
		return n, nil, b.over
	}
	comes = make(chan Notification, 1)
	b.waiting = append(b.waiting, comes)
	return n, comes, nil
}

// leave takes back a wait; false when it is over.
func (b *mailbox) leave(comes chan Notification) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, comes)
	if i < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return true
}

// end makes err the end of the mailbox, unless it has ended already.
func (b *mailbox) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over != nil {
		return
	}
	b.over = err
	for _, w := range b.waiting {
		close(w)
	}
	b.waiting = nil
}

func (b *mailbox) reason() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}
