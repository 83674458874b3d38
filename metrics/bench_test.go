package metrics_test

import (
	"testing"
	"time"

	"mcpbench/metrics"
)

// benchCatalog has one open group with two steps.
func benchCatalog() *metrics.Catalog {
	return &metrics.Catalog{
		Groups:    []metrics.GroupInfo{{Name: "g", Flow: "f", Open: true}},
		Steps:     []metrics.StepInfo{{ID: "a", Method: "tools/call", Name: "echo"}, {ID: "b", Method: "ping"}},
		Targets:   []metrics.TargetInfo{{Server: "srv", Transport: "http", ProtocolVersion: "2025-11-25"}},
		Protocols: []string{"", "2025-11-25"},
	}
}

func benchSample(i int) metrics.Sample {
	end := time.Duration(i) * time.Microsecond
	return metrics.Sample{
		Kind: metrics.KindStep, Intended: end - 2*time.Millisecond, Release: end - 2*time.Millisecond,
		Start: end - time.Millisecond - time.Duration(i%1000)*100, FirstByte: end, End: end,
		Iteration: uint64(i), Session: uint32(i % 16), Step: uint16(i % 2), BytesIn: 100, BytesOut: 100,
	}
}

// startCollector runs a collector and returns a function that ends it.
func startCollector(tb testing.TB, cfg metrics.CollectorConfig) (*metrics.Collector, func() error) {
	tb.Helper()
	c := metrics.NewCollector(cfg)
	done := make(chan error, 1)
	go func() { done <- c.Run() }()
	return c, func() error {
		c.Close()
		return <-done
	}
}

// BenchmarkRecord measures the whole way: hand-over, histograms, counters.
func BenchmarkRecord(b *testing.B) {
	c, stop := startCollector(b, metrics.CollectorConfig{Catalog: benchCatalog()})
	c.StartClock(time.Now())
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		c.Record(benchSample(i))
		i++
	}
	if err := stop(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkRecordParallel(b *testing.B) {
	c, stop := startCollector(b, metrics.CollectorConfig{Catalog: benchCatalog()})
	c.StartClock(time.Now())
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		i := 0
		for pb.Next() {
			c.Record(benchSample(i))
			i++
		}
	})
	if err := stop(); err != nil {
		b.Fatal(err)
	}
}
