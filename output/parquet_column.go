package output

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
)

// column is one leaf of the schema of a columnFile. Its values are put in row
// by row, and encoded a page at a time.
type column interface {
	base() *leaf
	// bind gives the column its place in the schema.
	bind(place parquet.LeafColumn)
	// encode appends a page of rows to b.plain.
	encode(b *pageBuffers, rows int) (format.Encoding, error)
	// empty forgets the values of the page.
	empty()
}

// pageBuffers is the memory for encoding pages, used again and again.
type pageBuffers struct {
	plain  []byte // the page before its compression
	packed []byte // and after
	part   []byte // what goes into plain next
}

// add appends what an encoder of the library has put into part.
func (b *pageBuffers) add(part []byte, err error) error {
	b.part = part
	b.plain = append(b.plain, part...)
	return err
}

// leaf is what all kinds of columns have in common.
type leaf struct {
	path           []string
	kind           format.Type
	maxRep, maxDef int
	levels         *levels     // nil when each row has just one value
	dictionary     *dictionary // nil when there is none

	// Of the row group at hand:
	pages           []byte // compressed, with their headers, without the dictionary's
	plainBytes      int    // of the pages with their headers, before compression
	values, nulls   int
	encoding        format.Encoding
	least, greatest int64 // where bounded is set
	bounded         bool
}

func (l *leaf) base() *leaf { return l }

// bind leaves a column its levels that shares them with another.
func (l *leaf) bind(place parquet.LeafColumn) {
	l.path, l.kind = place.Path, format.Type(place.Node.Type().Kind())
	l.maxRep, l.maxDef = place.MaxRepetitionLevel, place.MaxDefinitionLevel
	if l.maxDef > 0 && l.levels == nil {
		l.levels = &levels{}
	}
	if l.levels != nil && l.levels.counts == nil {
		l.levels.counts = newPage[int32](place)
	}
}

// reset begins a row group.
func (l *leaf) reset() {
	*l = leaf{
		path: l.path, kind: l.kind, maxRep: l.maxRep, maxDef: l.maxDef, levels: l.levels, dictionary: l.dictionary,
		pages: l.pages[:0],
	}
	if l.dictionary != nil {
		l.dictionary.reset()
	}
}

// within widens the bounds of the row group to those of a page.
func (l *leaf) within(least, greatest int64) {
	if l.bounded {
		least, greatest = min(least, l.least), max(greatest, l.greatest)
	}
	l.least, l.greatest, l.bounded = least, greatest, true
}

// bound is a bound of the row group in the plain encoding, nil when there is none.
func (l *leaf) bound(v int64) []byte {
	switch {
	case !l.bounded:
		return nil
	case l.kind == format.Int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(v)) //nolint:gosec // it came from an int32
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(v)) //nolint:gosec // the bits are what is wanted
}

// pageOf holds one value for each row of a page. A row number is masked, so
// that the compiler knows it to be within.
type pageOf[T any] [maxPageRows]T

const rowMask = maxPageRows - 1

// newPage makes the page of a column. Pages lie at different places of a memory
// page: a row of all columns would else compete for the same lines of the cache,
// which made the compaction a third slower.
func newPage[T int32 | int64](place parquet.LeafColumn) *pageOf[T] {
	const apart = 24
	at := apart * place.ColumnIndex
	return (*pageOf[T])(make([]T, at+maxPageRows)[at:])
}

// ints is a column of whole numbers.
type ints[T int32 | int64] struct {
	leaf
	page *pageOf[T]
}

func (c *ints[T]) bind(place parquet.LeafColumn) {
	c.leaf.bind(place)
	if c.page == nil {
		c.page = newPage[T](place)
	}
}

// set sets the value of a row of the page.
func (c *ints[T]) set(row int, v T) { c.page[row&rowMask] = v }

func (c *ints[T]) empty() {}

func (c *ints[T]) encode(b *pageBuffers, rows int) (format.Encoding, error) {
	return format.DeltaBinaryPacked, encodeInts(&c.leaf, b, c.page[:rows])
}

func encodeInts[T int32 | int64](l *leaf, b *pageBuffers, page []T) error {
	if len(page) > 0 {
		least, greatest := page[0], page[0]
		for _, v := range page {
			least, greatest = min(least, v), max(greatest, v)
		}
		l.within(int64(least), int64(greatest))
	}
	var encoder delta.BinaryPackedEncoding
	switch page := any(page).(type) {
	case []int32:
		return b.add(encoder.EncodeInt32(b.part, page))
	case []int64:
		return b.add(encoder.EncodeInt64(b.part, page))
	}
	return nil
}

// maybeInts is a nullable column of whole numbers.
type maybeInts[T int32 | int64] struct {
	leaf
	page []T // without the nulls
}

// set sets the value of a row of the page, null unless ok.
func (c *maybeInts[T]) set(row int, ok bool, v T) {
	c.levels.one(row, ok)
	if ok {
		c.page = append(c.page, v)
	}
}

// add adds a value of a list. The levels are the caller's.
func (c *maybeInts[T]) add(v T) { c.page = append(c.page, v) }

func (c *maybeInts[T]) empty() { c.page = c.page[:0] }

func (c *maybeInts[T]) encode(b *pageBuffers, _ int) (format.Encoding, error) {
	return format.DeltaBinaryPacked, encodeInts(&c.leaf, b, c.page)
}

// labels is a column of strings of which there are few.
type labels struct {
	leaf
	page *pageOf[int32]
}

func (c *labels) bind(place parquet.LeafColumn) {
	c.leaf.bind(place)
	c.dictionary = &dictionary{index: map[string]int32{}}
	if c.page == nil {
		c.page = newPage[int32](place)
	}
}

// of returns the index of a value in the dictionary of the row group at hand.
func (c *labels) of(s string) int32 { return c.dictionary.of(s) }

// set sets the value of a row of the page by its index.
func (c *labels) set(row int, index int32) { c.page[row&rowMask] = index }

func (c *labels) empty() {}

func (c *labels) encode(b *pageBuffers, rows int) (format.Encoding, error) {
	return format.RLEDictionary, c.dictionary.encode(b, c.page[:rows])
}

// maybeLabels is a column of strings of which there are few, nullable or of lists.
type maybeLabels struct {
	leaf
	page []int32 // without the nulls
}

func (c *maybeLabels) bind(place parquet.LeafColumn) {
	c.leaf.bind(place)
	c.dictionary = &dictionary{index: map[string]int32{}}
}

// of returns the index of a value in the dictionary of the row group at hand.
func (c *maybeLabels) of(s string) int32 { return c.dictionary.of(s) }

// set sets the value of a row of the page, null unless ok.
func (c *maybeLabels) set(row int, ok bool, s string) {
	c.levels.one(row, ok)
	if ok {
		c.page = append(c.page, c.of(s))
	}
}

// addIndex adds a value of a list, by its index. The levels are the caller's.
func (c *maybeLabels) addIndex(index int32) { c.page = append(c.page, index) }

func (c *maybeLabels) empty() { c.page = c.page[:0] }

func (c *maybeLabels) encode(b *pageBuffers, _ int) (format.Encoding, error) {
	return format.RLEDictionary, c.dictionary.encode(b, c.page)
}

// maybeTexts is a nullable column of strings that differ from row to row.
type maybeTexts struct {
	leaf
	page []byte
}

// set sets the value of a row of the page, null unless ok.
func (c *maybeTexts) set(row int, ok bool, s string) {
	c.levels.one(row, ok)
	if ok {
		c.page = appendPlainText(c.page, s)
	}
}

func (c *maybeTexts) empty() { c.page = c.page[:0] }

func (c *maybeTexts) encode(b *pageBuffers, _ int) (format.Encoding, error) {
	b.plain = append(b.plain, c.page...)
	return format.Plain, nil
}

// flags is a column of booleans, one a row or in lists.
type flags struct {
	leaf
	page []byte // eight to a byte, the first in the lowest bit
	n    int
}

// add adds a value. In a list, the levels are the caller's.
func (c *flags) add(v bool) {
	if c.n%8 == 0 {
		c.page = append(c.page, 0)
	}
	if v {
		c.page[c.n/8] |= 1 << (c.n % 8)
	}
	c.n++
}

func (c *flags) empty() { c.page, c.n = c.page[:0], 0 }

func (c *flags) encode(b *pageBuffers, _ int) (format.Encoding, error) {
	b.plain = append(b.plain, c.page...)
	return format.Plain, nil
}
