package feed_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"

	"mcpbench/scenarios/internal/feed"
)

// kinds has a column of each type that a feeder reads, and some it does not.
type kinds struct {
	ID      int64     `parquet:"id"`
	Text    string    `parquet:"text,dict,zstd"`
	Maybe   *string   `parquet:"maybe,optional"`
	Bool    bool      `parquet:"bool"`
	Int32   int32     `parquet:"int32"`
	Uint64  uint64    `parquet:"uint64"`
	Float   float32   `parquet:"float"`
	Double  float64   `parquet:"double"`
	UUID    [16]byte  `parquet:"uuid,uuid"`
	Day     int32     `parquet:"day,date"`
	Time    time.Time `parquet:"time,timestamp(microsecond)"`
	Decimal int64     `parquet:"decimal,decimal(2:18)"`
	List    []string  `parquet:"list,list"`
	Group   struct {
		A int64 `parquet:"a"`
	} `parquet:"group"`
}

func writeParquet[T any](tb testing.TB, rows []T, options ...parquet.WriterOption) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "a.parquet")
	out, err := os.Create(file)
	if err != nil {
		tb.Fatal(err)
	}
	w := parquet.NewGenericWriter[T](out, options...)
	_, err = w.Write(rows)
	if err := errors.Join(err, w.Close(), out.Close()); err != nil {
		tb.Fatal(err)
	}
	return file
}

func TestParquetTypes(t *testing.T) {
	text := "there"
	file := writeParquet(t, []kinds{
		{
			ID: 1 << 60, Text: "a", Maybe: &text, Bool: true, Int32: -5, Uint64: math.MaxUint64, Float: 0.1, Double: 0.2,
			UUID: [16]byte{0: 1, 15: 255}, Day: 20000, Time: time.UnixMicro(1_700_000_000_123_456), Decimal: -1999,
			List: []string{"x"},
		},
		{ID: -1, Time: time.UnixMicro(-1), Decimal: 5},
	})
	want := []feed.Row{
		{
			"id": 1 << 60, "text": "a", "maybe": "there", "bool": true, "int32": -5, "uint64": float64(math.MaxUint64),
			"float": 0.1, "double": 0.2, "uuid": "01000000-0000-0000-0000-0000000000ff", "day": "2024-10-04",
			"time": "2023-11-14T22:13:20.123456Z", "decimal": -19.99,
		},
		{
			"id": -1, "text": "", "maybe": nil, "bool": false, "int32": 0, "uint64": 0, "float": 0.0, "double": 0.0,
			"uuid": "00000000-0000-0000-0000-000000000000", "day": "1970-01-01", "time": "1969-12-31T23:59:59.999999Z", "decimal": 0.05,
		},
	}
	for _, s := range []feed.Spec{{}, {Memory: 1}, {Memory: 1, Pick: feed.Random}} {
		s.Name, s.File = "q", file
		f := open(t, s)
		for i := range uint64(20) {
			row, err := f.Row(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			which := 0
			if row["id"] == -1 {
				which = 1
			}
			if s.Pick == "" && which != int(i%2) {
				t.Errorf("arrival %d gets row %d", i, which)
			}
			if diff := cmp.Diff(want[which], row); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
	}
}

func TestParquetErrors(t *testing.T) {
	file := writeParquet(t, []kinds{{ID: 1}})
	empty := writeParquet(t, []kinds{})
	nested := writeParquet(t, []struct{ List []string }{{}})
	for _, tt := range []struct {
		s    feed.Spec
		want string
	}{
		{feed.Spec{File: file, Columns: []string{"txet"}}, `no column "txet" (did you mean "text"?); it has id, text, maybe`},
		{feed.Spec{File: file, Columns: []string{"list"}}, `column "list" is nested, a list, or of a type that has no value here`},
		{feed.Spec{File: file, Columns: []string{"group"}}, `column "group" is nested`},
		{feed.Spec{File: empty}, "has no rows"},
		{feed.Spec{File: nested}, "it has no plain column"},
	} {
		tt.s.Name = "q"
		if _, err := feed.Open(t.Context(), tt.s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want an error with %q", err, tt.want)
		}
	}
}

type item struct {
	ID   int64   `parquet:"id"`
	Text *string `parquet:"text,optional,zstd"`
	More string  `parquet:"more,dict"`
}

func items(n int) []item {
	rows := make([]item, n)
	for i := range rows {
		rows[i] = item{ID: int64(i), More: fmt.Sprint("more ", i%10)}
		if i%3 != 0 {
			text := fmt.Sprint("text ", i)
			rows[i].Text = &text
		}
	}
	return rows
}

// TestParquetRowsInEveryWay has several groups of many small pages.
func TestParquetRowsInEveryWay(t *testing.T) {
	const n = 50_000
	file := writeParquet(t, items(n), parquet.MaxRowsPerRowGroup(20_001), parquet.PageBufferSize(2000))
	for name, s := range map[string]feed.Spec{"held": {}, "streamed": {Memory: 1000}} {
		t.Run(name, func(t *testing.T) {
			s.Name, s.File = "q", file
			f := open(t, s)
			for i := range uint64(n + 100) {
				sameItem(t, f, i, n)
			}
			// Far ahead; then back by as much as was let go, and not.
			for _, i := range []uint64{1_000_000, 7, 25_000, 999_999} {
				sameItem(t, f, i, n)
			}
		})
	}
	t.Run("random", func(t *testing.T) {
		held := open(t, feed.Spec{Name: "q", File: file, Pick: feed.Random})
		f := open(t, feed.Spec{Name: "q", File: file, Pick: feed.Random, Memory: 1000})
		var wg sync.WaitGroup
		for worker := range uint64(4) {
			wg.Go(func() {
				for i := worker; i < 3000; i += 4 {
					want, err := held.Row(t.Context(), i)
					row, err2 := f.Row(t.Context(), i)
					if diff := cmp.Diff(want, row); diff != "" || err != nil || err2 != nil {
						t.Errorf("arrival %d: %v, %v (-held +random):\n%s", i, err, err2, diff)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// sameItem compares the row of arrival i with what items makes.
func sameItem(t *testing.T, f *feed.Feed, i, rows uint64) {
	t.Helper()
	n := int(i % rows)
	want := feed.Row{"id": n, "text": fmt.Sprint("text ", n), "more": fmt.Sprint("more ", n%10)}
	if n%3 == 0 {
		want["text"] = nil
	}
	row, err := f.Row(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Fatalf("arrival %d (-want +got):\n%s", i, diff)
	}
}

// TestParquetTextThatADictionaryHides takes 200 MB when it is read, and far less
// in the file.
func TestParquetTextThatADictionaryHides(t *testing.T) {
	rows, text := make([]item, 20_000), strings.Repeat("x", 10_000)
	for i := range rows {
		rows[i] = item{ID: int64(i), More: text}
	}
	file := writeParquet(t, rows)
	runtime.GC()
	high := highWater(t, func(sample func()) {
		f := open(t, feed.Spec{Name: "q", File: file})
		row := feed.Row{}
		for i := range uint64(2 * len(rows)) {
			if err := f.Fill(t.Context(), i, row); err != nil {
				t.Fatal(err)
			}
			if row["id"] != int(i)%len(rows) {
				t.Fatalf("arrival %d gets row %v", i, row["id"])
			}
			if i%500 == 0 {
				sample()
			}
		}
	})
	if high > 64<<20 {
		t.Errorf("the heap grew by %d MiB, at most 64", high>>20)
	}
}

// TestDamagedParquet: whatever is changed in the file, there are errors or
// values, and no panic.
func TestDamagedParquet(t *testing.T) {
	good, err := os.ReadFile(writeParquet(t, items(500), parquet.PageBufferSize(500)))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		bad := append([]byte(nil), good...)
		for range 1 + r.IntN(4) {
			bad[r.IntN(len(bad))] ^= byte(1 << r.IntN(8))
		}
		file := filepath.Join(t.TempDir(), "bad.parquet")
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, s := range []feed.Spec{{}, {Memory: 1, Pick: feed.Unique}, {Memory: 1, Pick: feed.Random}} {
			s.Name, s.File = "q", file
			f, err := feed.Open(t.Context(), s)
			if err != nil {
				continue
			}
			for i := range uint64(500) {
				_, _ = f.Row(t.Context(), i)
			}
			_ = f.Close()
		}
	}
}

// TestParquetWithoutAPageIndex, as some writers leave it out: all but random
// places of a large file work.
func TestParquetWithoutAPageIndex(t *testing.T) {
	const n = 20_000
	with := writeParquet(t, items(n), parquet.MaxRowsPerRowGroup(7001), parquet.PageBufferSize(2000))
	file := withoutPageIndex(t, with)
	for _, s := range []feed.Spec{{}, {Memory: 1000}} {
		s.Name, s.File = "q", file
		f := open(t, s)
		for _, i := range []uint64{0, 1, 5000, 7001, n + 3, 1_000_000, 9_999, 15_000} {
			row, err := f.Row(t.Context(), i)
			if err != nil || row["id"] != int(i%n) || row["more"] != fmt.Sprint("more ", i%n%10) {
				t.Errorf("arrival %d: %v, %v", i, row, err)
			}
		}
	}
	want := "has no page index for column \"id\", without which each row picked at random means to read 7001 rows: write the file with one"
	if _, err := feed.Open(t.Context(), feed.Spec{Name: "q", File: file, Pick: feed.Random, Memory: 1000}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("random: %v", err)
	}
	_ = open(t, feed.Spec{Name: "q", File: file, Pick: feed.Random})
}

// withoutPageIndex makes a copy of which the metadata does not know the indexes.
func withoutPageIndex(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	metadata := f.Metadata()
	for g := range metadata.RowGroups {
		for c := range metadata.RowGroups[g].Columns {
			chunk := &metadata.RowGroups[g].Columns[c]
			chunk.OffsetIndexOffset, chunk.OffsetIndexLength = 0, 0
			chunk.ColumnIndexOffset, chunk.ColumnIndexLength = 0, 0
		}
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), metadata)
	if err != nil {
		t.Fatal(err)
	}
	old := int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	data = append(data[:len(data)-8-old], footer...)
	data = append(binary.LittleEndian.AppendUint32(data, uint32(len(footer))), "PAR1"...)
	return write(t, "without.parquet", string(data))
}
