package self_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbench/internal/self"
)

// fake is a process whose readings a test sets, a step for each second.
type fake struct {
	at     int // looks so far
	cpu    []time.Duration
	fds    []int64
	held   []int64
	mu     sync.Mutex // guards pauses
	pauses debug.GCStats
}

func (f *fake) config(root string) self.Config {
	return self.Config{
		Root: root,
		CPU: func() (user, system time.Duration) {
			defer func() { f.at++ }()
			return pick(f.cpu, f.at), 0
		},
		Pauses: func(s *debug.GCStats) {
			f.mu.Lock()
			defer f.mu.Unlock()
			s.Pause, s.PauseEnd = slices.Clone(f.pauses.Pause), slices.Clone(f.pauses.PauseEnd)
		},
		FDs:  func() int64 { return pick(f.fds, f.at-1) },
		Held: func() int64 { return pick(f.held, f.at-1) },
	}
}

func pick[T any](list []T, i int) T {
	if len(list) == 0 {
		var zero T
		return zero
	}
	return list[min(i, len(list)-1)]
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestBusiestSecondOfTheMeasuredRun has four seconds before the run, the busiest of
// all among them, three in it, and a busy end of it that is too short to count.
func TestBusiestSecondOfTheMeasuredRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := time.Duration(min(runtime.GOMAXPROCS(0), runtime.NumCPU())) * time.Second // all processors for a second
		f := &fake{
			cpu: []time.Duration{0, one, one, one, one, one + one/2, one + one/2 + one/4, 2 * one, 2*one + one/10, 9 * one},
			fds: []int64{5, 70, 60, 50}, held: []int64{0, 40, 41, 39},
		}
		root := t.TempDir()
		write(t, root, "proc/net/sockstat", "sockets: used 15\nTCP: inuse 1 orphan 0 tw 17 alloc 1 mem 0\nUDP: inuse 2 mem 0\n")
		w := self.NewWatch(f.config(root))
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		time.Sleep(3100 * time.Millisecond)
		w.Begin(time.Now().Add(900 * time.Millisecond)) // with the look at 4 s
		time.Sleep(4 * time.Second)                     // looks at 5, 6 and 7 s: 1/2, 1/4 and 1/4 of all
		w.End()                                         // at 7.1 s
		time.Sleep(2 * time.Second)
		cancel()
		synctest.Wait()
		use := w.Use()
		if use.CPUShareMax == nil || *use.CPUShareMax != 0.5 {
			t.Errorf("busiest second %v, want 0.5", use.CPUShareMax)
		}
		if use.FDs != 70 || use.Ports != 41 || use.TimeWait != 17 {
			t.Errorf("%d descriptors, %d ports, %d in TIME-WAIT, want 70, 41, 17", use.FDs, use.Ports, use.TimeWait)
		}
		if use.Goroutines < 2 {
			t.Errorf("%d goroutines", use.Goroutines)
		}
	})
}

// TestShortRunHasAShareToo has a run that ends before the first second does.
func TestShortRunHasAShareToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := time.Duration(min(runtime.GOMAXPROCS(0), runtime.NumCPU())) * time.Second
		f := &fake{cpu: []time.Duration{one / 80, one / 80, one/80 + one/40}} // in 100 ms
		w := self.NewWatch(f.config(t.TempDir()))
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		synctest.Wait()
		time.Sleep(50 * time.Millisecond) // sessions are opened
		w.Begin(time.Now())
		time.Sleep(100 * time.Millisecond)
		w.End()
		cancel()
		synctest.Wait()
		if use := w.Use(); use.CPUShareMax == nil || *use.CPUShareMax != 0.25 {
			t.Errorf("share %v, want 0.25", use.CPUShareMax)
		}
	})
}

// TestLongestPauseIsOfTheMeasuredRun has longer ones before and after it.
func TestLongestPauseIsOfTheMeasuredRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		w := self.NewWatch(f.config(t.TempDir()))
		ctx, cancel := context.WithCancel(t.Context())
		collect := func(pause time.Duration) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.pauses.Pause = append([]time.Duration{pause}, f.pauses.Pause...)
			f.pauses.PauseEnd = append([]time.Time{time.Now()}, f.pauses.PauseEnd...)
		}
		collect(9 * time.Millisecond)
		time.Sleep(time.Second)
		w.Begin(time.Now())
		go w.Run(ctx)
		for _, ms := range []int{1, 4, 2, 3} {
			collect(time.Duration(ms) * time.Millisecond)
			time.Sleep(500 * time.Millisecond)
		}
		w.End()
		collect(8 * time.Millisecond)
		time.Sleep(2 * time.Second)
		cancel()
		synctest.Wait()
		if got := w.Use().GCPauseMax; got != 4*time.Millisecond {
			t.Errorf("longest pause %v, want 4ms", got)
		}
	})
}

func TestPortsOfTheMachine(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64
	}{
		{"32768\t60999\n", 28232}, {"1024 1024\n", 1}, {"60999 32768\n", 0}, {"a b\n", 0}, {"", 0},
	} {
		root := t.TempDir()
		write(t, root, "proc/sys/net/ipv4/ip_local_port_range", tt.text)
		if got := self.ReadLimits(root).Ports; got != tt.want {
			t.Errorf("range %q: %d ports, want %d", tt.text, got, tt.want)
		}
	}
	if got := self.ReadLimits(t.TempDir()).Ports; got != 0 {
		t.Errorf("%d ports without a range", got)
	}
}

// TestOwnDescriptorsAreCounted opens some and looks whether they show.
func TestOwnDescriptorsAreCounted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere other tests' descriptors may come and go")
	}
	count := func() int64 {
		w := self.NewWatch(self.Config{Root: "/"})
		w.End()
		return w.Use().FDs
	}
	before := count()
	var files []*os.File
	for range 25 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if got := count(); got != before+25 {
		t.Errorf("%d descriptors, want 25 more than %d", got, before)
	}
	for _, f := range files {
		_ = f.Close()
	}
	if limit := self.ReadLimits("/").FDs; limit != 0 && limit < before {
		t.Errorf("limit %d with %d open", limit, before)
	}
}
