package feed_test

import (
	"bytes"
	stdcsv "encoding/csv"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"mcpbench/scenarios/internal/feed"
)

// inMemory opens content as a file, or as a pipe that gives few bytes at a time.
func inMemory(content []byte, asPipe bool) func(string) (fs.File, error) {
	return func(string) (fs.File, error) {
		file, err := fstest.MapFS{"f": {Data: content}}.Open("f")
		if err != nil || !asPipe {
			return file, err
		}
		return &trickle{File: file}, nil
	}
}

type trickle struct {
	fs.File
	n int
}

func (p *trickle) Read(b []byte) (int, error) {
	p.n = p.n%7 + 1
	return p.File.Read(b[:min(p.n, len(b))])
}

func (p *trickle) Stat() (fs.FileInfo, error) { return info{&generator{}}, nil }

// readAll returns rows and errors up to the end, and an error of opening.
func readAll(t *testing.T, content []byte, s feed.Spec) ([]feed.Row, []error, error) {
	t.Helper()
	f, err := feed.Open(t.Context(), s)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	var rows []feed.Row
	var errs []error
	for i := uint64(0); ; i++ {
		row, err := f.Row(t.Context(), i)
		if errors.Is(err, feed.ErrEnd) {
			return rows, errs, nil
		}
		if err != nil {
			if _, ok := errors.AsType[*feed.RowError](err); !ok {
				t.Fatalf("row %d: %v", i, err)
			}
		}
		rows, errs = append(rows, row), append(errs, err)
		if i > uint64(len(content)) {
			t.Fatal("more rows than bytes")
		}
	}
}

// ways are how a text may be read; the first row must come from each.
func ways(content []byte, format feed.Format) []feed.Spec {
	return []feed.Spec{
		{Name: "held", File: "f", Format: format, Pick: feed.Unique, Open: inMemory(content, false)},
		{Name: "streamed", File: "f", Format: format, Pick: feed.Unique, Open: inMemory(content, false), Memory: 1},
		{Name: "pipe", File: "f", Format: format, Pick: feed.Unique, Open: inMemory(content, true)},
	}
}

// FuzzCSV compares with encoding/csv, row by row and error by error.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"1,2\n3,4", "\"a\n\"\"b\",c\r\n", "a\"b,\"c\nd\",e\n", "\"a\"b,\"c\nd\n", "\n\r\n\r", "\"\r", "\"a\"\r", "\"a\"\rb\n1,2",
		",\n,,\n", "\"open,1\n2,3\n", "\xff,\"\xff\n\"\n", "a\r\r\nb,\r",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		content := append([]byte("k0,k1\n"), body...)
		want := standardCSV(content)
		for _, s := range ways(content, feed.CSV) {
			rows, errs, err := readAll(t, content, s)
			if err != nil {
				if len(want) > 0 {
					t.Fatalf("%s: %v; encoding/csv has %d rows", s.Name, err, len(want))
				}
				continue
			}
			if got := texts(rows, errs, want); !slices.Equal(want, got) {
				t.Fatalf("%s of %q:\nwant %q\ngot  %q", s.Name, content, want, got)
			}
		}
	})
}

// standardCSV returns the rows of encoding/csv as text, without the names.
func standardCSV(content []byte) (rows []string) {
	r := stdcsv.NewReader(bytes.NewReader(content))
	r.FieldsPerRecord = 2
	for n := 0; ; n++ {
		record, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return rows
		case n == 0:
		case err != nil:
			rows = append(rows, "error")
		default:
			rows = append(rows, strings.Join(record, "\x00"))
		}
	}
}

// texts returns rows in the same way; encoding/csv does not mind what is not
// UTF-8.
func texts(rows []feed.Row, errs []error, want []string) (got []string) {
	for i, row := range rows {
		switch {
		case errs[i] == nil:
			got = append(got, fmt.Sprintf("%s\x00%s", row["k0"], row["k1"]))
		case i < len(want) && strings.Contains(errs[i].Error(), "not UTF-8"):
			got = append(got, want[i])
		default:
			got = append(got, "error")
		}
	}
	return got
}

// FuzzJSONL compares with encoding/json, line by line.
func FuzzJSONL(f *testing.F) {
	for _, seed := range []string{
		"{\"a\":1}\n{\"a\":2}", "{}\n\n[1]\n{\"a\":{\"b\":[1,\"\\u00e9\\ud800\"]}}\r\n", "{\"a\":1}{}\n", "{\"a\":1e400}\n",
		"{\"a\":\"\xff\"}\n", "{\"a\":1,\"a\":-0}\n{", "{\"\\u0061\":12345678901234567890}", "{\"a\":}\n{\"x\":null}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		content := append([]byte("{\"first\":true}\n"), body...)
		var lines [][]byte
		for line := range bytes.SplitSeq(content, []byte("\n")) {
			if len(bytes.Trim(line, " \t\r")) > 0 {
				lines = append(lines, line)
			}
		}
		for _, s := range ways(content, feed.JSONL) {
			rows, errs, err := readAll(t, content, s)
			if err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			if len(rows) != len(lines) {
				t.Fatalf("%s of %q: %d rows, want %d", s.Name, content, len(rows), len(lines))
			}
			for i, line := range lines {
				sameJSON(t, line, rows[i], errs[i])
			}
		}
	})
}

func sameJSON(t *testing.T, line []byte, row feed.Row, err error) {
	t.Helper()
	d := stdjson.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var want map[string]any
	bad := d.Decode(&want)
	if _, more := d.Token(); bad == nil && !errors.Is(more, io.EOF) {
		bad = errors.New("more follows")
	}
	strict := func(what string) bool { return err != nil && strings.Contains(err.Error(), what) }
	switch {
	case strict("UTF-8"), strict("surrogate"), strict("escape"), strict("out of range"): // encoding/json takes these
	case (bad != nil || want == nil) != (err != nil):
		t.Fatalf("line %q: %v, encoding/json %v", line, err, bad)
	case err == nil && !reflect.DeepEqual(plain(want), plain(row)):
		t.Fatalf("line %q: %v, want %v", line, row, want)
	}
}

// plain makes all numbers float64.
func plain(v any) any {
	switch v := v.(type) {
	case stdjson.Number:
		f, _ := v.Float64()
		return f
	case int:
		return float64(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			out[k] = plain(v[k])
		}
		return out
	}
	return v
}
