package output

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Cookies of the V2 encoding, with the word size bits that every writer sets
// (HdrHistogram for Java: AbstractHistogram.V2EncodingCookieBase, | 0x10).
const (
	hdrCookie           = 0x1c849303 | 0x10
	hdrCompressedCookie = 0x1c849304 | 0x10
)

// histEncoder writes histograms in the compressed V2 encoding: what stands in
// the columns hist, service_hist, lateness_hist and queued_hist. It is the
// binary form of what HdrHistogram libraries exchange as base64: Java's
// Histogram.decodeFromCompressedByteBuffer takes it as it is, and
// hdrhistogram-go's Decode, hdrh for Python and hdr-histogram-js take its
// base64.
//
// The library's own Encode makes a new compressor for each histogram: four
// times the time and some 800 KB of garbage. This one keeps its compressor.
type histEncoder struct {
	plain  []byte
	packed bytes.Buffer
	zip    *zlib.Writer
}

// encode returns nil when h is nil or empty.
func (e *histEncoder) encode(h *hdrhistogram.Histogram) (*[]byte, error) {
	if h == nil || h.TotalCount() == 0 {
		return nil, nil
	}
	if e.zip == nil {
		e.zip = zlib.NewWriter(nil)
	}
	plain, err := appendHistogram(e.plain[:0], h)
	if err != nil {
		return nil, err
	}
	e.plain = plain
	const headerBytes = 8
	e.packed.Reset()
	e.packed.Write(make([]byte, headerBytes))
	e.zip.Reset(&e.packed)
	if _, err := e.zip.Write(plain); err != nil {
		return nil, fmt.Errorf("compress histogram: %w", err)
	}
	if err := e.zip.Close(); err != nil {
		return nil, fmt.Errorf("compress histogram: %w", err)
	}
	out := bytes.Clone(e.packed.Bytes())
	if _, err := binary.Encode(out, binary.BigEndian, [2]int32{hdrCompressedCookie, toInt32(len(out) - headerBytes)}); err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	return &out, nil
}

// hdrHeader leads the uncompressed encoding.
type hdrHeader struct {
	Cookie                 int32
	PayloadBytes           int32
	NormalizingIndexOffset int32
	SignificantDigits      int32
	Lowest, Highest        int64
	ConversionRatio        float64
}

// appendHistogram appends the uncompressed V2 encoding: a header of 40 bytes
// and the counts up to the last that is not zero, each a ZigZag LEB128 number,
// where -n stands for n zeros in a row.
func appendHistogram(dst []byte, h *hdrhistogram.Histogram) ([]byte, error) {
	header := hdrHeader{
		Cookie: hdrCookie, SignificantDigits: toInt32(int(h.SignificantFigures())),
		Lowest: h.LowestTrackableValue(), Highest: h.HighestTrackableValue(), ConversionRatio: 1,
	}
	start := len(dst)
	dst, err := binary.Append(dst, binary.BigEndian, header)
	if err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	body := len(dst)
	zeros := int64(0)
	for _, n := range h.Export().Counts {
		if n == 0 {
			zeros++
			continue
		}
		switch {
		case zeros > 1:
			dst = appendZigZag(dst, -zeros)
		case zeros == 1: // written as a count, as all writers do
			dst = appendZigZag(dst, 0)
		}
		zeros = 0
		dst = appendZigZag(dst, n)
	}
	header.PayloadBytes = toInt32(len(dst) - body)
	if _, err := binary.Encode(dst[start:], binary.BigEndian, header); err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	return dst, nil
}

// appendZigZag appends v in ZigZag LEB128 of at most nine bytes: the ninth
// holds eight bits, where the tenth of plain LEB128 would follow.
func appendZigZag(dst []byte, v int64) []byte {
	u := uint64(v<<1) ^ uint64(v>>63) //nolint:gosec // the bits are what is wanted
	for range 8 {
		if u < 0x80 {
			return append(dst, byte(u))
		}
		dst = append(dst, byte(u)|0x80)
		u >>= 7
	}
	return append(dst, byte(u))
}

// maxHistogramCells bounds what decodeHistogram makes: ours have 3,400 to 25,000 cells.
const maxHistogramCells = 1 << 20

// decodeHistogram is the inverse of appendHistogram.
func decodeHistogram(data []byte) (*hdrhistogram.Histogram, error) {
	var header hdrHeader
	n, err := binary.Decode(data, binary.BigEndian, &header)
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	if header.Cookie != hdrCookie || header.SignificantDigits < 1 || header.SignificantDigits > 5 ||
		header.Lowest < 1 || header.Highest < 2*header.Lowest {
		return nil, errHistogram
	}
	h := hdrhistogram.New(header.Lowest, header.Highest, int(header.SignificantDigits))
	s := h.Export()
	if len(s.Counts) > maxHistogramCells {
		return nil, errHistogram
	}
	at := uint64(0)
	for rest := data[n:]; len(rest) > 0; {
		v, size := zigZag(rest)
		switch cells := uint64(len(s.Counts)); {
		case size == 0, v >= 0 && at >= cells, v < 0 && uint64(-v) > cells-at:
			return nil, errHistogram
		case v < 0:
			at += uint64(-v)
		default:
			s.Counts[at] = v
			at++
		}
		rest = rest[size:]
	}
	return hdrhistogram.Import(s), nil
}

var errHistogram = errors.New("decode histogram: these bytes are none that mcpbench writes")

// zigZag is the inverse of appendZigZag; size is 0 when data ends too early.
func zigZag(data []byte) (v int64, size int) {
	const lastByte = 8 // holds eight bits
	var u uint64
	for i, b := range data {
		if i == lastByte {
			u |= uint64(b) << (7 * lastByte)
		} else {
			u |= uint64(b&0x7f) << (7 * i)
		}
		if i == lastByte || b < 0x80 {
			return int64(u>>1) ^ -int64(u&1), i + 1
		}
	}
	return 0, 0
}
