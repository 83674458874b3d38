package sse_test

import (
	"bufio"
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

// event is sse.Event with its data copied.
type event struct {
	Name, Data, ID string
	HasID          bool
	Retry          time.Duration
}

func readAll(r io.Reader, limit int) ([]event, error) {
	var all []event
	reader := sse.NewReader(r, limit)
	for {
		ev, err := reader.Next()
		if err != nil {
			return all, err
		}
		all = append(all, event{ev.Name, string(ev.Data), ev.ID, ev.HasID, ev.Retry})
	}
}

func data(s string) event { return event{Data: s, Retry: -1} }

func TestReader(t *testing.T) {
	tests := []struct {
		name, in string
		want     []event
	}{
		{"one", "data: {\"a\":1}\n\n", []event{data(`{"a":1}`)}},
		{"no space after the colon", "data:x\n\n", []event{data("x")}},
		{"only one space is dropped", "data:  x\n\n", []event{data(" x")}},
		{"several data lines join with a newline", "data: a\ndata\ndata: b\n\n", []event{data("a\n\nb")}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []event{data("a"), data("b")}},
		{"CR", "data: a\r\rdata: b\r\r", []event{data("a"), data("b")}},
		{"mixed ends", "data: a\r\n\ndata: b\n\r", []event{data("a"), data("b")}},
		{"byte order mark", "\xEF\xBB\xBFdata: a\n\n", []event{data("a")}},
		{"mark only at the start", "data: a\n\n\xEF\xBB\xBFdata: b\n\n", []event{data("a"), {Retry: -1}}},
		{"comments and heartbeats", ": ok\n\n:\n\ndata: a\n: between\n\n", []event{data("a")}},
		{"TypeScript priming: id before empty data", "id: e1\ndata: \n\n", []event{{ID: "e1", HasID: true, Retry: -1}}},
		{"go-sdk priming", "event: prime\nid: P_0\ndata: \n\n", []event{{Name: "prime", ID: "P_0", HasID: true, Retry: -1}}},
		{"go-sdk early close", "event: close\nretry: 10\ndata: \n\n", []event{{Name: "close", Retry: 10 * time.Millisecond}}},
		{"id before event", "id: 7\nevent: message\ndata: x\n\n", []event{{"message", "x", "7", true, -1}}},
		{"id with NUL is ignored", "id: a\x00b\ndata: x\n\n", []event{data("x")}},
		{"empty id counts", "id\ndata: x\n\n", []event{{Data: "x", HasID: true, Retry: -1}}},
		{"retry must be digits", "retry: 1s\ndata: x\n\n", []event{data("x")}},
		{"unknown field", "foo: bar\ndata: x\n\n", []event{data("x")}},
		{"colon in the value", "data: a:b\n\n", []event{data("a:b")}},
		{"last block without blank line is discarded", "data: a\n\ndata: b\n", []event{data("a")}},
		{"last line without end is discarded", "data: a\n\ndata: b", []event{data("a")}},
		{"longer than the read buffer", "data: " + strings.Repeat("é", 5000) + "\n\n", []event{data(strings.Repeat("é", 5000))}},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for mode, r := range map[string]io.Reader{
				"whole":        strings.NewReader(tt.in),
				"byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
				"end with eof": iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				got, err := readAll(r, 1<<20)
				if !errors.Is(err, io.EOF) {
					t.Errorf("%s: error %v, want EOF", mode, err)
				}
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("%s: (-want +got)\n%s", mode, d)
				}
			}
		})
	}
}

func TestReaderDoesNotWaitForTheByteAfterCR(t *testing.T) {
	r, w := io.Pipe()
	defer func() { _ = r.Close() }()                        // never fails
	go func() { _, _ = io.WriteString(w, "data: a\r\r") }() // and silence
	ev, err := sse.NewReader(r, 100).Next()
	if err != nil || string(ev.Data) != "a" {
		t.Errorf("got %q, %v", ev.Data, err)
	}
}

func TestReaderLimit(t *testing.T) {
	tests := []struct {
		name, in string
		want     error
	}{
		{"at the limit", "data: " + strings.Repeat("x", 94) + "\n\n", io.EOF},
		{"one line over", "data: " + strings.Repeat("x", 95) + "\n\n", sse.ErrTooLong},
		{"many lines over", strings.Repeat("data: x\n", 20) + "\n", sse.ErrTooLong},
		{"endless line", strings.Repeat("x", 100000), sse.ErrTooLong},
		{"many small events", strings.Repeat("data: x\n\n", 1000), io.EOF},
		{"many comments", strings.Repeat(": keep alive\n\n", 1000), io.EOF},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := readAll(strings.NewReader(tt.in), 100); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

func TestReaderReturnsTheSourcesError(t *testing.T) {
	cut := errors.New("cut")
	r := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(cut))
	got, err := readAll(r, 100)
	if !errors.Is(err, cut) || len(got) != 1 {
		t.Errorf("got %v, %v; want one event and the cut", got, err)
	}
}

// oracle is the slow reading of the same rules over the whole text at once.
func oracle(text string) []event {
	text = strings.TrimPrefix(text, "\xEF\xBB\xBF")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	var all []event
	sc := bufio.NewScanner(strings.NewReader(text))
	sc.Buffer(nil, len(text)+1)
	ev, lines, fields := event{Retry: -1}, []string(nil), 0
	last := strings.LastIndexByte(text, '\n') + 1
	for seen := 0; sc.Scan() && seen < last; {
		line := sc.Text()
		seen += len(line) + 1
		if line == "" {
			if fields > 0 {
				ev.Data = strings.Join(lines, "\n")
				all = append(all, ev)
			}
			ev, lines, fields = event{Retry: -1}, nil, 0
			continue
		}
		if strings.HasPrefix(line, ":") {
			continue
		}
		fields++
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			lines = append(lines, value)
		case "event":
			ev.Name = value
		case "id":
			if !strings.Contains(value, "\x00") {
				ev.ID, ev.HasID = value, true
			}
		case "retry":
			n, ok := int64(0), len(value) > 0 && len(value) <= 10
			for _, c := range []byte(value) {
				ok = ok && c >= '0' && c <= '9'
				n = n*10 + int64(c) - '0'
			}
			if ok {
				ev.Retry = time.Duration(n) * time.Millisecond
			}
		}
	}
	return all
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"data: {\"jsonrpc\":\"2.0\"}\n\n", "event: prime\nid: 1\ndata: \n\n", "data: a\r\n\r\n", "\r\r\n\n",
		": ok\n\ndata: a\ndata: b\n\nid\nretry: 10\n\n", "\xEF\xBB\xBFdata:x\n\n", "data: \xff\xfe\n\n", "data: a\n\r\ndata",
		"event: prime\nid: MQR7_0\ndata: \n\nevent: close\nretry: 10\ndata: \n\n", // go-sdk
		"id: 93f724cb\ndata: \n\nevent: message\nid: e1be7c54\ndata: {}\n\n",      // TypeScript
		"id: 93f724cb\nretry: 1500\ndata: \n\n", "id: e0\ndata:\n\nretry: 1500\ndata:\n\n",
		"id: 7\nevent: message\ndata: {}\n\nid\n\nid: a\x01b\nretry: 99999999999\n\n",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		want := oracle(string(in))
		got, err := readAll(&pieces{bytes.NewReader(in), int(piece%7) + 1}, 1<<20)
		if !errors.Is(err, io.EOF) {
			t.Fatalf("error %v", err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-oracle +reader)\n%s", d)
		}
	})
}

// pieces gives at most size bytes a read.
type pieces struct {
	r    io.Reader
	size int
}

func (p *pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.size)]) }
