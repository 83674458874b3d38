package scenarios

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

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
// flags applied. Secrets are masked: what came from the environment in headers,
// env, args, auth, vars, data and steps, headers, env, auth, vars, arguments and rows
// whose names look secret, and the secrets that MaskURL finds in URLs. Without secrets it loads
// to the same program.
func (s *Scenario) Resolved() []byte {
	s.markArguments()
	w := writer{scalar: shown}
	w.text.WriteString("# The scenario as it was run: variables replaced, flags applied, secrets masked.\n")
	w.mapping(s.root, 0, nil)
	return []byte(w.text.String())
}

// writer writes a tree as block YAML. A path is the keys that lead to a node;
// the items of a list have the path of the list.
type writer struct {
	text   strings.Builder
	scalar func(n *syntax.Node, path []string) string // a scalar or an empty collection
}

func (w *writer) mapping(n *syntax.Node, depth int, path []string) {
	for i, p := range n.Pairs {
		if i > 0 || depth == 0 {
			w.text.WriteString(strings.Repeat("  ", depth))
		}
		w.text.WriteString(scalarText(p.Key.Text) + ":")
		w.value(p.Value, depth+1, append(slices.Clip(path), p.Key.Text))
	}
}

// value writes what follows a key or a dash, with the end of the line.
func (w *writer) value(n *syntax.Node, depth int, path []string) {
	switch {
	case n.Kind == syntax.Map && len(n.Pairs) > 0:
		w.text.WriteString("\n" + strings.Repeat("  ", depth))
		w.mapping(n, depth, path)
	case n.Kind == syntax.Seq && len(n.Items) > 0:
		w.text.WriteString("\n")
		for _, item := range n.Items {
			w.text.WriteString(strings.Repeat("  ", depth) + "-")
			if item.Kind == syntax.Map && len(item.Pairs) > 0 {
				w.text.WriteString(" ")
				w.mapping(item, depth+1, path)
				continue
			}
			w.value(item, depth+1, path)
		}
	default:
		w.text.WriteString(" " + w.scalar(n, path) + "\n")
	}
}

// shown returns a scalar or an empty collection as YAML, masked when it is secret.
func shown(n *syntax.Node, path []string) string {
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

// given tells that a path leads to a value that is sent: an argument, or one of a row.
func given(path []string) bool {
	return slices.ContainsFunc(path, func(key string) bool { return key == "arguments" || key == "params" || key == "rows" })
}

// masked returns a scalar's text, or the mask in place of a secret.
func masked(n *syntax.Node, path []string) string {
	last := path[len(path)-1]
	named := SecretName(last)
	hide := false
	switch path[0] {
	case "servers":
		if len(path) < 3 {
			return n.Text
		}
		switch path[2] {
		case "headers", "env", "auth":
			hide = n.Secret || named
		case "args", "tls":
			hide = n.Secret
		}
	case "vars":
		hide = n.Secret || named
	case "flows", "data", "client":
		hide = n.Secret || named && given(path) && !strings.Contains(n.Text, "${{")
	case "name", "description":
		hide = n.Secret
	}
	switch {
	case hide:
		return mask
	case path[0] == "servers" && n.Kind == syntax.String:
		return MaskURL(n.Text) // connection strings stand in env and args too
	}
	return n.Text
}

// MaskURL hides what a URL holds of secrets: user and password, or a token in
// the place of the user, and the values of parameters with secret names. A text
// that is no URL comes back as it is.
func MaskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	changed := u.User != nil
	if _, set := u.User.Password(); set {
		u.User = url.UserPassword(u.User.Username(), mask)
	} else if changed {
		u.User = url.User(mask)
	}
	query := u.Query()
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

// MaskArguments hides what looks secret in the arguments of a command: the
// value of an option with such a name, of a "Name: value" header, and what a
// URL holds of secrets.
func MaskArguments(args []string) []string {
	out := make([]string, len(args))
	hide := false // the argument is the value of a secret option
	for i, a := range args {
		option := strings.HasPrefix(a, "-")
		name, _, assigned := strings.Cut(a, "=")
		header, _, isHeader := strings.Cut(a, ":")
		switch {
		case hide && !option:
			out[i] = mask
		case assigned && SecretName(strings.TrimLeft(name, "-")):
			out[i] = name + "=" + mask
		case isHeader && SecretName(header):
			out[i] = header + ": " + mask
		default:
			out[i] = MaskURL(a)
		}
		hide = option && !assigned && SecretName(strings.TrimLeft(a, "-"))
	}
	return out
}

// markArguments marks the arguments of servers' commands that look secret.
func (s *Scenario) markArguments() {
	for _, server := range s.root.Lookup("servers").Entries() {
		args := server.Value.Lookup("args")
		if args == nil {
			continue
		}
		texts := make([]string, len(args.Items))
		for i, item := range args.Items {
			texts[i] = item.Text
		}
		for i, text := range MaskArguments(texts) {
			args.Items[i].Secret = args.Items[i].Secret || text != texts[i]
		}
	}
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

// scalarText writes a text as YAML: without quotes where that is safe. What does
// not print, line separators and signs that turn the direction of writing among it,
// is escaped (YAML 1.2.2 §5.7).
func scalarText(text string) string {
	if plainText.MatchString(text) && !strings.Contains(text, "<<") && syntax.NewPlain(text, "").Kind == syntax.String { // << ends a key, for the parser
		return text
	}
	quoted := string(script.AppendQuoted(nil, text))
	if strings.IndexFunc(quoted, invisible) < 0 {
		return quoted
	}
	var b strings.Builder
	for _, r := range quoted {
		switch {
		case !invisible(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func invisible(r rune) bool { return !unicode.IsPrint(r) }
