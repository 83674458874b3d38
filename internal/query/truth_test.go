package query_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"mcpbench/metrics"
)

const truthScenario = `version: 1
name: truth
servers: {a: {transport: http, url: "http://127.0.0.1:1/", protocol: "2025-11-25"}}
load:
  groups:
    main: {duration: %ds, server: a, flow: f, arrivals: {rate: %d/s}, max_sessions: %d}
flows:
  f:
    steps:
      - tools/call: {name: echo, arguments: {%s: "${{ %s }}"}}
`

// truthRun makes the load in real time, with one argument for each call, and returns its
// rows as the view r. A run that is not sound says nothing: the machine was busy.
func truthRun(t *testing.T, url, name, value string, seconds, rate, sessions int) *sql.DB {
	t.Helper()
	dir := t.TempDir()
	file, results := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "results")
	if err := os.WriteFile(file, fmt.Appendf(nil, truthScenario, seconds, rate, sessions, name, value), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), mcpbench, "run", file, "--url", url, "-o", results).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) {
		t.Fatalf("%v\n%s", err, text)
	}
	run := onlyRun(t, results)
	var summary metrics.Summary
	data, err := os.ReadFile(filepath.Join(run, "summary.json"))
	if err := errors.Join(err, json.Unmarshal(data, &summary)); err != nil {
		t.Fatal(err)
	}
	if summary.Soundness.Verdict != metrics.Sound {
		t.Skipf("the machine was too busy: %s %v", summary.Soundness.Verdict, summary.Soundness.Reasons)
	}
	t.Logf("lateness p99 %v ms", summary.Soundness.Lateness.P99)
	db := open(t)
	view(t, db, "r", run, "requests")
	equal(t, "requests that were ok", one[int64](t, db, `SELECT count(*) FROM r WHERE outcome = 'ok'`), int64(seconds*rate))
	equal(t, "rows", one[int64](t, db, `SELECT count(*) FROM r`), int64(seconds*rate))
	return db
}

// inRealTime leaves a test to those who ask for it: what it says depends on what else
// the machine does. The same is shown in virtual time by the driver's tests.
func inRealTime(t *testing.T) {
	t.Helper()
	if os.Getenv("TRUTH_SECONDS") == "" {
		t.Skip("TRUTH_SECONDS is not set: .ci/long truth runs it, on a quiet machine")
	}
}

// TestServiceTimeIsTheServersOwn compares the service time of each row with what the
// server took for the same call by its own clock: 0 to 1 ms more for the way there and back.
// TRUTH_SECONDS (3 by default) is the length of the load.
func TestServiceTimeIsTheServersOwn(t *testing.T) {
	inRealTime(t)
	s := &timed{took: map[int64]time.Duration{}, rng: rand.New(rand.NewPCG(1, 2)), fake: fake{answered: map[int64]time.Time{}}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	db := truthRun(t, server.URL, "n", "iteration.index", number(t, "TRUTH_SECONDS", 3), 200, 32)
	var beyond []time.Duration
	for _, row := range query(t, db, `SELECT iteration, service_ns FROM r`) {
		n := row["iteration"].(int64)
		took, ok := s.took[n]
		if !ok {
			t.Errorf("the server has not seen call %d", n)
		}
		beyond = append(beyond, time.Duration(row["service_ns"].(int64))-took)
	}
	slices.Sort(beyond)
	t.Logf("service time beyond the server's own: min %v, p50 %v, p90 %v, p99.9 %v, max %v",
		beyond[0], rank(beyond, 500), rank(beyond, 900), rank(beyond, 999), rank(beyond, 1000))
	if beyond[0] < 0 {
		t.Errorf("a row has a service time of %v less than the server took", -beyond[0])
	}
	for _, permille := range []int{500, 900} {
		if d := rank(beyond, permille); d > time.Millisecond {
			t.Errorf("quantile %v: %v beyond the server's own time, want up to 1 ms", float64(permille)/1000, d)
		}
	}
}

// rank is the nearest rank of sorted durations.
func rank(sorted []time.Duration, permille int) time.Duration {
	return sorted[(len(sorted)*permille+999)/1000-1]
}

// timed is a fake that takes a random time of up to 20 ms for a call, and notes it.
type timed struct {
	fake

	lock sync.Mutex
	rng  *rand.Rand
	took map[int64]time.Duration
}

func (s *timed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var m struct {
		Params struct{ Arguments struct{ N *int64 } }
	}
	if json.Unmarshal(body, &m) == nil && m.Params.Arguments.N != nil {
		s.lock.Lock()
		pause := time.Duration(s.rng.Int64N(int64(20 * time.Millisecond)))
		s.lock.Unlock()
		time.Sleep(pause) // in real time: that is what is measured
		s.lock.Lock()
		s.took[*m.Params.Arguments.N] = time.Since(from)
		s.lock.Unlock()
	}
	s.fake.ServeHTTP(w, r)
}

// TestLatencyOfAFreezeIsThatOfItsQueue compares the latencies of a server that stands
// still for 400 ms after each 600 calls with those of a queue that is computed. The median
// is then of a time without a queue, and the others of one with.
func TestLatencyOfAFreezeIsThatOfItsQueue(t *testing.T) {
	inRealTime(t)
	const rate, sessions = 200, 40
	seconds := max(6, number(t, "TRUTH_SECONDS", 3))
	target := startTarget(t, "--delay", "100ms", "--freeze", "every=600,for=400ms")
	db := truthRun(t, target.url, "message", "string(iteration.index)", seconds, rate, sessions)
	q := frozenQueue{delay: 100 * time.Millisecond, every: 600, freeze: 400 * time.Millisecond, free: sessions}
	want := q.latencies(seconds*rate, time.Second/rate)
	slices.Sort(want)
	var got []time.Duration
	for _, row := range query(t, db, `SELECT latency_ns FROM r ORDER BY latency_ns`) {
		got = append(got, time.Duration(row["latency_ns"].(int64)))
	}
	for _, permille := range []int{500, 900, 990} {
		g, w := rank(got, permille), rank(want, permille)
		off := float64(g-w) / float64(w)
		t.Logf("quantile %v: %v, computed %v: %+.2f %%", float64(permille)/1000, g, w, 100*off)
		if off < -0.05 || off > 0.05 {
			t.Errorf("quantile %v: %v, want %v within 5 %%", float64(permille)/1000, g, w)
		}
	}
}

// frozenQueue computes latencies: each arrival takes a free session or waits for one;
// a call waits for the end of a freeze before and after its delay, and each so many
// answers begin a freeze.
type frozenQueue struct {
	delay, freeze time.Duration
	every, free   int

	frozen   time.Duration // until then
	answered int
	events   []queueEvent // by time, those of the same time in the order in which they came
	waiting  []int        // arrivals without a session
}

type queueEvent struct {
	at   time.Duration
	call int
	kind queueEventKind
}

type queueEventKind uint8

const (
	arrives queueEventKind = iota
	begins
	ends
)

func (q *frozenQueue) add(e queueEvent) {
	i, _ := slices.BinarySearchFunc(q.events, e.at, func(have queueEvent, at time.Duration) int {
		if have.at <= at {
			return -1
		}
		return 1
	})
	q.events = slices.Insert(q.events, i, e)
}

func (q *frozenQueue) latencies(n int, interval time.Duration) []time.Duration {
	out := make([]time.Duration, n)
	for k := range n {
		q.add(queueEvent{at: time.Duration(k) * interval, call: k, kind: arrives})
	}
	for len(q.events) > 0 {
		e := q.events[0]
		q.events = q.events[1:]
		switch {
		case e.kind == arrives && q.free == 0:
			q.waiting = append(q.waiting, e.call)
		case e.kind == arrives:
			q.free--
			q.add(queueEvent{at: e.at, call: e.call, kind: begins})
		case e.at < q.frozen:
			q.add(queueEvent{at: q.frozen, call: e.call, kind: e.kind})
		case e.kind == begins:
			q.add(queueEvent{at: e.at + q.delay, call: e.call, kind: ends})
		default:
			out[e.call] = e.at - time.Duration(e.call)*interval
			if q.answered++; q.answered%q.every == 0 {
				q.frozen = e.at + q.freeze
			}
			q.free++
			if len(q.waiting) > 0 {
				q.free--
				q.add(queueEvent{at: e.at, call: q.waiting[0], kind: begins})
				q.waiting = q.waiting[1:]
			}
		}
	}
	return out
}
