package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// journalFile is what a file of the journal holds. Looking at it changes nothing.
type journalFile struct {
	name    string
	number  int  // of a segment; -1 for other files
	aside   bool // an earlier recovery, or the run itself, set it aside as damaged
	size    int64
	frames  int
	records uint32 // up to the last whole frame
	good    int64  // where that ends
	damage  damage
	meta    *journalMeta // the last of the file
	must    uint32       // records that it should have, when that is more
}

// scanFile reads a whole file of the journal.
func scanFile(dir, name string) (*journalFile, error) {
	f := &journalFile{name: name, number: -1}
	plain, rest, aside := strings.Cut(name, asideSuffix)
	if n, ok := segmentNumber(plain); ok && (!aside || rest == "" || rest[0] == '.') {
		f.number, f.aside = n, aside
	}
	frames, file, err := openFrames(filepath.Join(dir, journalFolder, name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it is only read
	f.size = frames.size
	for {
		fr, err := frames.next()
		f.damage = frames.damage
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		f.frames++
		f.records, f.good = frames.expect, frames.at
		if !isMeta(fr) {
			continue
		}
		d := decoder{rest: fr.payload[1:]}
		if f.meta, err = d.meta(); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	if f.frames == 0 && f.size >= int64(len(frameMagic)) {
		start := make([]byte, len(frameMagic))
		if err := frames.read(start, 0); err != nil {
			return nil, err
		}
		if bytes.HasPrefix(start, []byte(frameMagic)[:3]) && start[3] > frameMagic[3] && start[3] <= '9' {
			return nil, fmt.Errorf("read %s: the journal is of a later version than this mcpbench: %w", name, errLater)
		}
	}
	return f, nil
}

// firstMeta returns the first metadata of a file, errNoMetadata when it has none.
func firstMeta(path string) (*journalMeta, error) {
	frames, file, err := openFrames(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it is only read
	for {
		f, err := frames.next()
		if errors.Is(err, io.EOF) {
			return nil, errNoMetadata
		}
		if err != nil {
			return nil, err
		}
		if isMeta(f) {
			d := decoder{rest: f.payload[1:]}
			return d.meta()
		}
	}
}

// ours reports whether the file can be of the run: its metadata say so, or are
// lost.
func (f *journalFile) ours(runID string) bool {
	return f.meta == nil || f.meta.RunID == runID && (f.number < 0 || f.meta.Segment == f.number)
}

// torn reports whether nothing follows the last whole frame but the beginning
// of a write.
func (f *journalFile) torn() bool { return f.good+f.damage.TornBytes == f.size }

// readMarks returns the marks of a run, in order.
func readMarks(dir, runID string) ([]*mark, error) {
	var all [2][]*mark
	for i, name := range markNames {
		frames, file, err := openFrames(filepath.Join(dir, journalFolder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[i], err = marksOf(frames, runID)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	if a, b := all[0], all[1]; len(a) > 0 && len(b) > 0 && a[0].at > b[0].at {
		return append(b, a...), nil
	}
	return append(all[0], all[1]...), nil
}

func marksOf(frames *frameReader, runID string) ([]*mark, error) {
	var out []*mark
	for {
		f, err := frames.next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		d := decoder{rest: f.payload}
		if recordKind(d.byte()) != recordMark {
			return nil, errRecord
		}
		m, err := d.mark()
		if err != nil {
			return nil, err
		}
		if m.runID == runID {
			out = append(out, m)
		}
	}
}

// audit holds the files of the journal against what the marks say of them.
// What the run had recorded and is not there any more is a loss.
func (r *recovery) audit() error {
	for _, f := range r.files {
		if f.frames > 0 && f.ours(r.file.RunID) {
			r.loseGaps(f)
		}
		if f.name == connectsName && f.ours(r.file.RunID) {
			r.report.TornBytes += f.damage.TornBytes
		}
	}
	if len(r.files) == 0 {
		r.lose(Loss{File: journalFolder, Reason: "it is gone, with all rows that had not become Parquet parts"})
		return nil
	}
	segments, err := r.segmentsWritten()
	if err != nil {
		return err
	}
	if f := r.journalFile(connectsName); r.file.EndedAt == nil && (f == nil || f.frames == 0) {
		r.lose(Loss{File: filepath.Join(journalFolder, connectsName), Reason: missing(f)})
	}
	for _, want := range segments {
		if err := r.auditSegment(want); err != nil {
			return err
		}
	}
	return nil
}

// segmentsWritten returns what the segments had, by the last mark. Without
// marks it is only known that those up to the last must have been there.
func (r *recovery) segmentsWritten() ([]segmentMark, error) {
	if len(r.marks) > 0 {
		return r.marks[len(r.marks)-1].segments, nil
	}
	r.lose(Loss{File: journalFolder, Reason: "its marks are gone: what else is missing cannot be told"})
	next, err := r.nextPart()
	if err != nil {
		return nil, err
	}
	var out []segmentMark
	for number := range max(next, 1) {
		out = append(out, segmentMark{number: number, records: 1}) // it has metadata at least
	}
	return out, nil
}

func missing(f *journalFile) string {
	switch {
	case f == nil:
		return "it is gone"
	case f.size == 0:
		return "it is empty"
	}
	return "nothing in it can be read"
}

func (r *recovery) auditSegment(want segmentMark) error {
	loss := Loss{File: filepath.Join(journalFolder, segmentName(want.number)), Bytes: want.bytes, Records: int64(want.records)}
	f := r.segmentFile(want.number)
	if f == nil {
		compacted, err := r.hasPart(want.number)
		if want.records > 0 && !compacted && err == nil {
			loss.Reason = missing(nil)
			r.lose(loss)
		}
		return err
	}
	if !f.ours(r.file.RunID) {
		loss.Reason = "it is of another run"
		r.lose(loss)
		return nil
	}
	short := int64(want.records) - int64(f.records)
	if short <= 0 {
		return nil
	}
	if f.size > 0 && f.good >= want.last && f.torn() {
		r.report.TornRecords += short
		return nil
	}
	f.must = want.records
	loss.Offset, loss.Bytes, loss.Records, loss.Reason = f.good, max(want.bytes-f.good, 0), short, "it was cut off there"
	switch {
	case f.frames == 0:
		loss.Reason = missing(f)
	case !f.torn(): // a gap at the end, which is noted; now it is known what was in it
		r.report.Lost.Records += short
		for i := range r.report.Lost.Places {
			if p := &r.report.Lost.Places[i]; p.File == loss.File && p.Offset == f.good {
				p.Records += short
			}
		}
		return nil
	}
	r.lose(loss)
	return nil
}

// loseGaps notes the gaps of a file.
func (r *recovery) loseGaps(f *journalFile) {
	d := &f.damage
	name, _, _ := strings.Cut(f.name, asideSuffix) // the same before it is set aside and after
	rest := Loss{File: filepath.Join(journalFolder, name), Bytes: d.LostBytes, Records: d.LostRecords, Reason: "damaged there"}
	for _, p := range d.places {
		loss := rest
		loss.Offset, loss.Bytes, loss.Records = p.at, p.bytes, p.records
		r.lose(loss)
		rest.Bytes -= p.bytes
		rest.Records -= p.records
	}
	if d.Gaps > len(d.places) {
		rest.Reason = fmt.Sprintf("damaged at %d other places", d.Gaps-len(d.places))
		r.lose(rest)
	}
}

// maxLosses bounds the places that are named.
const maxLosses = 100

func (r *recovery) lose(l Loss) {
	lost := r.report.Lost
	if lost == nil {
		lost = &Losses{}
		r.report.Lost = lost
	}
	lost.Records += l.Records
	lost.Bytes += l.Bytes
	if len(lost.Places) < maxLosses {
		lost.Places = append(lost.Places, l)
	}
}

func (r *recovery) journalFile(name string) *journalFile {
	for _, f := range r.files {
		if f.name == name {
			return f
		}
	}
	return nil
}

// segmentFile returns the file of a segment: that in place, or one set aside.
func (r *recovery) segmentFile(number int) *journalFile {
	var at *journalFile
	for _, f := range r.files {
		if f.number == number && (at == nil || at.aside) {
			at = f
		}
	}
	return at
}

// hasPart reports whether a segment has become parts.
func (r *recovery) hasPart(number int) (bool, error) {
	for _, table := range tableNames {
		parts, err := r.parts(table)
		if err != nil {
			return false, err
		}
		for _, part := range parts {
			if partNumber(part) == number {
				return true, nil
			}
		}
	}
	return false, nil
}
