package feed

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// parquetReader reads columns side by side. It has one user at a time.
type parquetReader struct {
	file    *parquetFile
	group   int
	at      int64 // the next row of the group
	columns []columnReader
	buf     []parquet.Value
}

// columnReader reads one column of a group.
type columnReader struct {
	pages  parquet.Pages
	page   parquet.Page // nil between pages
	values parquet.ValueReader
}

// open begins with a group, unless it is open already.
func (r *parquetReader) open(group int) {
	if r.columns != nil && r.group == group {
		return
	}
	r.close()
	r.group = group
	chunks := r.file.groups[group].ColumnChunks()
	r.columns = make([]columnReader, len(r.file.columns))
	for i, c := range r.file.columns {
		r.columns[i].pages = chunks[c.index].Pages()
	}
}

// close begins again with the first row.
func (r *parquetReader) close() {
	for i := range r.columns {
		r.columns[i].release()
		_ = r.columns[i].pages.Close() // only read from
	}
	r.columns, r.group, r.at = nil, 0, 0
}

// seek makes row n of the file the next.
func (r *parquetReader) seek(n int64) (err error) {
	defer asError(&err)
	group := place(r.file.starts, n)
	r.open(group)
	r.at = n - r.file.starts[group]
	for i := range r.columns {
		r.columns[i].release()
		if err := r.columns[i].pages.SeekToRow(r.at); err != nil {
			return fmt.Errorf("column %q: %w", r.file.columns[i].name, err)
		}
	}
	return nil
}

// one reads row n of the file. What fails leaves the reader as new.
func (r *parquetReader) one(n int64, dst Row) error {
	err := r.seek(n)
	var rows *parquetRows
	if err == nil {
		rows, err = r.read(1)
	}
	if err != nil {
		r.close()
		return &RowError{File: r.file.name, Line: n + 1, Err: err}
	}
	return rows.fill(0, dst)
}

// read returns up to n rows, of one group; io.EOF after the last.
func (r *parquetReader) read(n int) (rows *parquetRows, err error) {
	defer asError(&err)
	if r.group >= len(r.file.groups) {
		return nil, io.EOF
	}
	r.open(r.group)
	n = int(min(int64(n), r.file.groups[r.group].NumRows()-r.at))
	rows = &parquetRows{file: r.file, first: r.file.starts[r.group] + r.at, n: n, cells: make([][]any, len(r.columns))}
	for i := range r.columns {
		cells := make([]any, 0, n)
		if cells, err = r.cells(cells, i); err != nil {
			return nil, fmt.Errorf("column %q, rows from %d: %w", r.file.columns[i].name, rows.first+1, err)
		}
		rows.cells[i] = cells
	}
	if r.at += int64(n); r.at == r.file.groups[r.group].NumRows() {
		next := r.group + 1
		r.close()
		r.group = next
	}
	return rows, nil
}

// cells fills up cells with the next values of a column.
func (r *parquetReader) cells(cells []any, column int) ([]any, error) {
	c := &r.columns[column]
	if r.buf == nil {
		r.buf = make([]parquet.Value, 128)
	}
	for len(cells) < cap(cells) {
		if c.page == nil {
			page, err := c.pages.ReadPage()
			if err != nil {
				return nil, shortened(err)
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(r.buf[:min(len(r.buf), cap(cells)-len(cells))])
		for _, v := range r.buf[:n] {
			if v.IsNull() {
				cells = append(cells, nil)
			} else {
				cells = append(cells, r.file.columns[column].value(v))
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			c.release()
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.ErrNoProgress
		}
	}
	return cells, nil
}

// shortened: within a group there are more rows to come.
func shortened(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the column has fewer values than its group has rows")
	}
	return err
}

func (c *columnReader) release() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page, c.values = nil, nil
	}
}
