package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mcpbench": func() {
			os.Exit(run(context.Background(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}))
		},
	})
}

// TestScripts runs the commands as a user does: testdata/script/*.txtar.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":    cmdExits,
			"json":     cmdJSON,
			"agree":    cmdAgree,
			"rows":     cmdRows,
			"ends":     cmdEnds,
			"warmed":   cmdWarmed,
			"serve":    cmdServe,
			"servesse": cmdServeSSE,
			"gone":     cmdGone,
			"wait4":    cmdWait4,
			"signal":   cmdSignal,
		},
	})
}

// cmdExits is "exits CODE PROGRAM ARGS...": runs it and compares its exit code,
// one of several in 0|3: a busy machine may make an open load unsound.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		exit, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(got)) {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// cmdJSON is "json FILE PATH WANT": the value at a dotted path of a JSON file
// ("stdout" for the last output; "*" names the only entry of a folder in FILE).
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH WANT")
	}
	name := args[0]
	if strings.Contains(name, "*") {
		found, err := filepath.Glob(ts.MkAbs(name))
		if err != nil || len(found) != 1 {
			ts.Fatalf("%s: %d files, %v", name, len(found), err)
		}
		name = found[0]
	}
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile(name)), &v); err != nil {
		ts.Fatalf("%s: %v", name, err)
	}
	for key := range strings.SplitSeq(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(at) {
				ts.Fatalf("%s: no entry %s of %d", args[1], key, len(at))
			}
			v = at[i]
		default:
			v = nil
		}
	}
	got, err := json.Marshal(v)
	ts.Check(err)
	if (strings.Trim(string(got), `"`) == args[2]) == neg {
		ts.Fatalf("%s of %s is %s, want %s (not: %v)", args[1], args[0], got, args[2], neg)
	}
}

// cmdServe is "serve ARGS...": starts a demo target, sets $URL, ends it with the script.
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serve ARGS...")
	}
	r, w, err := os.Pipe()
	ts.Check(err)
	self, err := os.Executable()
	ts.Check(err)
	// The name by which the program is called decides that it is mcpbench.
	process, err := os.StartProcess(self, append([]string{"mcpbench", "serve", "--listen", "127.0.0.1:0"}, args...),
		&os.ProcAttr{Files: []*os.File{nil, w, os.Stderr}, Dir: ts.MkAbs(".")})
	ts.Check(err)
	ts.Check(w.Close())
	ts.Defer(func() {
		_ = process.Signal(syscall.SIGTERM)
		_, _ = process.Wait()
		_ = r.Close()
	})
	buf := make([]byte, 256)
	n, err := r.Read(buf)
	ts.Check(err)
	ts.Setenv("URL", strings.TrimSpace(string(buf[:n])))
}

// cmdWait4 is "wait4 FILE TEXT": waits until a file, such as the stderr of a
// program in the background, has the text. Real time: another process works.
func cmdWait4(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: wait4 FILE TEXT")
	}
	for range 1000 {
		found, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		for _, name := range found {
			data, err := os.ReadFile(name)
			if err == nil && strings.Contains(string(data), args[1]) {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s never had %q", args[0], args[1])
}

// cmdGone is "gone FILE": the process whose "pid N" is in FILE has ended, or
// does so within seconds.
func cmdGone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone FILE")
	}
	pid := atoi(ts, strings.TrimSpace(strings.TrimPrefix(ts.ReadFile(args[0]), "pid ")))
	process, err := os.FindProcess(pid)
	ts.Check(err)
	for range 500 {
		if process.Signal(syscall.Signal(0)) != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("process %d still runs", pid)
}

// cmdSignal is "signal NAME [N]": signals the only program in the background, N times.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM}
	if neg || len(args) < 1 || signals[args[0]] == nil {
		ts.Fatalf("usage: signal INT|TERM")
	}
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(signals[args[0]]))
	}
}
