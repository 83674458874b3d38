package feed_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/scenarios/internal/feed"
)

// TestManyWorkers has 16 of them take arrivals as they come, from a file that is
// read again and again.
func TestManyWorkers(t *testing.T) {
	const rows, arrivals = 30_000, 100_000
	var b strings.Builder
	b.WriteString("id,text\n")
	for i := range rows {
		fmt.Fprintf(&b, "%d,\"some text, with a comma\"\n", i)
	}
	file := write(t, "a.csv", b.String())
	for name, s := range map[string]feed.Spec{
		"held":     {File: file},
		"streamed": {File: file, Memory: 1000},
		"pipe":     {File: "p.csv", Open: pipe(b.String()), OnEnd: feed.Stop},
		"random":   {File: file, Memory: 1000, Pick: feed.Random},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, s)
			next := make(chan uint64)
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					row := feed.Row{}
					for i := range next {
						err := f.Fill(t.Context(), i, row)
						ended := s.OnEnd == feed.Stop && i >= rows
						want := s.Pick == feed.Random || row["id"] == fmt.Sprint(i%rows)
						if ended != errors.Is(err, feed.ErrEnd) || !ended && (err != nil || !want) {
							t.Errorf("arrival %d: row %v, %v", i, row["id"], err)
						}
					}
				})
			}
			for i := range uint64(arrivals) {
				next <- i
			}
			close(next)
			wg.Wait()
		})
	}
}

func TestClose(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if _, err := w.WriteString("id\n1\n"); err != nil {
		t.Fatal(err)
	}
	f, err := feed.Open(t.Context(), feed.Spec{
		Name: "q", File: "p.csv", OnEnd: feed.Stop, Open: func(string) (fs.File, error) { return r, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	// A live pipe: the first row is there, the second is waited for.
	if row, err := f.Row(t.Context(), 0); err != nil || row["id"] != "1" {
		t.Fatalf("row 0: %v, %v", row, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	if _, err := f.Row(ctx, 1); !errors.Is(err, stop) {
		t.Errorf("a wait that is ended: %v", err)
	}
	waiting := make(chan error)
	go func() {
		_, err := f.Row(context.WithoutCancel(t.Context()), 1)
		waiting <- err
	}()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waiting; !errors.Is(err, feed.ErrClosed) {
		t.Errorf("a wait when the feed closes: %v", err)
	}
	if _, err := f.Row(t.Context(), 0); !errors.Is(err, feed.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}

func TestOpenOfASilentPipeEndsWithTheContext(t *testing.T) {
	for _, onEnd := range []feed.OnEnd{feed.Stop, feed.Recycle} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stop")
		opened := func(string) (fs.File, error) {
			go cancel(stop)
			return r, nil
		}
		if _, err := feed.Open(ctx, feed.Spec{Name: "q", File: "p.csv", OnEnd: onEnd, Open: opened}); !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
		_ = w.Close()
	}
}

func TestALateRow(t *testing.T) {
	const rows = 300_000
	var b strings.Builder
	b.WriteString("id,filler\n")
	for i := range rows {
		fmt.Fprintf(&b, "%d,%0100d\n", i, 0)
	}
	file := write(t, "a.csv", b.String())
	f := open(t, feed.Spec{Name: "q", File: file, Memory: 1})
	p := open(t, feed.Spec{Name: "q", File: "p.csv", OnEnd: feed.Stop, Open: pipe(b.String())})
	for _, i := range []uint64{rows - 1, 0, 5, 100_000, 2*rows + 7, 3} {
		row, err := f.Row(t.Context(), i)
		if err != nil || row["id"] != fmt.Sprint(i%rows) {
			t.Errorf("arrival %d: %v, %v", i, row["id"], err)
		}
	}
	if row, err := p.Row(t.Context(), rows-1); err != nil || row["id"] != fmt.Sprint(rows-1) {
		t.Errorf("the last row: %v, %v", row["id"], err)
	}
	want := "row 1 of p.csv was asked for when row 300000 had been read; a pipe cannot go back, a file can"
	if _, err := p.Row(t.Context(), 0); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a row that a pipe let go: %v", err)
	}
}

// TestRowThatIsTooLong counts as one row, whichever way the file is read, and
// the next is right.
func TestRowThatIsTooLong(t *testing.T) {
	long := strings.Repeat("x", 17<<20)
	for name, content := range map[string]string{
		"a.csv": "id,text\n1,a\n2," + long + "\n3,b\n4,\"" + long + "\n5,c\n", "b.jsonl": "{\"id\":\"1\"}\n{\"id\":\"" + long + "\n{\"id\":\"3\"}\n{\"id\":" + long + "\n{\"id\":\"5\"}\n",
	} {
		file := write(t, name, content)
		line := 1
		if name == "b.jsonl" {
			line = 0
		}
		tooLong := func(row int) string { return fmt.Sprintf("F:%d: the row is longer than 16 MiB", line+row) }
		want := []string{"1", tooLong(2), "3", tooLong(4), "5", "end"}
		for way, s := range map[string]feed.Spec{"streamed": {}, "held": {Memory: 1 << 30}, "pipe": {Open: pipe(content)}} {
			s.Name, s.File, s.OnEnd, s.Columns = "q", file, feed.Stop, []string{"id"}
			got := first(t, open(t, s), len(want), file)
			for i := range got {
				got[i] = strings.TrimSuffix(strings.TrimPrefix(got[i], "map[id:"), "]")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, way, diff)
			}
		}
	}
}

// TestPlacesInAFileOfManyRows has more rows than the index has marks. Each row
// goes over two lines, and every 1000th is bad.
func TestPlacesInAFileOfManyRows(t *testing.T) {
	const rows = 700_000
	var b strings.Builder
	b.WriteString("id,text\n")
	for i := range rows {
		if i%1000 == 7 {
			fmt.Fprintf(&b, "%d\n\n", i)
		} else {
			fmt.Fprintf(&b, "%d,\"a\n%d\"\n", i, i)
		}
	}
	file := write(t, "a.csv", b.String())
	want := func(n int) string {
		if n%1000 == 7 {
			return fmt.Sprintf("F:%d: the row has 1 field, the line of names 2", 2*n+2)
		}
		return fmt.Sprintf("map[id:%d text:a\n%d]", n, n)
	}
	held := open(t, feed.Spec{Name: "q", File: file, Memory: 1 << 30})
	streamed := open(t, feed.Spec{Name: "q", File: file})
	for n := 0; n < rows; n += 997 {
		for _, f := range []*feed.Feed{held, streamed} {
			row, err := f.Row(t.Context(), uint64(n))
			if got := short(row, err, file); got != want(n) {
				t.Fatalf("row %d: %q, want %q", n, got, want(n))
			}
		}
	}
	for n := rows - 1; n >= 0; n -= 4973 { // those that the stream let go
		row, err := streamed.Row(t.Context(), uint64(n))
		if got := short(row, err, file); got != want(n) {
			t.Fatalf("late row %d: %q, want %q", n, got, want(n))
		}
	}
	random := open(t, feed.Spec{Name: "q", File: file, Pick: feed.Random})
	for i := range uint64(5000) {
		row, err := random.Row(t.Context(), i)
		var n int
		got := short(row, err, file)
		if err == nil {
			_, err = fmt.Sscanf(got, "map[id:%d ", &n)
		} else {
			_, err = fmt.Sscanf(got, "F:%d:", &n)
			n = n/2 - 1
		}
		if err != nil || got != want(n) {
			t.Fatalf("arrival %d: %q, want %q", i, got, want(n))
		}
	}
}

func TestLen(t *testing.T) {
	csv := write(t, "a.csv", "id\n"+strings.Repeat("1\n", 10))
	for _, tt := range []struct {
		s    feed.Spec
		want int64
		ok   bool
	}{
		{feed.Spec{File: csv}, 10, true},
		{feed.Spec{File: csv, Shard: feed.Shard{I: 0, N: 3}}, 4, true},
		{feed.Spec{File: csv, Shard: feed.Shard{I: 2, N: 3}}, 3, true},
		{feed.Spec{File: csv, Shard: feed.Shard{I: 11, N: 12}}, 0, true},
		{feed.Spec{File: csv, Pick: feed.Random, Memory: 1, Shard: feed.Shard{I: 2, N: 3}}, 10, true},
		{feed.Spec{File: csv, Memory: 1}, 0, false},
	} {
		if n, ok := open(t, tt.s).Len(); n != tt.want || ok != tt.ok {
			t.Errorf("%+v: Len() = %d, %v, want %d, %v", tt.s, n, ok, tt.want, tt.ok)
		}
	}
}

func TestColumns(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		columns, want []string
	}{
		{"a.csv", "b,a,,c\n1,2,3,4\n", nil, []string{"b", "a", "c"}},
		{"a.csv", "b,a,,c\n1,2,3,4\n", []string{"c", "b"}, []string{"c", "b"}},
		{"a.jsonl", "{\"b\":1,\"a\":2}\n[]\n{\"a\":1,\"c\":3}\n", nil, []string{"a", "b", "c"}},
	} {
		for _, memory := range []int64{0, 1} {
			f := open(t, feed.Spec{Name: "q", File: write(t, tt.name, tt.content), Columns: tt.columns, Memory: memory})
			if diff := cmp.Diff(tt.want, f.Columns()); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.content, diff)
			}
		}
	}
}

func TestDurations(t *testing.T) {
	read := func(content string, unit time.Duration) ([]time.Duration, error) {
		return feed.Durations(t.Context(), feed.Spec{Name: "q", File: write(t, "a.csv", "n,d\n"+content)}, "d", unit)
	}
	got, err := read("1,250ms\n2, 1.5 \n3,0\n", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Duration{250 * time.Millisecond, 1500 * time.Millisecond, 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, tt := range []struct{ content, want string }{
		{"1,5\n", `row 1 of`},
		{"1,5\n", `column "d": 5 has no unit: write 250ms, or say which unit the numbers are of`},
		{"1,1s\n2,soon\n", `"soon" is not a duration such as 250ms`},
		{"1,\n", `"" is not a duration`},
		{"1,-1s\n", "-1s must not be negative"},
		{"1,1s\n2\n", "a.csv:3: the row has 1 field"},
	} {
		if _, err := read(tt.content, 0); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.content, err, tt.want)
		}
	}
	if _, err := read("1,1e300\n", time.Second); err == nil || !strings.Contains(err.Error(), "1e300 is out of range") {
		t.Errorf("1e300: %v", err)
	}
	if _, err := read("1,NaN\n", time.Second); err == nil || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("NaN: %v", err)
	}
}

// TestAllocations: a row costs its values, and one string for all text of CSV.
func TestAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("with the race detector, for which -short stands, pools forget at random")
	}
	csv := write(t, "a.csv", "a,b\n"+strings.Repeat("1,2\n", 1000))
	jsonl := write(t, "a.jsonl", strings.Repeat("{\"a\":\"1\",\"b\":2.5}\n", 1000))
	for _, tt := range []struct {
		name string
		s    feed.Spec
		most float64
	}{
		{"csv", feed.Spec{File: csv}, 3},
		{"csv, random", feed.Spec{File: csv, Pick: feed.Random, Memory: 1}, 3},
		{"csv, one column", feed.Spec{File: csv, Columns: []string{"a"}}, 2},
		{"jsonl", feed.Spec{File: jsonl}, 4},
		{"parquet", feed.Spec{File: writeParquet(t, items(1000))}, 0},
		{"list", feed.Spec{Rows: []feed.Row{{"a": 1000}}}, 0},
		{"list, random", feed.Spec{Rows: []feed.Row{{"a": 1000}}, Pick: feed.Random}, 0},
	} {
		f := open(t, tt.s)
		row, i := feed.Row{}, uint64(0)
		got := testing.AllocsPerRun(500, func() {
			if err := f.Fill(t.Context(), i, row); err != nil {
				t.Fatal(err)
			}
			i++
		})
		if got > tt.most {
			t.Errorf("%s: %v allocations a row, at most %v", tt.name, got, tt.most)
		}
	}
}
