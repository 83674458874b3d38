package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestThrottledSecondsAreCounted(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stat := func(n int) {
		write("sys/fs/cgroup/job/cpu.stat", fmt.Sprintf("usage_usec 5\nnr_periods 9\nnr_throttled %d\n", n))
	}
	write("proc/self/cgroup", "0::/job\n")
	stat(3)
	synctest.Test(t, func(t *testing.T) {
		w := newThrottleWatch(root)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.run(ctx) }()
		time.Sleep(500 * time.Millisecond)
		for _, n := range []int{3, 4, 4, 9} { // of four seconds the second and the fourth
			stat(n)
			time.Sleep(time.Second)
		}
		cancel()
		<-done
		if w.share() != 0.5 {
			t.Errorf("share = %v of %d seconds, want 0.5", w.share(), w.seconds)
		}
	})
	if w := newThrottleWatch(t.TempDir()); w.file != "" || w.share() != 0 {
		t.Errorf("without a control group: %+v", w)
	}
}
