package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// chunkRows is how many rows are converted before they go to the writer: few
// enough to stay in the cache.
const chunkRows = 256

// partWriter writes one table as a row of parts. A part has its final name only
// when it is complete: it is written under a name of its own, closed with its
// footer, synced and renamed. After a failure nothing more is written, and the
// part at hand keeps the name of an unfinished file.
type partWriter[T any] struct {
	folder   string // TABLE/agent=NAME
	groups   int64  // rows a row group
	partRows int64
	options  []parquet.WriterOption

	writer *parquet.GenericWriter[T]
	file   *os.File // of the open part, nil between parts
	part   int
	rows   int64 // in the open part
	err    error
}

// tableConfig is what all tables of a run share.
type tableConfig struct {
	folder             string // of the run
	agent              string
	version            string // ours, for created_by
	metadata           map[string]string
	groupRows, perPart int64
}

// newTable makes the folder of a table and opens its first part, so that a
// path that cannot be written is known before the load begins and an empty
// table still leaves its schema.
func newTable[T any](c tableConfig, name string, options ...parquet.WriterOption) (*partWriter[T], error) {
	t := &partWriter[T]{
		folder:   filepath.Join(c.folder, name, "agent="+c.agent),
		groups:   c.groupRows,
		partRows: c.perPart,
	}
	options = append(options,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.MaxRowsPerRowGroup(c.groupRows),
		parquet.DataPageStatistics(false), // the page index and the row group have them already
		parquet.CreatedBy("mcpbench", c.version, ""),
	)
	for key, value := range c.metadata {
		options = append(options, parquet.KeyValueMetadata(key, value))
	}
	if err := makeFolder(t.folder); err != nil {
		return nil, folderError(t.folder, err)
	}
	t.options = options
	return t, t.open()
}

func (t *partWriter[T]) path() string {
	return filepath.Join(t.folder, fmt.Sprintf("part-%05d.parquet", t.part))
}

func (t *partWriter[T]) open() error {
	file, err := os.Create(filepath.Clean(t.path() + partialSuffix))
	if err != nil {
		t.err = writeError(t.path(), err)
		return t.err
	}
	t.file = file
	t.rows = 0
	// A new writer for each part: Reset of parquet-go 0.32 forgets which columns
	// the row groups are sorted by, and names another.
	t.writer = parquet.NewGenericWriter[T](file, t.options...)
	return nil
}

// write appends rows and begins new parts where the old one is full. It does
// not keep rows.
func (t *partWriter[T]) write(rows []T) error {
	for len(rows) > 0 && t.err == nil {
		if t.file == nil && t.open() != nil {
			break
		}
		n := min(int64(len(rows)), t.partRows-t.rows)
		if _, err := t.writer.Write(rows[:n]); err != nil {
			t.err = writeError(t.path(), err)
			break
		}
		rows = rows[n:]
		t.rows += n
		if t.rows == t.partRows {
			t.finish()
		}
	}
	return t.err
}

// endGroup closes the row group at hand.
func (t *partWriter[T]) endGroup() {
	if t.err != nil || t.file == nil {
		return
	}
	if err := t.writer.Flush(); err != nil {
		t.err = writeError(t.path(), err)
	}
}

// finish completes the open part.
func (t *partWriter[T]) finish() {
	file := t.file
	t.file = nil
	if err := t.writer.Close(); err != nil {
		t.err = writeError(t.path(), errors.Join(err, file.Close()))
		return
	}
	if err := publish(file, t.path()); err != nil {
		t.err = writeError(t.path(), err)
		return
	}
	t.part++
}

// close completes the table, or leaves its last part unfinished after a
// failure, and returns the first failure.
func (t *partWriter[T]) close() error {
	if t.file == nil {
		return t.err
	}
	if t.err != nil {
		file := t.file
		t.file = nil
		return errors.Join(t.err, file.Close())
	}
	t.finish()
	return t.err
}

// abandon closes the open part and leaves it unfinished. The table may be nil.
func (t *partWriter[T]) abandon(cause error) {
	if t == nil || t.file == nil {
		return
	}
	t.err = cause
	_ = t.close() // the cause is what the caller reports
}
