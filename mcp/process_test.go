//go:build unix

package mcp_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbench/internal/mcptest"
	"mcpbench/mcp"
)

// Wire tests 46 and 48: real processes, in real time.
func TestProcess(t *testing.T) {
	for _, mode := range []string{mcptest.Plain, mcptest.StderrFlood, mcptest.Noisy} {
		t.Run(mode, func(t *testing.T) {
			mcptest.NoLeaks(t)
			var a mcptest.Anomalies
			s := connect(t, mcptest.Process(t, mode), mcp.Options{OnAnomaly: a.Tell})
			for range 3 {
				req := echo
				req.Timeout = 20 * time.Second
				r, err := s.Call(t.Context(), req)
				if err != nil || string(r.Result) != echoed {
					t.Fatalf("got %+v, %v", r, err)
				}
				wantOrder(t, r)
			}
			if i := s.Info(); i.Spawn <= 0 || i.Handshake <= 0 || i.Transport != "stdio" {
				t.Errorf("info %+v", i)
			}
			want := 0
			if mode == mcptest.Noisy {
				want = 5 // the banner and a log line after each of four answers, the last maybe unread
			}
			if got := a.Counts()[mcp.AnomalyStdoutNoise]; got != want && got != want-1 || len(a.Texts()) != got {
				t.Errorf("anomalies %v", a.Texts())
			}
		})
	}
}

// Wire test 47: each way to end a server, and how long it takes.
func TestProcessShutdown(t *testing.T) {
	// What has to happen within the grace gets much of it: the machine may be busy.
	tests := []struct {
		mode      string
		grace     time.Duration
		steps     int      // graces that pass before the end
		anomalies []string // prefixes
	}{
		{mcptest.Plain, 10 * time.Second, 0, nil},
		{mcptest.NeedsTerm, time.Second, 1, []string{"killed: SIGTERM"}},
		{mcptest.NeedsKill, 200 * time.Millisecond, 2, []string{"killed: SIGTERM", "killed: SIGKILL"}},
		{mcptest.Grandchild, time.Second, 1, []string{"killed: SIGTERM"}},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			mcptest.NoLeaks(t)
			var a mcptest.Anomalies
			tr := mcptest.Process(t, tt.mode)
			tr.Grace = tt.grace
			s, err := mcp.Connect(t.Context(), tr, mcp.Options{OnAnomaly: a.Tell})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			closeSession(t, s)
			least := time.Duration(tt.steps) * tt.grace
			if took := time.Since(start); took < least || took > least+5*time.Second {
				t.Errorf("took %v, want %v and little more", took, least)
			}
			texts := a.Texts()
			if len(texts) != len(tt.anomalies) {
				t.Fatalf("anomalies %q, want %q", texts, tt.anomalies)
			}
			for i, prefix := range tt.anomalies {
				if !strings.HasPrefix(texts[i], prefix) {
					t.Errorf("anomaly %q, want %q", texts[i], prefix)
				}
			}
		})
	}
}

// When the context of Close has ended, the server is killed at once.
func TestProcessCloseWithoutTime(t *testing.T) {
	mcptest.NoLeaks(t)
	tr := mcptest.Process(t, mcptest.NeedsKill)
	tr.Grace = time.Minute
	s, err := mcp.Connect(t.Context(), tr, mcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	start := time.Now()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// A server that dies in the handshake is reported at once, with its exit code and
// what it said (fault A10).
func TestProcessDiesInTheHandshake(t *testing.T) {
	mcptest.NoLeaks(t)
	_, err := mcp.Connect(t.Context(), mcptest.Process(t, mcptest.Dies), mcp.Options{})
	e, ok := errors.AsType[*mcp.ExitError](err)
	if !ok || e.Code != 3 || e.Signal != 0 {
		t.Errorf("error %v", err)
	}
	contains(t, err, "initialize", "exited with code 3", "cannot open the database")
}

// One that dies later fails all that is in flight (fault A11).
func TestProcessDiesDuringCalls(t *testing.T) {
	mcptest.NoLeaks(t)
	s := connect(t, mcptest.Process(t, mcptest.DiesAtCall), mcp.Options{})
	errs := make(chan error, 5)
	for range cap(errs) {
		go func() {
			_, err := s.Call(t.Context(), echo)
			errs <- err
		}()
	}
	for range cap(errs) {
		err := <-errs
		if e, ok := errors.AsType[*mcp.ExitError](err); !ok || e.Code != 7 || !mcp.SessionLost(err) {
			t.Errorf("error %v", err)
		}
	}
	_, err := s.Call(t.Context(), echo)
	contains(t, err, "exited with code 7", "out of luck")
}

func TestProcessKilled(t *testing.T) {
	mcptest.NoLeaks(t)
	tr := &mcp.Stdio{Command: "sh", Args: []string{"-c", "kill -9 $$"}}
	_, err := mcp.Connect(t.Context(), tr, mcp.Options{})
	e, ok := errors.AsType[*mcp.ExitError](err)
	if !ok || e.Code != -1 || e.Signal != int(syscall.SIGKILL) {
		t.Errorf("error %v", err)
	}
	contains(t, err, "signal 9 (killed)")
}

// A launcher's server ends with the launcher (fault A18).
func TestProcessLauncher(t *testing.T) {
	mcptest.NoLeaks(t)
	tr := mcptest.Process(t, mcptest.NeedsTerm)
	tr.Grace = 300 * time.Millisecond
	pidFile := filepath.Join(t.TempDir(), "pid")
	// A background command of sh has no stdin unless it is handed one.
	script := `exec 3<&0; "$0" <&3 & echo $! > "$1"; wait`
	tr.Command, tr.Args = "sh", []string{"-c", script, tr.Command, pidFile}
	s, err := mcp.Connect(t.Context(), tr, mcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Call(t.Context(), echo); err != nil {
		t.Error(err)
	}
	closeSession(t, s)
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if state := processState(pid); state != "" && state != "Z" {
		t.Errorf("process %d is left behind in state %s", pid, state)
	}
}

// processState returns the state letter of a process, "" when there is none. An
// orphan that nobody reaps stays as a zombie, which holds nothing.
func processState(pid int) string {
	out, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// A server that reads no more holds up neither calls nor Close.
func TestProcessStopsReading(t *testing.T) {
	mcptest.NoLeaks(t)
	tr := mcptest.Process(t, mcptest.NeverReads)
	tr.Grace = 300 * time.Millisecond
	s := connect(t, tr, mcp.Options{})
	req := mcp.Request{
		Method: "tools/call", Timeout: 200 * time.Millisecond,
		Params: []byte(`{"name":"` + strings.Repeat("x", 300_000) + `"}`), // more than a pipe holds
	}
	for range 3 {
		start := time.Now()
		_, err := s.Call(t.Context(), req)
		if _, ok := errors.AsType[*mcp.TimeoutError](err); !ok || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	}
}
