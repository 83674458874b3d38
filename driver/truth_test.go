package driver_test

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/driver"
	"mcpbench/internal/curve"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// measure runs l to its end and returns the rows and the summary.
func (l load) measure(t *testing.T) (*keep, *metrics.Summary) {
	t.Helper()
	plan, sink := l.plan(t), &keep{}
	c := metrics.NewCollector(metrics.CollectorConfig{Catalog: plan.Catalog, Sinks: []metrics.Sink{sink}, Warmup: plan.Warmup})
	r := driver.New(plan, c, nopLog())
	if err := r.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sink, c.Summary(metrics.RunInfo{MeasuredEnd: r.MeasuredEnd(), SessionOpened: true})
}

// station is a server in virtual time: the k-th request takes work[k] of its time,
// which stands still in the freezes.
type station struct {
	work    func(k int64) time.Duration
	freezes []window // offsets, in order
}

type window struct{ from, to time.Duration }

// end is when work that starts at start is done.
func (s *station) end(start, work time.Duration) time.Duration {
	at := start
	for _, f := range s.freezes {
		if f.to <= at {
			continue
		}
		if f.from >= at+work {
			break
		}
		if f.from > at {
			work -= f.from - at
		}
		at = f.to
	}
	return at + work
}

func (s *station) server(began func() time.Time) *server {
	return &server{answer: func(ctx context.Context, call int64) error {
		now := time.Since(began())
		return wait(ctx, s.end(now, s.work(call-1))-now)
	}}
}

// freeTimes is a heap of the times at which sessions are free.
type freeTimes []time.Duration

func (f freeTimes) Len() int           { return len(f) }
func (f freeTimes) Less(i, j int) bool { return f[i] < f[j] }
func (f freeTimes) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *freeTimes) Push(x any)        { *f = append(*f, x.(time.Duration)) }
func (f *freeTimes) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}

// queue is the oracle: what arrivals at the given times take on so many sessions, in
// order, whichever is free first.
func (s *station) queue(arrivals []time.Duration, sessions int) (latency, service []time.Duration) {
	free := make(freeTimes, sessions)
	for k, at := range arrivals {
		start := max(at, free[0])
		end := s.end(start, s.work(int64(k)))
		latency, service = append(latency, end-at), append(service, end-start)
		free[0] = end
		heap.Fix(&free, 0)
	}
	return latency, service
}

// agrees compares figures with sorted values, nearest rank, to the three digits of
// the histograms; the ends are exact.
func agrees(t *testing.T, what string, got *metrics.Quantiles, values []time.Duration) {
	t.Helper()
	slices.Sort(values)
	n := len(values)
	if got.Count != int64(n) {
		t.Fatalf("%s: %d values, want %d", what, got.Count, n)
	}
	at := func(q float64) float64 {
		return float64(values[max(int(math.Ceil(q*float64(n)/100)), 1)-1]) / float64(time.Millisecond)
	}
	const precision = 1e-3
	for _, f := range []struct {
		name      string
		got, want float64
		within    float64
	}{
		{"min", got.Min, at(0), 1e-9},
		{"p50", got.P50, at(50), precision},
		{"p90", got.P90, at(90), precision},
		{"p99", got.P99, at(99), precision},
		{"p99.9", got.P999, at(99.9), precision},
		{"max", got.Max, at(100), 1e-9},
	} {
		if math.Abs(f.got-f.want) > f.within*f.want {
			t.Errorf("%s: %s is %v ms, want %v", what, f.name, f.got, f.want)
		}
	}
}

// jitter keeps two requests from ending at the same moment, when it would be open
// which session is the next.
func jitter(k int64) time.Duration { return time.Duration(k*7919%1009) * time.Nanosecond }

// TestLatencyIsThatOfTheQueue holds every figure against a queue simulated by hand,
// for servers that are steady, uneven, that freeze and that are away for a while, with
// so few sessions that arrivals wait and so many that none does.
func TestLatencyIsThatOfTheQueue(t *testing.T) {
	const ms = time.Millisecond
	var freezes []window
	for at := 500 * ms; at < 30*second; at += 1700 * ms {
		freezes = append(freezes, window{at, at + 400*ms})
	}
	stations := []struct {
		name string
		station
	}{
		{"steady", station{work: func(k int64) time.Duration { return 2*ms + jitter(k) }}},
		{"uneven", station{work: func(k int64) time.Duration {
			if k%20 == 7 {
				return 20*ms + jitter(k)
			}
			return ms + jitter(k)
		}}},
		{"freezing", station{work: func(k int64) time.Duration { return ms + jitter(k) }, freezes: freezes}},
		{"away", station{work: func(k int64) time.Duration { return ms + jitter(k) }, freezes: []window{{second, 3 * second}}}},
	}
	for _, process := range []string{"constant", "poisson"} {
		for _, rate := range []float64{500, 5000} {
			for _, s := range stations {
				for _, spare := range []float64{1.25, 50} {
					if testing.Short() && rate > 500 {
						continue // the race detector takes ten times as long
					}
					sessions := int(rate * 0.002 * spare)
					t.Run(fmt.Sprintf("%s %g/s %s %d sessions", process, rate, s.name, sessions), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { queueCase(t, process, rate, s.station, sessions) })
					})
				}
			}
		}
	}
}

func queueCase(t *testing.T, process string, rate float64, s station, sessions int) {
	t.Helper()
	duration := time.Duration(4_000/rate*float64(second)) + 500*time.Millisecond
	g := open(rate, sessions, duration)
	g.Process = process
	began := time.Now() // virtual time stands still while the sessions are opened
	rows, summary := load{group: g, server: s.server(func() time.Time { return began }), grace: time.Minute}.measure(t)
	iterations := rows.of(metrics.KindIteration)
	slices.SortFunc(iterations, func(a, b metrics.Sample) int { return int(a.Iteration) - int(b.Iteration) })
	arrivals := make([]time.Duration, len(iterations))
	for k := range iterations {
		it := &iterations[k]
		arrivals[k] = it.Intended
		if it.Iteration != uint64(k) || it.Release != it.Intended || it.Start < it.Release {
			t.Fatalf("arrival %d: intended %v, released %v, started %v", k, it.Intended, it.Release, it.Start)
		}
		if want := time.Duration(float64(k) / rate * float64(second)); process == "constant" && (it.Intended-want).Abs() > 1 {
			t.Fatalf("arrival %d intended at %v, want %v", k, it.Intended, want)
		}
	}
	if want := rate * duration.Seconds(); process == "constant" && float64(len(arrivals)) != want || math.Abs(float64(len(arrivals))-want) > 4*math.Sqrt(want) {
		t.Errorf("%d arrivals, want %g", len(arrivals), want)
	}
	latency, service := s.queue(arrivals, sessions)
	step := summary.Steps[0]
	agrees(t, "latency", step.Latency, latency)
	agrees(t, "service time", step.Service, service)
}

// TestResponseTimesOfMM1: Poisson arrivals at one session whose service times are
// exponential. The response time is then exponential with the rate µ - λ (M/M/1, first
// come first served). The sampling error counts the arrivals as what they are,
// correlated: 4 standard errors from the means of 50 batches, each much longer than
// the queue remembers.
func TestResponseTimesOfMM1(t *testing.T) {
	for _, load100 := range []int{50, 80, 90} {
		t.Run(fmt.Sprintf("%d%%", load100), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := int64(100_000)
				if testing.Short() {
					n = 20_000 // the race detector takes ten times as long
				}
				const mu = 1000.0
				lambda := mu * float64(load100) / 100
				rng := rand.New(rand.NewPCG(7, uint64(load100)))
				s := &server{answer: func(ctx context.Context, _ int64) error { // one at a time
					return wait(ctx, time.Duration(rng.ExpFloat64()/mu*float64(second)))
				}}
				g := open(lambda, 1, 0)
				g.Process, g.Iterations = "poisson", n
				rows, _ := load{group: g, server: s, grace: time.Hour}.measure(t)
				latencies := make([]float64, n)
				for _, it := range rows.of(metrics.KindIteration) {
					latencies[it.Iteration] = it.Latency().Seconds()
				}
				rate := mu - lambda
				within(t, "mean", latencies, 1/rate, func(x float64) float64 { return x })
				for _, q := range []float64{0.5, 0.9, 0.99} {
					limit := -math.Log(1-q) / rate // the quantile of the exponential distribution
					within(t, fmt.Sprintf("share below p%g", 100*q), latencies, q, func(x float64) float64 {
						if x <= limit {
							return 1
						}
						return 0
					})
				}
			})
		})
	}
}

// within compares the mean of what of makes of the values with want, to 4 standard
// errors as the means of batches show them.
func within(t *testing.T, what string, values []float64, want float64, of func(float64) float64) {
	t.Helper()
	const batches = 50
	size := len(values) / batches
	means := make([]float64, batches)
	var mean float64
	for i := range means {
		for _, v := range values[i*size : (i+1)*size] {
			means[i] += of(v) / float64(size)
		}
		mean += means[i] / batches
	}
	var variance float64
	for _, m := range means {
		variance += (m - mean) * (m - mean) / (batches - 1)
	}
	if e := math.Sqrt(variance / batches); math.Abs(mean-want) > 4*e {
		t.Errorf("%s is %.5g, want %.5g ± %.2g", what, mean, want, 4*e)
	}
}

// TestWaitOfMM4 compares the mean time in the queue with Erlang's formula C.
func TestWaitOfMM4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mu, lambda, c = 100.0, 320.0, 4
		n := int64(100_000)
		if testing.Short() {
			n = 20_000 // the race detector takes ten times as long
		}
		s := &server{answer: func(ctx context.Context, call int64) error {
			r := rand.New(rand.NewPCG(11, uint64(call)))
			return wait(ctx, time.Duration(r.ExpFloat64()/mu*float64(second)))
		}}
		g := open(lambda, c, 0)
		g.Process, g.Iterations = "poisson", n
		rows, _ := load{group: g, server: s, grace: time.Hour}.measure(t)
		waits := make([]float64, n)
		for _, it := range rows.of(metrics.KindIteration) {
			waits[it.Iteration] = (it.Start - it.Intended).Seconds()
		}
		offered := lambda / mu
		term, sum := 1.0, 0.0
		for k := range c {
			sum += term
			term *= offered / float64(k+1)
		}
		busy := term / (1 - offered/c)
		within(t, "mean wait", waits, busy/(sum+busy)/(c*mu-lambda), func(x float64) float64 { return x })
	})
}

// TestClosedLoadObeysItsLaw: N sessions that think for Z and are served in S without a
// queue make N / (Z + S) iterations a second; behind one server at a time they make no
// more than 1/S, and wait.
func TestClosedLoadObeysItsLaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := closed(20, 100*second, 0)
		g.Think = scenarios.Constant(90 * time.Millisecond)
		rows, _ := load{group: g, server: &server{answer: takes(10 * time.Millisecond)}}.measure(t)
		if n := rows.iterations()["completed"]; n < 20*999 || n > 20*1000 {
			t.Errorf("%d iterations, want 20000", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		one := make(chan struct{}, 1)
		s := &server{answer: func(ctx context.Context, _ int64) error {
			one <- struct{}{}
			defer func() { <-one }()
			return wait(ctx, 10*time.Millisecond)
		}}
		g := closed(20, 100*second, 0)
		g.Think = scenarios.Constant(90 * time.Millisecond)
		rows, summary := load{group: g, server: s, grace: second}.measure(t)
		if n := rows.iterations()["completed"]; n < 9_990 || n > 10_020 {
			t.Errorf("%d iterations, want 10000: the server's most", n)
		}
		// Response time law: R = N/X - Z.
		if p50 := summary.Steps[0].Latency.P50; math.Abs(p50-110) > 1 {
			t.Errorf("p50 is %v ms, want 110", p50)
		}
	})
}

// TestHoursOfStages runs hours of ramps, of churn and of storms.
func TestHoursOfStages(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector takes a minute for it, and the tests of each kind show it the same code")
	}
	const hours = 3
	var stages []curve.Stage
	for range hours {
		stages = append(stages, to(8, 20*time.Minute, 10*time.Minute), to(2, 20*time.Minute, 10*time.Minute))
	}
	for _, tt := range []struct {
		name  string
		group scenarios.Group
		want  map[string]int // ends of sessions
	}{
		// 6 sessions come and go in each hour; the first ramp begins at 2.
		{"stages", staged(2, stages...), map[string]int{"ramp_down": hours * 6, "run_end": 2}},
		{"churn", func() scenarios.Group {
			g := closed(5, hours*time.Hour, 0)
			g.Life.Churn = 1.0 / 60
			return g
		}(), map[string]int{"churn": hours*60 - 1, "run_end": 5}},
		{"storms", func() scenarios.Group {
			g := closed(5, hours*time.Hour, 0)
			g.Life.StormEvery, g.Life.StormShare = 20*time.Minute, 0.5
			return g
		}(), map[string]int{"storm": (hours*3 - 1) * 3, "run_end": 5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.group.Think = scenarios.Constant(time.Minute)
				rows, _ := load{group: tt.group, server: &server{answer: takes(time.Second)}, grace: time.Minute}.measure(t)
				_, _, reasons := rows.spans()
				wantCounts(t, "ends of sessions", reasons, tt.want)
				if n := rows.iterations(); len(n) != 1 {
					t.Errorf("iterations %v", n)
				}
			})
		})
	}
}

// TestAgesOfOpenRequests: of requests that are open at the end it is known for how
// long: three that began 100 ms apart, cut half a second after the last.
func TestAgesOfOpenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(10, 3, 300*time.Millisecond)
		_, summary := load{group: g, server: &server{answer: hang}, grace: 400 * time.Millisecond}.measure(t)
		ages := []time.Duration{500 * time.Millisecond, 600 * time.Millisecond, 700 * time.Millisecond}
		agrees(t, "open", summary.Requests.Open, ages)
	})
}
