package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func numbered(i int) Notification {
	return Notification{Method: "m", Params: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))}
}

// What waits is bounded in number and in bytes, but the newest is always kept.
func TestMailboxBounds(t *testing.T) {
	tests := []struct {
		name          string
		sizes         []int
		dropped, kept int
	}{
		{"few", []int{1, 2, 3}, 0, 3},
		{"as many as fit", make([]int, mailboxSize), 0, mailboxSize},
		{"one too many", make([]int, mailboxSize+1), 1, mailboxSize},
		{"as long as fits", []int{mailboxBytes / 2, mailboxBytes / 2}, 0, 2},
		{"too long together", []int{mailboxBytes / 2, 1, mailboxBytes / 2, 7}, 1, 3},
		{"two have to go", []int{1, mailboxBytes - 1, mailboxBytes}, 2, 1},
		{"too long alone", []int{1, 2 * mailboxBytes}, 1, 1},
		{"and after it", []int{2 * mailboxBytes, 1}, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b mailbox
			dropped := 0
			for _, size := range tt.sizes {
				dropped += b.put(Notification{Params: make([]byte, size)})
			}
			b.end(errClosed)
			kept := 0
			for ; ; kept++ {
				n, err := b.take(t.Context())
				if err != nil {
					break
				}
				if i := len(tt.sizes) - tt.kept + kept; i >= len(tt.sizes) || len(n.Params) != tt.sizes[i] {
					t.Fatalf("the one of %d bytes came as number %d", len(n.Params), kept)
				}
			}
			if dropped != tt.dropped || kept != tt.kept || b.bytes != 0 {
				t.Errorf("%d dropped, %d kept, %d bytes", dropped, kept, b.bytes)
			}
		})
	}
}

// Nothing is lost or taken twice when those who wait give up at any moment.
func TestMailboxLosesNothing(t *testing.T) {
	var b mailbox
	const n = 2000
	var taken sync.Map
	var count atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var takers, givers sync.WaitGroup
	for range 4 {
		takers.Go(func() {
			for {
				hasty, stop := context.WithTimeout(ctx, time.Microsecond)
				got, err := b.take(hasty)
				stop()
				if err == nil {
					if _, twice := taken.LoadOrStore(string(got.Params), true); twice {
						t.Errorf("%s came twice", got.Params)
					}
					count.Add(1)
				}
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	var dropped atomic.Int64
	for g := range 2 {
		givers.Go(func() {
			for i := range n {
				dropped.Add(int64(b.put(numbered(g*n + i))))
			}
		})
	}
	givers.Wait()
	cancel()
	takers.Wait()
	b.mu.Lock()
	left := len(b.kept)
	b.mu.Unlock()
	if got := count.Load() + dropped.Load() + int64(left); got != 2*n {
		t.Errorf("%d of %d accounted for", got, 2*n)
	}
}

// The end wakes all who wait, once, and what comes after it is not kept.
func TestMailboxEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b mailbox
		first, second := errors.New("first"), errors.New("second")
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if _, err := b.take(t.Context()); !errors.Is(err, first) {
					t.Errorf("error %v", err)
				}
			})
		}
		synctest.Wait()
		b.end(first)
		waiting.Wait()
		b.end(second)
		b.put(numbered(1))
		if n, err := b.take(t.Context()); !errors.Is(err, first) {
			t.Errorf("got %+v, %v", n, err)
		}
	})
}
