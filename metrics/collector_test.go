package metrics_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
)

// request is an ok request of a closed load on the benchCatalog.
func request(end, took time.Duration) metrics.Sample {
	return metrics.Sample{
		Kind: metrics.KindStep, Intended: metrics.NoOffset, Release: metrics.NoOffset,
		Start: end - took, FirstByte: end, End: end, Rounds: 1,
	}
}

// secondsOf sums the counts of the intervals by second.
func secondsOf(rows []metrics.Interval) map[int64]int64 {
	out := map[int64]int64{}
	for _, r := range rows {
		out[r.Second] += r.Count
	}
	return out
}

func TestSampleReachesTheSinkWithin100ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &oracleSink{start: time.Now()}
		c, stop := startCollector(t, metrics.CollectorConfig{Catalog: benchCatalog(), Sinks: []metrics.Sink{sink}})
		t0 := time.Now()
		c.StartClock(t0)
		for _, at := range []time.Duration{10, 99, 130, 777, 2501} {
			time.Sleep(time.Until(t0.Add(at * time.Millisecond)))
			c.Record(request(time.Since(t0), time.Millisecond))
		}
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		if len(sink.samples) != 5 {
			t.Fatalf("%d samples arrived, want 5", len(sink.samples))
		}
		i := 0
		for k, n := range sink.batches {
			for range n {
				if late := sink.at[k].Sub(t0) - sink.samples[i].End; late > 100*time.Millisecond {
					t.Errorf("a sample of %v arrived %v later", sink.samples[i].End, late)
				}
				i++
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if sink.closed != 1 {
			t.Errorf("the sink was closed %d times", sink.closed)
		}
	})
}

func TestFullSlabIsHandedOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &oracleSink{start: time.Now()}
		c, stop := startCollector(t, metrics.CollectorConfig{Catalog: benchCatalog(), Sinks: []metrics.Sink{sink}})
		c.StartClock(time.Now())
		for range 1024 {
			c.Record(request(0, 0))
		}
		synctest.Wait() // no time passes
		if want := []int{1024}; !slices.Equal(sink.batches, want) {
			t.Errorf("batches of %v samples, want %v", sink.batches, want)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSecondsAreHandedOverOneSecondLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &oracleSink{start: time.Now()}
		c, stop := startCollector(t, metrics.CollectorConfig{Catalog: benchCatalog(), Sinks: []metrics.Sink{sink}})
		setup := request(-20*time.Millisecond, time.Millisecond)
		setup.Phase = metrics.PhaseSetup
		c.Record(setup)
		t0 := time.Now()
		c.StartClock(t0)
		// One request each 100 ms for 3.5 s.
		for i := range 35 {
			time.Sleep(time.Until(t0.Add(time.Duration(i)*100*time.Millisecond + 50*time.Millisecond)))
			c.Record(request(time.Since(t0), time.Millisecond))
		}
		synctest.Wait()
		if diff := cmp.Diff(map[int64]int64{-1: 1000, 0: 2000, 1: 3000}, sink.wroteAt); diff != "" {
			t.Errorf("ms at which the seconds came (-want +got):\n%s", diff)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[int64]int64{-1: 1, 0: 10, 1: 10, 2: 10, 3: 5}, secondsOf(sink.intervals)); diff != "" {
			t.Errorf("requests by second (-want +got):\n%s", diff)
		}
	})
}

// TestStragglerCountsInAnOpenSecond records a request whose second was handed over long ago.
func TestStragglerCountsInAnOpenSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &oracleSink{start: time.Now()}
		c, stop := startCollector(t, metrics.CollectorConfig{Catalog: benchCatalog(), Sinks: []metrics.Sink{sink}})
		c.StartClock(time.Now())
		time.Sleep(5500 * time.Millisecond)
		c.Record(request(time.Second, time.Millisecond))
		c.Record(request(5400*time.Millisecond, time.Millisecond))
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		// At 5.5 s the seconds up to 3 are gone.
		if diff := cmp.Diff(map[int64]int64{4: 1, 5: 1}, secondsOf(sink.intervals)); diff != "" {
			t.Errorf("requests by second (-want +got):\n%s", diff)
		}
		s := c.Summary(metrics.RunInfo{SessionOpened: true})
		if s.Requests.Total != 2 {
			t.Errorf("%d requests in the summary, want 2", s.Requests.Total)
		}
	})
}

// TestLoadRowsAreDifferencesOfTheGauges runs a driver that starts 10 arrivals
// a second and completes them 100 ms later.
func TestLoadRowsAreDifferencesOfTheGauges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &oracleSink{start: time.Now()}
		var started, completed atomic.Int64
		gauges := func(int) metrics.Gauges {
			return metrics.Gauges{
				Intended: started.Load(), Started: started.Load(), Completed: completed.Load(),
				SessionsWanted: 2, SessionsActive: 1, InFlight: int(started.Load() - completed.Load()),
			}
		}
		c, stop := startCollector(t, metrics.CollectorConfig{
			Catalog: benchCatalog(), Sinks: []metrics.Sink{sink}, Gauges: gauges, Warmup: time.Second,
		})
		t0 := time.Now()
		c.StartClock(t0)
		for i := range 25 {
			intended := time.Duration(i) * 100 * time.Millisecond
			time.Sleep(time.Until(t0.Add(intended + 20*time.Millisecond)))
			started.Add(1)
			s := request(intended+120*time.Millisecond, 100*time.Millisecond)
			s.Kind, s.Step = metrics.KindIteration, metrics.NoStep
			s.Intended, s.Release = intended, intended+5*time.Millisecond
			if intended < time.Second {
				s.Phase = metrics.PhaseWarmup
			}
			time.Sleep(time.Until(t0.Add(s.End - time.Millisecond)))
			completed.Add(1)
			c.Record(s)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		type row struct {
			Second                                 int64
			Phase                                  string
			Started, Completed, Lateness, InFlight int64
		}
		var got []row
		for _, r := range sink.load {
			got = append(got, row{r.Second, r.Phase.String(), r.Started, r.Completed, r.Lateness.TotalCount(), int64(r.InFlight)})
			if r.Lateness.TotalCount() != r.Queued.TotalCount() || r.SessionsWanted != 2 || r.SessionsActive != 1 {
				t.Errorf("row %+v", r)
			}
		}
		// The arrival of 0.9 s ends at 1.02 s, in the first measured second, whose
		// row of the phase warm-up holds it.
		want := []row{
			{0, "warmup", 10, 9, 9, 1},
			{1, "measured", 10, 10, 9, 1},
			{1, "warmup", 0, 0, 1, 1},
			{2, "measured", 5, 6, 6, 0},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("load rows (-want +got):\n%s", diff)
		}
		s := c.Summary(metrics.RunInfo{SessionOpened: true, MeasuredEnd: 2500 * time.Millisecond})
		if l := s.Load[0]; l.Intended != 15 || l.Lateness.Count != 15 || l.Sessions != 2 || l.RatePerS != 10 {
			t.Errorf("load of the summary %+v", l)
		}
		exact(t, "lateness p99 ms", s.Load[0].Lateness.Max, 5)
		exact(t, "queued p99 ms", s.Load[0].Queued.Max, 15)
	})
}

// TestGaugesReachTheSinkTenTimesASecond: the readings in between tell, after a
// kill, what the load rows do not say yet, and the last is what they add up to.
func TestGaugesReachTheSinkTenTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &oracleSink{start: time.Now()}
		t0 := time.Now()
		gauges := func(int) metrics.Gauges { return metrics.Gauges{Intended: int64(time.Since(t0) / time.Millisecond)} }
		tallies := func() metrics.Tallies {
			return metrics.Tallies{Anomalies: map[string]int64{"odd_event": int64(time.Since(t0) / time.Millisecond)}}
		}
		c, stop := startCollector(t, metrics.CollectorConfig{Catalog: benchCatalog(), Sinks: []metrics.Sink{sink}, Gauges: gauges, Tallies: tallies})
		c.StartClock(t0)
		time.Sleep(2550 * time.Millisecond)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		var want, got []int64
		for at := int64(100); at <= 2500; at += 100 {
			want = append(want, at)
		}
		want = append(want, 2550)
		sum := int64(0)
		for _, r := range sink.load {
			sum += r.Intended
		}
		for i, at := range sink.gaugesAt {
			if got = append(got, sink.gauges[i].Intended); at.Milliseconds() != got[i] {
				t.Errorf("the reading of %v says %d", at, got[i])
			}
			if n := sink.tallies[i].Anomalies["odd_event"]; n != at.Milliseconds() {
				t.Errorf("the tallies of %v say %d", at, n)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || sum != 2550 {
			t.Errorf("the load rows add up to %d, want 2550; readings in ms (-want +got):\n%s", sum, diff)
		}
	})
}

// TestMissedGaugeReadingsLoseNothing has a sink that blocks for some seconds.
func TestMissedGaugeReadingsLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &oracleSink{start: time.Now(), hold: make(chan struct{})}
		t0 := time.Now()
		gauges := func(int) metrics.Gauges { return metrics.Gauges{Started: int64(time.Since(t0) / time.Second)} }
		c, stop := startCollector(t, metrics.CollectorConfig{Catalog: benchCatalog(), Sinks: []metrics.Sink{sink}, Gauges: gauges})
		c.StartClock(t0)
		time.Sleep(1500 * time.Millisecond)
		c.Record(request(1500*time.Millisecond, time.Millisecond))
		time.Sleep(3 * time.Second)
		close(sink.hold)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, r := range sink.load {
			got = append(got, r.Started)
		}
		if want := []int64{1, 0, 0, 3, 0}; !slices.Equal(got, want) {
			t.Errorf("started by second %v, want %v", got, want)
		}
	})
}

func TestSlabExhaustionWaitsAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &oracleSink{start: time.Now(), hold: make(chan struct{})}
		c, stop := startCollector(t, metrics.CollectorConfig{
			Catalog: benchCatalog(), Sinks: []metrics.Sink{sink}, SlabLimit: 2,
		})
		c.StartClock(time.Now())
		var recorded atomic.Int64
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 5000 {
				c.Record(request(0, 0))
				recorded.Add(1)
			}
		})
		synctest.Wait() // the caller waits: the sink holds one slab, the channel the other
		if n := recorded.Load(); n != 2048 {
			t.Errorf("%d samples were taken by two slabs, want 2048", n)
		}
		close(sink.hold)
		wg.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(sink.samples) != 5000 {
			t.Errorf("%d samples arrived, want 5000", len(sink.samples))
		}
		s := c.Summary(metrics.RunInfo{SessionOpened: true})
		if s.Soundness.Verdict != metrics.Unsound || len(s.Soundness.Reasons) != 1 {
			t.Errorf("soundness %+v, want unsound for the wait", s.Soundness)
		}
	})
}

var errDisk = errors.New("disk full")

func TestFailedSinkGetsNothingMoreAndTheOthersAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := &oracleSink{start: time.Now(), fail: errDisk, failFrom: 2, failEnd: errors.New("later")}
		good := &oracleSink{start: time.Now()}
		c, stop := startCollector(t, metrics.CollectorConfig{Catalog: benchCatalog(), Sinks: []metrics.Sink{bad, good}})
		t0 := time.Now()
		c.StartClock(t0)
		for range 5 {
			time.Sleep(time.Second)
			c.Record(request(time.Since(t0), time.Millisecond))
		}
		err := stop()
		if !errors.Is(err, errDisk) {
			t.Errorf("Run returned %v, want the first error", err)
		}
		if len(bad.batches) != 2 || len(good.samples) != 5 {
			t.Errorf("%d writes to the failed sink and %d samples in the other, want 2 and 5", len(bad.batches), len(good.samples))
		}
		if bad.closed != 1 || good.closed != 1 {
			t.Errorf("closed %d and %d times", bad.closed, good.closed)
		}
		if n := secondsOf(good.intervals); len(n) != 5 {
			t.Errorf("intervals of %d seconds in the other sink, want 5", len(n))
		}
		s := c.Summary(metrics.RunInfo{SessionOpened: true})
		if s.ExitCode != 1 || s.Verdict != "error" || s.Error != "write samples: disk full" {
			t.Errorf("exit code %d, verdict %s, error %q", s.ExitCode, s.Verdict, s.Error)
		}
	})
}

func TestSnapshotEveryHalfSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gauges := func(int) metrics.Gauges { return metrics.Gauges{SessionsActive: 3, InFlight: 2} }
		c, stop := startCollector(t, metrics.CollectorConfig{Catalog: benchCatalog(), Gauges: gauges})
		if s := c.Snapshot(); s == nil || s.Elapsed != 0 || s.Requests != 0 {
			t.Fatalf("first snapshot %+v", s)
		}
		time.Sleep(730 * time.Millisecond)
		t0 := time.Now()
		c.StartClock(t0)
		seen := map[*metrics.Snapshot]bool{}
		for i := range 200 {
			s := request(time.Since(t0), 10*time.Millisecond)
			if i%4 == 0 {
				s.Outcome = metrics.ToolError
			}
			c.Record(s)
			time.Sleep(20 * time.Millisecond)
			seen[c.Snapshot()] = true
		}
		time.Sleep(250 * time.Millisecond)
		s := c.Snapshot()
		if s.Requests != 200 || s.OK != 150 || s.Failed != 50 || s.RatePerS != 50 || s.Sessions != 3 || s.InFlight != 2 {
			t.Errorf("snapshot %+v", s)
		}
		within(t, "p99", s.P99, 10*time.Millisecond, 2)
		if s.Elapsed != 4200*time.Millisecond {
			t.Errorf("elapsed %v, want 4.2s", s.Elapsed)
		}
		if len(seen) < 8 || len(seen) > 10 {
			t.Errorf("%d snapshots in 4 s, want about 9", len(seen))
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}
