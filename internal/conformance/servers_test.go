package conformance

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serve starts a server program that prints its URL as its first line, and
// ends it with the test.
func serve(t *testing.T, args ...string) (url string) {
	t.Helper()
	out := start(t, nil, args...)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v printed no URL: %v", args, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return strings.TrimSpace(line)
}

// serveEverything returns what starts the npm server on a free port, over one of
// its transports. It takes its port from the environment, so the port is looked for
// first.
func serveEverything(transport, path string) func(t *testing.T) (url string) {
	return func(t *testing.T) string {
		t.Helper()
		return startEverything(t, transport, path)
	}
}

func startEverything(t *testing.T, transport, path string) (url string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	out := start(t, []string{"PORT=" + strconv.Itoa(port)}, script(t, "server-everything", transport)...)
	go func() { _, _ = io.Copy(io.Discard, out) }() // a line for each request
	url = fmt.Sprintf("http://127.0.0.1:%d%s", port, path)
	waitUntilUp(t, url)
	return url
}

// waitUntilUp waits until something answers HTTP at url.
func waitUntilUp(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = res.Body.Close()
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%s does not answer: %v", url, err)
		}
		time.Sleep(20 * time.Millisecond) // another process: there is nothing to wait on
	}
}

// start runs a server until the test ends and returns its standard output.
func start(t *testing.T, env []string, args ...string) io.Reader {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var said bytes.Buffer // read after Wait; one server tells of every message
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %v: %v", args, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Errorf("wait for %v: %v", args, err)
		}
		if t.Failed() {
			text := said.Bytes()
			t.Logf("stderr of %v ends:\n%s", args, text[max(0, len(text)-4096):])
		}
	})
	return out
}

// processesWith counts the live processes whose command line holds mark. It
// knows how to look only on Linux, and finds none elsewhere.
func processesWith(t *testing.T, mark string) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatalf("list processes: %v", err)
	}
	count := 0
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && strings.Contains(string(line), mark) {
			count++
		}
	}
	return count
}
