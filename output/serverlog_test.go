package output_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mcpbench/output"
)

// fakeMask hides the word secret.
type fakeMask struct{}

func (fakeMask) Text(text string) string { return strings.ReplaceAll(text, "secret", "***") }
func (fakeMask) End(text []byte, n int) int {
	if len(text) <= n {
		return len(text)
	}
	return n
}

func serverLogs(t *testing.T, names ...string) (dir string, logs []*output.ServerLog) {
	t.Helper()
	return serverLogsThatKeep(t, output.ServerLogKeep{Head: 2 << 20, Tail: 2 << 20}, names...)
}

func serverLogsThatKeep(t *testing.T, keep output.ServerLogKeep, names ...string) (dir string, logs []*output.ServerLog) {
	t.Helper()
	folder, err := output.Create(t.TempDir(), "run")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder.Path(), "servers"), folder.NewServerLogs(names, keep, fakeMask{})
}

func write(t *testing.T, w interface{ Write([]byte) (int, error) }, text string) {
	t.Helper()
	if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func closeLogs(t *testing.T, logs []*output.ServerLog) {
	t.Helper()
	for _, l := range logs {
		for range 2 {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Lines are kept whole, whichever process they come from and in however many
// parts, safe to print and without secrets; a server that says nothing has no file.
func TestServerLog(t *testing.T) {
	dir, logs := serverLogs(t, "my server/../x", "quiet")
	first, second := logs[0].Session(0), logs[0].Session(12)
	write(t, first, "one\ntw")
	write(t, second, "other\r\n\tindented \x1b[31mred\x1b[0m \x1b]0;title\a\n")
	write(t, first, "o secret\n\nlast")
	first.(interface{ Flush() }).Flush()
	write(t, second, strings.Repeat("y", 300_000)+"\nz\n")
	closeLogs(t, logs)
	write(t, second, "too late\n")
	closeLogs(t, logs)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || files[0].Name() != "my_server_.._x.stderr" {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, files[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	want := "[0] one\n[12] other\n[12] \tindented \x1b[31mred\x1b[0m \\x1b]0;title\\x07\n[0] two ***\n[0] last\n[12] " +
		strings.Repeat("y", 64<<10) + "\n[12] z\n"
	if string(data) != want {
		t.Errorf("%.300q", data)
	}
}

// Of a server that says much, the beginning and the end are kept.
func TestServerLogIsBounded(t *testing.T) {
	dir, logs := serverLogs(t, "loud")
	const sessions, lines = 4, 30_000
	var all sync.WaitGroup
	for i := range sessions {
		all.Go(func() {
			w := logs[0].Session(uint32(i))
			for n := range lines {
				_, _ = fmt.Fprintf(w, "%06d %s\n", n, strings.Repeat("x", 90))
			}
		})
	}
	all.Wait()
	write(t, logs[0].Session(9), "the last word\n")
	closeLogs(t, logs)
	data, err := os.ReadFile(filepath.Join(dir, "loud.stderr"))
	if err != nil {
		t.Fatal(err)
	}
	head, tail, ok := bytes.Cut(data, []byte("... "))
	note, tail, _ := bytes.Cut(tail, []byte("\n"))
	const most, line = 2 << 20, 200
	if !ok || len(head) > most || len(head) < most-line || len(tail) > most || len(tail) < most-line {
		t.Errorf("%d bytes, then %q, then %d bytes", len(head), note, len(tail))
	}
	if !bytes.HasPrefix(head[4:], []byte("000000 xxx")) || !bytes.HasSuffix(tail, []byte("\n[9] the last word\n")) {
		t.Errorf("%.20q … %q", head, tail[len(tail)-40:])
	}
	for _, part := range [][]byte{head, tail} {
		if part[0] != '[' || part[len(part)-1] != '\n' {
			t.Errorf("a part is no whole lines: %.20q … %q", part, part[len(part)-20:])
		}
	}
	cut := sessions*lines*len("[0] 000000 \n"+strings.Repeat("x", 90)) + len("[9] the last word\n") - len(head) - len(tail)
	if want := output.FormatBytes(int64(cut)) + " were not kept here ..."; string(note) != want {
		t.Errorf("%q, want %q", note, want)
	}
}

// Either end may be all that is kept, or none; a line is kept whole or not at all.
func TestServerLogKeepsWhatItIsTold(t *testing.T) {
	text := ""
	for i := range 10 {
		text += fmt.Sprintf("line %d\n", i) // with its prefix 11 bytes
	}
	lines := func(from, to int) string {
		out := ""
		for i := from; i < to; i++ {
			out += fmt.Sprintf("[0] line %d\n", i)
		}
		return out
	}
	cut := func(n int64) string { return "... " + output.FormatBytes(n) + " were not kept here ...\n" }
	for _, tt := range []struct {
		keep output.ServerLogKeep
		want string
	}{
		{output.ServerLogKeep{Head: 1000}, lines(0, 10)},
		{output.ServerLogKeep{Tail: 1000}, lines(0, 10)},
		{output.ServerLogKeep{Head: 35}, lines(0, 3) + cut(77)},
		{output.ServerLogKeep{Tail: 35}, cut(77) + lines(7, 10)},
		{output.ServerLogKeep{Head: 11, Tail: 22}, lines(0, 1) + cut(77) + lines(8, 10)},
		{output.ServerLogKeep{Tail: 110}, lines(0, 10)},
		{output.ServerLogKeep{Head: 5, Tail: 5}, cut(110)},
		{output.ServerLogKeep{}, cut(110)},
	} {
		dir, logs := serverLogsThatKeep(t, tt.keep, "s")
		write(t, logs[0].Session(0), text)
		closeLogs(t, logs)
		data, err := os.ReadFile(filepath.Join(dir, "s.stderr"))
		if err != nil || string(data) != tt.want {
			t.Errorf("%+v: %v, %q, want %q", tt.keep, err, data, tt.want)
		}
	}
}

// Names that mean the same file, on some file systems, get files of their own.
func TestServerLogNames(t *testing.T) {
	dir, logs := serverLogs(t, "a b", "a_b", "A_B", "", "ä")
	if logs[3] != nil {
		t.Error("a log for a server without a name")
	}
	logs = append(logs[:3], logs[4])
	for i, l := range logs {
		write(t, l.Session(uint32(i)), "x\n")
	}
	closeLogs(t, logs)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if got := strings.Join(files, " "); got != "A_B_3.stderr _.stderr a_b.stderr a_b_2.stderr" {
		t.Error(got)
	}
}

func TestServerLogThatCannotBeWritten(t *testing.T) {
	dir, logs := serverLogs(t, "s")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	write(t, logs[0].Session(0), "x\n")
	if err := logs[0].Close(); err == nil || !strings.Contains(err.Error(), "keep the server's stderr") {
		t.Error(err)
	}
}
