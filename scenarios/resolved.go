package scenarios

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"mcpbench/scenarios/internal/script"
	"mcpbench/scenarios/internal/syntax"
)

const mask = "***"

// secretName matches the names of things that are likely secret.
var secretName = regexp.MustCompile(`(?i)(^|[-_])auth([-_]|$)|authoriz|authentic|cookie|token([-_]|$)|secret|passw|credential|` +
	`private|session[-_]?id|api[-_]?key|access[-_]?key|(^|[-_])(key|pwd|pass|pat|dsn)$`)

// SecretName tells whether a header, a variable or a parameter with this name
// is hidden wherever a scenario is shown.
func SecretName(name string) bool { return secretName.MatchString(name) }

// Resolved returns the scenario as YAML with its variables replaced and its
// flags applied. Secrets are masked: values of headers, env, args, auth and
// vars that came from the environment or whose names look secret, passwords and
// secret parameters in URLs. Without secrets it loads to the same program.
func (s *Scenario) Resolved() []byte {
	w := writer{}
	w.text.WriteString("# The scenario as it was run: variables replaced, flags applied, secrets masked.\n")
	w.mapping(s.root, 0, "")
	return []byte(w.text.String())
}

// writer writes a tree as block YAML.
type writer struct {
	text strings.Builder
}

func (w *writer) mapping(n *syntax.Node, depth int, path string) {
	for i, p := range n.Pairs {
		if i > 0 || depth == 0 {
			w.text.WriteString(strings.Repeat("  ", depth))
		}
		w.text.WriteString(scalarText(p.Key.Text) + ":")
		w.value(p.Value, depth+1, syntax.Join(path, p.Key.Text))
	}
}

// value writes what follows a key or a dash, with the end of the line.
func (w *writer) value(n *syntax.Node, depth int, path string) {
	switch {
	case n.Kind == syntax.Map && len(n.Pairs) > 0:
		w.text.WriteString("\n" + strings.Repeat("  ", depth))
		w.mapping(n, depth, path)
	case n.Kind == syntax.Seq && len(n.Items) > 0:
		w.text.WriteString("\n")
		for i, item := range n.Items {
			w.text.WriteString(strings.Repeat("  ", depth) + "-")
			if item.Kind == syntax.Map && len(item.Pairs) > 0 {
				w.text.WriteString(" ")
				w.mapping(item, depth+1, fmt.Sprintf("%s[%d]", path, i))
				continue
			}
			w.value(item, depth+1, fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		w.text.WriteString(" " + shown(n, path) + "\n")
	}
}

// shown returns a scalar or an empty collection as YAML, masked when it is secret.
func shown(n *syntax.Node, path string) string {
	switch n.Kind {
	case syntax.Map:
		return "{}"
	case syntax.Seq:
		return "[]"
	case syntax.Null:
		return "null"
	case syntax.Bool, syntax.Int, syntax.Float:
		if text := masked(n, path); text != n.Text {
			return scalarText(text)
		}
		return n.Text
	case syntax.String:
	}
	return scalarText(escapeVariables(masked(n, path)))
}

// masked returns a scalar's text, or the mask in place of a secret.
func masked(n *syntax.Node, path string) string {
	parts := strings.Split(path, ".")
	last := parts[len(parts)-1]
	if parts[0] == "servers" && len(parts) >= 3 {
		switch key, _, _ := strings.Cut(parts[2], "["); key {
		case "url":
			return maskURL(n.Text)
		case "headers", "env":
			if n.Secret || SecretName(last) {
				return mask
			}
		case "args", "auth", "tls":
			if n.Secret || key == "auth" && SecretName(last) {
				return mask
			}
		}
		return n.Text
	}
	if SecretName(last) && (n.Secret || parts[0] == "vars") {
		return mask
	}
	return n.Text
}

// maskURL hides the password of a URL and its parameters with secret names.
func maskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	if _, set := u.User.Password(); set {
		u.User = url.UserPassword(u.User.Username(), mask)
	}
	query := u.Query()
	changed := u.User != nil
	for name := range query {
		if SecretName(name) {
			query.Set(name, mask)
			changed = true
		}
	}
	if !changed {
		return text
	}
	u.RawQuery = query.Encode()
	return strings.ReplaceAll(u.String(), url.QueryEscape(mask), mask)
}

// escapeVariables writes $${ for a ${ that is no variable any more.
func escapeVariables(text string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "$${{"):
			b.WriteString("$${{")
			i += 3
		case strings.HasPrefix(rest, "${{"):
			end, _ := syntax.ExpressionEnd(text, i+3)
			b.WriteString(text[i:end])
			i = end - 1
		case strings.HasPrefix(rest, "${"):
			b.WriteString("$${")
			i++
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// escapeTemplate makes a text stand for itself where ${{ }} would be evaluated.
func escapeTemplate(text string) string { return strings.ReplaceAll(text, "${{", "$${{") }

var plainText = regexp.MustCompile(`^[A-Za-z_./][A-Za-z0-9_./+*=<>()%@$-]*( [A-Za-z0-9_./+*=<>()%@$-]+)*$|^[0-9]+(\.[0-9]+)?/?[a-z]+$`)

// scalarText writes a text as YAML: without quotes where that is safe.
func scalarText(text string) string {
	if plainText.MatchString(text) && syntax.NewPlain(text, "").Kind == syntax.String {
		return text
	}
	return string(script.AppendQuoted(nil, text))
}
