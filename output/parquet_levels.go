package output

import (
	"encoding/binary"
	mathbits "math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/rle"
)

// levels know how many values each row of a page has, in a nullable column or
// one of lists. Of that are made the repetition and definition levels (Parquet
// format, "Nested Encoding"): a list of ours that is empty is null, or cannot be.
type levels struct {
	counts *pageOf[int32]
	values int // all counts together
	// rare tells that only rows with values are set, since few have any.
	rare bool

	rep, def []byte // made of the counts
}

// set says how many values a row of the page has.
func (l *levels) set(row, n int) {
	l.counts[row&rowMask] = int32(n) //nolint:gosec // of checks or tags
	l.values += n
}

// one is set for a nullable column.
func (l *levels) one(row int, ok bool) {
	n := 0
	if ok {
		n = 1
	}
	l.set(row, n)
}

func (l *levels) empty() {
	if l.rare && l.values > 0 {
		clear(l.counts[:])
	}
	l.values, l.rep, l.def = 0, l.rep[:0], l.def[:0]
}

// make makes the levels of the page, unless another column has already. It
// returns how many places there are for values, and how many of them are empty.
func (l *levels) make(rows, maxRep, maxDef int) (places, nulls int) {
	if len(l.def) == 0 {
		most := rows + l.values
		l.rep, l.def = slices.Grow(l.rep, most)[:most], slices.Grow(l.def, most)[:most]
		n := rows
		switch {
		case l.values == 0:
			clear(l.rep[:rows])
			clear(l.def[:rows])
		case maxRep == 0:
			for i, n := range l.counts[:rows] {
				l.def[i] = byte(n) //nolint:gosec // it is 0 or 1
			}
		default:
			n = l.makeLists(rows, byte(maxDef)) //nolint:gosec // it is 1 or 2
		}
		l.rep, l.def = l.rep[:n], l.def[:n]
	}
	return len(l.def), len(l.def) - l.values
}

// makeLists makes the levels where a row may have several values, and returns
// how many they are. The slices are long enough.
func (l *levels) makeLists(rows int, full byte) int {
	at := 0
	for _, n := range l.counts[:rows] {
		l.rep[at], l.def[at] = 0, full
		if n == 0 {
			l.def[at] = 0
		}
		at++
		for range n - 1 {
			l.rep[at], l.def[at] = 1, full
			at++
		}
	}
	return at
}

// encodeLevels appends levels as they stand in a data page of version 1, whose
// greatest is maxLevel.
func encodeLevels(b *pageBuffers, levels []byte, maxLevel int) error {
	if maxLevel == 0 {
		return nil
	}
	at := len(b.plain)
	b.plain = append(b.plain, 0, 0, 0, 0) // for the length
	encoder := rle.Encoding{BitWidth: mathbits.Len(uint(maxLevel))}
	if err := b.add(encoder.EncodeLevels(b.part, levels)); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(b.plain[at:], uint32(len(b.part))) //nolint:gosec // of one page
	return nil
}

// dictionary holds the different values of a column in a row group.
type dictionary struct {
	plain []byte // in the plain encoding
	index map[string]int32
}

func (d *dictionary) reset() {
	d.plain = d.plain[:0]
	clear(d.index)
}

// of returns the index of s and adds it when it is new.
func (d *dictionary) of(s string) int32 {
	i, known := d.index[s]
	if !known {
		i = toInt32(len(d.index))
		d.index[s] = i
		d.plain = appendPlainText(d.plain, s)
	}
	return i
}

// encode appends indexes as they stand in a data page: their width in bits and
// runs of them. Those into a dictionary of one entry need not be looked at.
func (d *dictionary) encode(b *pageBuffers, indexes []int32) error {
	width := mathbits.Len(uint(max(len(d.index)-1, 0)))
	b.plain = append(b.plain, byte(width)) //nolint:gosec // at most 31
	if width == 0 {
		b.plain = binary.AppendUvarint(b.plain, uint64(len(indexes))<<1)
		return nil
	}
	encoder := rle.Encoding{BitWidth: width}
	return b.add(encoder.EncodeInt32(b.part, indexes))
}

// appendPlainText appends a byte array in the plain encoding.
func appendPlainText(dst []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...) //nolint:gosec // a text has some hundred bytes
}
