package output

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// maxPageRows is how many rows a data page holds: more make it no smaller,
	// and what is collected for a page should stay in the cache.
	maxPageRows = 32 << 10
	// yieldRows is after how many rows others run first: nobody waits for the
	// compaction, and it must not make anybody wait. It does so after each page
	// of a column too.
	yieldRows = 1 << 10

	parquetMagic = "PAR1"
)

// compression is that of all tables. It keeps its encoders, of some MiB each,
// from part to part.
var compression = &zstd.Codec{Level: zstd.SpeedFastest}

// columnFile writes a Parquet file column by column. It is for the tables that
// have a row for each request: the library's own writer takes rows of Go values
// and looks up each string of them in a hash table, which takes several times
// as long (see BenchmarkRecordRows). Schema, encodings, compression and the
// structures of the file are the library's here too.
//
// Data pages are of version 1, whose levels are compressed along with the
// values. There is no page index: a row group is small enough to be read whole.
type columnFile struct {
	out     io.Writer
	offset  int64
	meta    format.FileMetaData
	table   columnTable
	columns []column
	sorting []format.SortingColumn

	maxRows int // of a row group
	rows    int // of the row group at hand
	inPage  int // of the page at hand

	buffers pageBuffers
	err     error // the first
}

// columnTable is the columns of a table, whose memory is used again for each file.
type columnTable interface {
	// columns returns them in the order of the schema, and the path of the one
	// that the rows of a row group are sorted by, "" for none.
	columns() (all []column, sortedBy string)
	// prepare puts the names that are known beforehand into the dictionaries. It
	// is called at the begin of each row group, and when they have changed.
	prepare()
}

// newColumnFile begins a file with the schema of T.
func newColumnFile[T any](out io.Writer, table columnTable, maxRows int, options ...parquet.WriterOption) (*columnFile, error) {
	columns, sortedBy := table.columns()
	empty := parquet.NewGenericWriter[T](io.Discard, options...) // knows how to describe a file
	if err := empty.Close(); err != nil {
		return nil, err
	}
	f := &columnFile{out: out, meta: *empty.File().Metadata(), table: table, columns: columns, maxRows: maxRows}
	schema := empty.Schema()
	paths := schema.Columns()
	if len(paths) != len(columns) {
		return nil, fmt.Errorf("%d columns for a schema of %d", len(columns), len(paths))
	}
	for i, path := range paths {
		place, _ := schema.Lookup(path...)
		columns[i].bind(place)
		if path[0] == sortedBy {
			f.sorting = []format.SortingColumn{{ColumnIdx: toInt32(i)}}
		}
	}
	f.emptyPage()
	f.beginGroup()
	f.write([]byte(parquetMagic))
	return f, f.err
}

func (f *columnFile) beginGroup() {
	f.rows = 0
	for _, c := range f.columns {
		c.base().reset()
	}
	f.table.prepare()
}

// free is how many rows fit into the page at hand. The first of them is row
// inPage of it.
func (f *columnFile) free() int { return min(maxPageRows-f.inPage, f.maxRows-f.rows) }

// add says that each column has what it needs of n more rows, of which there
// are no more than free.
func (f *columnFile) add(n int) error {
	f.rows += n
	if f.inPage += n; f.inPage == maxPageRows {
		f.endPage()
	}
	if f.rows == f.maxRows {
		return f.endGroup()
	}
	return f.err
}

// endPage encodes the page at hand of each column.
func (f *columnFile) endPage() {
	for _, c := range f.columns {
		if f.err == nil {
			f.err = f.addPage(c)
		}
		runtime.Gosched()
	}
	f.emptyPage()
}

func (f *columnFile) emptyPage() {
	for _, c := range f.columns { // levels may belong to two columns
		c.empty()
		if l := c.base().levels; l != nil {
			l.empty()
		}
	}
	f.inPage = 0
}

func (f *columnFile) addPage(c column) error {
	l, b := c.base(), &f.buffers
	b.plain = b.plain[:0]
	values, nulls := f.inPage, 0
	if l.levels != nil {
		values, nulls = l.levels.make(f.inPage, l.maxRep, l.maxDef)
		if err := errors.Join(encodeLevels(b, l.levels.rep, l.maxRep), encodeLevels(b, l.levels.def, l.maxDef)); err != nil {
			return fmt.Errorf("encode the levels of column %v: %w", l.path, err)
		}
	}
	encoding, err := c.encode(b, f.inPage)
	if err != nil {
		return fmt.Errorf("encode column %v: %w", l.path, err)
	}
	l.values, l.nulls, l.encoding = l.values+values, l.nulls+nulls, encoding
	header := format.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(format.DataPageHeader{
		NumValues: toInt32(values), Encoding: encoding,
		DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		Statistics: format.Statistics{NullCount: int64(nulls)},
	})}
	return f.appendPage(&l.pages, &l.plainBytes, &header, b.plain)
}

// appendPage compresses a page and appends it with its header to dst.
func (f *columnFile) appendPage(dst *[]byte, plainBytes *int, header *format.PageHeader, plain []byte) error {
	packed, err := compression.Encode(f.buffers.packed, plain)
	if err != nil {
		return fmt.Errorf("compress a page: %w", err)
	}
	f.buffers.packed = packed
	header.UncompressedPageSize, header.CompressedPageSize = toInt32(len(plain)), toInt32(len(packed))
	header.CRC = int32(crc32.ChecksumIEEE(packed)) //nolint:gosec // the bits are what is wanted
	head, err := thrift.Marshal(&thrift.CompactProtocol{}, header)
	if err != nil {
		return fmt.Errorf("encode a page header: %w", err)
	}
	*dst = append(append(*dst, head...), packed...)
	*plainBytes += len(head) + len(plain)
	return nil
}

// endGroup writes the row group at hand, unless it is empty, and begins another.
func (f *columnFile) endGroup() error {
	if f.inPage > 0 {
		f.endPage()
	}
	if f.rows == 0 || f.err != nil {
		return f.err
	}
	group := format.RowGroup{
		Columns: make([]format.ColumnChunk, len(f.columns)), NumRows: int64(f.rows), SortingColumns: f.sorting,
		FileOffset: f.offset, Ordinal: int16(len(f.meta.RowGroups)), //nolint:gosec // a part has some four
	}
	for i, c := range f.columns {
		chunk, err := f.writeChunk(c.base())
		if err != nil {
			f.err = err
			return err
		}
		group.Columns[i].MetaData = chunk
		group.TotalByteSize += chunk.TotalUncompressedSize
		group.TotalCompressedSize += chunk.TotalCompressedSize
		runtime.Gosched()
	}
	f.meta.RowGroups = append(f.meta.RowGroups, group)
	f.meta.NumRows += int64(f.rows)
	f.beginGroup()
	return nil
}

// writeChunk writes the dictionary and the pages of one column.
func (f *columnFile) writeChunk(l *leaf) (format.ColumnMetaData, error) {
	m := format.ColumnMetaData{
		Type: l.kind, Encoding: []format.Encoding{l.encoding, format.RLE}, PathInSchema: l.path, Codec: format.Zstd, NumValues: int64(l.values),
		Statistics: format.Statistics{NullCount: int64(l.nulls), MinValue: l.bound(l.least), MaxValue: l.bound(l.greatest)},
	}
	plainBytes := l.plainBytes
	var page []byte
	if d := l.dictionary; d != nil {
		header := format.PageHeader{Type: format.DictionaryPage, DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{
			NumValues: toInt32(len(d.index)), Encoding: format.Plain,
		})}
		if err := f.appendPage(&page, &plainBytes, &header, d.plain); err != nil {
			return m, err
		}
		m.Encoding = append(m.Encoding, format.Plain)
		m.DictionaryPageOffset = f.offset
	}
	m.DataPageOffset = f.offset + int64(len(page))
	m.TotalUncompressedSize, m.TotalCompressedSize = int64(plainBytes), int64(len(page)+len(l.pages))
	f.write(page)
	f.write(l.pages)
	return m, f.err
}

// close writes what is left and the footer.
func (f *columnFile) close() error {
	if err := f.endGroup(); err != nil {
		return err
	}
	footer, err := thrift.Marshal(&thrift.CompactProtocol{}, &f.meta)
	if err != nil {
		return fmt.Errorf("encode the footer: %w", err)
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer))) //nolint:gosec // some KiB
	f.write(append(footer, parquetMagic...))
	return f.err
}

func (f *columnFile) write(data []byte) {
	if f.err != nil {
		return
	}
	n, err := f.out.Write(data)
	f.offset += int64(n)
	f.err = err
}
