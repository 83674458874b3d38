package syntax

import (
	"fmt"
	"regexp"
	"strings"
)

var variable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// Expand replaces ${NAME} and ${NAME:-default} in every value of the tree by
// what env says, and $${ by a plain ${. The default stands for a variable that
// is unset or empty. Expressions ${{ }} are left alone. A plain scalar takes
// the kind of its new text. Each unset variable without a default is reported.
func (s *Source) Expand(n *Node, path string, env func(string) (string, bool)) {
	switch n.Kind {
	case Seq:
		for i, item := range n.Items {
			s.Expand(item, fmt.Sprintf("%s[%d]", path, i), env)
		}
	case Map:
		for _, p := range n.Pairs {
			s.Expand(p.Value, Join(path, p.Key.Text), env)
		}
	case String:
		if strings.Contains(n.Text, "${") {
			s.expandText(n, path, env)
		}
	case Null, Bool, Int, Float:
	}
}

// Join appends key to a dotted path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (s *Source) expandText(n *Node, path string, env func(string) (string, bool)) {
	from := n.Text
	broken := false
	var to strings.Builder
	var edits []edit
	for i := 0; i < len(from); {
		rest := from[i:]
		switch {
		case strings.HasPrefix(rest, "$${{"):
			to.WriteString("$${{") // the template turns it into a plain ${{
			i += 4
		case strings.HasPrefix(rest, "$${"):
			edits = append(edits, edit{to: to.Len(), added: 2, from: i, removed: 3})
			to.WriteString("${")
			i += 3
		case strings.HasPrefix(rest, "${{"):
			end, _ := ExpressionEnd(from, i+3)
			to.WriteString(from[i:end])
			i = end
		case strings.HasPrefix(rest, "${"):
			m := variable.FindStringSubmatch(rest)
			if m == nil {
				s.Fault(n, i, path,
					"a variable is written ${NAME} or ${NAME:-default}, an expression ${{ … }}, a plain ${ as $${")
				n.broken = true
				return
			}
			value, ok := env(m[1])
			switch {
			case m[2] != "" && value == "":
				value = m[3]
			case !ok:
				s.Fault(n, i, path, "variable %s is not set; set it, or write ${%s:-default}", m[1], m[1])
				broken = true
			default:
				n.Secret = true
			}
			edits = append(edits, edit{to: to.Len(), added: len(value), from: i, removed: len(m[0])})
			to.WriteString(value)
			i += len(m[0])
		default:
			to.WriteByte(from[i])
			i++
		}
	}
	if n.broken = broken; broken {
		return
	}
	n.Text, n.edits = to.String(), edits
	if n.Plain {
		n.Kind = resolve(n.Text)
	}
}

// Replaced returns what stands in the text in place of variables.
func (n *Node) Replaced() []string {
	var out []string
	for _, e := range n.edits {
		if end := e.to + e.added; end <= len(n.Text) && n.Text[e.to:end] != "${" {
			out = append(out, n.Text[e.to:end])
		}
	}
	return out
}

// ExpressionEnd returns the offset behind the }} that ends the expression whose
// text starts at from. Quotes and braces of the expression are respected. ok is
// false when it does not end; end is then the end of text.
func ExpressionEnd(text string, from int) (end int, ok bool) {
	depth := 0
	for i := from; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'', '`':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' && c != '`' {
					i++
				}
			}
		case '{':
			depth++
		case '}':
			if depth == 0 && strings.HasPrefix(text[i:], "}}") {
				return i + 2, true
			}
			depth = max(0, depth-1)
		}
	}
	return len(text), false
}

// Typed returns n, or, when n is a quoted text in which a variable was
// replaced, a copy with the kind it would have without its quotes. In {flow}
// maps variables must be quoted also where a number is wanted.
func (n *Node) Typed() *Node {
	if n.Kind != String || n.Plain || len(n.edits) == 0 {
		return n
	}
	c := *n
	c.Kind = resolve(n.Text)
	return &c
}
