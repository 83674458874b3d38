package scenarios

import (
	"bytes"
	"fmt"
	"strings"

	"mcpbench/scenarios/internal/script"
	"mcpbench/scenarios/internal/syntax"
)

// paramsTemplate is a params object: whole when it holds no expression, else in
// parts.
type paramsTemplate struct {
	static []byte
	parts  []paramPart
	place  int // of the step in its flow
}

// paramPart is JSON text, or an expression.
type paramPart struct {
	text   []byte // when expr is nil
	expr   *script.Expression
	inside bool // the expression stands inside a JSON string
}

// paramsBuilder writes a params object.
type paramsBuilder struct {
	*compiler
	parts []paramPart
	text  []byte
	first bool // the next member needs no comma; a new builder starts at the first
	begun bool
	scope *scope // of its expressions
}

func (b *paramsBuilder) finish(place int) paramsTemplate {
	if len(b.parts) == 0 {
		return paramsTemplate{static: b.text, place: place}
	}
	b.flush()
	return paramsTemplate{parts: b.parts, place: place}
}

func (b *paramsBuilder) flush() {
	if len(b.text) > 0 {
		b.parts = append(b.parts, paramPart{text: b.text})
		b.text = nil
	}
}

func (b *paramsBuilder) raw(text string) { b.text = append(b.text, text...) }

func (b *paramsBuilder) quoted(text string) { b.text = script.AppendQuoted(b.text, text) }

// member begins a member of an object.
func (b *paramsBuilder) member(name string) *paramsBuilder {
	if b.begun && !b.first {
		b.raw(",")
	}
	b.begun, b.first = true, false
	b.quoted(name)
	b.raw(":")
	return b
}

func (b *paramsBuilder) expression(e *script.Expression, inside bool) {
	b.flush()
	b.parts = append(b.parts, paramPart{expr: e, inside: inside})
}

// value writes any value of the tree as JSON.
func (b *paramsBuilder) value(n *syntax.Node, path string) {
	switch n.Kind {
	case syntax.Null:
		b.raw("null")
	case syntax.Bool:
		b.raw(fmt.Sprint(n.True()))
	case syntax.Int, syntax.Float:
		b.number(n, path)
	case syntax.String:
		parts := b.parse(n, path)
		if len(parts) == 1 && parts[0].Expr != nil {
			b.expression(parts[0].Expr, false)
			return
		}
		b.string(parts)
	case syntax.Seq:
		b.raw("[")
		for i, item := range n.Items {
			if i > 0 {
				b.raw(",")
			}
			b.value(item, fmt.Sprintf("%s[%d]", path, i))
		}
		b.raw("]")
	case syntax.Map:
		b.raw("{")
		for i, p := range n.Pairs {
			if i > 0 {
				b.raw(",")
			}
			b.quoted(p.Key.Text)
			b.raw(":")
			b.value(p.Value, syntax.Join(path, p.Key.Text))
		}
		b.raw("}")
	}
}

// number writes a number with the digits of the file where JSON has that form.
func (b *paramsBuilder) number(n *syntax.Node, path string) {
	text := strings.TrimPrefix(n.Text, "+")
	if v, ok := n.Integer(); ok && n.Kind == syntax.Int {
		b.raw(fmt.Sprint(v))
		return
	}
	v, ok := n.Number()
	switch {
	case !ok:
		b.fault(n, path, "%s is no number that JSON has", n.Text)
	case jsonNumber(text):
		b.raw(text)
	default:
		b.text = fmt.Append(b.text, v)
	}
}

// jsonNumber tells whether a YAML number is written as JSON writes them.
func jsonNumber(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	whole, fraction, dotted := strings.Cut(digits, ".")
	leadingZero := len(whole) > 1 && whole[0] == '0' && whole[1] >= '0' && whole[1] <= '9'
	if dotted && (fraction == "" || fraction[0] < '0' || fraction[0] > '9') {
		return false
	}
	return whole != "" && whole[0] >= '0' && whole[0] <= '9' && !leadingZero && !strings.ContainsAny(text, "xo")
}

// scalar writes a scalar as a JSON string, whatever its kind.
func (b *paramsBuilder) scalar(n *syntax.Node, path string) []script.Part {
	if n == nil { // reported as missing
		b.raw(`""`)
		return nil
	}
	if n.Kind != syntax.String {
		b.quoted(n.Text)
		return []script.Part{{Text: n.Text}}
	}
	parts := b.parse(n, path)
	b.string(parts)
	return parts
}

// named writes the text that names what the step works on, and keeps it.
func (b *paramsBuilder) named(n *syntax.Node, path string, out *Step) {
	parts := b.scalar(n, path)
	var name strings.Builder
	dynamic := false
	for _, p := range parts {
		if p.Expr == nil {
			name.WriteString(p.Text)
			continue
		}
		dynamic = true
		fmt.Fprintf(&name, "{%s}", p.Source)
	}
	out.Name = name.String()
	if !dynamic {
		out.RequestName = out.Name
	}
	if n != nil && out.Name == "" && !strings.Contains(n.Text, "${{") { // an expression at fault leaves nothing
		b.fault(n, path, "must not be empty")
	}
}

func (b *paramsBuilder) parse(n *syntax.Node, path string) []script.Part {
	parts, faults := script.Parse(n.Text, b.exprs.Value)
	for _, f := range faults {
		b.scriptFault(n, path, f)
	}
	for _, p := range parts {
		if p.Expr != nil {
			b.known(p.Expr, n, max(strings.Index(n.Text, p.Source), 0), path, b.scope)
		}
	}
	return parts
}

func (b *paramsBuilder) string(parts []script.Part) {
	b.raw(`"`)
	for _, p := range parts {
		if p.Expr != nil {
			b.expression(p.Expr, true)
			continue
		}
		quoted := script.AppendQuoted(nil, p.Text)
		b.text = append(b.text, quoted[1:len(quoted)-1]...)
	}
	b.raw(`"`)
}

// appendTo renders the template.
func (t *paramsTemplate) appendTo(dst []byte, env *Env, vars map[string]any) ([]byte, error) {
	if t.parts == nil {
		if t.static == nil {
			return append(dst, "{}"...), nil
		}
		return append(dst, t.static...), nil
	}
	r := &env.scratch
	r.Begin(env.inputs(t.place, vars))
	return appendParts(dst, r, t.parts)
}

// appendParts renders parts, for which r has begun.
func appendParts(dst []byte, r *script.Runner, parts []paramPart) ([]byte, error) {
	start := len(dst)
	var err error
	for i := range parts {
		p := &parts[i]
		switch {
		case p.expr == nil:
			dst = append(dst, p.text...)
		case p.inside:
			dst, err = r.AppendInside(dst, p.expr)
		default:
			dst, err = r.AppendValue(dst, p.expr)
		}
		if err != nil {
			return dst[:start], err
		}
	}
	return dst, nil
}

// chance returns what an expression depends on that the seed does not
// determine, "" for nothing.
func (t *paramsTemplate) chance() string {
	for _, p := range t.parts {
		if name := chance(p.expr); name != "" {
			return name
		}
	}
	return ""
}

func chance(e *script.Expression) string {
	switch {
	case e == nil:
	case e.Uses("session"):
		return "session.*"
	case e.Uses("saved"):
		return "saved.*"
	case e.Uses("now"):
		return "now()"
	}
	return ""
}

// String returns the template as text, with ${{ }} where expressions stand.
func (t *paramsTemplate) String() string {
	if t.parts == nil {
		return string(t.static)
	}
	var b bytes.Buffer
	for _, p := range t.parts {
		if p.expr == nil {
			b.Write(p.text)
			continue
		}
		b.WriteString("${{ " + p.expr.Source() + " }}")
	}
	return b.String()
}
