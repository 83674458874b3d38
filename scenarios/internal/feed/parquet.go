package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"mcpbench/internal/nearest"
)

const (
	// cellBytes is what a value costs in memory besides its text.
	cellBytes = 40
	// maxBlockRows bounds a block of short rows. The first block, before it is
	// known how long they are, has firstRows.
	maxBlockRows = 4096
	firstRows    = 16
)

// parquetFile is a Parquet file and the columns of it to read. It is immutable.
type parquetFile struct {
	name    string
	in      *input
	groups  []parquet.RowGroup
	starts  []int64 // the first row of each group
	total   int64
	least   int64 // bytes that the values of columns take, if not more
	columns []parquetColumn
}

type parquetColumn struct {
	name  string
	index int
	value func(parquet.Value) any // not of null
}

func openParquet(s *Spec, in *input) (store, []string, error) {
	p := &parquetFile{name: s.File, in: in}
	if err := p.open(s.Columns); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.File, err)
	}
	if p.total == 0 {
		return nil, nil, fmt.Errorf("%s has no rows", s.File)
	}
	names := make([]string, len(p.columns))
	for i, c := range p.columns {
		names[i] = c.name
	}
	st, err := p.store(s)
	return st, names, err
}

// open reads the end of the file, where its schema is.
func (p *parquetFile) open(wanted []string) (err error) {
	defer asError(&err)
	f, err := parquet.OpenFile(p.in.at, p.in.size, &parquet.FileConfig{
		SkipPageIndex: true, SkipBloomFilters: true, ReadBufferSize: 64 << 10, ReadMode: parquet.ReadModeSync,
	})
	if err != nil {
		return fmt.Errorf("not a Parquet file that can be read: %w", err)
	}
	if err := p.choose(f, wanted); err != nil {
		return err
	}
	for i, g := range f.RowGroups() {
		if g.NumRows() == 0 {
			continue
		}
		p.groups = append(p.groups, g)
		p.starts = append(p.starts, p.total)
		p.total += g.NumRows()
		p.least += g.NumRows() * int64(len(p.columns)) * cellBytes
		for _, c := range p.columns {
			p.least += f.Metadata().RowGroups[i].Columns[c.index].MetaData.TotalUncompressedSize
		}
	}
	return nil
}

// choose takes the plain columns, those that are wanted.
func (p *parquetFile) choose(f *parquet.File, wanted []string) error {
	var known, nested []string
	plain := map[string]parquetColumn{}
	for _, c := range f.Root().Columns() {
		value := valueOf(c)
		if value == nil {
			nested = append(nested, c.Name())
			continue
		}
		known = append(known, c.Name())
		plain[c.Name()] = parquetColumn{name: c.Name(), index: c.Index(), value: value}
	}
	for _, w := range wanted {
		switch {
		case slices.Contains(known, w):
		case slices.Contains(nested, w):
			return fmt.Errorf("column %q is nested, a list, or of a type that has no value here; plain columns are %s", w, listed(known))
		default:
			return fmt.Errorf("there is no column %q%s; it has %s", w, nearest.DidYouMean(w, known), listed(known))
		}
	}
	if len(known) == 0 {
		return errors.New("it has no plain column")
	}
	if len(wanted) == 0 {
		wanted = known
	}
	for _, w := range wanted {
		p.columns = append(p.columns, plain[w])
	}
	return nil
}

// store holds a small file in memory, streams for picks in order, and else reads
// at random places.
func (p *parquetFile) store(s *Spec) (store, error) {
	if p.least <= s.Memory {
		if h, err := p.hold(s.Memory); err != nil || h != nil {
			return h, err
		}
	}
	if s.inOrder() {
		src := &parquetSource{file: p, reader: &parquetReader{file: p}, rows: firstRows}
		first, err := src.next()
		if err != nil {
			return nil, err
		}
		return newStream(src, p.name, s.recycles(), first), nil
	}
	for _, g := range p.groups {
		for _, c := range p.columns {
			if index, err := g.ColumnChunks()[c.index].OffsetIndex(); err != nil || index == nil {
				return nil, fmt.Errorf("%s has no page index for column %q, without which each row picked at random means to read %d rows: write the file with one (pyarrow: write_page_index=True), choose fewer columns, or use pick: sequential", p.name, c.name, g.NumRows())
			}
		}
	}
	r := &parquetRandom{file: p}
	// Each keeps a page and a dictionary of each column, 1 MiB each as a rule.
	r.readers = make(chan *parquetReader, max(1, min(12/len(p.columns), 4, runtime.GOMAXPROCS(0))))
	for range cap(r.readers) {
		r.readers <- &parquetReader{file: p}
	}
	return r, nil
}

// hold reads all rows and closes the file; nil if they take more than memory,
// which a dictionary may hide.
func (p *parquetFile) hold(memory int64) (store, error) {
	src := &parquetSource{file: p, reader: &parquetReader{file: p}, rows: firstRows}
	defer src.reader.close()
	h := &parquetHeld{file: p}
	for h.total < p.total {
		b, err := src.next()
		if err != nil {
			return nil, err
		}
		if memory -= int64(b.bytes); memory < 0 {
			return nil, nil
		}
		h.starts = append(h.starts, h.total)
		h.blocks = append(h.blocks, b.rows.(*parquetRows))
		h.total += int64(b.n)
	}
	return h, p.in.close()
}

// asError makes an error of a panic of the library, which it has been seen to
// answer damaged files with: they are no fault of ours, and no reason to end.
func asError(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the file is damaged: %.200s", strings.TrimSpace(fmt.Sprint(r)))
	}
}

// parquetRows is some rows by column.
type parquetRows struct {
	file  *parquetFile
	first int64
	n     int
	cells [][]any
}

func (r *parquetRows) fill(k int, dst Row) error {
	for i := range r.cells {
		dst[r.file.columns[i].name] = r.cells[i][k]
	}
	return nil
}

// bytes is about what the rows take.
func (r *parquetRows) bytes() int {
	n := 0
	for _, column := range r.cells {
		n += cellBytes * len(column)
		for _, v := range column {
			if s, ok := v.(string); ok {
				n += len(s)
			}
		}
	}
	return n
}

// parquetHeld is a file in memory.
type parquetHeld struct {
	file   *parquetFile
	blocks []*parquetRows
	starts []int64
	total  int64
}

func (h *parquetHeld) fill(_ context.Context, n int64, dst Row) error {
	if n >= h.total {
		return io.EOF
	}
	b := place(h.starts, n)
	return h.blocks[b].fill(int(n-h.starts[b]), dst)
}

func (h *parquetHeld) rows() int64 { return h.total }

func (h *parquetHeld) close() error { return nil }

// place is the last of starts that is not beyond n.
func place(starts []int64, n int64) int {
	i, found := slices.BinarySearch(starts, n)
	if !found {
		i--
	}
	return i
}

// parquetRandom reads rows at any place. What is bounded is the number of
// readers; each keeps the pages it read last.
type parquetRandom struct {
	file    *parquetFile
	readers chan *parquetReader
}

func (r *parquetRandom) fill(ctx context.Context, n int64, dst Row) error {
	var reader *parquetReader
	select {
	case reader = <-r.readers:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { r.readers <- reader }()
	return reader.one(n, dst)
}

func (r *parquetRandom) rows() int64 { return r.file.total }

func (r *parquetRandom) close() error { return r.file.in.close() }

// parquetSource reads a file in order.
type parquetSource struct {
	file   *parquetFile
	reader *parquetReader
	rows   int // of the next block
}

func (s *parquetSource) next() (*block, error) {
	rows, err := s.reader.read(s.rows)
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.file.name, err)
	}
	b := &block{n: rows.n, bytes: rows.bytes(), rows: rows}
	// The next rows are likely as long, but may be longer.
	s.rows = max(1, min(maxBlockRows, 4*s.rows, blockBytes*b.n/b.bytes))
	return b, nil
}

func (s *parquetSource) rewind() error {
	s.reader.close()
	return nil
}

func (s *parquetSource) late(_ context.Context, _ marks, n int64, dst Row) error {
	r := &parquetReader{file: s.file}
	defer r.close()
	return r.one(n, dst)
}

func (s *parquetSource) close() error { return s.file.in.close() }
