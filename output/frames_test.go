package output_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/output"
)

func same(*output.Frame) {}

// openFrameLog opens one and starts it.
func openFrameLog(t *testing.T, name string, prepare func(*output.Frame)) *output.FrameLog {
	t.Helper()
	l, err := output.OpenFrameLog(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Start(prepare); err != nil {
		t.Fatal(err)
	}
	return l
}

// A line is one frame; the clock has a line of its own, where it started.
func TestFrameLogLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "frames.jsonl")
	if err := os.WriteFile(name, []byte("of another run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hide := func(text string) string { return strings.ReplaceAll(text, "secret", "***") }
	l := openFrameLog(t, name, func(f *output.Frame) { f.Prepare(hide, hide) })
	l.StartClock(3 * time.Millisecond)
	l.Add(output.Frame{
		OffsetNS: 5, Server: "demo", Session: 7, Dir: "in", Channel: "event", Status: 200,
		Header: []string{"X: secret"}, Event: "secret", EventID: "e1", RetryMS: 10, Method: "secret", ID: `"secret"`,
		Bytes: 9, Cut: 2, Incomplete: true, Text: "<secret>\u009b\xff",
	})
	l.Add(output.Frame{Dir: "out", Channel: "stdio"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"clock_start_ns":3000000}
{"offset_ns":5,"server":"demo","session":7,"dir":"in","channel":"event","http_status":200,"header":["X: ***"],"event":"***","event_id":"e1",` +
		`"retry_ms":10,"method":"***","id":"\"***\"","bytes":9,"cut":2,"incomplete":true,"text":"<***>\u009b�"}
{"offset_ns":0,"session":0,"dir":"out","channel":"stdio","bytes":0,"text":""}
`
	if d := cmp.Diff(want, string(data)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// Every frame is in the file, or counted in its last line.
func TestFrameLogIsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "frames.jsonl")
	l := openFrameLog(t, name, same)
	const callers, each = 8, 4000
	text := strings.Repeat("x", output.FrameText)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := range each {
				l.Add(output.Frame{Session: int64(caller), OffsetNS: int64(i), Text: text})
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Add(output.Frame{}) // a late one does no harm
	if err := l.Close(); err != nil {
		t.Error("closed twice: ", err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || info.Size() > 64<<20+100 {
		t.Errorf("%v, %v", info.Size(), err)
	}
	kept, last := 0, map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), `{"not_written"`) {
			if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var frame output.Frame
		if err := json.Unmarshal(lines.Bytes(), &frame); err != nil || len(last) > 0 {
			t.Fatalf("line %d: %v, after the last line: %v", kept, err, len(last) > 0)
		}
		kept++
	}
	if kept == 0 || kept+last["not_written"] != callers*each {
		t.Errorf("%d kept, %d not, of %d", kept, last["not_written"], callers*each)
	}
}

// Whoever hands over a frame does not wait for the one who writes.
func TestFrameLogDoesNotHoldUpRequests(t *testing.T) {
	name := filepath.Join(t.TempDir(), "frames.jsonl")
	stuck := make(chan struct{})
	l := openFrameLog(t, name, func(*output.Frame) { <-stuck })
	const n = 10_000
	for range n {
		l.Add(output.Frame{})
	}
	close(stuck)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	written := len(lines) - 1
	if want := fmt.Sprintf(`{"not_written":%d}`, n-written); lines[written] != want || written < 4096 {
		t.Errorf("%d written, then %s, want %s", written, lines[written], want)
	}
}

func TestFrameLogThatCannotBeWritten(t *testing.T) {
	if _, err := output.OpenFrameLog(filepath.Join(t.TempDir(), "no", "such", "folder")); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	l := openFrameLog(t, "/dev/full", same)
	l.Add(output.Frame{Text: "x"})
	if err := l.Close(); err == nil {
		t.Error("no error")
	}
}

// A log that was never started leaves no file behind, and one that was there as it was.
func TestFrameLogThatIsNotStarted(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{old, filepath.Join(dir, "new")} {
		l, err := output.OpenFrameLog(name)
		if err != nil {
			t.Fatal(err)
		}
		l.Add(output.Frame{})
		for range 2 {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if data, err := os.ReadFile(old); err != nil || string(data) != "kept" {
		t.Errorf("%q, %v", data, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestCutText(t *testing.T) {
	for _, test := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"aé", 2, "a"}, {"a€b", 3, "a"}, {"\xff\xff\xff\xff\xff", 3, "\xff\xff\xff"}, {"€", 0, ""}} {
		got, cut := output.CutText(test.text, test.n)
		if got != test.want || cut != len(test.text)-len(got) {
			t.Errorf("CutText(%q, %d) = %q, %d", test.text, test.n, got, cut)
		}
	}
}
