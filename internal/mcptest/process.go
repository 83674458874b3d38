package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"mcpbench/mcp"

	"go.uber.org/goleak"
)

// modeVariable makes a test binary that calls Main a stdio server.
const modeVariable = "MCPTEST_SERVER"

// Modes of a server process.
const (
	Plain       = "plain"        // the zero Peer; exits at the end of its input
	NeedsTerm   = "needs-term"   // goes on after the end of its input until SIGTERM
	NeedsKill   = "needs-kill"   // goes on after SIGTERM too
	Grandchild  = "grandchild"   // leaves a child behind that holds its output
	Dies        = "dies"         // exits with code 3 at once, a word on stderr
	DiesAtCall  = "dies-at-call" // exits with code 7 at the first tools/call
	NeverReads  = "never-reads"  // answers initialize and then reads no more
	StderrFlood = "stderr-flood" // writes 4 MiB to stderr before each answer
	Cheap       = "cheap"        // a Lean, for measurements
	Noisy       = "noisy"        // a banner, blank lines, CRLF and a byte order mark on stdout
)

// Main runs the tests of m, or, started by a transport of Process, the server. It
// returns the exit code. Call it from TestMain.
func Main(m *testing.M) int {
	mode := os.Getenv(modeVariable)
	if mode == "" {
		return m.Run()
	}
	code, err := serve(mode)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // nowhere else to tell
	}
	return code
}

// Process returns a transport that starts the test binary as a server.
func Process(tb testing.TB, mode string) *mcp.Stdio {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	// A binary with the race detector otherwise takes a second to exit.
	return &mcp.Stdio{Command: self, Env: append(os.Environ(), modeVariable+"="+mode, "GORACE=atexit_sleep_ms=0")}
}

func serve(mode string) (code int, err error) {
	peer := &Peer{}
	var in io.Reader = os.Stdin
	var out io.Writer = os.Stdout
	switch mode {
	case Plain:
	case Cheap:
		return 0, Lean{}.ServePipe(in, out)
	case NeedsTerm, NeedsKill:
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		if err := peer.ServePipe(context.Background(), in, out); err != nil {
			return 1, err
		}
		for range term {
			if mode == NeedsTerm {
				return 0, nil
			}
		}
	case Grandchild:
		return grandchild(peer)
	case Dies:
		return 3, errors.New("cannot open the database")
	case DiesAtCall:
		in = stopAt(in, "tools/call")
	case NeverReads:
		in = stopAt(in, "notifications/initialized")
	case StderrFlood:
		out = &flood{out}
	case Noisy:
		out = &noisy{w: out}
	default:
		return 2, fmt.Errorf("unknown mode %q", mode)
	}
	if err := peer.ServePipe(context.Background(), in, out); err != nil {
		return 1, err
	}
	switch mode {
	case DiesAtCall:
		return 7, errors.New("out of luck")
	case NeverReads:
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		<-term
	}
	return 0, nil
}

// grandchild serves and leaves a child behind that inherited stdout and stderr.
func grandchild(peer *Peer) (int, error) {
	child := exec.CommandContext(context.Background(), "sleep", "60")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		return 1, err
	}
	if err := peer.ServePipe(context.Background(), os.Stdin, os.Stdout); err != nil {
		return 1, err
	}
	return 0, nil
}

// stopAt passes lines on up to the one that holds the text, which is its end.
func stopAt(r io.Reader, text string) io.Reader {
	pr, pw := io.Pipe()
	go func() {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadString('\n')
			if err != nil || strings.Contains(line, text) {
				_ = pw.Close() // never fails
				return
			}
			_, _ = io.WriteString(pw, line) // the reader is there as long as we are
		}
	}()
	return pr
}

// flood fills stderr before each line of output.
type flood struct{ w io.Writer }

// Write floods and then writes.
func (f *flood) Write(b []byte) (int, error) {
	block := bytes.Repeat([]byte("noise on stderr\n"), 4096)
	for range 64 {
		if _, err := os.Stderr.Write(block); err != nil {
			return 0, err
		}
	}
	return f.w.Write(b)
}

// noisy surrounds what is written by what real servers print.
type noisy struct {
	w     io.Writer
	begun bool
}

// Write adds noise.
func (n *noisy) Write(b []byte) (int, error) {
	text := "\r\n" + strings.ReplaceAll(string(b), "\n", "\r\n") + `{"level":"info","msg":"served"}` + "\n"
	if !n.begun {
		n.begun = true
		text = "\xEF\xBB\xBFServer v1.2 started\n" + text
	}
	if _, err := io.WriteString(n.w, text); err != nil {
		return 0, err
	}
	return len(b), nil
}

// NoLeaks fails the test if goroutines that it started outlive it. Not for tests
// in a bubble, which find that out by themselves.
func NoLeaks(tb testing.TB) {
	tb.Helper()
	before := goleak.IgnoreCurrent()
	tb.Cleanup(func() { goleak.VerifyNone(tb, before) })
}
