package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbench/mcp"
)

// mixSessions are at work at once; over stdio where each is a node process only as
// many as the matrix has.
const mixSessions = 64

// mixed are the operations of the mix. list_changed is not among them: each would be
// told to all sessions.
var mixed = []string{
	"call", "call", "call", "call", "structured", "tool error", "unknown tool", "progress", "progress", "cancel", "timeout",
	"sampling", "elicitation", "url", "roots", "tools/list", "read", "subscribe", "prompts/get", "complete",
}

// TestMix does everything at once, on many sessions, for MIX_DURATION: in this process
// with the client, which must leave nothing behind, and with the command. Without
// MIX_DURATION it does so for a second with one server.
func TestMix(t *testing.T) {
	duration, long := time.Second, os.Getenv("MIX_DURATION") != ""
	if long {
		var err error
		if duration, err = time.ParseDuration(os.Getenv("MIX_DURATION")); err != nil {
			t.Fatalf("MIX_DURATION: %v", err)
		}
	}
	for _, s := range servers {
		t.Run(s.name+" "+s.transport, func(t *testing.T) {
			if !long && s.name != "go-sdk stateful" {
				t.Skip("it takes long: .ci/long mix")
			}
			var url string
			if s.url != nil {
				url = s.url(t)
			}
			for _, version := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
				if slices.Contains(s.speaks, string(version)) {
					t.Run(string(version)+" client", func(t *testing.T) { mixClient(t, s, url, version, duration) })
					t.Run(string(version)+" command", func(t *testing.T) { mixCommand(t, s, url, version, duration) })
				}
			}
		})
	}
}

// usable returns the operations of the mix that go well with a server, each tried once.
// What else they bring is the business of TestOperations.
func usable(t *testing.T, s server, url string, version mcp.Version) map[string]operation {
	t.Helper()
	r := newRow(t, s, url, version, mixEngine(s, 0))
	r.anomalies = map[string]string{}
	good := map[string]operation{}
	for _, o := range operations {
		r.op = o.name
		if err := r.ready(t.Context()); err != nil {
			t.Fatalf("%s: %v", r.name(), err)
		}
		if !slices.Contains(mixed, o.name) {
			continue
		}
		if err := o.try(t.Context(), r); err == nil || r.knownSometimes(o.name, err.Error()) {
			good[o.name] = o
		}
	}
	if err := r.s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return good
}

// knownSometimes tells whether what was seen depends on the moment only.
func (r *row) knownSometimes(operation, seen string) bool {
	o := r.known(operation, seen)
	return o != nil && o.sometimes
}

// mixEngine is that of a session: both are at work.
func mixEngine(s server, session int) string {
	if s.transport == "stdio" {
		return "-"
	}
	return engines[session%len(engines)]
}

// tally counts what came of the sessions of a mix.
type tally struct {
	requests, notifications, cancels atomic.Int64

	mu     sync.Mutex
	done   map[string]int // by operation
	wrong  map[string]int // by what was seen
	odd    int
	asked  map[string]int // by method
	strays map[string]string
}

// mixClient has sessions of the client pick operations by chance, and demands that
// nothing is left when they are closed.
func mixClient(t *testing.T, s server, url string, version mcp.Version, duration time.Duration) {
	t.Helper()
	good := usable(t, s, url, version)
	sessions := mixCount(s)
	goroutines, descriptors := runtime.NumGoroutine(), openFiles(t)
	c := &tally{done: map[string]int{}, wrong: map[string]int{}, asked: map[string]int{}, strays: map[string]string{}}
	mark := fmt.Sprintf("conformance-mix-%d", time.Now().UnixNano())
	var running sync.WaitGroup
	until := time.Now().Add(duration)
	rows := make([]*row, sessions)
	for i := range rows {
		rows[i] = newRow(t, s, url, version, mixEngine(s, i))
		rows[i].session, rows[i].tally = i, c
		if s.command != nil {
			command := s.command(t, mark)
			rows[i].to = &mcp.Stdio{Command: command[0], Args: command[1:], Grace: patience}
		}
		running.Go(func() { rows[i].mix(t.Context(), good, until) })
	}
	running.Wait()
	for _, r := range rows {
		r.settle(c)
	}
	c.check(t, slices.Collect(maps.Keys(good)))
	leftGoroutines, leftFiles := settled(t, goroutines, descriptors)
	if n := processesWith(t, mark); n > 0 {
		t.Errorf("%d processes of the server are left", n)
	}
	t.Logf("%d sessions: %d requests, %d cancelled, asked %v, %d notifications, %d odd; goroutines %d before and %d after, files %d and %d; anomalies %v",
		sessions, c.requests.Load(), c.cancels.Load(), c.asked, c.notifications.Load(), c.odd,
		goroutines, leftGoroutines, descriptors, leftFiles, slices.Sorted(maps.Keys(c.strays)))
}

func mixCount(s server) int {
	if s.name == "server-everything" && s.transport == "stdio" {
		return s.sessions
	}
	return mixSessions
}

// mix tries operations until the time has come, and closes the session.
func (r *row) mix(ctx context.Context, good map[string]operation, until time.Time) {
	r.anomalies = map[string]string{}
	r.keys = r.session * 1_000_000
	chance := rand.New(rand.NewPCG(1, uint64(r.session))) //nolint:gosec // G115: no session is negative
	for time.Now().Before(until) {
		o, ok := good[mixed[chance.IntN(len(mixed))]]
		if !ok {
			continue
		}
		r.op = o.name
		err := r.ready(ctx)
		if err == nil {
			err = o.try(ctx, r)
		}
		r.tally.note(r, o.name, err)
		if r.s == nil {
			return
		}
	}
	if r.s == nil {
		return
	}
	closing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.op = "close"
	if err := r.s.Close(closing); err != nil {
		r.tally.note(r, "close", err)
	}
}

func (c *tally) note(r *row, operation string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[operation]++
	if _, skipped := errors.AsType[skip](err); err == nil || skipped {
		return
	}
	if r.knownSometimes(operation, err.Error()) {
		c.odd++
		return
	}
	c.wrong[operation+": "+err.Error()]++
}

// count sees everything that goes over the wire.
func (c *tally) count(f mcp.Frame) {
	method, id := f.Names()
	switch {
	case f.Out && method != "" && id != "":
		c.requests.Add(1)
	case f.Out && method == "notifications/cancelled":
		c.cancels.Add(1)
	case !f.Out && strings.HasPrefix(method, "notifications/"):
		c.notifications.Add(1)
	}
}

// settle adds what a session that is over was told and asked.
func (r *row) settle(c *tally) {
	for kind, detail := range r.anomalies {
		if r.known("anomaly", kind+": "+detail) == nil {
			c.wrong["anomaly "+kind+": "+detail]++
		}
		c.strays[kind] = detail
	}
	for _, a := range r.asked {
		c.asked[a.Method]++
	}
}

// check demands that each operation was done and went well.
func (c *tally) check(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		if c.done[name] == 0 {
			t.Logf("%s was not done, in so short a time", name)
		}
	}
	shown := 0
	for text, n := range c.wrong {
		if shown++; shown <= 10 {
			t.Errorf("%d times %s", n, text)
		}
	}
	if shown > 10 {
		t.Errorf("and %d others", shown-10)
	}
}

// settled waits until no more goroutines and descriptors are there than before.
func settled(t *testing.T, goroutines, descriptors int) (leftGoroutines, leftFiles int) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // the runtime tells nobody
		leftGoroutines, leftFiles = runtime.NumGoroutine(), openFiles(t)
		if leftGoroutines <= goroutines && leftFiles <= descriptors {
			return leftGoroutines, leftFiles
		}
		if time.Since(began) > 10*time.Second {
			t.Errorf("%d goroutines and %d files before, %d and %d after", goroutines, descriptors, leftGoroutines, leftFiles)
			stacks := make([]byte, 1<<16)
			t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
			return leftGoroutines, leftFiles
		}
	}
}

// openFiles counts the descriptors of this process, on Linux.
func openFiles(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
