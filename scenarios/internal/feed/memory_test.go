package feed_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpbench/scenarios/internal/feed"
)

// highWater returns by how much the heap in use grew at most, at the moments
// that run samples.
func highWater(tb testing.TB, run func(sample func())) uint64 {
	tb.Helper()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	base, high := m.HeapInuse, uint64(0)
	run(func() {
		runtime.ReadMemStats(&m)
		if m.HeapInuse > base {
			high = max(high, m.HeapInuse-base)
		}
	})
	return high
}

// generator is a text that is made as it is read, as a pipe or as a file.
type generator struct {
	head   string
	row    string // with a place for its number at number
	number int
	rows   int64
	off    int64
	isFile bool
}

func (g *generator) size() int64 { return int64(len(g.head)) + g.rows*int64(len(g.row)) }

func (g *generator) ReadAt(b []byte, off int64) (int, error) {
	n, row, width := 0, []byte(g.row), int64(len(g.row))
	for n < len(b) && off < g.size() {
		from := []byte(g.head)[min(off, int64(len(g.head))):]
		if at := off - int64(len(g.head)); at >= 0 {
			for i, number := g.number+numberWidth-1, at/width; i >= g.number; i, number = i-1, number/10 {
				row[i] = byte('0' + number%10)
			}
			from = row[at%width:]
		}
		k := copy(b[n:], from)
		n += k
		off += int64(k)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (g *generator) Read(b []byte) (int, error) {
	n, err := g.ReadAt(b[:min(len(b), 64<<10)], g.off)
	g.off += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (g *generator) Close() error               { return nil }
func (g *generator) Stat() (fs.FileInfo, error) { return info{g}, nil }

type info struct{ g *generator }

func (i info) Name() string       { return "generated" }
func (i info) Size() int64        { return i.g.size() }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.g.isFile {
		return 0o600
	}
	return fs.ModeNamedPipe
}

const numberWidth = 20

// generated has rows of 100 bytes.
func generated(format feed.Format, bytes int64, isFile bool) *generator {
	g := &generator{rows: bytes / 100, isFile: isFile}
	number := strings.Repeat("0", numberWidth)
	if format == feed.CSV {
		g.head = "id,text\n"
		g.row = number + ",\"" + strings.Repeat("x", 76) + "\"\n"
	} else {
		g.row = "{\"id\":\"" + number + "\",\"text\":\"" + strings.Repeat("x", 60) + "\"}\n"
	}
	g.number = strings.Index(g.row, number)
	return g
}

// TestLargeFilesTakeLittleMemory reads 300 MB through a pipe and 100 MB in each
// other way, or FEED_BYTES in all.
func TestLargeFilesTakeLittleMemory(t *testing.T) {
	bytes := int64(0)
	if text := os.Getenv("FEED_BYTES"); text != "" {
		var err error
		if bytes, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range []feed.Format{feed.CSV, feed.JSONL} {
		for name, s := range map[string]feed.Spec{
			"pipe":       {OnEnd: feed.Stop},
			"sequential": {},
			"random":     {Pick: feed.Random},
		} {
			t.Run(string(format)+" "+name, func(t *testing.T) {
				size := bytes
				switch {
				case size > 0:
				case testing.Short(): // with the race detector, which looks for something else
					size = 10e6
				case name == "pipe" && format == feed.CSV:
					size = 300e6
				default:
					size = 100e6
				}
				g := generated(format, size, name != "pipe")
				s.Name, s.File, s.Format, s.Seed = "q", "generated", format, 9
				s.Open = func(string) (fs.File, error) { return g, nil }
				high := highWater(t, func(sample func()) { readLarge(t, s, g, sample) })
				t.Logf("%d rows, the heap grew by %.1f MiB", g.rows, float64(high)/(1<<20))
				if high > 48<<20 {
					t.Errorf("the heap grew by %d MiB, at most 48", high>>20)
				}
			})
		}
	}
}

// readLarge asks for rows in order, or for some at random.
func readLarge(t *testing.T, s feed.Spec, g *generator, sample func()) {
	t.Helper()
	f := open(t, s)
	sample()
	asks := g.rows
	if s.Pick == feed.Random {
		asks = min(asks, 20_000)
	}
	row := feed.Row{}
	for i := range uint64(asks) {
		if err := f.Fill(t.Context(), i, row); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%020d", i); s.Pick != feed.Random && row["id"] != want {
			t.Fatalf("arrival %d gets %v", i, row["id"])
		}
		if i%2500 == 0 {
			sample()
		}
	}
	if _, err := f.Row(t.Context(), uint64(g.rows)); s.OnEnd == feed.Stop && !errors.Is(err, feed.ErrEnd) {
		t.Errorf("after the last: %v", err)
	}
}
