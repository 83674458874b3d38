package output_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
	"mcpbench/output"
)

// lockedBuffer is a buffer that the drawing goroutine and the test share.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// fakeRun gives the snapshots of a run of 100 requests a second whose clock
// starts after delay, as the collector would: twice a second.
func fakeRun(delay time.Duration) func() *metrics.Snapshot {
	start := time.Now().Add(delay)
	return func() *metrics.Snapshot {
		elapsed := time.Since(start).Truncate(500 * time.Millisecond)
		if elapsed < 0 {
			return nil
		}
		n := int64(elapsed / (10 * time.Millisecond))
		return &metrics.Snapshot{
			Elapsed: elapsed, Requests: n, OK: n - n/100, Failed: n / 100, RatePerS: 100, P99: 8200 * time.Microsecond,
			Iterations: n, Sessions: 20, InFlight: 3,
		}
	}
}

// runFor runs a Progress for d of virtual time and returns what it wrote.
func runFor(t *testing.T, c output.ProgressConfig, d time.Duration, during func(p *output.Progress)) string {
	t.Helper()
	var out lockedBuffer
	if c.Out == nil {
		c.Out = &out
	}
	p := output.NewProgress(c)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	time.Sleep(d)
	if during != nil {
		during(p)
	}
	cancel()
	wg.Wait()
	return out.String()
}

func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := runFor(t, output.ProgressConfig{
			Mode: output.ProgressLine, Snapshot: fakeRun(15 * time.Second), Warmup: 5 * time.Second, Measured: 20 * time.Second,
		}, 43*time.Second, nil)
		thin := strings.NewReplacer("_", "\u2009")
		want := thin.Replace(`connecting
warm-up · 1s of 25s · 100.0/s · 50 requests · 0 failed · p99 8.2ms · 20 sessions · 3 in flight · 25s left
measuring · 5s of 25s · 100.0/s · 500 requests · 5 failed · p99 8.2ms · 20 sessions · 3 in flight · 20s left
measuring · 15s of 25s · 100.0/s · 1_500 requests · 15 failed · p99 8.2ms · 20 sessions · 3 in flight · 10s left
finishing · 25s of 25s · 100.0/s · 2_500 requests · 25 failed · p99 8.2ms · 20 sessions · 3 in flight
done · 28s of 25s · 100.0/s · 2_800 requests · 28 failed
`)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

func TestProgressLinesByIterations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := runFor(t, output.ProgressConfig{
			Mode: output.ProgressLine, Snapshot: fakeRun(0), Iterations: 3000,
		}, 12*time.Second, nil)
		lines := strings.Split(strings.TrimSpace(got), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[1], "measuring · 11s · 100.0/s") || !strings.HasSuffix(lines[1], "20s left") {
			t.Errorf("got lines:\n%s", got)
		}
	})
}

func TestProgressWithoutSnapshots(t *testing.T) {
	for _, snapshot := range []func() *metrics.Snapshot{nil, func() *metrics.Snapshot { return nil }} {
		for _, mode := range []output.ProgressMode{output.ProgressNone, output.ProgressLine, output.ProgressBar} {
			synctest.Test(t, func(t *testing.T) {
				got := runFor(t, output.ProgressConfig{Mode: mode, Snapshot: snapshot, Measured: time.Minute}, 3*time.Second, nil)
				if mode != output.ProgressBar && got != "" {
					t.Errorf("mode %d: wrote %q, want nothing", mode, got)
				}
			})
		}
	}
}

func TestProgressBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := runFor(t, output.ProgressConfig{
			Mode: output.ProgressBar, Snapshot: fakeRun(time.Second), Warmup: 2 * time.Second, Measured: 8 * time.Second,
		}, 12*time.Second, func(p *output.Progress) {
			if _, err := io.WriteString(p.LogWriter(), "a log line\n"); err != nil {
				t.Error(err)
			}
		})
		for _, want := range []string{"connecting", "warm-up", "measuring", "finishing", " 50% · 100.0/s · 5 failed · p99 8.2ms · 5s left", "a log line\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("the output never holds %q:\n%s", want, got)
			}
		}
		lines := strings.Split(strings.TrimRight(got, "\n"), "\n")
		last := lines[len(lines)-1]
		if !strings.HasPrefix(last, "done") || !strings.Contains(last, "100% · 100.0/s · 11 failed") || strings.Contains(last, "░") {
			t.Errorf("last state: %q", last)
		}
	})
}

// TestProgressBarEndsWhereTheRunDid covers a run that was stopped half way.
func TestProgressBarEndsWhereTheRunDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := runFor(t, output.ProgressConfig{
			Mode: output.ProgressBar, Snapshot: fakeRun(0), Measured: 10 * time.Second,
		}, 5*time.Second, nil)
		lines := strings.Split(strings.TrimRight(got, "\n"), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "done") || !strings.Contains(last, " 50% · ") {
			t.Errorf("last state: %q", last)
		}
	})
}

type brokenWriter struct{ writes atomic.Int64 }

func (w *brokenWriter) Write([]byte) (int, error) {
	w.writes.Add(1)
	return 0, errors.New("bad file descriptor")
}

// TestProgressOnClosedStderr covers a stderr that cannot be written: the run
// must go on and the display end in order.
func TestProgressOnClosedStderr(t *testing.T) {
	for _, mode := range []output.ProgressMode{output.ProgressLine, output.ProgressBar} {
		synctest.Test(t, func(t *testing.T) {
			w := &brokenWriter{}
			runFor(t, output.ProgressConfig{Mode: mode, Out: w, Snapshot: fakeRun(0), Measured: 20 * time.Second}, 25*time.Second, func(p *output.Progress) {
				if _, err := io.WriteString(p.LogWriter(), "line\n"); err == nil {
					t.Errorf("mode %d: a log line that was lost is no error", mode)
				}
			})
			if w.writes.Load() == 0 {
				t.Errorf("mode %d: nothing was written", mode)
			}
		})
	}
}

func TestLogWriterEscapes(t *testing.T) {
	var out lockedBuffer
	w := output.NewProgress(output.ProgressConfig{Out: &out}).LogWriter()
	in := "\x1b[31mERROR\x1b[0m\tserver said \x1b]0;x\x07\x1b[2J\u009b\u202e\xff\r end ✓\n"
	n, err := io.WriteString(w, in)
	if err != nil || n != len(in) {
		t.Errorf("Write: %d, %v; want %d", n, err, len(in))
	}
	want := "\x1b[31mERROR\x1b[0m\tserver said \\x1b]0;x\\x07\\x1b[2J\\x9b\\u202e\\xff\\r end ✓\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
