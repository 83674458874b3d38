package metrics

import (
	"math"
	"sync/atomic"
	"time"
)

// Endless is the length of a warm-up whose end is not known yet.
const Endless time.Duration = math.MaxInt64

// warmup holds the end of the warm-up, which may become known while it goes on.
type warmup struct{ at atomic.Int64 }

func (w *warmup) end() time.Duration { return time.Duration(w.at.Load()) }

// EndWarmup says when the warm-up has ended, as an offset from the start of the
// clock, where CollectorConfig.Warmup did not. It may be called from any goroutine,
// before the first sample of the measured phase.
func (c *Collector) EndWarmup(end time.Duration) { c.warmup.at.Store(int64(end)) }
