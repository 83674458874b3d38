package output

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
)

// chunkRows is how many rows are read or written at a time.
const chunkRows = 256

// part is one file of a table. It has its final name only when it is complete:
// it is written under a name of its own, closed with its footer and synced
// (complete), and then renamed (publish). After a failure nothing more is
// written, and the file keeps the name of an unfinished one.
type part[T any] struct {
	path   string
	file   *os.File                  // nil once it is complete or given up
	writer *parquet.GenericWriter[T] // of a table that is written row by row
	rows   *columnFile               // of a table that is written column by column
	err    error
}

// tableConfig is what all tables of a run share.
type tableConfig struct {
	folder    string // of the run
	agent     string
	version   string // ours, for created_by
	metadata  map[string]string
	groupRows int64
}

// Keys of a part's metadata: run.json as it was at the start of the run, and
// the metadata of the journal.
const (
	runKey     = "mcpbench.run"
	journalKey = "mcpbench.journal"
)

// tablesOf reads the settings of all tables from the metadata of a journal.
func tablesOf(folder string, m *journalMeta) (tableConfig, error) {
	tc := tableConfig{
		folder: folder, agent: m.Agent, groupRows: int64(m.GroupRows),
		metadata: map[string]string{
			"mcpbench.schema_version": fmt.Sprint(SchemaVersion),
			"mcpbench.agent":          m.Agent,
		},
	}
	if tc.groupRows <= 0 {
		tc.groupRows = defaultRowGroupRows
	}
	// With these a part alone tells what its names mean, when the journal is gone.
	own := *m
	own.Run = nil
	data, err := json.Marshal(&own)
	if err != nil {
		return tableConfig{}, fmt.Errorf("encode journal metadata: %w", err)
	}
	tc.metadata[journalKey] = string(data)
	if m.Run != nil {
		data, err := m.Run.MarshalCompact()
		if err != nil {
			return tableConfig{}, err
		}
		tc.metadata[runKey] = string(data)
		tc.version = m.Run.Mcpbench
	}
	return tc, nil
}

// tableFolder is where the parts of a table are.
func (c *tableConfig) tableFolder(table string) string {
	return filepath.Join(c.folder, table, "agent="+c.agent)
}

func partName(number int) string { return fmt.Sprintf("part-%05d.parquet", number) }

// options are those of every file.
func (c *tableConfig) options() []parquet.WriterOption {
	options := []parquet.WriterOption{
		parquet.Compression(compression),
		parquet.MaxRowsPerRowGroup(c.groupRows),
		parquet.DataPageStatistics(false), // the page index and the row group have them already
		parquet.CreatedBy("mcpbench", c.version, ""),
	}
	for key, value := range c.metadata {
		options = append(options, parquet.KeyValueMetadata(key, value))
	}
	return options
}

// newPart makes the folder of a table and opens a part in it. columns is nil
// for a table that is written row by row.
func newPart[T any](c *tableConfig, table string, number int, columns columnTable) (*part[T], error) {
	folder := c.tableFolder(table)
	if err := makeFolder(folder); err != nil {
		return nil, folderError(folder, err)
	}
	p := &part[T]{path: filepath.Join(folder, partName(number))}
	var err error
	if p.file, err = os.Create(filepath.Clean(p.path + partialSuffix)); err != nil {
		return nil, writeError(p.path, err)
	}
	if columns == nil {
		// A new writer for each part: Reset of parquet-go 0.32 forgets settings.
		p.writer = parquet.NewGenericWriter[T](p.file, c.options()...)
		return p, nil
	}
	if p.rows, err = newColumnFile[T](p.file, columns, int(c.groupRows), c.options()...); err != nil {
		p.abandon()
		return nil, writeError(p.path, err)
	}
	return p, nil
}

// keep keeps the first error, and returns it.
func (p *part[T]) keep(err error) error {
	if p.err == nil && err != nil {
		p.err = writeError(p.path, err)
	}
	return p.err
}

// write appends rows. It does not keep them.
func (p *part[T]) write(rows ...T) error {
	if p.err != nil || len(rows) == 0 {
		return p.err
	}
	_, err := p.writer.Write(rows)
	return p.keep(err)
}

// add says that each column has what it needs of n more rows.
func (p *part[T]) add(n int) error { return p.keep(p.rows.add(n)) }

// endGroup writes the row group at hand.
func (p *part[T]) endGroup() error { return p.keep(p.rows.endGroup()) }

// complete makes the file whole and durable, still under its unfinished name.
func (p *part[T]) complete() error {
	switch {
	case p.err != nil:
	case p.rows != nil:
		_ = p.keep(p.rows.close())
	default:
		_ = p.keep(p.writer.Close())
	}
	if p.err == nil {
		_ = p.keep(p.file.Sync())
	}
	file := p.file
	p.file = nil
	return p.keep(file.Close())
}

// publish gives a complete part its final name. What had that name is replaced.
func (p *part[T]) publish() error {
	if err := os.Rename(p.path+partialSuffix, p.path); err != nil {
		return writeError(p.path, err)
	}
	if err := syncDir(filepath.Dir(p.path)); err != nil {
		return writeError(p.path, err)
	}
	return nil
}

// abandon closes the file and leaves it unfinished.
func (p *part[T]) abandon() {
	if p.file != nil {
		_ = p.file.Close() // it is given up: the cause is what the caller reports
		p.file = nil
	}
}

// discard gives the file up and removes it, unless it has its final name.
func (p *part[T]) discard() {
	p.abandon()
	_ = os.Remove(p.path + partialSuffix) // what is left then a recovery removes
}
