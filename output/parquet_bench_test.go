package output_test

import (
	"os"
	"testing"
	"time"

	"mcpbench/metrics"
	"mcpbench/output"
)

func BenchmarkParquetRequests(b *testing.B) {
	for _, c := range []struct {
		name string
		step uint16
	}{{"plain", 1}, {"checks and tags", 0}, {"open", 2}} {
		b.Run(c.name, func(b *testing.B) { benchmarkRequests(b, c.step) })
	}
}

func benchmarkRequests(b *testing.B, step uint16) {
	b.Helper()
	samples := randomSamples(1024, 1)
	cat := testCatalog()
	open := cat.Groups[cat.Steps[step].Group].Open
	for i := range samples {
		s := &samples[i]
		s.Outcome, s.Extra, s.Step, s.Group = metrics.OK, nil, step, uint8(cat.Steps[step].Group)
		s.Intended, s.Release = metrics.NoOffset, metrics.NoOffset
	}
	sink := newSink(b, output.ParquetConfig{})
	var at time.Duration
	b.ReportAllocs()
	for b.Loop() {
		for i := range samples {
			s := &samples[i]
			at += 10 * time.Microsecond
			s.Start, s.FirstByte, s.End = at, at+time.Millisecond+at%7919, at+2*time.Millisecond+at%7717
			if open {
				s.Intended, s.Release = at-1000, at
			}
		}
		if err := sink.Write(samples); err != nil {
			b.Fatal(err)
		}
	}
	if err := sink.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(samples)), "ns/row")
	var bytes int64
	for _, part := range sink.parts(b, "requests") {
		info, err := os.Stat(part)
		if err != nil {
			b.Fatal(err)
		}
		bytes += info.Size()
	}
	b.ReportMetric(float64(bytes)/float64(b.N*len(samples)), "B/row")
}
