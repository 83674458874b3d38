package metrics

import (
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	// slabSamples is the number of samples handed over at once.
	slabSamples = 1024
	// shardsPerProc makes it unlikely that two running callers meet in one shard.
	shardsPerProc = 4
	// slabsPerShard bounds the pool when SlabLimit is 0.
	slabsPerShard = 16
)

// slab is a batch of samples on its way from callers to the collector.
type slab struct {
	samples []Sample
}

// shard is where some of the callers put their samples.
type shard struct {
	mu   sync.Mutex // guards slab; never held across a channel operation
	slab *slab      // being filled, or nil
	_    [48]byte   // keeps neighbouring shards off one cache line
}

// stream carries samples from many callers to one consumer in slabs. No sample
// is ever dropped: a caller that finds no free slab waits.
type stream struct {
	shards []shard
	full   chan *slab   // as large as there can be slabs, so that a send never blocks
	waits  atomic.Int64 // times that a caller had to wait for a free slab

	mu    sync.Mutex // guards the fields below
	freed sync.Cond  // a slab came back
	free  []*slab    // empty slabs; the last one back is the first to go, while it is in the cache
	made  int        // slabs made so far
	limit int
}

func newStream(limit int) *stream {
	n := shardsPerProc * runtime.GOMAXPROCS(0)
	if limit <= 0 {
		limit = slabsPerShard * n
	}
	st := &stream{shards: make([]shard, n), limit: limit, full: make(chan *slab, limit)}
	st.freed.L = &st.mu
	return st
}

// put adds samples of one session, at least one. Safe for concurrent use.
func (st *stream) put(some []Sample) {
	key := uint64(some[0].Session)
	if some[0].Kind == KindIteration && some[0].Session == NoSession {
		key = some[0].Iteration // dropped arrivals have no session
	}
	sh := &st.shards[key%uint64(len(st.shards))]
	for len(some) > 0 {
		sh.mu.Lock()
		b := sh.slab
		if b == nil {
			sh.mu.Unlock()
			st.refill(sh)
			continue
		}
		n := min(len(some), slabSamples-len(b.samples))
		b.samples = append(b.samples, some[:n]...)
		some = some[n:]
		full := len(b.samples) == slabSamples
		if full {
			sh.slab = nil
		}
		sh.mu.Unlock()
		if full {
			st.full <- b
		}
	}
}

// refill gives the shard an empty slab unless another caller was faster.
func (st *stream) refill(sh *shard) {
	b := st.take()
	sh.mu.Lock()
	if sh.slab == nil {
		sh.slab, b = b, nil
	}
	sh.mu.Unlock()
	if b != nil {
		st.giveBack(b)
	}
}

// take returns an empty slab: a used one, a new one while the limit allows,
// or the next that becomes free.
func (st *stream) take() *slab {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.free) == 0 && st.made < st.limit {
		st.made++
		return &slab{samples: make([]Sample, 0, slabSamples)}
	}
	if len(st.free) == 0 {
		st.waits.Add(1)
	}
	for len(st.free) == 0 {
		st.freed.Wait()
	}
	last := len(st.free) - 1
	b := st.free[last]
	st.free[last] = nil
	st.free = st.free[:last]
	return b
}

func (st *stream) giveBack(b *slab) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.free = append(st.free, b)
	st.freed.Signal()
}

// release makes the slab empty and free. What its samples pointed to is let go.
func (st *stream) release(b *slab) {
	for i := range b.samples {
		b.samples[i].Extra = nil
	}
	b.samples = b.samples[:0]
	st.giveBack(b)
}

// steal takes the slab that is being filled, or nil when there is none with samples.
func (sh *shard) steal() *slab {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b := sh.slab
	if b == nil || len(b.samples) == 0 {
		return nil
	}
	sh.slab = nil
	return b
}

// end hands over what the shards hold and ends the stream. No put may follow
// or be under way.
func (st *stream) end() {
	for i := range st.shards {
		if b := st.shards[i].steal(); b != nil {
			st.full <- b
		}
	}
	close(st.full)
}
