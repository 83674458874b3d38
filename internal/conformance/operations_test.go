package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbench/mcp"
)

// patience bounds each wait of an operation. Where oddities say that nothing will
// come, brief does.
const (
	patience = 15 * time.Second
	brief    = 500 * time.Millisecond
)

// rowsAtOnce is how many sessions are tried at the same time. They wait for most of
// their time.
const rowsAtOnce = 6

// operation is one thing that a client does, and what must come of it.
type operation struct {
	name string
	// try returns nil when all went as it should, a skip when it cannot be tried, and
	// otherwise what was seen.
	try func(ctx context.Context, r *row) error
}

// skip is why an operation cannot be tried: found out, not supposed.
type skip string

func (s skip) Error() string { return string(s) }

// row is one session, on which the operations are tried one after another.
type row struct {
	server
	*dialect
	version mcp.Version
	engine  string
	to      mcp.Transport
	mark    string // in the arguments of a stdio server
	t       *testing.T
	op      string // the operation that is tried

	s       *mcp.Session
	results []result
	session int    // among those of a mix
	tally   *tally // of a mix, else nil

	mu        sync.Mutex
	anomalies map[string]string // by kind: the first detail
	asked     []mcp.Asked
	keys      int
}

type result struct {
	operation string
	err       error  // nil, a skip, or what was seen
	odd       string // why it is known to be so
	took      time.Duration
}

// TestOperations tries every operation with each server, over each of its transports
// and with each engine of that, in each version, and shows what came of it in a table.
// OPERATIONS is a regular expression that narrows it to some sessions by their names.
func TestOperations(t *testing.T) {
	var rows []*row
	for _, s := range servers {
		var url string
		if s.url != nil {
			url = s.url(t)
		}
		for _, version := range slices.Backward(mcp.Versions()) {
			for _, engine := range engines {
				if s.transport == "stdio" {
					if engine = "-"; len(rows) > 0 && rows[len(rows)-1].version == version && rows[len(rows)-1].server.name == s.name {
						continue
					}
				}
				rows = append(rows, newRow(t, s, url, version, engine))
			}
		}
	}
	only := regexp.MustCompile(os.Getenv("OPERATIONS"))
	rows = slices.DeleteFunc(rows, func(r *row) bool { return !only.MatchString(r.name()) })
	var running sync.WaitGroup
	room := make(chan struct{}, rowsAtOnce)
	for _, r := range rows {
		running.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			pprof.Do(t.Context(), pprof.Labels("row", r.name()), r.run)
		})
	}
	running.Wait()
	for _, r := range rows {
		t.Run(r.name(), r.report)
	}
	for _, o := range oddities {
		if !o.met.Load() && !o.sometimes && only.String() == "" {
			t.Errorf("this oddity is not seen any more, take it out of the list: %s", o)
		}
	}
	operationsTable = table(rows)
}

// marks makes each mark another one.
var marks atomic.Int64

func newRow(t *testing.T, s server, url string, version mcp.Version, engine string) *row {
	t.Helper()
	r := &row{server: s, dialect: speech(s), version: version, engine: engine, t: t}
	r.mark = fmt.Sprintf("conformance-%d-%d", time.Now().UnixNano(), marks.Add(1))
	switch s.transport {
	case "http":
		r.to = &mcp.Streamable{URL: url, Engine: mcp.Engine(engine)}
	case "sse":
		r.to = &mcp.LegacySSE{URL: url, Engine: mcp.Engine(engine)}
	default:
		command := s.command(t, r.mark)
		r.to = &mcp.Stdio{Command: command[0], Args: command[1:], Grace: patience}
	}
	return r
}

func (r *row) name() string {
	return strings.Join([]string{r.server.name, r.transport, r.engine, string(r.version)}, " ")
}

// run tries all operations. The session is opened anew when one of them spoilt it.
func (r *row) run(ctx context.Context) {
	r.anomalies = map[string]string{}
	for _, o := range operations {
		r.op = o.name
		began := time.Now()
		err := r.ready(ctx)
		if err == nil {
			err = o.try(ctx, r)
		}
		r.add(o.name, err, time.Since(began))
		if errors.Is(err, errRefused) {
			return
		}
	}
	for kind, detail := range r.anomalies {
		r.add("anomaly", fmt.Errorf("%s: %s", kind, detail), 0)
	}
}

// ready opens the session, unless it is open or the operation does that.
func (r *row) ready(ctx context.Context) error {
	if r.s != nil && r.s.Ended() {
		_ = r.s.Close(ctx)
		r.s = nil
	}
	if r.s != nil || r.op == "open" || r.op == "close" {
		return nil
	}
	var err error
	r.s, err = r.connect(ctx, r.options(true))
	return err
}

// connect opens a session within its time.
func (r *row) connect(ctx context.Context, o mcp.Options) (*mcp.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience) // node may take long to start on a busy machine
	defer cancel()
	return mcp.Connect(ctx, r.to, o)
}

// options declare everything that the version has, or nothing; the answers are there
// in either case.
func (r *row) options(declared bool) mcp.Options {
	answers, err := canned.Ready()
	if err != nil {
		r.t.Error(err)
	}
	o := mcp.Options{
		Version: r.version, Capabilities: r.version.Capabilities(declared, declared, declared),
		GetStream: true, Answers: answers, ParamHeaders: &mcp.ParamHeaders{}, Base: time.Now(),
		Watch: []string{updated, message, "notifications/tools/list_changed", "notifications/resources/list_changed"},
		OnAnomaly: func(kind mcp.Anomaly, detail string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if _, ok := r.anomalies[kind.String()]; !ok {
				r.anomalies[kind.String()] = fmt.Sprintf("%s (at %s)", detail, r.op)
			}
		},
		OnAsked: func(a mcp.Asked) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.asked = append(r.asked, a)
		},
	}
	if r.tally != nil {
		o.OnFrame = r.tally.count
	}
	return o
}

// add notes what came of an operation, and whether it is known.
func (r *row) add(operation string, err error, took time.Duration) {
	res := result{operation: operation, err: err, took: took}
	if _, skipped := errors.AsType[skip](err); err != nil && !skipped {
		if o := r.known(operation, err.Error()); o != nil {
			o.met.Store(true)
			res.odd = o.why
		}
	}
	r.results = append(r.results, res)
}

// report fails for what is neither right nor known.
func (r *row) report(t *testing.T) {
	for _, res := range r.results {
		_, skipped := errors.AsType[skip](res.err)
		switch {
		case res.err == nil:
		case skipped:
			t.Logf("%-15s skipped: %v", res.operation, res.err)
		case res.odd != "":
			t.Logf("%-15s odd: %v (%s)", res.operation, res.err, res.odd)
		default:
			t.Errorf("%-15s after %v: %v", res.operation, res.took.Round(time.Millisecond), res.err)
		}
	}
	slow := slices.MaxFunc(r.results, func(a, b result) int { return cmp.Compare(a.took, b.took) })
	t.Logf("the slowest was %s: %v", slow.operation, slow.took.Round(time.Millisecond))
}

// waits returns the context of a wait, which need not be long for what does not come.
func (r *row) waits(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.limit())
}

func (r *row) limit() time.Duration {
	for _, o := range oddities {
		if !o.sometimes && o.concerns(r, r.op) {
			return brief
		}
	}
	return patience
}

// goroutines counts those that this row has started and that still run.
func (r *row) goroutines() (count int) {
	var b strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	for entry := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(entry, fmt.Sprintf("%q:%q", "row", r.name())) {
			var n int
			if _, err := fmt.Sscanf(entry, "%d @", &n); err == nil {
				count += n
			}
		}
	}
	return count
}
