package metrics

import (
	"math/bits"
	"time"
)

// Cells of a window: those that a histogram of TotalDigits has, so that a window
// and a total over the same values have the same percentiles. They stand here
// because a window has to take values back, second by second.
const (
	cellUnit = 9  // the narrowest are 2^9 ns wide: the power of two below HistogramLowest
	cellHalf = 10 // an octave has 2^10 of them, half of what TotalDigits asks for
	numCells = 24 << cellHalf
)

// cellOf returns the cell of v, moved into the range of histograms.
func cellOf(v time.Duration) uint16 {
	v = min(max(v, HistogramLowest), HistogramHighest)
	octave := bits.Len64(uint64(v)|(2<<cellHalf-1)<<cellUnit) - cellUnit - cellHalf - 1
	return uint16(octave<<cellHalf + int(v>>(octave+cellUnit))) //nolint:gosec // numCells fit
}

// cellEdge returns the largest value of a cell.
func cellEdge(cell int) time.Duration {
	octave := max(cell>>cellHalf-1, 0)
	return time.Duration(cell-octave<<cellHalf+1)<<(octave+cellUnit) - 1
}
