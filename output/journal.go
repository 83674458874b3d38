package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"mcpbench/metrics"
)

const (
	journalFolder = "journal"
	lockName      = "lock"
	// connectsName is a segment of its own for samples of kind connect. They
	// make no row, so it lives until the run has its summary.
	connectsName = "connects.wal"
	// maxConnectBytes bounds it: some 400,000 attempts. Later ones are only counted:
	// the summary of a run that is killed then lacks them, and says so.
	maxConnectBytes = 64 << 20
	// maxFrameBytes is where a frame ends and a new one begins in the same write.
	maxFrameBytes = 1 << 20
)

func segmentName(number int) string { return fmt.Sprintf("%06d.wal", number) }

// segmentFile is what a segment needs of a file.
type segmentFile interface {
	Write(data []byte) (int, error)
	Truncate(size int64) error
	Close() error
}

func createSegment(path string) (segmentFile, error) {
	return os.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// segment is a journal file that is being written.
type segment struct {
	path    string
	file    segmentFile
	bytes   int64
	records uint32
	rows    int
}

// append writes whole frames with one call. When that fails, what did come
// into the file is cut off again: the frames before it are whole.
func (s *segment) append(frames *frameBuilder) error {
	frames.seal()
	n, err := s.file.Write(frames.buf)
	if err != nil {
		if n > 0 {
			err = errors.Join(err, s.file.Truncate(s.bytes))
		}
		return writeError(s.path, err)
	}
	s.bytes += int64(n)
	s.records = frames.first
	return nil
}

// frameBuilder makes frames of records in one buffer, which is reused.
type frameBuilder struct {
	buf   []byte
	at    int // of the open frame
	count uint32
	first uint32
	open  bool
}

func (b *frameBuilder) reset(first uint32) {
	*b = frameBuilder{buf: b.buf[:0], first: first}
}

// begin makes sure that a frame is open for the next record.
func (b *frameBuilder) begin() {
	if b.open && len(b.buf)-b.at >= maxFrameBytes {
		b.seal()
	}
	if !b.open {
		b.buf, b.at = openFrame(b.buf)
		b.open = true
	}
	b.count++
}

func (b *frameBuilder) seal() {
	if !b.open {
		return
	}
	sealFrame(b.buf, b.at, b.count, b.first)
	b.first += b.count
	b.count, b.open = 0, false
}

// journal writes the segments of a run. Its owner is one goroutine.
type journal struct {
	folder *Folder
	dir    string
	create func(path string) (segmentFile, error)

	meta         journalMeta // of the segment at hand
	t0           atomic.Int64
	begun        bool // the metadata are final
	segmentRows  int
	segmentBytes int64

	segment  *segment // nil between segments
	connects *segment
	marks    marker
	frames   frameBuilder
	err      error // the first failure

	compactor     *compactor
	waits, waited atomic.Int64
}

// startJournal locks the folder, begins the first segment and starts the
// compaction, which journal.close ends.
func startJournal(c ParquetConfig) (*journal, error) {
	j := &journal{
		folder: c.Folder, dir: filepath.Join(c.Folder.Path(), journalFolder), create: c.create,
		meta: c.meta(), segmentRows: c.PartRows, segmentBytes: c.SegmentBytes,
	}
	j.t0.Store(c.T0.UnixMicro())
	if j.create == nil {
		j.create = createSegment
	}
	if j.segmentRows <= 0 {
		j.segmentRows = defaultPartRows
	}
	if j.segmentBytes <= 0 {
		j.segmentBytes = defaultSegmentBytes
	}
	backlog := c.Backlog
	if backlog <= 0 {
		backlog = defaultBacklog
	}
	j.marks = marker{journal: j, mark: mark{runID: c.RunID}, keep: backlog + maxSegmentsOver}
	if err := c.Folder.lockRun(lockOfRun); err != nil {
		return nil, err
	}
	if err := j.openFirst(); err != nil {
		return nil, errors.Join(err, c.Folder.unlock())
	}
	j.compactor = startCompactor(c.Folder.Path(), c.RunID, backlog, c.step)
	return j, nil
}

// openFirst begins the marks, the connects and the first segment, with the
// metadata as far as they are known. The caller writes run.json after it: where
// there is a run.json, there was a journal with all of these.
func (j *journal) openFirst() error {
	err := j.marks.begin(0)
	if err == nil {
		j.connects, err = j.open(connectsName)
	}
	if err == nil {
		err = j.describe(j.connects)
	}
	if err == nil {
		j.segment, err = j.open(segmentName(0))
	}
	if err == nil {
		err = j.describe(j.segment)
	}
	if err == nil {
		j.marks.wrote(j.segment, 0)
		err = j.marks.write()
	}
	if err != nil {
		return errors.Join(err, j.closeFiles())
	}
	return nil
}

func (j *journal) open(name string) (*segment, error) {
	path := filepath.Join(j.dir, name)
	file, err := j.create(path)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("begin the journal %s: it exists already, and a run never writes into the folder of another", path)
	}
	if err != nil {
		return nil, writeError(path, err)
	}
	return &segment{path: path, file: file}, nil
}

// describe writes the metadata into a segment.
func (j *journal) describe(s *segment) error {
	j.frames.reset(s.records)
	if err := j.addMeta(); err != nil {
		return err
	}
	return s.append(&j.frames)
}

func (j *journal) addMeta() error {
	j.frames.begin()
	var err error
	j.frames.buf, err = appendMeta(j.frames.buf, &j.meta)
	return err
}

// begin prepares the next write: the first has the final metadata before it,
// and after a sealed segment a new one is opened. first is set when the
// metadata became final just now.
func (j *journal) begin() error {
	if j.err == nil {
		j.err = j.compactor.failed()
	}
	if j.err != nil {
		return j.err
	}
	if j.segment == nil {
		j.meta.Segment++
		if j.err = j.marks.begin(j.meta.Segment); j.err != nil {
			return j.err
		}
		if j.segment, j.err = j.open(segmentName(j.meta.Segment)); j.err != nil {
			return j.err
		}
	}
	if !j.begun {
		j.begun = true
		t0 := time.UnixMicro(j.t0.Load()).UTC()
		j.meta.T0 = t0.UnixMicro()
		if j.meta.Run != nil {
			j.meta.Run.Clock.T0 = &t0
		}
		if j.err = j.describe(j.connects); j.err != nil {
			return j.err
		}
		j.frames.reset(j.segment.records)
		j.err = j.addMeta()
		return j.err
	}
	j.frames.reset(j.segment.records)
	if j.segment.records == 0 {
		j.err = j.addMeta()
	}
	return j.err
}

// commit writes what was added since begin and seals a full segment.
func (j *journal) commit(rows int) error {
	if j.err != nil {
		return j.err
	}
	from := j.segment.bytes
	if j.err = j.segment.append(&j.frames); j.err != nil {
		return j.err
	}
	j.marks.wrote(j.segment, from)
	j.segment.rows += rows
	if j.segment.rows >= j.segmentRows || j.segment.bytes >= j.segmentBytes {
		j.err = j.seal()
	}
	return j.err
}

// seal hands the segment to the compaction.
func (j *journal) seal() error {
	s := j.segment
	j.segment = nil
	if err := s.file.Close(); err != nil {
		return writeError(s.path, err)
	}
	done := sealed{number: j.meta.Segment, records: s.records}
	if j.compactor.offer(done) {
		return nil
	}
	j.waits.Add(1)
	began := time.Now()
	j.compactor.wait(done)
	j.waited.Add(int64(time.Since(began)))
	return nil
}

func (j *journal) write(batch []metrics.Sample) error {
	if err := j.begin(); err != nil {
		return err
	}
	rows, connects := 0, 0
	for i := range batch {
		s := &batch[i]
		switch {
		case s.Kind == metrics.KindConnect:
			connects++
			continue
		case s.Kind == metrics.KindStep && s.Outcome == metrics.Skipped:
			continue // no request, and no row
		}
		j.frames.begin()
		j.frames.buf = appendSample(j.frames.buf, s)
		rows++
	}
	if err := j.commit(rows); err != nil || connects == 0 {
		return err
	}
	return j.writeConnects(batch)
}

// writeConnects writes the samples of batch that make no row.
func (j *journal) writeConnects(batch []metrics.Sample) error {
	full := j.connects.bytes >= maxConnectBytes
	j.frames.reset(j.connects.records)
	for i := range batch {
		switch {
		case batch[i].Kind != metrics.KindConnect:
		case full:
			j.marks.mark.unjournalled++
		default:
			j.frames.begin()
			j.frames.buf = appendSample(j.frames.buf, &batch[i])
		}
	}
	if !full {
		j.err = j.connects.append(&j.frames)
	}
	return j.err
}

func (j *journal) writeIntervals(rows []metrics.Interval) error {
	if err := j.begin(); err != nil {
		return err
	}
	for i := range rows {
		j.frames.begin()
		if j.frames.buf, j.err = appendInterval(j.frames.buf, &rows[i]); j.err != nil {
			return j.err
		}
	}
	return j.commit(len(rows))
}

func (j *journal) writeLoad(rows []metrics.LoadRow) error {
	if err := j.begin(); err != nil {
		return err
	}
	for i := range rows {
		j.frames.begin()
		if j.frames.buf, j.err = appendLoad(j.frames.buf, &rows[i]); j.err != nil {
			return j.err
		}
	}
	return j.commit(len(rows))
}

func (j *journal) writeGauges(at time.Duration, groups []metrics.Gauges) error {
	if j.err == nil {
		j.err = j.marks.read(at, groups)
	}
	return j.err
}

// close seals the last segment and waits until all are compacted. After a
// failure of the journal what it holds is compacted all the same.
func (j *journal) close() error {
	if j.err == nil && !j.begun {
		_ = j.begin() // nothing was recorded; the error is in j.err
		_ = j.commit(0)
	}
	s := j.segment
	err := j.closeFiles()
	if s != nil {
		j.compactor.wait(sealed{number: j.meta.Segment, records: s.records})
	}
	compactErr := j.compactor.close()
	if errors.Is(j.err, compactErr) {
		j.err = nil
	}
	return errors.Join(j.err, err, compactErr)
}

func (j *journal) closeFiles() error {
	var errs []error
	for _, s := range []*segment{j.segment, j.connects} {
		if s == nil {
			continue
		}
		if err := s.file.Close(); err != nil {
			errs = append(errs, writeError(s.path, err))
		}
	}
	j.segment, j.connects = nil, nil
	return errors.Join(append(errs, j.marks.close())...)
}
