package script

import (
	"github.com/expr-lang/expr/ast"
)

// Ref is a use of a name below saved, args or data: saved.NAME, data.FEEDER.COLUMN.
type Ref struct {
	Root   string
	Names  []string // one, or two below data
	Offset int      // of the last name, bytes from the start of the expression
}

// references returns the names that an expression reads below the variables
// whose members are the scenario's own. Names that are computed are not among them.
func references(root ast.Node, source string) []Ref {
	r := refFinder{source: source, inner: map[ast.Node]bool{}}
	ast.Walk(&root, &r)
	out := r.refs[:0]
	for i, ref := range r.refs {
		if !r.inner[r.nodes[i]] {
			out = append(out, ref)
		}
	}
	return out
}

type refFinder struct {
	source string
	refs   []Ref
	nodes  []ast.Node
	inner  map[ast.Node]bool // part of a longer one
}

func (r *refFinder) Visit(node *ast.Node) {
	m, ok := (*node).(*ast.MemberNode)
	if !ok {
		return
	}
	name, ok := m.Property.(*ast.StringNode)
	if !ok {
		return
	}
	at := byteOffset(r.source, name.Location().From)
	switch base := base(m.Node).(type) {
	case *ast.IdentifierNode:
		switch base.Value {
		case "saved", "args", "data":
			r.add(m, Ref{Root: base.Value, Names: []string{name.Value}, Offset: at})
		}
	case *ast.MemberNode:
		for i, known := range r.nodes {
			if known == base && r.refs[i].Root == "data" && len(r.refs[i].Names) == 1 {
				r.inner[base] = true
				r.add(m, Ref{Root: "data", Names: []string{r.refs[i].Names[0], name.Value}, Offset: at})
				return
			}
		}
	}
}

// base is a node without the wrapping of an optional chain.
func base(n ast.Node) ast.Node {
	if chain, ok := n.(*ast.ChainNode); ok {
		return chain.Node
	}
	return n
}

func (r *refFinder) add(n ast.Node, ref Ref) {
	r.nodes, r.refs = append(r.nodes, n), append(r.refs, ref)
}
