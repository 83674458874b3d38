package feed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"mcpbench/scenarios/internal/feed"
)

// BenchmarkFill is the cost of a row into a map that is used again: four
// columns, about 70 bytes; 300 k rows.
func BenchmarkFill(b *testing.B) {
	const rows = 300_000
	var csv, jsonl strings.Builder
	csv.WriteString("id,name,text,score\n")
	list := make([]struct {
		ID    int64   `parquet:"id"`
		Name  string  `parquet:"name"`
		Text  string  `parquet:"text"`
		Score float64 `parquet:"score"`
	}, rows)
	for i := range rows {
		text := "a search for something of everyday length"
		fmt.Fprintf(&csv, "%d,user %d,%s,%d.5\n", i, i, text, i%100)
		fmt.Fprintf(&jsonl, "{\"id\":%d,\"name\":\"user %d\",\"text\":%q,\"score\":%d.5}\n", i, i, text, i%100)
		list[i].ID, list[i].Name, list[i].Text, list[i].Score = int64(i), fmt.Sprint("user ", i), text, float64(i%100)+0.5
	}
	files := []struct{ name, file string }{
		{"csv", write(b, "a.csv", csv.String())},
		{"jsonl", write(b, "a.jsonl", jsonl.String())},
		{"parquet", writeParquet(b, list, parquet.Compression(&parquet.Zstd))},
	}
	for _, file := range files {
		for _, way := range []struct {
			name string
			s    feed.Spec
		}{
			{"held", feed.Spec{Memory: 1 << 30}},
			{"streamed", feed.Spec{Memory: 1}},
			{"random", feed.Spec{Memory: 1, Pick: feed.Random}},
			{"zipf", feed.Spec{Memory: 1, Pick: feed.Zipf}},
			{"one column", feed.Spec{Memory: 1, Columns: []string{"text"}}},
		} {
			b.Run(file.name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				way.s.Name, way.s.File = "q", file.file
				f := open(b, way.s)
				row := feed.Row{}
				i := uint64(0)
				for b.Loop() {
					if err := f.Fill(b.Context(), i, row); err != nil {
						b.Fatal(err)
					}
					i++
				}
			})
		}
	}
}
