package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestInit has init write a scenario for each server of the matrix, which must then
// agree with the server and run without a failure.
func TestInit(t *testing.T) {
	for _, s := range servers {
		t.Run(s.name+" "+s.transport, func(t *testing.T) {
			var url string
			if s.url != nil {
				url = s.url(t)
			}
			versions := []string{""}
			if s.name != "server-everything" { // one of its tools takes all the time that init gives it
				versions = append(versions, s.speaks...)
			}
			for _, version := range versions {
				t.Run("version "+version, func(t *testing.T) { s.initCell(t, url, version) })
			}
		})
	}
}

func (s server) initCell(t *testing.T, url, version string) {
	t.Helper()
	mark := fmt.Sprintf("conformance-%d", time.Now().UnixNano())
	args := []string{"--connect-timeout", "30s"}
	if version != "" {
		args = append(args, "--protocol", version)
	}
	if s.transport == "sse" {
		args = append(args, "--transport", "sse")
	}
	if s.command != nil {
		args = append(append(args, "--"), s.command(t, mark)...)
	} else {
		args = append(args, "--url", url)
	}
	file, out := initFile(t, args...)
	live, all := toolsOf(t, out)
	if all == 0 {
		t.Errorf("no tools: %s", out)
	}
	called := runWritten(t, file)
	if len(called) != live {
		t.Errorf("%d tools were called, init says %d: %v", len(called), live, called)
	}
	if left := processesWith(t, mark); left > 0 {
		t.Errorf("%d processes of the server are left", left)
	}
	t.Logf("%s", strings.ReplaceAll(strings.TrimSpace(out), "\n", "; "))
}

// TestInitAllowWrites demands that with --allow-writes every tool is called: by the
// scenario, or by init, which says what the server answered.
func TestInitAllowWrites(t *testing.T) {
	// The server's own example for this tool is on the internet; it refuses it so.
	t.Setenv("GZIP_ALLOWED_DOMAINS", "127.0.0.1")
	for _, tt := range []struct {
		name   string
		target func(t *testing.T) []string
	}{
		{"embedded", func(*testing.T) []string { return nil }},
		{"server-everything stdio", func(t *testing.T) []string {
			t.Helper()
			return append([]string{"--", "env", "GZIP_ALLOWED_DOMAINS=127.0.0.1"}, script(t, "server-everything", "stdio")...)
		}},
		{"server-everything http", func(t *testing.T) []string {
			t.Helper()
			return []string{"--url", startEverything(t, "streamableHttp", "/mcp")}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file, out := initFile(t, append([]string{"--allow-writes", "--connect-timeout", "30s"}, tt.target(t)...)...)
			live, all := toolsOf(t, out)
			called := runWritten(t, file)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ofTools, _, _ := strings.Cut(out, "\n")
			tried, tasks := number(failedTries, ofTools), number(onlyTasks, ofTools)
			if len(called) != live || live+tried+tasks != all {
				t.Errorf("%d of %d tools were called by the load (%d should be), %d only by init, %d are tasks\n%s", len(called), all, live, tried, tasks, text)
			}
			if !strings.Contains(string(text), "client:") && tt.name != "embedded" {
				t.Errorf("the client answers nothing:\n%s", text)
			}
			t.Logf("%s; called %v", strings.ReplaceAll(strings.TrimSpace(out), "\n", "; "), called)
		})
	}
}

// initFile has init write a file, which check --connect must find right.
func initFile(t *testing.T, args ...string) (file, out string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "bench.yaml")
	out = mcpbench(t, append([]string{"init", "-o", file}, args...)...)
	checked := mcpbench(t, "check", "--connect", file)
	if !strings.Contains(checked, "1 file, 0 errors\n") {
		t.Errorf("check --connect says:\n%s", checked)
	}
	return file, out
}

// runWritten runs a scenario that init wrote and returns the tools that were called.
func runWritten(t *testing.T, file string) []string {
	t.Helper()
	r := bench(t, []string{file, "-n", "4", "--connect-timeout", "30s"})
	if r.exit != 0 || r.summary == nil {
		t.Fatalf("exit code %d", r.exit)
	}
	if q := r.summary.Requests; q.Failed != 0 || q.Other != 0 || q.OK == 0 || r.summary.Iterations.Completed != 4 {
		t.Errorf("requests %+v, %d iterations", q, r.summary.Iterations.Completed)
	}
	var called []string
	for _, step := range r.summary.Steps {
		if step.Method == "tools/call" && step.Count > 0 && !slices.Contains(called, step.Name) {
			called = append(called, step.Name)
		}
	}
	return called
}

var (
	failedTries = regexp.MustCompile(`(\d+) (?:skipped: )?failed when tried`)
	onlyTasks   = regexp.MustCompile(`(\d+) (?:skipped: )?only to be run as tasks`)
)

// number is what the first group of a pattern matches, 0 when it does not.
func number(pattern *regexp.Regexp, text string) int {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // digits
	return n
}

var toolCounts = regexp.MustCompile(`(\d+) of (\d+) tools?\b`)

// toolsOf reads how many tools init says to use, and how many there are.
func toolsOf(t *testing.T, out string) (live, all int) {
	t.Helper()
	m := toolCounts.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no count of tools in %q", out)
	}
	live, err1 := strconv.Atoi(m[1])
	all, err2 := strconv.Atoi(m[2])
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return live, all
}

// mcpbench runs a command that must succeed and returns its standard output.
func mcpbench(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin.mcpbench, args...)
	cmd.Dir = t.TempDir()
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("mcpbench %v: %v\n%s%s", args, err, out.String(), log.String())
	}
	return out.String()
}
