package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"mcpbench/scenarios/internal/feed"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// Feeder describes a source of rows. It is immutable.
type Feeder struct {
	Name string
	spec feed.Spec
}

// Feeds are the open feeders of one group: a row of each for every iteration, or
// for every session.
// Safe for concurrent use, each caller with an Env of its own.
type Feeds struct {
	names []string
	open  []*feed.Feed
}

// ErrDataEnd says that a feeder has no row for an iteration, nor for any later one.
var ErrDataEnd = feed.ErrEnd

// OpenFeeds opens the feeders that the iterations of a group read, or, with once,
// those that its sessions read once: in headers, before and after. It is nil when
// there are none. Random rows depend on the seed and the group. ctx bounds the
// opening, which for picks by chance goes through the file once.
func (p *Program) OpenFeeds(ctx context.Context, group int, seed uint64, once bool) (*Feeds, error) {
	names := p.readBy(group, once)
	if len(names) == 0 {
		return nil, nil //nolint:nilnil // as said
	}
	out := &Feeds{}
	for _, name := range names {
		i := slices.IndexFunc(p.Feeders, func(f Feeder) bool { return f.Name == name })
		spec := p.Feeders[i].spec
		spec.Seed, spec.Group = seed, group
		spec.Shard = p.shard(name, group, once)
		opened, err := feed.Open(ctx, spec)
		if err != nil {
			return nil, errors.Join(err, out.Close())
		}
		out.names, out.open = append(out.names, name), append(out.open, opened)
	}
	return out, nil
}

// feeders are the names of those that a group reads.
func (p *Program) readBy(group int, once bool) []string {
	g := &p.Groups[group]
	if !once {
		return p.Flows[g.Flow].Feeders
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.Flows[g.Flow].FeedersOnce, p.Servers[g.Server].Feeders))))
}

// shard keeps groups apart that share a feeder whose rows are unique.
func (p *Program) shard(feeder string, group int, once bool) feed.Shard {
	i := slices.IndexFunc(p.Feeders, func(f Feeder) bool { return f.Name == feeder })
	if p.Feeders[i].spec.Pick != feed.Unique {
		return feed.Shard{}
	}
	var s feed.Shard
	for g := range p.Groups {
		if !slices.Contains(p.readBy(g, once), feeder) {
			continue
		}
		if g == group {
			s.I = s.N
		}
		s.N++
	}
	return s
}

// Fill sets the rows of an iteration in env. The error wraps ErrDataEnd when
// there is none and will be none; any other is a row that is at fault, with its
// place. Nil feeds do nothing.
func (f *Feeds) Fill(ctx context.Context, env *Env, index uint64) error {
	if f == nil {
		return nil
	}
	if env.Data == nil {
		env.Data = make(map[string]any, len(f.names))
		for _, name := range f.names {
			env.Data[name] = map[string]any{}
		}
	}
	var first error
	for i, name := range f.names {
		row, _ := env.Data[name].(map[string]any)
		if err := f.open[i].Fill(ctx, index, row); err != nil {
			if first == nil || errors.Is(err, feed.ErrEnd) {
				first = err
			}
		}
	}
	return first
}

// Close releases the files.
func (f *Feeds) Close() error {
	if f == nil {
		return nil
	}
	var errs []error
	for _, open := range f.open {
		errs = append(errs, open.Close())
	}
	return errors.Join(errs...)
}

// data compiles the feeders, and looks into their files for the columns.
func (c *compiler) data() {
	c.columns = map[string][]string{}
	for _, name := range c.root.Lookup("data").Keys() {
		in := c.file.Data[name]
		if in == nil || in.Node == nil || in.Node.Kind != syntax.Map {
			continue
		}
		c.columns[name] = nil
		c.feeder(name, in)
	}
}

func (c *compiler) feeder(name string, in *grammar.Feeder) {
	spec := feed.Spec{
		Name: name, File: in.File, Format: feed.Format(in.Format), Columns: in.Columns,
		Pick: feed.Pick(in.Pick), OnEnd: feed.OnEnd(in.OnEnd), Skew: float64(in.Exponent), Open: c.openData,
	}
	hasFile, hasRows := in.Node.Key("file") != nil, in.Node.Key("rows") != nil
	switch {
	case hasFile == hasRows:
		c.fault(in.Node, in.Path, "a feeder wants either a file or rows")
		return
	case hasFile && in.File == "":
		return // reported
	case in.Node.Key("separator") != nil && hasRows:
		c.fault(in.Node.Key("separator"), in.Path+".separator", "separator belongs to a CSV file, and these are rows")
		return
	case in.Node.Key("separator") != nil && len(in.Separator) != 1:
		c.fault(in.Node.Lookup("separator"), in.Path+".separator", "wants one character")
		return
	case in.Node.Key("columns") != nil && len(in.Columns) == 0:
		c.fault(in.Node.Lookup("columns"), in.Path+".columns", "names no column; leave it out to have all")
		return
	case in.Separator != "":
		spec.Comma = in.Separator[0]
	}
	for i, row := range in.Rows {
		if row.Node == nil {
			return
		}
		values, _ := c.plain(row.Node, fmt.Sprintf("%s.rows[%d]", in.Path, i)).(map[string]any)
		spec.Rows = append(spec.Rows, values)
	}
	if hasRows && len(in.Rows) == 0 {
		c.fault(in.Node.Key("rows"), in.Path+".rows", "there are no rows")
		return
	}
	c.out.Feeders = append(c.out.Feeders, Feeder{Name: name, spec: spec})
	if c.loading && hasFile {
		return // files are not read yet
	}
	columns, err := c.columnsOf(spec)
	if err != nil {
		at := in.Node.Lookup("file")
		if at == nil {
			at = in.Node
		}
		c.fault(at, in.Path, "%s", err)
		return
	}
	c.columns[name] = columns
}

// columnsOf returns the columns of a source, nil when they cannot be known
// without reading what comes only once, such as a pipe.
func (c *compiler) columnsOf(spec feed.Spec) ([]string, error) {
	if spec.File != "" && c.options.OpenFile == nil {
		// To open a pipe would wait for its writer, and to close it would end that one.
		info, err := os.Stat(c.options.path(spec.File))
		if err != nil {
			return nil, fmt.Errorf("data.%s: %w", spec.Name, err)
		}
		if info.IsDir() {
			return nil, fmt.Errorf("data.%s: %s is a folder", spec.Name, spec.File)
		}
		if !info.Mode().IsRegular() {
			return nil, nil
		}
	}
	if err := spec.Check(); err != nil {
		return nil, fmt.Errorf("data.%s: %w", spec.Name, err)
	}
	spec.Pick, spec.OnEnd, spec.Skew = feed.Sequential, "", 0 // so that the file is not gone through
	open, err := feed.Open(context.Background(), spec)
	if err != nil {
		return nil, err
	}
	return open.Columns(), open.Close()
}

// openData opens a file of rows, relative to the scenario's folder.
func (c *compiler) openData(name string) (fs.File, error) {
	if c.options.OpenFile != nil {
		return c.options.OpenFile(c.options.path(name))
	}
	return os.Open(c.options.path(name))
}
