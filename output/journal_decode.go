package output

import (
	"encoding/binary"
	"errors"
	"time"
)

// errRecord says that the bytes of a record are not what this version writes.
// The checksum was right, so they were written like that.
var errRecord = errors.New("a record that this version does not know")

// decoder takes values from the front of a payload. After the first fault all
// values are zero and err is set.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail() {
	d.err, d.rest = errRecord, nil
}

// take returns the next n bytes, nil when there are fewer.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads the length of a list whose elements take at least one byte each.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return int(n) //nolint:gosec // it is at most the length of a slice
}

func (d *decoder) bytes() []byte           { return d.take(d.uvarint()) }
func (d *decoder) text() string            { return string(d.bytes()) }
func (d *decoder) duration() time.Duration { return time.Duration(d.varint()) }

// durations reads what appendDurations wrote, nil for none.
func (d *decoder) durations() []time.Duration {
	n := d.count()
	if n == 0 {
		return nil
	}
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = d.duration()
	}
	return all
}
