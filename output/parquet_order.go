package output

import (
	"cmp"
	mathbits "math/bits"
	"runtime"
	"slices"
	"time"
)

// orderBuffer sorts samples by their starts without touching them: they are
// costly to move and to walk over.
type orderBuffer struct {
	starts      []time.Duration
	keys, other []uint64
}

// add takes the start of the next sample.
func (b *orderBuffer) add(start time.Duration) { b.starts = append(b.starts, start) }

func (b *orderBuffer) empty() { b.starts = b.starts[:0] }

// byStart returns the numbers of the samples in the order of their starts, and
// in their own where those are equal, and empties the buffer. They are valid
// until the next call.
func (b *orderBuffer) byStart() []uint64 {
	defer b.empty()
	n := len(b.starts)
	if n == 0 {
		return nil
	}
	least, greatest := slices.Min(b.starts), slices.Max(b.starts)
	b.keys, b.other = slices.Grow(b.keys[:0], n)[:n], slices.Grow(b.other[:0], n)[:n]
	span := mathbits.Len64(uint64(greatest - least)) //nolint:gosec // not negative
	numberBits := mathbits.Len(uint(n - 1))
	if span+numberBits > 64 { // 19 hours in a row group of the default size
		for i := range b.keys {
			b.keys[i] = uint64(i)
		}
		slices.SortStableFunc(b.keys, func(x, y uint64) int { return cmp.Compare(b.starts[x], b.starts[y]) })
		return b.keys
	}
	for i, start := range b.starts {
		b.keys[i] = uint64(start-least)<<numberBits | uint64(i) //nolint:gosec // not negative
	}
	for at := numberBits; at < numberBits+span; at += digitBits {
		sortDigit(b.other, b.keys, at)
		b.keys, b.other = b.other, b.keys
		runtime.Gosched()
	}
	for i := range b.keys {
		b.keys[i] &= 1<<numberBits - 1
	}
	return b.keys
}

// digitBits makes three passes for a row group of some seconds.
const digitBits = 11

// sortDigit is one pass of a radix sort: it moves src to dst in the order of the
// digit at bit at, and of src where that is equal. All passes together take a
// quarter of the time of slices.Sort.
func sortDigit(dst, src []uint64, at int) {
	const mask = 1<<digitBits - 1
	var place [1 << digitBits]int
	for _, key := range src {
		place[key>>at&mask]++
	}
	next := 0
	for digit, n := range place {
		place[digit], next = next, next+n
	}
	for _, key := range src {
		digit := key >> at & mask
		dst[place[digit]] = key
		place[digit]++
	}
}
