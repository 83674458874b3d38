// Package feed gives rows of data to templates: of CSV, JSON Lines and Parquet
// files, of pipes, and of lists in the scenario itself.
//
// The law: the row of an arrival depends on the seed, the feeder and the
// arrival's index alone, never on the worker that asks or on when it does.
//
// Memory is bounded whatever the size of the file. A file of up to 8 MiB is held
// in memory. A larger one is read ahead in blocks by one goroutine for the picks
// in order, and read at random places for the others, for which the start of
// every few rows is noted in one pass when it is opened. A pipe is read once, as
// it comes; whatever needs a second look at it holds it in memory, up to 32 MiB.
package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"sync/atomic"
)

// Row is one row: its values by the names of columns. Those of CSV are text; of
// JSON and Parquet they are nil, bool, int, float64 or string, and of JSON also
// []any and map[string]any.
type Row = map[string]any

// Errors of [Feed.Row], to be told with errors.Is.
var (
	// ErrEnd says that there is no row for the arrival, nor for any later one.
	ErrEnd = errors.New("no row is left")
	// ErrClosed says that the feed was closed.
	ErrClosed = errors.New("the feeder is closed")
)

// RowError says what is wrong with one row. Other rows are as good as before.
type RowError struct {
	File string
	Line int64 // from 1; of Parquet and of lists the number of the row
	Err  error
}

func (e *RowError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

func (e *RowError) Unwrap() error { return e.Err }

// Spec is what a feeder reads and how. Either File or Rows is set.
type Spec struct {
	Name string // of the feeder; other names draw other random rows

	File    string
	Format  Format   // by the end of the file's name unless it is set
	Comma   byte     // between the fields of CSV; a comma, or a tab for .tsv, unless set
	Columns []string // to keep; empty: all

	Rows []Row // a list in the scenario; not copied, not written to

	Pick  Pick
	OnEnd OnEnd
	// Skew is the exponent of zipf, 0.99 unless it is set: row k of the file is
	// taken with a probability proportional to 1/(k+1)^Skew.
	Skew float64

	// Seed is the seed of the run.
	Seed uint64
	// Group keeps groups that share a feeder from drawing the same random rows.
	Group int
	// Shard is the part of the arrivals that this feed serves.
	Shard Shard

	// Open opens File; os.Open if it is nil. What it returns is random access
	// when it is a regular file and an io.ReaderAt, a pipe otherwise; its Close
	// must end a Read that waits, as that of os.Open's does.
	Open func(name string) (fs.File, error)

	// Memory is how many bytes of a pipe may be held, 32 MiB unless it is set. A
	// file is held when it has at most a quarter of it.
	Memory int64
}

// Shard tells that Row is asked with indexes of its own, 0, 1, 2, …, by one of N
// askers, such as machines, or groups that share a unique feeder. Index i of
// shard I is arrival i·N+I: no two shards get the same row in order, and
// together they get every row. The zero value is the only asker, or one of
// several that use the indexes of the whole run.
type Shard struct {
	I, N int
}

// Feed gives the rows of one feeder. It is safe for concurrent use.
type Feed struct {
	name    string
	source  string // as errors name it
	columns []string
	store   store
	shard   Shard
	inOrder bool
	recycle bool
	draw    *drawer // of the other picks
	end     error
	closed  atomic.Bool
}

// store gives the rows of a source by their number in it.
type store interface {
	// fill adds the values of row n, from 0, to dst, which is empty. Beyond the
	// last row the error is io.EOF, unless the store goes round by itself.
	fill(ctx context.Context, n int64, dst Row) error
	// rows is how many there are, -1 while that is not known.
	rows() int64
	// close releases what the store holds and waits for its goroutine.
	close() error
}

// Row returns the row of arrival i; see [Feed.Fill].
func (f *Feed) Row(ctx context.Context, i uint64) (Row, error) {
	dst := make(Row, len(f.columns))
	if err := f.Fill(ctx, i, dst); err != nil {
		return nil, err
	}
	return dst, nil
}

// Fill replaces what is in dst by the row of arrival i; after an error dst is
// empty. A column that the row does not have is absent. The row keeps nothing of
// the feed alive, but the values of a list in the scenario are that list's own
// and must not be changed.
//
// The error is a *[RowError] if only this row is bad, wraps [ErrEnd] after the
// last row, and is ctx's when it ends a wait for a pipe or a disk. Any other is
// about the source, as a disk that fails or a damaged Parquet file, and is likely
// to come again. For the picks
// in order i should be nearly increasing: an arrival may be left out, and may be
// late by at least 4 MiB or 1000 rows; still later is slow on a file, and an
// error on a pipe.
func (f *Feed) Fill(ctx context.Context, i uint64, dst Row) error {
	clear(dst)
	err := f.fill(ctx, i, dst)
	if err != nil {
		clear(dst)
	}
	return err
}

func (f *Feed) fill(ctx context.Context, i uint64, dst Row) error {
	if f.closed.Load() {
		return fmt.Errorf("data.%s: %w", f.name, ErrClosed)
	}
	if f.shard.N > 0 {
		i = i*uint64(f.shard.N) + uint64(f.shard.I) //nolint:gosec // not negative
	}
	var n int64
	switch {
	case !f.inOrder:
		n = f.draw.row(i)
	case i > math.MaxInt64:
		return f.end
	default:
		n = int64(i)
		if total := f.store.rows(); f.recycle && total > 0 {
			n %= total
		}
	}
	err := f.store.fill(ctx, n, dst)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return f.end
	case f.closed.Load():
		return fmt.Errorf("data.%s: %w", f.name, ErrClosed)
	}
	if row, ok := errors.AsType[*RowError](err); ok {
		return row
	}
	return fmt.Errorf("data.%s: %w", f.name, err)
}

// Columns returns the names of the columns that rows have, in the order of the
// source; those of JSON are the ones of its first rows: later rows may have
// others, and may lack some.
func (f *Feed) Columns() []string { return f.columns }

// Len is how many arrivals get a row before the first [ErrEnd], or how many rows
// are picked from; false if that is not known, as with pipes and with large
// files that are read in order.
func (f *Feed) Len() (int64, bool) {
	total := f.store.rows()
	switch {
	case total < 0:
		return 0, false
	case f.inOrder && f.shard.N > 1:
		n := int64(f.shard.N)
		return (total + n - 1 - int64(f.shard.I)) / n, true
	}
	return total, true
}

// Close releases the file and waits for the goroutine that reads it. Asks that
// wait get [ErrClosed].
func (f *Feed) Close() error {
	if f.closed.Swap(true) {
		return nil
	}
	return f.store.close()
}
