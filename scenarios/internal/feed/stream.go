package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

const (
	blockBytes = 128 << 10
	// aheadBytes is how much is read before it is asked for, keptBytes how much is
	// kept after. blockCost is what a block counts at least.
	aheadBytes = 2 << 20
	keptBytes  = 4 << 20
	blockCost  = 4 << 10
)

// block is some rows, one after the other. It is immutable.
type block struct {
	first int64 // position of the first row; goes on when a file is read again
	n     int
	bytes int
	rows  interface{ fill(k int, dst Row) error }
	marks marks // of all rows up to the end of this block, if it is text
}

func (b *block) end() int64 { return b.first + int64(b.n) }

func (b *block) cost() int { return max(b.bytes, blockCost) }

// blockSource reads rows in the order of a source. Its methods but late are
// called by one goroutine.
type blockSource interface {
	next() (*block, error) // io.EOF after the last; first is not set
	rewind() error
	// late fills dst with row n, which was read before.
	late(ctx context.Context, m marks, n int64, dst Row) error
	close() error
}

// stream reads ahead of those who ask. One goroutine reads and publishes what it
// has as a window; who asks for a row beyond waits for the next window. No lock
// is held by anyone.
type stream struct {
	src     blockSource
	file    string
	recycle bool

	now    atomic.Pointer[window]
	want   atomic.Int64 // one more than the highest position that was asked for
	resume atomic.Int64 // the reader rests until want is this
	total  atomic.Int64 // rows of the source; -1 until they were read once
	wake   chan struct{}
	stop   chan struct{}
	once   sync.Once
	done   chan struct{}
}

// window is the blocks that are held. It is immutable but for after, which is
// set before next is closed: who holds a window sees all later ones in turn, so
// that no row that is waited for can be missed.
type window struct {
	blocks []*block
	end    int64
	err    error // after the last block
	next   chan struct{}
	after  *window
}

// newStream starts the reader; first is what was read already.
func newStream(src blockSource, file string, recycle bool, first *block) *stream {
	s := &stream{
		src: src, file: file, recycle: recycle,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	s.total.Store(-1)
	s.resume.Store(math.MaxInt64)
	s.now.Store(&window{blocks: []*block{first}, end: first.end(), next: make(chan struct{})})
	go s.run()
	return s
}

func (s *stream) rows() int64 { return -1 }

func (s *stream) close() error {
	s.once.Do(func() { close(s.stop) })
	err := s.src.close() // ends a read that waits
	<-s.done
	return err
}

func (s *stream) fill(ctx context.Context, n int64, dst Row) error {
	w := s.now.Load()
	s.ask(n)
	for n >= w.end {
		if w.err != nil {
			return w.err
		}
		select {
		case <-w.next:
			w = w.after
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.stop:
			return ErrClosed
		}
	}
	if n < w.blocks[0].first {
		return s.late(ctx, w, n, dst)
	}
	b := w.blocks[sort.Search(len(w.blocks), func(i int) bool { return w.blocks[i].end() > n })]
	return b.rows.fill(int(n-b.first), dst)
}

// late takes a row that was let go.
func (s *stream) late(ctx context.Context, w *window, n int64, dst Row) error {
	row := n
	if total := s.total.Load(); total > 0 {
		row %= total
	}
	err := s.src.late(ctx, w.blocks[len(w.blocks)-1].marks, row, dst)
	if errors.Is(err, errLate) {
		return fmt.Errorf("row %d of %s was asked for when row %d had been read; a pipe cannot go back, a file can", n+1, s.file, w.end)
	}
	return err
}

var errLate = errors.New("cannot go back")

// ask tells the reader how far rows are wanted.
func (s *stream) ask(n int64) {
	for {
		old := s.want.Load()
		if n < old || s.want.CompareAndSwap(old, n+1) {
			break
		}
	}
	if n >= s.resume.Load() {
		select {
		case s.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// run reads until the end, an error or close.
func (s *stream) run() {
	defer close(s.done)
	begun := int64(0) // where this pass over the source began
	for s.rest() {
		b, err := s.src.next()
		if errors.Is(err, io.EOF) && s.recycle {
			if err = s.again(&begun); err == nil {
				continue
			}
		}
		s.publish(b, err)
		if err != nil {
			return
		}
	}
}

// again begins the next pass.
func (s *stream) again(begun *int64) error {
	end := s.now.Load().end
	if total := s.total.Load(); total >= 0 && end-*begun != total {
		return fmt.Errorf("%s has changed: it had %d rows, then %d", s.file, total, end-*begun)
	}
	s.total.Store(end - *begun)
	*begun = end
	return s.src.rewind()
}

// rest waits while enough is read ahead; false means stop.
func (s *stream) rest() bool {
	for {
		w := s.now.Load()
		if ahead, resume := w.ahead(s.want.Load()); ahead >= aheadBytes {
			s.resume.Store(resume)
			if s.want.Load() <= resume { // or else it was passed just now
				select {
				case <-s.wake:
				case <-s.stop:
					return false
				}
			}
			s.resume.Store(math.MaxInt64)
			continue
		}
		select {
		case <-s.stop:
			return false
		default:
			return true
		}
	}
}

// ahead is how many bytes lie beyond want, and at what position only half of
// aheadBytes would.
func (w *window) ahead(want int64) (bytes int, resume int64) {
	resume = want
	for i := len(w.blocks) - 1; i >= 0 && w.blocks[i].first >= want; i-- {
		bytes += w.blocks[i].cost()
		if bytes <= aheadBytes/2 {
			resume = w.blocks[i].first
		}
	}
	return bytes, resume
}

// publish adds a block, or the error that ends all, and lets old blocks go.
func (s *stream) publish(b *block, err error) {
	old := s.now.Load()
	w := &window{blocks: old.blocks, end: old.end, err: err, next: make(chan struct{})}
	if err == nil {
		b.first = old.end
		w.end = b.end()
		w.blocks = append(append(make([]*block, 0, len(old.blocks)+1), old.blocks...), b)
		w.blocks = w.blocks[w.stale(s.want.Load()):]
	}
	s.now.Store(w)
	old.after = w
	close(old.next)
}

// stale is how many of the oldest blocks need not be kept.
func (w *window) stale(want int64) int {
	kept := 0
	for i, b := range slices.Backward(w.blocks) {
		if b.end() > want || i == len(w.blocks)-1 {
			continue
		}
		if kept += b.cost(); kept > keptBytes {
			return i + 1
		}
	}
	return 0
}
