package query_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpbench/metrics"
)

// TestIdleSessions holds SESSIONS open (300 by default) for IDLE_SECONDS (3) with a
// hundred requests a second among them, against the cheapest server there is. All are
// served and every session has its turn. What a session costs is what the client has of
// resident memory, and takes until the load begins, beyond the same load with ten sessions.
func TestIdleSessions(t *testing.T) {
	sessions, seconds := number(t, "SESSIONS", 300), number(t, "IDLE_SECONDS", 3)
	url := startCheapest(t)
	few := idle(t, url, 10, min(seconds, 10))
	many := idle(t, url, sessions, seconds)
	t.Logf("%d sessions opened in %v; resident memory %d KiB, with ten sessions %d KiB: %.2f KiB a session (at the most %.2f)",
		sessions, (many.opening - few.opening).Round(time.Millisecond), many.median>>10, few.median>>10,
		float64(many.median-few.median)/1024/float64(sessions-10), float64(many.peak-few.median)/1024/float64(sessions-10))
}

type idleRun struct {
	opening      time.Duration // from the start of the program to that of the load
	median, peak int64         // resident bytes in the second half of the run
}

func idle(t *testing.T, url string, sessions, seconds int) (out idleRun) {
	t.Helper()
	const rate = 100
	results := t.TempDir()
	cmd := exec.CommandContext(t.Context(), mcpbench, "run", "--url", url, "--protocol", "2025-11-25", "-t", "echo", "-a", `{"message":"hi"}`,
		"-r", strconv.Itoa(rate), "-c", strconv.Itoa(sessions), "-d", fmt.Sprintf("%ds", seconds), "-o", results, "-q")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var sizes []int64
	var err error
	for tick := time.NewTicker(200 * time.Millisecond); ; { // another process: real time
		select {
		case <-tick.C:
			if size := residentSize(cmd.Process.Pid); size > 0 {
				sizes = append(sizes, size)
			}
			continue
		case err = <-ended:
			tick.Stop()
		}
		break
	}
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) { // the machine may have been busy
		t.Fatalf("%v\n%s", err, &log)
	}
	if len(sizes) == 0 {
		t.Skip("the resident size of another process cannot be seen here")
	}
	sizes = sizes[len(sizes)/2:]
	slices.Sort(sizes)
	out.median, out.peak = sizes[len(sizes)/2], sizes[len(sizes)-1]

	run := onlyRun(t, results)
	var s metrics.Summary
	data, err := os.ReadFile(filepath.Join(run, "summary.json"))
	if err := errors.Join(err, json.Unmarshal(data, &s)); err != nil {
		t.Fatal(err)
	}
	want := int64(rate * seconds)
	equal(t, "requests that were ok", s.Requests.OK, want)
	equal(t, "requests", s.Requests.Total, want)
	equal(t, "sessions", s.Sessions.Opened, int64(sessions))
	db := open(t)
	view(t, db, "r", run, "requests")
	view(t, db, "s", run, "sessions")
	equal(t, "sessions with requests", one[int64](t, db, `SELECT count(DISTINCT session) FROM r`), min(want, int64(sessions)))
	equal(t, "sessions that the end of the run ended", one[int64](t, db, `SELECT count(*) FROM s WHERE end_reason = 'run_end'`), int64(sessions))
	clock := one[int64](t, db, `SELECT min(epoch_ns(started_at) - start_offset_ns)::BIGINT FROM r`)
	out.opening = time.Unix(0, clock).Sub(began)
	t.Logf("%d sessions, %d requests, %d descriptors at the most; soundness %s %v", sessions, s.Requests.Total, *s.Soundness.FDsMax, s.Soundness.Verdict, s.Soundness.Reasons)
	return out
}

// residentSize reads VmRSS, as Linux has it, in bytes; 0 where it is not known.
func residentSize(pid int) int64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // elsewhere there is none
	_, text, _ := strings.Cut(string(data), "VmRSS:")
	size, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, _ := strconv.ParseInt(size, 10, 64)
	return n << 10
}

// startCheapest starts the server of internal/bench in a process of its own.
func startCheapest(t *testing.T) (url string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "bench")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "bench")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, text)
	}
	server := exec.CommandContext(t.Context(), program, "-serve", "json")
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // the end of the test's context ended it
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(line) + "/mcp"
}
