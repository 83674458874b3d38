package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
)

// compactor turns sealed segments into Parquet parts in a goroutine of its own.
type compactor struct {
	queue chan sealed // closed by close
	err   atomic.Pointer[error]
	done  chan struct{}
	block tableBlock
}

// sealed is a segment that is complete.
type sealed struct {
	number  int
	records uint32 // that it must have
}

// errDamaged says that rows which had been recorded could not be read again.
var errDamaged = errors.New("the journal was damaged")

// startCompactor starts the goroutine; close ends it.
func startCompactor(folder, runID string, backlog int, step func(string) error) *compactor {
	c := &compactor{queue: make(chan sealed, backlog), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for segment := range c.queue {
			if c.failed() != nil {
				continue // the segment stays in the journal
			}
			out, err := compactSegment(folder, runID, segment, &c.block, nil, step)
			if err == nil && out.damaged() {
				lost := out.damage.LostRecords + int64(segment.records) - int64(min(out.records, segment.records))
				err = fmt.Errorf("%w: %d of %d records cannot be read", errDamaged, lost, segment.records)
			}
			if err != nil {
				err = fmt.Errorf("compact journal segment %d: %w; what was recorded is kept, and mcpbench recover %s makes files of it",
					segment.number, err, folder)
				c.err.Store(&err)
			}
		}
	}()
	return c
}

// failed returns why the compaction has stopped, nil while it has not.
func (c *compactor) failed() error {
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}

// offer hands over a sealed segment unless too many wait already.
func (c *compactor) offer(segment sealed) bool {
	select {
	case c.queue <- segment:
		return true
	default:
		return false
	}
}

// wait hands over a sealed segment when there is room for it.
func (c *compactor) wait(segment sealed) { c.queue <- segment }

// close waits for the segments handed over.
func (c *compactor) close() error {
	close(c.queue)
	<-c.done
	return c.failed()
}

// compactSegment makes the parts of a segment and removes it. Segment 0 makes a
// part of every table, so that an empty one still has its schema. fallback
// stands in for metadata that are damaged; nil is none. step, unless nil, is
// called before each step: tests stop the work there as a kill would.
//
// A kill at any moment loses nothing and doubles nothing: until the segment is
// removed, doing it again replaces the same parts.
func compactSegment(folder, runID string, segment sealed, block *tableBlock, fallback *journalMeta, step func(string) error) (compacted, error) {
	path := filepath.Join(folder, journalFolder, segmentName(segment.number))
	t := &segmentTables{folder: folder, number: segment.number, runID: runID, block: block, step: step}
	defer t.end()
	out, err := t.compact(path, segment, fallback)
	if isFull(err) {
		t.discard() // so that what says that the disk is full finds room
	}
	return out, err
}

func (t *segmentTables) compact(path string, segment sealed, fallback *journalMeta) (compacted, error) {
	if fallback != nil {
		if err := t.use(fallback); err != nil {
			return compacted{}, err
		}
	}
	out, err := t.replay(path)
	out.must = segment.records
	if err != nil {
		return out, err
	}
	if out.frames == 0 {
		return out, errNoFrames
	}
	if segment.number == 0 {
		if err := t.openAll(); err != nil {
			return out, err
		}
	}
	if err := t.complete(); err != nil {
		return out, err
	}
	if err := t.publish(); err != nil {
		return out, err
	}
	if err := t.before("remove the segment"); err != nil {
		return out, err
	}
	if err := out.retire(path); err != nil {
		return out, err
	}
	out.rows = t.rows
	return out, nil
}

// Why a segment makes no part.
var (
	errNoFrames   = errors.New("the segment has no whole frame")
	errNoMetadata = errors.New("no readable metadata, in the segment or elsewhere in the journal")
)

// compacted is what came of a segment.
type compacted struct {
	rows    TableRows
	frames  int
	records uint32 // up to the last whole frame
	must    uint32 // records that there must be
	damage  damage
}

// damaged reports whether something that was in the segment could not be read.
func (c *compacted) damaged() bool { return c.damage.Gaps > 0 || c.records < c.must }

// retire removes a segment whose parts are complete. A damaged one is kept
// under another name.
func (c *compacted) retire(path string) error {
	if c.damaged() {
		return setAside(path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove a compacted segment: %w", err)
	}
	return nil
}

// replay reads all frames of a segment into the tables.
func (t *segmentTables) replay(path string) (compacted, error) {
	r, file, err := openFrames(path)
	if err != nil {
		return compacted{}, err
	}
	defer func() { _ = file.Close() }() // it was only read
	var out compacted
	for ; ; runtime.Gosched() {
		f, err := r.next()
		out.damage, out.records = r.damage, r.expect
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil {
			out.frames++
			if t.catalog == nil && !isMeta(f) {
				err = errNoMetadata
			} else {
				err = decodeFrame(f, t.catalog, t)
			}
		}
		if err != nil {
			return out, fmt.Errorf("read %s: %w", path, err)
		}
	}
}

// isMeta reports whether a frame begins with metadata.
func isMeta(f frame) bool { return len(f.payload) > 0 && recordKind(f.payload[0]) == recordMeta }
