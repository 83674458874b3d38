package grammar

import "mcpbench/scenarios/internal/syntax"

// Feeder gives a row of values to each iteration: data.NAME.COLUMN. It has a file
// or rows.
type Feeder struct {
	Place
	// Use takes over a map of another file: FILE#PATH. What is written here wins.
	Use Text `json:"use"`
	// File with the rows, relative to the scenario's folder. It is read as it is needed.
	File string `json:"file"`
	// Format of the file. Default: by the ending of its name.
	Format string `json:"format" jsonschema:"enum=csv,enum=jsonl,enum=parquet"`
	// Separator between the fields of CSV. Default: a comma, or a tab with .tsv.
	Separator string `json:"separator"`
	// Rows, each a map of values, instead of a file.
	Rows []Values `json:"rows"`
	// Columns to keep. Default: all.
	Columns []string `json:"columns"`
	// Pick says which row an iteration gets.
	Pick string `json:"pick" jsonschema:"enum=sequential,enum=random,enum=unique,enum=zipf,default=sequential"`
	// Exponent of zipf: the higher, the more often the first rows.
	Exponent Exponent `json:"exponent" jsonschema:"default=0.99"`
	// OnEnd says what happens after the last row. Default: stop with unique, else recycle.
	OnEnd string `json:"on_end" jsonschema:"enum=stop,enum=recycle"`
}

// Exponent is that of zipf.
type Exponent float64

// maxExponent is what the zipf of rows is able to draw.
const maxExponent = 20

func (v *Exponent) decode(d *decoder, n *syntax.Node, path string) {
	f, ok := d.number(n, path)
	if ok && !(f > 0 && f <= maxExponent) {
		d.fault(n, path, "must be more than 0 and at most %d", maxExponent)
		return
	}
	*v = Exponent(f)
}
