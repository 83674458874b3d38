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
	queue chan int // sealed segments; closed by close
	err   atomic.Pointer[error]
	done  chan struct{}
	block tableBlock
}

// startCompactor starts the goroutine; close ends it.
func startCompactor(folder, runID string, backlog int, step func(string) error) *compactor {
	c := &compactor{queue: make(chan int, backlog), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for number := range c.queue {
			if c.failed() != nil {
				continue // the segment stays in the journal
			}
			if _, err := compactSegment(folder, runID, number, &c.block, nil, step); err != nil {
				err = fmt.Errorf("compact journal segment %d: %w", number, err)
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
func (c *compactor) offer(number int) bool {
	select {
	case c.queue <- number:
		return true
	default:
		return false
	}
}

// wait hands over a sealed segment when there is room for it.
func (c *compactor) wait(number int) { c.queue <- number }

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
func compactSegment(folder, runID string, number int, block *tableBlock, fallback *journalMeta, step func(string) error) (compacted, error) {
	path := filepath.Join(folder, journalFolder, segmentName(number))
	t := &segmentTables{folder: folder, number: number, runID: runID, block: block, step: step}
	defer t.end()
	if fallback != nil {
		if err := t.use(fallback); err != nil {
			return compacted{}, err
		}
	}
	out, err := t.replay(path)
	if err != nil {
		return out, err
	}
	if out.frames == 0 {
		return out, errNoFrames
	}
	if number == 0 {
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
	rows   TableRows
	frames int
	damage damage
}

// retire removes a segment whose parts are complete. One of which something
// could not be read in the middle is kept under another name.
func (c *compacted) retire(path string) error {
	if c.damage.Gaps > 0 {
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
		out.damage = r.damage
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
