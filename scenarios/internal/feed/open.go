package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

const defaultMemory = 32 << 20

// input is the bytes of a file.
type input struct {
	file fs.File // nil once all is held
	held []byte
	at   io.ReaderAt // of the file or of what is held; nil for a pipe
	size int64       // what comes to the file later is not read
}

func (in *input) reader() io.Reader {
	if in.at == nil {
		return in.file
	}
	return io.NewSectionReader(in.at, 0, in.size)
}

func (in *input) close() error {
	if in.file == nil {
		return nil
	}
	return in.file.Close()
}

// Open opens the source of s and looks at its first rows; for picks that are
// not in order it goes through it once. With a pipe it waits for the first row,
// which ctx ends; to open a named pipe waits for its writer, which ctx does not
// end. All errors name the feeder.
func Open(ctx context.Context, s Spec) (*Feed, error) {
	f, err := open(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("data.%s: %w", s.Name, err)
	}
	return f, nil
}

func open(ctx context.Context, s Spec) (*Feed, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.Memory == 0 {
		s.Memory = defaultMemory
	}
	f := &Feed{
		name: s.Name, source: s.File, shard: s.Shard, inOrder: s.inOrder(), recycle: s.recycles(),
	}
	var err error
	if s.File == "" {
		f.source = "the list"
		f.store, f.columns, err = newList(s.Name, s.Rows, s.Columns)
	} else {
		f.store, f.columns, err = openFile(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	f.end = fmt.Errorf("data.%s: %s: %w", s.Name, f.source, ErrEnd)
	if !f.inOrder {
		if f.draw, err = newDrawer(s, f.store.rows()); err != nil {
			return nil, errors.Join(err, f.store.close())
		}
	}
	return f, nil
}

func (s *Spec) inOrder() bool { return s.Pick != Random && s.Pick != Zipf }

func (s *Spec) recycles() bool {
	return s.Pick != Unique && s.inOrder() && s.OnEnd != Stop
}

// Check finds what does not go together.
func (s *Spec) Check() error {
	switch {
	case (s.File == "") == (s.Rows == nil):
		return errors.New("give either a file or rows")
	case !slices.Contains([]Pick{"", Sequential, Random, Unique, Zipf}, s.Pick):
		return fmt.Errorf("pick is %q; it may be sequential, random, unique or zipf", s.Pick)
	case !slices.Contains([]OnEnd{"", Stop, Recycle}, s.OnEnd):
		return fmt.Errorf("on_end is %q; it may be stop or recycle", s.OnEnd)
	case !s.inOrder() && s.OnEnd != "":
		return fmt.Errorf("on_end does not go with pick: %s, which has no end", s.Pick)
	case s.Pick == Unique && s.OnEnd == Recycle:
		return errors.New("pick: unique gives each row once and cannot recycle; use pick: sequential, or on_end: stop")
	case s.Skew != 0 && s.Pick != Zipf:
		return errors.New("the exponent goes with pick: zipf only")
	case s.Shard.N < 0 || s.Shard.I < 0 || s.Shard.I > 0 && s.Shard.I >= s.Shard.N:
		return fmt.Errorf("there is no shard %d of %d", s.Shard.I, s.Shard.N)
	}
	for i, c := range s.Columns {
		if slices.Contains(s.Columns[:i], c) {
			return fmt.Errorf("columns has %q twice", c)
		}
	}
	return nil
}

// format is told by the name of the file.
func (s *Spec) format() (Format, byte, error) {
	comma := s.Comma
	format, end := s.Format, strings.ToLower(path.Ext(s.File))
	if format == "" {
		switch end {
		case ".csv", ".tsv":
			format = CSV
		case ".jsonl", ".ndjson":
			format = JSONL
		case ".parquet":
			format = Parquet
		default:
			return "", 0, fmt.Errorf("what %s holds cannot be told from its name: give the format, csv, jsonl or parquet", s.File)
		}
	}
	switch {
	case format != CSV && format != JSONL && format != Parquet:
		return "", 0, fmt.Errorf("format is %q; it may be csv, jsonl or parquet", format)
	case comma != 0 && format != CSV:
		return "", 0, errors.New("the separator goes with CSV only")
	case comma == '"' || comma == '\r' || comma == '\n' || comma >= 0x80:
		return "", 0, fmt.Errorf("%q cannot separate fields; use one ASCII character, not a quote, not the end of a line", rune(comma))
	case comma == 0 && end == ".tsv":
		comma = '\t'
	case comma == 0:
		comma = ','
	}
	return format, comma, nil
}

func openFile(ctx context.Context, s Spec) (store, []string, error) {
	format, comma, err := s.format()
	if err != nil {
		return nil, nil, err
	}
	in, err := s.input(ctx, format)
	if err != nil {
		return nil, nil, err
	}
	// Closing the file ends a read that waits for a pipe.
	release := context.AfterFunc(ctx, func() { _ = in.close() })
	st, columns, err := s.store(ctx, format, comma, in)
	cut := !release()
	switch {
	case err == nil && !cut:
		return st, columns, nil
	case err == nil:
		_ = st.close() // again, which is an error
	default:
		_ = in.close() // only read from
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, nil, err
}

// store makes the store that the picks need.
func (s *Spec) store(ctx context.Context, format Format, comma byte, in *input) (store, []string, error) {
	if format == Parquet {
		return openParquet(s, in)
	}
	t := &text{file: s.File, csv: format == CSV, comma: comma}
	if in.held != nil || !s.inOrder() {
		tab, err := newTable(ctx, t, in, s.Columns)
		if err != nil {
			return nil, nil, err
		}
		return tab, t.columns, nil
	}
	src, first, err := openText(t, in, s.Columns)
	if err != nil {
		return nil, nil, err
	}
	return newStream(src, s.File, s.recycles(), first), t.columns, nil
}

// input opens the file, and holds it if it is small or must be.
func (s *Spec) input(ctx context.Context, format Format) (*input, error) {
	openIt := s.Open
	if openIt == nil {
		openIt = func(name string) (fs.File, error) { return os.Open(name) } //nolint:gosec // the user names it
	}
	file, err := openIt(s.File)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.File, plainPath(err))
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("is a directory")
	}
	if err != nil {
		_ = file.Close() // only read from
		return nil, fmt.Errorf("%s: %w", s.File, plainPath(err))
	}
	in := &input{file: file, size: info.Size()}
	if at, ok := file.(io.ReaderAt); ok && info.Mode().IsRegular() {
		in.at = at
		if in.size > s.Memory/4 {
			return in, nil
		}
	} else if s.inOrder() && !s.recycles() && format != Parquet {
		return in, nil // as it comes
	}
	release := context.AfterFunc(ctx, func() { _ = file.Close() })
	defer release()
	held, err := io.ReadAll(io.LimitReader(in.reader(), s.Memory+1))
	err = errors.Join(err, file.Close())
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", s.File, plainPath(err))
	case int64(len(held)) > s.Memory:
		return nil, s.onlyOnce(format)
	}
	return &input{held: held, at: bytes.NewReader(held), size: int64(len(held))}, nil
}

// onlyOnce says why a pipe will not do.
func (s *Spec) onlyOnce(format Format) error {
	why, instead := "on_end: recycle", ", or use on_end: stop"
	switch {
	case format == Parquet:
		why, instead = "Parquet", ""
	case !s.inOrder():
		why, instead = "pick: "+string(s.Pick), ", or use pick: sequential with on_end: stop"
	}
	return fmt.Errorf("%s is a pipe, which can be read only once, has more than %d bytes, and %s needs it all: save it to a file%s", s.File, s.Memory, why, instead)
}

// plainPath removes the operation and the name from an error, which are said.
func plainPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
