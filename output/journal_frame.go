package output

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// A journal segment is a row of frames. A frame is a header and its payload,
// little endian:
//
//	magic   4 bytes
//	length  uint32, bytes of the payload
//	count   uint32, records in the payload
//	first   uint32, records in the frames before this one in the segment
//	crc     uint32, CRC-32C (RFC 3720, appendix B.4) of length, count, first and payload
//
// first makes a gap countable: what a damaged frame held is the difference
// between the next good frame's first and what was expected.
const (
	frameMagic     = "\xf7MJ1"
	frameHeader    = 20
	frameCRCOffset = 16
	// maxPayload is more than any frame has. A length beyond it is damaged.
	maxPayload = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openFrame appends the room of a header to buf and returns it with the
// frame's offset in it. sealFrame fills the room.
func openFrame(buf []byte) (dst []byte, at int) {
	var header [frameHeader]byte
	return append(buf, header[:]...), len(buf)
}

// sealFrame completes the frame that begins at buf[at:] and ends with buf.
func sealFrame(buf []byte, at int, count, first uint32) {
	frame := buf[at:]
	copy(frame, frameMagic)
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(frame)-frameHeader)) //nolint:gosec // a frame is a few MiB
	binary.LittleEndian.PutUint32(frame[8:], count)
	binary.LittleEndian.PutUint32(frame[12:], first)
	binary.LittleEndian.PutUint32(frame[frameCRCOffset:], frameCRC(frame))
}

// frameCRC is the checksum that a whole frame must carry.
func frameCRC(frame []byte) uint32 {
	crc := crc32.Update(0, castagnoli, frame[len(frameMagic):frameCRCOffset])
	return crc32.Update(crc, castagnoli, frame[frameHeader:])
}

// frame is one good frame. Its payload is valid until the next call of next.
type frame struct {
	payload []byte
	count   uint32
	first   uint32
}

// damage is what a frameReader could not read.
type damage struct {
	// Gaps is the number of places where bytes were damaged. LostRecords is what
	// the frames there held, as far as that can be told, LostBytes their size.
	Gaps                   int
	LostRecords, LostBytes int64
	// TornBytes were after the last good frame, where a write did not come to its
	// end.
	TornBytes int64
	places    []place // the first of the gaps
}

// maxPlaces bounds the places that are kept of each file.
const maxPlaces = 100

// place is one gap.
type place struct {
	at, bytes, records int64
}

func (d *damage) gap(at, size, records int64) {
	d.Gaps++
	d.LostBytes += size
	d.LostRecords += records
	if len(d.places) < maxPlaces {
		d.places = append(d.places, place{at, size, records})
	}
}

// frameReader reads the frames of a segment, whatever bytes it holds. It
// returns only frames whose checksum is right, in order and none twice. Where
// a frame is damaged it goes on at the next good one.
type frameReader struct {
	src    io.ReaderAt
	size   int64
	at     int64
	expect uint32 // the next frame's first
	damage damage
	buf    []byte
	window []byte // of the search for a magic
}

func newFrameReader(src io.ReaderAt, size int64) *frameReader {
	return &frameReader{src: src, size: size}
}

// openFrames opens a journal file for reading. The caller closes it.
func openFrames(path string) (*frameReader, io.Closer, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, nil, fmt.Errorf("read the journal: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("read the journal: %w", errors.Join(err, file.Close()))
	}
	return newFrameReader(file, info.Size()), file, nil
}

// errNoFrame says that no good frame begins at an offset.
var errNoFrame = errors.New("no frame")

// next returns the next good frame, or io.EOF. Any other error is that of the
// reading itself.
func (r *frameReader) next() (frame, error) {
	from := r.at
	for at := from; ; {
		f, err := r.frameAt(at)
		switch {
		case err == nil && f.first >= r.expect:
			if at > from {
				r.damage.gap(from, at-from, int64(f.first-r.expect))
			}
			r.at = at + int64(frameHeader+len(f.payload))
			r.expect = f.first + f.count
			return f, nil
		case err != nil && !errors.Is(err, errNoFrame):
			return frame{}, err
		}
		if at, err = r.search(at + 1); err != nil {
			return frame{}, err
		}
		if at < 0 {
			if err := r.end(from); err != nil {
				return frame{}, err
			}
			return frame{}, io.EOF
		}
	}
}

// zeroTail is how many zeros at the end of a file are taken for what a file
// system leaves there after a power loss. No frame ends with as many.
const zeroTail = 64

// end says what the bytes after the last good frame are: a write that was cut
// short, or one that came to its end and was damaged later.
func (r *frameReader) end(from int64) error {
	r.at = r.size
	rest := r.size - from
	if rest == 0 {
		return nil
	}
	r.buf = grown(r.buf, int(min(rest, frameHeader)))
	if err := r.read(r.buf, from); err != nil {
		return err
	}
	r.window = grown(r.window, int(min(rest, zeroTail)))
	if err := r.read(r.window, r.size-int64(len(r.window))); err != nil {
		return err
	}
	begins := bytes.HasPrefix(r.buf, []byte(frameMagic)[:min(len(r.buf), len(frameMagic))])
	short := rest < frameHeader
	if !short {
		length := int64(binary.LittleEndian.Uint32(r.buf[4:]))
		short = length > rest-frameHeader && length <= maxPayload
	}
	if zeros := bytes.Count(r.window, []byte{0}) == len(r.window); zeros || begins && short {
		r.damage.TornBytes += rest
		return nil
	}
	r.damage.gap(from, rest, 0) // no frame follows that tells how many records it had
	return nil
}

// frameAt reads the frame at an offset, errNoFrame when none that is whole begins there.
func (r *frameReader) frameAt(at int64) (frame, error) {
	if r.size-at < frameHeader {
		return frame{}, errNoFrame
	}
	r.buf = grown(r.buf, frameHeader)
	if err := r.read(r.buf, at); err != nil {
		return frame{}, err
	}
	length := int64(binary.LittleEndian.Uint32(r.buf[4:]))
	if string(r.buf[:len(frameMagic)]) != frameMagic || length > min(r.size-at-frameHeader, maxPayload) {
		return frame{}, errNoFrame
	}
	r.buf = grown(r.buf, frameHeader+int(length))
	if err := r.read(r.buf[frameHeader:], at+frameHeader); err != nil {
		return frame{}, err
	}
	if binary.LittleEndian.Uint32(r.buf[frameCRCOffset:]) != frameCRC(r.buf) {
		return frame{}, errNoFrame
	}
	return frame{
		payload: r.buf[frameHeader:],
		count:   binary.LittleEndian.Uint32(r.buf[8:]),
		first:   binary.LittleEndian.Uint32(r.buf[12:]),
	}, nil
}

// search returns the offset of the next magic from at on, -1 when there is none.
func (r *frameReader) search(at int64) (int64, error) {
	const windowBytes = 64 << 10
	for r.size-at >= frameHeader {
		r.window = grown(r.window, int(min(windowBytes, r.size-at)))
		if err := r.read(r.window, at); err != nil {
			return 0, err
		}
		if i := bytes.Index(r.window, []byte(frameMagic)); i >= 0 {
			return at + int64(i), nil
		}
		at += int64(len(r.window) - len(frameMagic) + 1) // a magic may straddle two windows
	}
	return -1, nil
}

func (r *frameReader) read(dst []byte, at int64) error {
	if n, err := r.src.ReadAt(dst, at); n < len(dst) {
		return fmt.Errorf("read %d bytes at offset %d: %w", len(dst), at, err)
	}
	return nil
}

// grown returns buf with length n, its first bytes kept as far as they fit.
func grown(buf []byte, n int) []byte {
	if n <= cap(buf) {
		return buf[:n]
	}
	out := make([]byte, n, n+n/4)
	copy(out, buf)
	return out
}
