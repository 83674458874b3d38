package main

import (
	"bufio"
	"context"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// throttleWatch counts the seconds in which the control group of this process
// had its processors taken away (cpu.stat of cgroup v2).
type throttleWatch struct {
	file             string // "" where there is none
	seconds, trimmed int
}

// newThrottleWatch finds the control group. Without cgroup v2, or outside
// Linux, there is nothing to watch.
func newThrottleWatch(root string) *throttleWatch {
	data, err := os.ReadFile(path.Join(root, "proc/self/cgroup")) //nolint:gosec // a file of the kernel
	if err != nil {
		return &throttleWatch{}
	}
	for line := range strings.Lines(string(data)) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			file := path.Join(root, "sys/fs/cgroup", group, "cpu.stat")
			if _, err := os.Stat(file); err == nil {
				return &throttleWatch{file: file}
			}
		}
	}
	return &throttleWatch{}
}

// run looks once a second until ctx ends.
func (t *throttleWatch) run(ctx context.Context) {
	if t.file == "" {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, known := throttled(t.file)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, ok := throttled(t.file)
		t.seconds++
		if ok && known && now > last {
			t.trimmed++
		}
		last, known = now, ok
	}
}

// share is the share of the seconds with throttling, after run has returned.
func (t *throttleWatch) share() float64 {
	if t.seconds == 0 {
		return 0
	}
	return float64(t.trimmed) / float64(t.seconds)
}

// throttled reads nr_throttled, the periods in which the group was held back.
func throttled(file string) (n int64, ok bool) {
	f, err := os.Open(file) //nolint:gosec // a file of the kernel
	if err != nil {
		return 0, false
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "nr_throttled "); found {
			n, err = strconv.ParseInt(text, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
