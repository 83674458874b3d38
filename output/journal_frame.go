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
	Gaps        int   // places at which frames were damaged, with good ones after them
	LostRecords int64 // records of the frames in the gaps
	LostBytes   int64 // in the gaps
	TornBytes   int64 // after the last good frame: a write that did not come to its end
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
				r.damage.Gaps++
				r.damage.LostBytes += at - from
				r.damage.LostRecords += int64(f.first - r.expect)
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
			r.damage.TornBytes += r.size - from
			r.at = r.size
			return frame{}, io.EOF
		}
	}
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
	if string(r.buf[:len(frameMagic)]) != frameMagic || length > r.size-at-frameHeader {
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
