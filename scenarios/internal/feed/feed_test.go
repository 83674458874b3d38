package feed_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mcpbench/scenarios/internal/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write makes a file and returns its name.
func write(tb testing.TB, name, content string) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

func open(tb testing.TB, s feed.Spec) *feed.Feed {
	tb.Helper()
	f, err := feed.Open(tb.Context(), s)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return f
}

// short is what a row or its error is, as text.
func short(row feed.Row, err error, file string) string {
	switch {
	case errors.Is(err, feed.ErrEnd):
		return "end"
	case err != nil:
		return strings.ReplaceAll(err.Error(), file, "F")
	}
	return fmt.Sprint(row)
}

// first returns the first n rows as text.
func first(t *testing.T, f *feed.Feed, n int, file string) (rows []string) {
	t.Helper()
	for i := range uint64(n) {
		row, err := f.Row(t.Context(), i)
		rows = append(rows, short(row, err, file))
	}
	return rows
}

// ids returns the column id of the first arrivals, up to the end.
func ids(t *testing.T, f *feed.Feed, most int) (out []string) {
	t.Helper()
	for i := range uint64(most) {
		row, err := f.Row(t.Context(), i)
		if errors.Is(err, feed.ErrEnd) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(row["id"]))
	}
	return out
}

// pipe is a file that is none: it cannot go back.
func pipe(content string) func(string) (fs.File, error) {
	return func(string) (fs.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		go func() {
			_, _ = w.WriteString(content)
			_ = w.Close()
		}()
		return r, nil
	}
}

// TestRows reads small files in every way that there is: held, streamed, at
// random places and as a pipe; all see the same rows and errors.
func TestRows(t *testing.T) {
	for _, tt := range []struct {
		name, file, content string
		columns             []string
		comma               byte
		want                []string
	}{
		{
			name: "plain csv", file: "a.csv", content: "id,text\n1,one\n2,two\n",
			want: []string{"map[id:1 text:one]", "map[id:2 text:two]", "end"},
		},
		{
			name: "byte order mark, CRLF, blank lines, no end of line", file: "a.csv", content: "\uFEFFid,text\r\n\r\n1,one\r\n\n2,",
			want: []string{"map[id:1 text:one]", "map[id:2 text:]", "end"},
		},
		{
			name: "quotes", file: "a.csv", content: "id,\"te\"\"xt\"\n\"1\",\"a, \"\"b\"\"\r\nc\"\n\"\",x\n",
			want: []string{"map[id:1 te\"xt:a, \"b\"\nc]", "map[id: te\"xt:x]", "end"},
		},
		{
			name: "tabs by name", file: "a.tsv", content: "id\ttext\n1\ta,b\n",
			want: []string{"map[id:1 text:a,b]", "end"},
		},
		{
			name: "separator", file: "a.csv", content: "id;text\n1;a,b\n", comma: ';',
			want: []string{"map[id:1 text:a,b]", "end"},
		},
		{
			name: "columns, and a nameless one", file: "a.csv", content: ",b,c,d,e\n0,1,2,3,4\n5,6,\"7\"\"\",8,9\n", columns: []string{"c"},
			want: []string{"map[c:2]", "map[c:7\"]", "end"},
		},
		{
			name: "bad rows of csv", file: "a.csv",
			content: "id,text\n1\n2,a\"b\n\"3\"x,\"\n4,ok\n5,\xff\n6,\"open\n7,x\n",
			want: []string{
				"F:2: the row has 1 field, the line of names 2",
				"F:3: field 2: a quote within a field that does not begin with one; put the field in quotes and write \"\" for each quote",
				"F:4: field 1: text after the quote that ends a field; write \"\" for a quote within one",
				"map[id:4 text:ok]",
				"F:6: the row is not UTF-8; save the file as UTF-8",
				"F:7: field 2: a quote that is never closed",
				"end",
			},
		},
		{
			name: "jsonl", file: "a.jsonl",
			content: "\uFEFF{\"id\":1,\"x\":[true,null,{\"y\":1.5}]}\r\n \n{\"id\":9007199254740993,\"s\":\"\\u00e9\"}\n{\"id\":-0}",
			want: []string{
				"map[id:1 x:[true <nil> map[y:1.5]]]", "map[id:9007199254740993 s:é]", "map[id:-0]", "end",
			},
		},
		{
			name: "columns of jsonl", file: "a.ndjson", content: "{\"a\":1,\"b\":{\"c\":[]}}\n{\"b\":2}\n", columns: []string{"a"},
			want: []string{"map[a:1]", "map[]", "end"},
		},
		{
			name: "bad rows of jsonl", file: "a.jsonl",
			content: "{\"a\":1}\n[1]\n{\"a\":\n{\"a\":1} {}\n\xff\n7\n{\"a\":x}\n{\"a\":1e999}\n{\"a\":2}\n",
			want: []string{
				"map[a:1]", "F:2: the row is an array; each line must be a JSON object",
				"F:3: bad JSON: it ends too early",
				"F:4: more follows the object; each line must be one JSON object",
				"F:5: the row is not UTF-8; save the file as UTF-8",
				"F:6: the row is a number; each line must be a JSON object",
				"F:7: bad JSON: invalid character 'x' at start of value within \"/a\" after offset 5",
				"F:8: the number 1e999 is out of range",
				"map[a:2]", "end",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := write(t, tt.file, tt.content)
			for way, s := range map[string]feed.Spec{
				"held":     {},
				"streamed": {Memory: 3},
				"pipe":     {Open: pipe(tt.content), Memory: 3},
				"held pipe": {
					Open: pipe(tt.content), Pick: feed.Sequential, OnEnd: feed.Recycle,
				},
			} {
				s.Name, s.File, s.Columns, s.Comma = "q", file, tt.columns, tt.comma
				if s.OnEnd == "" {
					s.Pick = feed.Unique
				}
				got := first(t, open(t, s), len(tt.want), file)
				if s.OnEnd == feed.Recycle { // goes round where the others end
					got[len(got)-1] = "end"
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", way, diff)
				}
			}
			random := open(t, feed.Spec{Name: "q", File: file, Columns: tt.columns, Comma: tt.comma, Pick: feed.Random, Memory: 3})
			held := open(t, feed.Spec{Name: "q", File: file, Columns: tt.columns, Comma: tt.comma, Pick: feed.Random})
			sameAtRandom(t, held, random, file, tt.want[:len(tt.want)-1])
		})
	}
}

// sameAtRandom draws from two feeds of one seed, until all rows came.
func sameAtRandom(t *testing.T, held, random *feed.Feed, file string, rows []string) {
	t.Helper()
	seen := map[string]bool{}
	for i := range uint64(200) {
		row, err := random.Row(t.Context(), i)
		heldRow, heldErr := held.Row(t.Context(), i)
		got := short(row, err, file)
		if want := short(heldRow, heldErr, file); got != want {
			t.Fatalf("arrival %d: %s at a random place, %s held", i, got, want)
		}
		seen[got] = true
	}
	for _, want := range rows {
		if !seen[want] {
			t.Errorf("random never gives %s", want)
		}
	}
	if len(seen) > len(rows) {
		t.Errorf("random gives %v", seen)
	}
}

func TestList(t *testing.T) {
	rows := []feed.Row{{"a": 1, "b": "x"}, {"a": 2}}
	f := open(t, feed.Spec{Name: "q", Rows: rows, Columns: []string{"a"}})
	if diff := cmp.Diff([]string{"map[a:1]", "map[a:2]", "map[a:1]"}, first(t, f, 3, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n, ok := f.Len(); n != 2 || !ok {
		t.Errorf("Len() = %d, %v", n, ok)
	}
}

func TestOpenErrors(t *testing.T) {
	csv := write(t, "a.csv", "id,text\n1,x\n")
	many := "id\n" + strings.Repeat("1\n", 100)
	for _, tt := range []struct {
		name string
		s    feed.Spec
		want string
	}{
		{"nothing", feed.Spec{}, "data.q: give either a file or rows"},
		{"both", feed.Spec{File: csv, Rows: []feed.Row{{}}}, "give either a file or rows"},
		{"empty list", feed.Spec{Rows: []feed.Row{}}, "the list has no rows"},
		{"no such file", feed.Spec{File: csv + "x.csv"}, "open " + csv + "x.csv: no such file or directory"},
		{"a folder", feed.Spec{File: t.TempDir(), Format: feed.CSV}, "is a directory"},
		{"unknown end", feed.Spec{File: "/dev/stdin"}, "what /dev/stdin holds cannot be told from its name: give the format, csv, jsonl or parquet"},
		{"unknown format", feed.Spec{File: csv, Format: "xml"}, `format is "xml"`},
		{"unknown pick", feed.Spec{File: csv, Pick: "any"}, `pick is "any"; it may be sequential, random, unique or zipf`},
		{"unknown end", feed.Spec{File: csv, OnEnd: "any"}, `on_end is "any"`},
		{"random has no end", feed.Spec{File: csv, Pick: feed.Random, OnEnd: feed.Stop}, "on_end does not go with pick: random"},
		{"unique does not recycle", feed.Spec{File: csv, Pick: feed.Unique, OnEnd: feed.Recycle}, "pick: unique gives each row once"},
		{"exponent", feed.Spec{File: csv, Skew: 1}, "the exponent goes with pick: zipf only"},
		{"bad exponent", feed.Spec{File: csv, Pick: feed.Zipf, Skew: -1}, "s of zipf must be more than 0"},
		{"shard", feed.Spec{File: csv, Shard: feed.Shard{I: 2, N: 2}}, "there is no shard 2 of 2"},
		{"separator", feed.Spec{File: csv, Comma: '"'}, `'"' cannot separate fields`},
		{"separator of jsonl", feed.Spec{File: csv, Format: feed.JSONL, Comma: ';'}, "the separator goes with CSV only"},
		{"columns twice", feed.Spec{File: csv, Columns: []string{"id", "id"}}, `columns has "id" twice`},
		{"missing column", feed.Spec{File: csv, Columns: []string{"txet"}}, csv + ` has no column "txet" (did you mean "text"?); it has id, text`},
		{"missing column of jsonl", feed.Spec{File: write(t, "a.jsonl", "{\"id\":1}\n"), Columns: []string{"text"}}, `has no column "text"; it has id`},
		{"missing column of a list", feed.Spec{Rows: []feed.Row{{"id": 1}}, Columns: []string{"text"}}, `the list of q has no column "text"; it has id`},
		{"same name twice", feed.Spec{File: write(t, "b.csv", "a,b,a\n1,2,3\n")}, `b.csv:1: two columns are called "a"`},
		{"empty", feed.Spec{File: write(t, "c.csv", "")}, "c.csv is empty; a CSV file begins with a line of names"},
		{"names only", feed.Spec{File: write(t, "d.csv", "a,b\n")}, "d.csv has no rows"},
		{"names only, large", feed.Spec{File: write(t, "d.csv", "a,b\n"), Memory: 1}, "d.csv has no rows"},
		{"empty jsonl", feed.Spec{File: write(t, "d.jsonl", "\n \n")}, "d.jsonl has no rows"},
		{"not json at all", feed.Spec{File: write(t, "e.jsonl", "id,text\n1,x\n")}, "e.jsonl:1: bad JSON: invalid character 'i' at start of value"},
		{"utf-16", feed.Spec{File: write(t, "f.csv", "\xff\xfei\x00d\x00")}, "f.csv: is UTF-16; save it as UTF-8"},
		{"not parquet", feed.Spec{File: csv, Format: feed.Parquet}, "not a Parquet file that can be read"},
		{"recycled pipe", feed.Spec{File: "p.csv", Open: pipe(many), Memory: 50}, "p.csv is a pipe, which can be read only once, has more than 50 bytes, and on_end: recycle needs it all: save it to a file, or use on_end: stop"},
		{"random pipe", feed.Spec{File: "p.csv", Open: pipe(many), Memory: 50, Pick: feed.Random}, "and pick: random needs it all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.s.Name = "q"
			f, err := feed.Open(t.Context(), tt.s)
			if err == nil {
				_ = f.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "data.q: ") {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestShardsAreDisjointAndComplete is the property of unique over any number of
// askers: no row twice, every row once, and what one asker alone would get.
func TestShardsAreDisjointAndComplete(t *testing.T) {
	const rows = 1000
	var b strings.Builder
	b.WriteString("id\n")
	for i := range rows {
		fmt.Fprintln(&b, i)
	}
	file := write(t, "a.csv", b.String())
	for _, n := range []int{1, 2, 3, 7, 60} {
		for _, memory := range []int64{0, 100} {
			times := map[string]int{}
			for shard := range n {
				f := open(t, feed.Spec{Name: "q", File: file, Pick: feed.Unique, Shard: feed.Shard{I: shard, N: n}, Memory: memory})
				got := ids(t, f, rows+1)
				for i, id := range got {
					times[id]++
					if id != fmt.Sprint(i*n+shard) {
						t.Fatalf("arrival %d of shard %d of %d gets row %s", i, shard, n, id)
					}
				}
				if known, ok := f.Len(); ok != (memory == 0) || ok && known != int64(len(got)) {
					t.Errorf("shard %d of %d: Len() = %d, %v; there were %d", shard, n, known, ok, len(got))
				}
			}
			// All in range, as said above; none twice; so that this is every row.
			if len(times) != rows {
				t.Fatalf("%d shards: %d rows of %d were given", n, len(times), rows)
			}
		}
	}
}

// TestRandomRowsDependOnSeedFeederGroupAndArrival only, and not on the shard
// that an arrival came to, nor on the order of asking.
func TestRandomRowsDependOnSeedFeederGroupAndArrival(t *testing.T) {
	rows := make([]feed.Row, 1000)
	for i := range rows {
		rows[i] = feed.Row{"id": i}
	}
	for _, pick := range []feed.Pick{feed.Random, feed.Zipf} {
		base := feed.Spec{Name: "q", Rows: rows, Pick: pick, Seed: 42}
		want := ids(t, open(t, base), 100)
		backward := open(t, base)
		for i, id := range slices.Backward(want) {
			if row, err := backward.Row(t.Context(), uint64(i)); err != nil || fmt.Sprint(row["id"]) != id {
				t.Errorf("%s: arrival %d gets row %s, then %v, %v", pick, i, id, row, err)
			}
		}
		for shard := range 3 {
			sharded := base
			sharded.Shard = feed.Shard{I: shard, N: 3}
			for i, id := range ids(t, open(t, sharded), 30) {
				if id != want[3*i+shard] {
					t.Errorf("%s: arrival %d gets row %s, in a shard %s", pick, 3*i+shard, want[3*i+shard], id)
				}
			}
		}
		seed, name, group := base, base, base
		seed.Seed, name.Name, group.Group = 43, "p", 1
		for what, s := range map[string]feed.Spec{"seed": seed, "name": name, "group": group} {
			if got := ids(t, open(t, s), 100); slices.Equal(got[:10], want[:10]) {
				t.Errorf("%s: with another %s the rows are the same: %v", pick, what, got[:10])
			}
		}
	}
}

// TestRandomIsUniform is a chi-square test; 1000 cells, exceeded once in 1000.
func TestRandomIsUniform(t *testing.T) {
	const cells, draws = 1000, 200_000
	rows := make([]feed.Row, cells)
	for i := range rows {
		rows[i] = feed.Row{"id": i}
	}
	f := open(t, feed.Spec{Name: "q", Rows: rows, Pick: feed.Random, Seed: 1})
	var counts [cells]float64
	row := feed.Row{}
	for i := range uint64(draws) {
		if err := f.Fill(t.Context(), i, row); err != nil {
			t.Fatal(err)
		}
		counts[row["id"].(int)]++
	}
	chi := 0.0
	for _, c := range counts {
		chi += (c - draws/cells) * (c - draws/cells) / (draws / cells)
	}
	if chi > 1143 || chi < 862 {
		t.Errorf("chi-square %.0f, want 862 to 1143", chi)
	}
}
