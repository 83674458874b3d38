//go:build linux

package driver_test

import (
	"context"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"mcpbench/driver"
	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// paceFor is how long one round of a pacer benchmark lasts.
const paceFor = 3 * time.Second

// BenchmarkPacer paces 10,000 arrivals a second in real time. "alone" is the pacer
// with its queue, which nobody takes from; "served" has eight sessions whose steps
// take no time, and is the processor time of the whole process, recording included.
// "timers" is no pacer of this package: a timer for each arrival, as one would write it
// without further thought.
func BenchmarkPacer(b *testing.B) {
	const rate = 10_000
	for _, pacer := range []string{driver.PacerPrecise, driver.PacerEconomical} {
		b.Run("alone/"+pacer, func(b *testing.B) { benchmarkPacer(b, pacer, rate, 1, hanging) })
		b.Run("served/"+pacer, func(b *testing.B) { benchmarkPacer(b, pacer, rate, 8, instant) })
	}
	b.Run("alone/timers", func(b *testing.B) { benchmarkTimers(b, rate) })
}

// BenchmarkPacerLosesNothing makes 50,000 arrivals a second of a step that takes no
// time: every one has its row, of an iteration that was completed.
func BenchmarkPacerLosesNothing(b *testing.B) {
	for _, pacer := range []string{driver.PacerPrecise, driver.PacerEconomical} {
		b.Run(pacer, func(b *testing.B) { benchmarkPacer(b, pacer, 50_000, 16, instant) })
	}
}

func benchmarkPacer(b *testing.B, pacer string, rate float64, sessions int, call stubCall) {
	b.Helper()
	if pacer == driver.PacerPrecise { // as the command does: it keeps a processor's place while it naps
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1))
	}
	want := int(rate * paceFor.Seconds())
	sink := &latenesses{late: make([]time.Duration, 0, b.N*want)}
	var used time.Duration
	for range b.N {
		before, completed := len(sink.late), sink.completed
		used += paceOnce(b, pacer, rate, sessions, call, sink)
		if got := len(sink.late) - before; got != want {
			b.Errorf("%d iteration rows, want %d", got, want)
		}
		if got := sink.completed - completed; sessions > 1 && got != want {
			b.Errorf("%d iterations completed, want %d", got, want)
		}
	}
	sink.report(b, used)
}

// paceOnce runs one load and returns the processor time from its start to its scheduled end.
func paceOnce(b *testing.B, pacer string, rate float64, sessions int, call stubCall, sink metrics.Sink) (used time.Duration) {
	b.Helper()
	g := open(rate, sessions, paceFor)
	g.Name = "g"
	step := &scenarios.Step{ID: "a", Method: "tools/call"}
	p := &scenarios.Program{
		Name: "pacer", Servers: []scenarios.Server{{Name: "s", Transport: "http"}}, Groups: []scenarios.Group{g},
		Flows: []scenarios.Flow{{Name: "f", Steps: []*scenarios.Step{step}, Do: scenarios.InOrder([]*scenarios.Step{step})}},
		Grace: time.Second, Limits: scenarios.Limits{RequestTimeout: time.Hour, ConnectTimeout: time.Minute},
	}
	if sessions == 1 {
		p.Grace = time.Millisecond // its call never ends
	}
	dial := func(_ context.Context, _ int, o mcp.Options) (driver.Session, error) {
		return &stub{base: o.Base, call: call}, nil
	}
	plan, err := driver.NewPlan(p, 1, func(int) driver.Dial { return dial })
	if err != nil {
		b.Fatal(err)
	}
	plan.Groups[0].Pacer = pacer
	cpu := make(chan time.Duration, 1)
	plan.OnClock = func(time.Time) {
		from := processorTime(b)
		time.AfterFunc(paceFor, func() { cpu <- processorTime(b) - from })
	}
	c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog, Sinks: []metrics.Sink{sink}})
	r := driver.New(plan, c, nopLog())
	if err := r.Run(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	used = <-cpu
	if err := r.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	return used
}

// benchmarkTimers waits for each arrival with a timer of its own.
func benchmarkTimers(b *testing.B, rate int) {
	b.Helper()
	n := int(float64(rate) * paceFor.Seconds())
	sink := &latenesses{late: make([]time.Duration, 0, b.N*n)}
	var used time.Duration
	for range b.N {
		from, start := processorTime(b), time.Now()
		for i := range n {
			intended := time.Duration(i) * time.Second / time.Duration(rate)
			if left := intended - time.Since(start); left > 0 {
				<-time.NewTimer(left).C
			}
			sink.late = append(sink.late, time.Since(start)-intended)
		}
		used += processorTime(b) - from
	}
	sink.report(b, used)
}

// latenesses is a sink that keeps how late each iteration was released.
type latenesses struct {
	late      []time.Duration
	completed int
}

func (l *latenesses) Write(batch []metrics.Sample) error {
	for i := range batch {
		if s := &batch[i]; s.Kind == metrics.KindIteration {
			l.late = append(l.late, s.Release-s.Intended)
			if s.IterOutcome() == metrics.IterCompleted {
				l.completed++
			}
		}
	}
	return nil
}

func (l *latenesses) Close() error { return nil }

// report tells the lateness in microseconds and the processor time as a share of one.
func (l *latenesses) report(b *testing.B, used time.Duration) {
	b.Helper()
	if len(l.late) == 0 {
		b.Fatal("no arrivals")
	}
	slices.Sort(l.late)
	for _, q := range []struct {
		permille int
		unit     string
	}{{500, "p50-µs"}, {990, "p99-µs"}, {999, "p99.9-µs"}} {
		rank := (len(l.late)*q.permille + 999) / 1000
		b.ReportMetric(float64(l.late[rank-1].Nanoseconds())/1e3, q.unit)
	}
	b.ReportMetric(100*used.Seconds()/(float64(b.N)*paceFor.Seconds()), "%core")
	b.ReportMetric(float64(len(l.late))/float64(b.N), "arrivals")
	b.ReportMetric(0, "ns/op") // the length of a round, which is given
}

// stub is a session that does nothing but call.
type stub struct {
	base time.Time
	call stubCall
}

type stubCall func(ctx context.Context) error

func instant(context.Context) error { return nil }

func hanging(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (s *stub) Call(ctx context.Context, _ mcp.Request) (mcp.Reply, error) {
	start := time.Since(s.base)
	err := s.call(ctx)
	end := time.Since(s.base)
	return mcp.Reply{Timing: mcp.Timing{Start: start, FirstByte: end, End: end}, Rounds: 1}, err
}

func (s *stub) Info() mcp.Info              { return mcp.Info{Transport: "http", Version: mcp.V20251125} }
func (s *stub) Close(context.Context) error { return nil }

// processorTime is that of this process so far, user and system.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Error(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
