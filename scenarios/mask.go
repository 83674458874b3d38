package scenarios

import (
	"regexp"
	"slices"
	"strings"

	"mcpbench/scenarios/internal/script"
	"mcpbench/scenarios/internal/syntax"
)

// Mask hides, in a text that was made from the scenario, every value that
// Resolved hides.
func (s *Scenario) Mask(text string) string { return s.Masker().replace.Replace(text) }

// Masker hides secrets in texts. Safe for concurrent use.
type Masker struct{ replace *strings.Replacer }

// Masker returns one for every value that Resolved hides.
func (s *Scenario) Masker() *Masker {
	s.markArguments()
	var collect func(n *syntax.Node, path []string)
	var secrets []string
	collect = func(n *syntax.Node, path []string) {
		for _, p := range n.Pairs {
			collect(p.Value, append(slices.Clip(path), p.Key.Text))
		}
		for _, item := range n.Items {
			collect(item, path)
		}
		if n.Text != "" && len(path) > 0 && masked(n, path) == mask {
			quoted := string(script.AppendQuoted(nil, n.Text))
			secrets = append(secrets, n.Text, quoted[1:len(quoted)-1])
		}
	}
	collect(s.root, nil)
	// The longest first: one may be a part of another.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, secret := range secrets {
		pairs = append(pairs, secret, mask)
	}
	return &Masker{replace: strings.NewReplacer(pairs...)}
}

// Text hides what the scenario holds of secrets.
func (m *Masker) Text(text string) string { return m.replace.Replace(text) }

// textMember matches a member of a JSON object whose value is a text.
var textMember = regexp.MustCompile(`("(?:[^"\\]|\\.)*")(\s*:\s*)"(?:[^"\\]|\\.)*"?`)

// Message hides what the scenario holds of secrets and, in a JSON text, whole or
// cut short, the values of members whose names look secret. The tokens of
// progress are none.
func (m *Masker) Message(text string) string {
	text = m.Text(text)
	return textMember.ReplaceAllStringFunc(text, func(member string) string {
		parts := textMember.FindStringSubmatch(member)
		name := strings.Trim(parts[1], `"`)
		if name == "progressToken" || !SecretName(name) {
			return member
		}
		return parts[1] + parts[2] + `"` + mask + `"`
	})
}
