package scenarios

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/syntax"
)

// maxIncludes bounds the files that one scenario uses, and how deep they use others.
const maxIncludes = 32

// includer takes parts of other files into a scenario: use: FILE#PATH.
type includer struct {
	*Scenario
	files map[string]*syntax.Node // roots by absolute name; nil at fault
	stack []string                // the uses that are being followed
}

// include resolves every use below the root. What is taken over keeps its place in
// its own file, so that faults are shown there.
func (s *Scenario) include() {
	in := &includer{Scenario: s, files: map[string]*syntax.Node{}}
	in.whole(s.root, s.options.Dir)
}

// whole resolves the uses of a file's root.
func (in *includer) whole(root *syntax.Node, dir string) {
	in.node(root, "", dir)
	for _, table := range []string{"servers", "flows", "data"} {
		in.members(root.Lookup(table), table, dir)
	}
	in.members(root.Lookup("load").Lookup("groups"), "load.groups", dir)
	for _, key := range []string{"client", "limits", "load", "vars", "output"} {
		if n := root.Lookup(key); n != nil {
			in.node(n, key, dir)
		}
	}
}

func (in *includer) members(table *syntax.Node, path, dir string) {
	for _, p := range table.Entries() {
		in.node(p.Value, syntax.Join(path, p.Key.Text), dir)
	}
}

// node merges into a map what its key use names. What the map says itself wins.
func (in *includer) node(n *syntax.Node, path, dir string) {
	use := n.Lookup("use")
	if use == nil || n.Kind != syntax.Map {
		return
	}
	n.Remove("use")
	list := []*syntax.Node{use}
	if path == "" && use.Kind == syntax.Seq {
		list = use.Items
	}
	for _, from := range list {
		if part := in.part(from, syntax.Join(path, "use"), dir); part != nil {
			takeOver(n, part)
		}
	}
}

// part returns what a use names, with its own uses resolved; nil when it is at fault.
func (in *includer) part(use *syntax.Node, path, dir string) *syntax.Node {
	if use.Kind != syntax.String {
		in.src.Fault(use, -1, path, "wants a file, or a part of one, e.g. ./common.yaml#flows.login; this is %s", use.Kind)
		return nil
	}
	name, fragment, _ := strings.Cut(use.Text, "#")
	if name == "" {
		in.src.Fault(use, -1, path, "wants the name of a file, e.g. ./common.yaml or ./common.yaml#flows.login")
		return nil
	}
	if !filepath.IsAbs(name) && !strings.Contains(name, "://") {
		name = filepath.Join(dir, name)
	}
	key := name + "#" + fragment
	switch {
	case slices.Contains(in.stack, key):
		in.src.Fault(use, -1, path, "%s uses itself", use.Text)
		return nil
	case len(in.stack) >= maxIncludes:
		in.src.Fault(use, -1, path, "files use files more than %d deep", maxIncludes)
		return nil
	case strings.Contains(name, "://"):
		in.src.Fault(use, -1, path, "%s: use takes files of this machine only", use.Text)
		return nil
	}
	root := in.file(use, path, name)
	if root == nil {
		return nil
	}
	in.stack = append(in.stack, key)
	defer func() { in.stack = in.stack[:len(in.stack)-1] }()
	part := root
	walked := ""
	for step := range strings.SplitSeq(fragment, ".") {
		if fragment == "" {
			break
		}
		next := part.Lookup(step)
		if next == nil {
			where := name
			if walked != "" {
				where += "#" + walked
			}
			in.src.Fault(use, -1, path, "%s has no %q%s", where, step, nearest.DidYouMean(step, part.Keys()))
			return nil
		}
		part, walked = next, syntax.Join(walked, step)
	}
	if part.Kind != syntax.Map {
		in.src.Fault(use, -1, path, "%s is %s; use takes maps", use.Text, part.Kind)
		return nil
	}
	part = part.Clone()
	inner := filepath.Dir(name)
	if fragment == "" {
		in.whole(part, inner)
	} else {
		in.node(part, path, inner)
	}
	return part
}

// file reads and parses a file once.
func (in *includer) file(use *syntax.Node, path, name string) *syntax.Node {
	root, known := in.files[name]
	if known {
		return root
	}
	in.files[name] = nil
	if len(in.files) > maxIncludes {
		in.src.Fault(use, -1, path, "a scenario uses at most %d files", maxIncludes)
		return nil
	}
	data, err := in.options.readAt(name)
	if err != nil {
		in.src.Fault(use, -1, path, "%s", err)
		return nil
	}
	src, root := syntax.Parse(name, data)
	in.src.Adopt(src)
	if root == nil {
		return nil
	}
	if root.Kind != syntax.Map {
		in.src.Fault(use, -1, path, "%s holds %s, no map", name, root.Kind)
		return nil
	}
	root.BelongTo(src)
	if v := root.Lookup("version"); v != nil && v.Text != "1" {
		in.src.Fault(v, -1, "version", "this mcpbench reads version: 1")
		return nil
	}
	in.files[name] = root
	return root
}

// takeOver adds to n what other has and n has not. Maps are merged, all else is the
// one or the other.
func takeOver(n, other *syntax.Node) {
	for _, p := range other.Pairs {
		own := n.Lookup(p.Key.Text)
		switch {
		case own == nil:
			n.Pairs = append(n.Pairs, p)
		case own.Kind == syntax.Map && p.Value.Kind == syntax.Map:
			takeOver(own, p.Value)
		}
	}
}

// readAt reads a file by its name as it is.
func (o *LoadOptions) readAt(name string) ([]byte, error) {
	if o.ReadFile != nil {
		return o.ReadFile(name)
	}
	data, err := readFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return data, nil
}
