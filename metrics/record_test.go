package metrics_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/metrics"
)

// TestConcurrentCallersLoseNothing counts exactly what many goroutines recorded.
func TestConcurrentCallersLoseNothing(t *testing.T) {
	sink := &oracleSink{start: time.Now()}
	c, stop := startCollector(t, metrics.CollectorConfig{Catalog: benchCatalog(), Sinks: []metrics.Sink{sink}, SlabLimit: 9})
	c.StartClock(time.Now())
	const callers, each = 64, 2000
	var wg sync.WaitGroup
	for w := range callers {
		wg.Go(func() {
			for i := range each {
				s := request(time.Duration(i)*time.Millisecond, time.Microsecond)
				s.Session, s.Iteration = uint32(w), uint64(i)
				c.Record(s)
				if i%100 == 0 {
					runtime.Gosched()
					_ = c.Snapshot()
				}
			}
		})
	}
	wg.Wait()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	seen := map[[2]uint64]int{}
	for _, s := range sink.samples {
		seen[[2]uint64{uint64(s.Session), s.Iteration}]++
	}
	if len(seen) != callers*each || len(sink.samples) != callers*each {
		t.Errorf("%d samples, %d of them different, want %d", len(sink.samples), len(seen), callers*each)
	}
	s := c.Summary(metrics.RunInfo{SessionOpened: true})
	if s.Requests.Total != callers*each || s.Steps[0].Latency.Count != callers*each {
		t.Errorf("%d requests, %d latencies, want %d", s.Requests.Total, s.Steps[0].Latency.Count, callers*each)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	c, stop := startCollector(t, metrics.CollectorConfig{Catalog: benchCatalog()})
	c.StartClock(time.Now())
	i := 0
	record := func() {
		c.Record(benchSample(i))
		i++
	}
	for range 200_000 {
		record()
	}
	if n := testing.AllocsPerRun(100_000, record); n != 0 {
		t.Errorf("%v allocations for each sample", n)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// TestMemoryDoesNotGrowWithTheRun runs five minutes of virtual time.
func TestMemoryDoesNotGrowWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := startCollector(t, metrics.CollectorConfig{Catalog: benchCatalog()})
		t0 := time.Now()
		c.StartClock(t0)
		run := func(until time.Duration) uint64 {
			for time.Since(t0) < until {
				for k := range 5 {
					s := benchSample(int(time.Since(t0) / time.Microsecond))
					s.Session = uint32(k)
					c.Record(s)
				}
				time.Sleep(500 * time.Millisecond)
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		early := run(time.Minute)
		late := run(5 * time.Minute)
		if late > early+1<<20 {
			t.Errorf("%d KiB after one minute, %d KiB after five", early>>10, late>>10)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		s := c.Summary(metrics.RunInfo{SessionOpened: true})
		if n := len(s.Steps[0].Trend); n < 8 || n > 16 {
			t.Errorf("a trend of %d parts, want 8 to 16", n)
		}
	})
}
