package syntax

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"mcpbench/internal/nearest"
)

type anchor struct {
	node  *Node
	depth int // aliases followed to reach its innermost value
}

// converter turns the parser's tree into nodes, with aliases and merge keys
// replaced by copies of what they stand for.
type converter struct {
	source  *Source
	anchors map[string]*anchor
	depth   int // deepest chain of aliases seen since it was last reset
	copied  int // nodes copied for aliases
	failed  bool
}

func (c *converter) fail(n ast.Node, format string, args ...any) *Node {
	line, column := place(n)
	c.source.Report(line, column, "", format, args...)
	return &Node{Kind: Null, Line: line, Column: column, size: 1}
}

func (c *converter) node(n ast.Node) *Node {
	if c.failed {
		return &Node{size: 1}
	}
	switch v := n.(type) {
	case nil:
		return &Node{Kind: Null, Plain: true, size: 1}
	case *ast.MappingNode:
		return c.mapping(n, v.Values)
	case *ast.MappingValueNode:
		return c.mapping(n, []*ast.MappingValueNode{v})
	case *ast.SequenceNode:
		out := c.at(n, Seq)
		for _, item := range v.Values {
			child := c.node(item)
			out.Items = append(out.Items, child)
			out.size = addSize(out.size, child.size)
		}
		return out
	case *ast.LiteralNode:
		out := c.at(n, String)
		out.style = styleBlock
		if v.Value != nil {
			out.Text = v.Value.Value
		}
		return out
	case *ast.AnchorNode:
		return c.anchor(v)
	case *ast.AliasNode:
		return c.alias(v)
	case *ast.TagNode:
		return c.tag(v)
	case *ast.CommentGroupNode, *ast.CommentNode:
		return c.at(n, Null)
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return c.scalar(n)
	}
	return c.fail(n, "a YAML form that scenarios do not use (%s)", n.Type())
}

func (c *converter) at(n ast.Node, kind Kind) *Node {
	line, column := place(n)
	return &Node{Kind: kind, Line: line, Column: column, size: 1}
}

func (c *converter) scalar(n ast.Node) *Node {
	out := c.at(n, String)
	tk := n.GetToken()
	if tk == nil {
		out.Kind, out.Plain = Null, true
		return out
	}
	out.Text = tk.Value
	switch tk.Type { //nolint:exhaustive // all the others are plain
	case token.SingleQuoteType:
		out.style = styleSingle
	case token.DoubleQuoteType:
		out.style = styleDouble
	default:
		out.Plain = true
		out.Kind = resolve(out.Text)
		if out.Kind == Null || n.Type() == ast.NullType {
			out.Kind, out.Text = Null, ""
		}
	}
	return out
}

func (c *converter) mapping(n ast.Node, pairs []*ast.MappingValueNode) *Node {
	out := c.at(n, Map)
	seen := make(map[string]int, len(pairs))
	var merges []*Node
	for _, pair := range pairs {
		value := c.node(pair.Value)
		if _, merge := pair.Key.(*ast.MergeKeyNode); merge {
			if merges = append(merges, value); len(merges) > 1 {
				c.fail(pair.Key, "duplicate key \"<<\"; one with a list merges several: <<: [*a, *b]")
			}
			continue
		}
		key := c.key(pair.Key)
		if key == nil {
			continue
		}
		out.size = addSize(out.size, addSize(value.size, 1))
		if first, twice := seen[key.Text]; twice {
			c.source.Report(key.Line, key.Column, "", "duplicate key %q (first on line %d)", key.Text, first)
			continue
		}
		seen[key.Text] = key.Line
		out.Pairs = append(out.Pairs, Pair{Key: key, Value: value})
	}
	for _, m := range merges {
		c.merge(n, out, m)
	}
	return out
}

// key returns a scalar key as text, or nil after it has reported a problem.
func (c *converter) key(n ast.MapKeyNode) *Node {
	var inner ast.Node = n
	if explicit, ok := n.(*ast.MappingKeyNode); ok {
		inner = explicit.Value
	}
	switch inner.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		key := c.scalar(inner)
		if key.Kind == Null {
			c.fail(n, "null is no name; write \"null\" in quotes")
			return nil
		}
		key.Kind, key.Plain = String, false
		return key
	}
	c.fail(n, "a key must be plain text")
	return nil
}

// merge adds the pairs of a merge key's map that out does not have itself.
func (c *converter) merge(n ast.Node, out, from *Node) {
	maps := []*Node{from}
	if from.Kind == Seq {
		maps = from.Items
	}
	for _, m := range maps {
		if m.Kind != Map {
			c.fail(n, "<< wants a map, or a list of maps, from an alias")
			return
		}
		for _, p := range m.Pairs {
			if out.Lookup(p.Key.Text) == nil {
				out.Pairs = append(out.Pairs, p)
				out.size = addSize(out.size, addSize(p.Value.size, 1))
			}
		}
	}
}

func (c *converter) anchor(n *ast.AnchorNode) *Node {
	outer := c.depth
	c.depth = 0
	value := c.node(n.Value)
	if n.Name != nil && n.Name.GetToken() != nil {
		c.anchors[n.Name.GetToken().Value] = &anchor{node: value, depth: c.depth}
	}
	c.depth = max(outer, c.depth)
	return value
}

func (c *converter) alias(n *ast.AliasNode) *Node {
	name := ""
	if n.Value != nil && n.Value.GetToken() != nil {
		name = n.Value.GetToken().Value
	}
	a := c.anchors[name]
	if a == nil {
		known := make([]string, 0, len(c.anchors))
		for k := range c.anchors {
			known = append(known, k)
		}
		return c.fail(n, "alias *%s names no anchor before it%s", name, nearest.DidYouMean(name, known))
	}
	c.depth = max(c.depth, a.depth+1)
	fault := ""
	switch {
	case a.depth+1 > maxAliasDepth:
		fault = fmt.Sprintf("aliases nested more than %d deep", maxAliasDepth)
	case addSize(c.copied, a.node.size) > maxNodes/10:
		fault = fmt.Sprintf("aliases stand for more than %d values", maxNodes/10)
	}
	if fault != "" {
		c.failed = true
		return c.fail(n, "%s", fault)
	}
	c.copied += a.node.size
	return a.node.Clone()
}

func (c *converter) tag(n *ast.TagNode) *Node {
	name := n.GetToken().Value
	if name != "!!str" {
		return c.fail(n, "tag %s: only !!str is known", name)
	}
	value := c.node(n.Value)
	if value.Kind == Seq || value.Kind == Map {
		return c.fail(n, "!!str stands before a %s", value.Kind)
	}
	value.Kind, value.Plain = String, false
	return value
}
