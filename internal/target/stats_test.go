package target_test

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"mcpbench/internal/target"
)

func TestStatsFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "stats")
	synctest.Test(t, func(t *testing.T) {
		p := connect(t.Context(), t, target.New(target.Config{StatsDir: dir}), "2025-11-25")
		for range 3 {
			if _, err := call(t, p.ClientSession, "echo", hi); err != nil {
				t.Errorf("echo: %v", err)
			}
		}
		p.end(t)
	})
	name := filepath.Join(dir, strconv.Itoa(os.Getpid())+".json")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// A second process, so to speak.
	if err := os.WriteFile(filepath.Join(dir, "1.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	got, files, err := target.ReadStats(dir)
	if err != nil || files != 2 {
		t.Fatalf("ReadStats = %d files, %v, want 2", files, err)
	}
	if want := (target.Counts{Received: 6, OK: 6}); got.Tools["echo"] != want || got.SessionsOpened != 2 || got.SessionsClosed != 2 {
		t.Errorf("ReadStats = %+v, want echo %+v and 2 sessions", got, want)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.partial")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStatsFileThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := target.New(target.Config{StatsDir: file}).ServeStdio(t.Context(), strings.NewReader(""), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "write counters") {
		t.Errorf("ServeStdio = %v, want that the counters cannot be written", err)
	}
}
