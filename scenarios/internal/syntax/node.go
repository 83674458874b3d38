// Package syntax reads YAML into a tree whose every value knows its place, and
// prints problems with an excerpt of the source.
package syntax

import "slices"

// Kind is the kind of a Node.
type Kind uint8

// Kinds of nodes. The scalars follow the core schema of YAML 1.2.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	Seq
	Map
)

// String names the kind as messages say it.
func (k Kind) String() string {
	return [...]string{"nothing", "true or false", "a number", "a number", "text", "a list", "a map"}[k]
}

// Node is one value of a file. Line and Column count from 1, columns in
// characters; Line is 0 for a value that comes from no file.
type Node struct {
	Kind Kind
	// Text is a scalar's value with its variables replaced.
	Text         string
	Plain        bool // a scalar without quotes, so that its kind follows from its text
	Line, Column int
	// From is the file that the value stands in, nil when it is the scenario itself.
	From *Source
	// Origin names the flag or variable that set the value; "" is the file.
	Origin string
	// Secret tells that text of the environment went into the value.
	Secret bool
	Items  []*Node
	Pairs  []Pair

	// broken tells that a fault of the text was reported already, so that no
	// other one follows from it.
	broken bool
	style  style
	edits  []edit
	size   int // nodes below and with this one, aliases counted each time
}

// Pair is one entry of a map. Key is a String node.
type Pair struct {
	Key, Value *Node
}

type style uint8

const (
	stylePlain style = iota
	styleSingle
	styleDouble
	styleBlock
)

// edit tells that a variable was replaced: Text[to : to+added] stands for
// original[from : from+removed].
type edit struct {
	to, added, from, removed int
}

// Lookup returns the value under key, nil when n is no map or has no such key.
func (n *Node) Lookup(key string) *Node {
	if n == nil {
		return nil
	}
	for _, p := range n.Pairs {
		if p.Key.Text == key {
			return p.Value
		}
	}
	return nil
}

// Key returns the node of a key itself, nil when there is none.
func (n *Node) Key(key string) *Node {
	if n == nil {
		return nil
	}
	for _, p := range n.Pairs {
		if p.Key.Text == key {
			return p.Key
		}
	}
	return nil
}

// Set puts value under key, in place of the old one or at the end.
func (n *Node) Set(key string, value *Node) {
	n.Kind = Map
	for i, p := range n.Pairs {
		if p.Key.Text == key {
			n.Pairs[i].Value = value
			return
		}
	}
	n.Pairs = append(n.Pairs, Pair{Key: NewText(key, value.Origin), Value: value})
}

// Remove takes key out of a map.
func (n *Node) Remove(key string) {
	n.Pairs = slices.DeleteFunc(n.Pairs, func(p Pair) bool { return p.Key.Text == key })
}

// Child returns the map under key, made when it is absent or of another kind.
func (n *Node) Child(key, origin string) *Node {
	if c := n.Lookup(key); c != nil && c.Kind == Map {
		return c
	}
	c := &Node{Kind: Map, Origin: origin}
	n.Set(key, c)
	return c
}

// Keys returns the keys of a map in their order.
func (n *Node) Keys() []string {
	if n == nil {
		return nil
	}
	keys := make([]string, len(n.Pairs))
	for i, p := range n.Pairs {
		keys[i] = p.Key.Text
	}
	return keys
}

// NewText returns a text value that comes from origin.
func NewText(text, origin string) *Node {
	return &Node{Kind: String, Text: text, Origin: origin}
}

// NewPlain returns a scalar whose kind follows from its text, as if it stood
// in a file without quotes.
func NewPlain(text, origin string) *Node {
	return &Node{Kind: resolve(text), Text: text, Plain: true, Origin: origin}
}

// NewList returns a list of texts that comes from origin.
func NewList(texts []string, origin string) *Node {
	n := &Node{Kind: Seq, Origin: origin}
	for _, t := range texts {
		n.Items = append(n.Items, NewText(t, origin))
	}
	return n
}

// Clone returns a copy that shares nothing with n.
func (n *Node) Clone() *Node {
	if n == nil {
		return nil
	}
	c := *n
	c.Items = make([]*Node, len(n.Items))
	for i, item := range n.Items {
		c.Items[i] = item.Clone()
	}
	c.Pairs = make([]Pair, len(n.Pairs))
	for i, p := range n.Pairs {
		c.Pairs[i] = Pair{Key: p.Key.Clone(), Value: p.Value.Clone()}
	}
	return &c
}

// BelongTo says of n and all below it that they stand in another file than the
// scenario's.
func (n *Node) BelongTo(file *Source) {
	n.From = file
	for _, item := range n.Items {
		item.BelongTo(file)
	}
	for _, p := range n.Pairs {
		p.Key.From = file
		p.Value.BelongTo(file)
	}
}

// Entries returns the pairs of a map, none for nil.
func (n *Node) Entries() []Pair {
	if n == nil {
		return nil
	}
	return n.Pairs
}
