package sse_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"mcpbench/mcp/sse"

	"github.com/google/go-cmp/cmp"
)

// readSkipping reads all blocks, past those over the limit.
func readSkipping(r io.Reader, limit int) (got []event, skipped int, err error) {
	reader := sse.NewReader(r, limit)
	for {
		ev, err := reader.Next()
		if errors.Is(err, sse.ErrTooLong) {
			skipped++
			_, _, err = reader.Skip()
		} else if err == nil {
			got = append(got, event{ev.Name, string(ev.Data), ev.ID, ev.HasID, ev.Retry})
		}
		if err != nil {
			return got, skipped, err
		}
	}
}

// Faults A3, B29: an event over the limit is that event's trouble alone.
func TestSkip(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	tests := []struct {
		name, block, head, tail string
	}{
		{"one long line", "data: {" + long + "}", "{" + long[:90], long[:sse.TailBytes-1] + "}"},
		{"a name before it", "event: message\ndata: {" + long + "}", "{" + long[:70], long[:sse.TailBytes-1] + "}"},
		{"a name after it", "data: {" + long + "}\nevent: message", "{" + long[:90], long[:sse.TailBytes-1] + "}"},
		{"no space", "data:{" + long + "}", "{" + long[:90], long[:sse.TailBytes-1] + "}"},
		{"two lines, the second long", "data: {a\ndata: " + long + "}", "{a", ""},
		{"two lines, the first long", "data: {" + long + "\ndata: }", "{" + long[:90], ""},
		{"many short lines", strings.Repeat("data: y\n", 30) + "data: z", "y\ny\ny", ""},
		{"no data", "event: " + long, "", ""},
		{"just over the limit", "data: " + long[:95], long[:90], long[:95]},
	}
	for _, tt := range tests {
		for _, end := range []string{"\n", "\r", "\r\n"} {
			in := strings.ReplaceAll("data: before\n\n"+tt.block+"\n\ndata: behind\n\n", "\n", end)
			for mode, src := range map[string]io.Reader{
				"whole":        strings.NewReader(in),
				"byte by byte": iotest.OneByteReader(strings.NewReader(in)),
			} {
				r := sse.NewReader(src, 100)
				if ev, err := r.Next(); err != nil || string(ev.Data) != "before" {
					t.Fatalf("%s, %s: %q, %v", tt.name, mode, ev.Data, err)
				}
				if _, err := r.Next(); !errors.Is(err, sse.ErrTooLong) {
					t.Fatalf("%s, %s: error %v", tt.name, mode, err)
				}
				head, tail, err := r.Skip()
				if err != nil || !strings.HasPrefix(string(head), tt.head) || string(tail) != tt.tail {
					t.Errorf("%s, %s, %q: head %.100q, tail %.300q, %v", tt.name, mode, end, head, tail, err)
				}
				if ev, err := r.Next(); err != nil || string(ev.Data) != "behind" {
					t.Errorf("%s, %s, %q: then %q, %v", tt.name, mode, end, ev.Data, err)
				}
			}
		}
	}
}

func TestSkipAtTheEnd(t *testing.T) {
	_, skipped, err := readSkipping(strings.NewReader("data: "+strings.Repeat("x", 1000)), 100)
	if skipped != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("skipped %d, %v", skipped, err)
	}
}

// The stamps are those of the reads that brought the first and the last byte.
func TestStamps(t *testing.T) {
	now := time.Duration(0)
	parts := []string{": ok\n", "\n", "event: mess", "age\nda", "ta: 1\n", "\ndata: 2\n\ndata: 3", "\n\n"}
	src := readerFunc(func(b []byte) (int, error) {
		if len(parts) == 0 {
			return 0, io.EOF
		}
		n := copy(b, parts[0])
		parts = parts[1:]
		now++
		return n, nil
	})
	r := sse.NewReader(src, 100)
	r.Clock = func() time.Duration { return now }
	var got [][2]time.Duration
	for {
		ev, err := r.Next()
		if err != nil {
			break
		}
		got = append(got, [2]time.Duration{ev.First, ev.Last})
	}
	if d := cmp.Diff([][2]time.Duration{{3, 6}, {6, 6}, {6, 7}}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// FuzzSkip compares reading with a limit to reading without: the same blocks but
// for those that are longer.
func FuzzSkip(f *testing.F) {
	for _, s := range []string{
		"data: 12345678901234567890\n\ndata: a\n\n", "data: 1234567890\r\n12345678901\r\n\r\ndata: b\r\n\r\n",
		"event: 12345678901234567890\ndata: a\n\nid: 1\n\n", ": 123456789012345678901\ndata: c\n\n",
		"data: a\ndata: 1234567890\ndata: 123456789\r\rdata: d\r\r",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		all, _ := readAll(bytes.NewReader(in), 1<<20)
		got, skipped, err := readSkipping(&pieces{bytes.NewReader(in), int(piece%7) + 1}, 20)
		if !errors.Is(err, io.EOF) {
			t.Fatalf("error %v", err)
		}
		i := 0
		for _, ev := range got {
			for i < len(all) && !cmp.Equal(all[i], ev) {
				i++
			}
			if i == len(all) {
				t.Fatalf("%+v is none of %+v", ev, all)
			}
			i++
		}
		if len(got)+skipped < len(all) {
			t.Errorf("%d of %d blocks, %d skipped", len(got), len(all), skipped)
		}
	})
}
