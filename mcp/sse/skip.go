package sse

import "bytes"

// TailBytes is how much of the end of a block over the limit Skip returns.
const TailBytes = 256

// Skip reads on, in bounded memory, to the end of the block for which Next has
// just returned ErrTooLong, so that the next call of Next returns the block behind
// it. head is the beginning of the block's data, tail the end of it, nil when the
// data has several lines. Both are valid until the next call of Next.
func (r *Reader) Skip() (head, tail []byte, err error) {
	field, value := splitField(r.line)
	isData := string(field) == "data"
	if head = r.data; len(head) == 0 && isData {
		head = value
	}
	several := len(r.data) > 0
	if isData {
		tail = bytes.Clone(value[max(0, len(value)-TailBytes):])
	}
	first := r.midLine // what comes belongs to the line that was too long
	var beginning []byte
	for size := 1; size > 0; first = false {
		beginning = beginning[:0]
		size = 0
		for whole := false; !whole; {
			var part []byte
			if part, whole, err = r.readPart(); err != nil {
				return head, nil, err
			}
			size += len(part)
			switch {
			case !first:
				beginning = append(beginning, part[:min(len(part), len("data:")-len(beginning))]...)
			case isData:
				tail = append(tail, part[max(0, len(part)-TailBytes):]...)
				tail = tail[max(0, len(tail)-TailBytes):]
			}
		}
		if first {
			size = max(size, 1) // only its beginning was read before: it is no blank line
		}
		name, _ := splitField(beginning)
		several = several || string(name) == "data"
	}
	if several {
		tail = nil
	}
	return head, tail, nil
}

// readPart returns a part of a line, whole when the line ends with it.
func (r *Reader) readPart() (part []byte, whole bool, err error) {
	for {
		if r.pos == r.end {
			if err := r.fill(); err != nil {
				return nil, false, err
			}
		}
		chunk := r.buf[r.pos:r.end]
		if r.skipLF {
			r.skipLF = false
			if chunk[0] == '\n' {
				r.pos++
				continue
			}
		}
		n := lineEnd(chunk)
		if n < 0 {
			r.pos = r.end
			return chunk, false, nil
		}
		r.pos += n + 1
		r.skipLF = chunk[n] == '\r'
		return chunk[:n], true, nil
	}
}
