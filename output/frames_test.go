package output_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mcpbench/output"
)

// Every frame is in the file, or counted in its last line.
func TestFrameLogIsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "frames.jsonl")
	l, err := output.NewFrameLog(name)
	if err != nil {
		t.Fatal(err)
	}
	const callers, each = 8, 4000
	text := strings.Repeat("x", output.FrameText)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := range each {
				l.Add(output.Frame{Session: caller, OffsetNS: int64(i), Text: text})
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

func TestFrameLogThatCannotBeWritten(t *testing.T) {
	if _, err := output.NewFrameLog(filepath.Join(t.TempDir(), "no", "such", "folder")); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	l, err := output.NewFrameLog("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	l.Add(output.Frame{Text: "x"})
	if err := l.Close(); err == nil {
		t.Error("no error")
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

func TestServerLog(t *testing.T) {
	folder, err := output.Create(t.TempDir(), "run")
	if err != nil {
		t.Fatal(err)
	}
	l := folder.NewServerLog("my server/../x", func(s string) string { return strings.ReplaceAll(s, "secret", "***") })
	quiet := folder.NewServerLog("quiet", func(s string) string { return s })
	first, second := l.Session(0), l.Session(12)
	for _, part := range []struct {
		to   interface{ Write([]byte) (int, error) }
		text string
	}{{first, "one\ntw"}, {second, "other\r\n"}, {first, "o secret\n\nlast"}} {
		if n, err := part.to.Write([]byte(part.text)); n != len(part.text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if f, ok := first.(interface{ Flush() }); ok {
		f.Flush()
	}
	for range 80_000 { // more than there is room for
		_, _ = second.Write([]byte(strings.Repeat("y", 99) + "\n"))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := quiet.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(folder.Path(), "servers"))
	if err != nil || len(files) != 1 || files[0].Name() != "my_server_.._x.stderr" {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(filepath.Join(folder.Path(), "servers", files[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "[0] one\n[12] other\n[0] two ***\n[0] last\n[12] yyy", " more were not kept\n"
	if text := string(data); !strings.HasPrefix(text, begin) || !strings.HasSuffix(text, end) || len(text) > 4<<20+100 {
		t.Errorf("%d bytes: %.80q … %q", len(text), text, text[len(text)-60:])
	}
}
