package scenarios

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mcpbench/scenarios/internal/script"
	"mcpbench/scenarios/internal/syntax"
)

// shortSecret is up to which length a secret is only hidden where it is the whole
// of a JSON text: elsewhere it would be found in everything.
const shortSecret = 3

// Mask hides, in a text that was made from the scenario, every value that
// Resolved hides.
func (s *Scenario) Mask(text string) string { return s.Masker().Text(text) }

// Masker hides secrets in texts. Safe for concurrent use.
type Masker struct {
	replace *strings.Replacer
	secrets [][]byte

	mu    sync.Mutex
	names map[string]bool // of members, whether they look secret
}

// Masker returns one for every value that Resolved hides, also for what such a
// value consists of: the token behind Bearer, the value of an option, what a
// variable stood for. Passwords and tokens in URLs belong to them, and, once
// the scenario was compiled, the secrets in the files of editors.
func (s *Scenario) Masker() *Masker {
	s.markArguments()
	var all secretSet
	var collect func(n *syntax.Node, path []string)
	collect = func(n *syntax.Node, path []string) {
		for _, p := range n.Pairs {
			collect(p.Value, append(slices.Clip(path), p.Key.Text))
		}
		for _, item := range n.Items {
			collect(item, path)
		}
		if n.Text == "" || len(path) == 0 {
			return
		}
		if masked(n, path) == mask {
			all.add(n.Text)
			if n.Secret {
				all.add(n.Replaced()...)
			}
			all.addParts(n.Text, path[len(path)-1] == "args")
		}
		if path[0] == "servers" && n.Kind == syntax.String {
			all.addURL(n.Text)
		}
	}
	collect(s.root, nil)
	all.add(s.editorSecrets...)
	return all.masker()
}

// secretSet gathers secrets in all the ways in which they are written.
type secretSet struct{ texts []string }

// add adds texts as they are, as JSON strings, and as they go into headers.
func (s *secretSet) add(texts ...string) {
	for _, text := range texts {
		if text == "" || text == mask {
			continue
		}
		ours := string(script.AppendQuoted(nil, text))
		s.texts = append(s.texts, text, ours[1:len(ours)-1])
		if theirs, err := json.Marshal(text); err == nil {
			s.texts = append(s.texts, string(theirs[1:len(theirs)-1]))
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			s.texts = append(s.texts, base64.StdEncoding.EncodeToString([]byte(text)))
		}
	}
}

// scheme matches what stands before a token in a header.
var scheme = regexp.MustCompile(`(?i)^(bearer|basic|token|apikey|api-key) +`)

// addParts adds what is secret of a value: the token in a header, and, of an
// argument of a command, what stands behind its name.
func (s *secretSet) addParts(text string, argument bool) {
	if argument {
		if _, value, ok := strings.Cut(text, "="); ok {
			s.add(value)
		}
		if name, value, ok := strings.Cut(text, ":"); ok && validHeaderName(name) {
			text = strings.TrimSpace(value)
			s.add(text)
		}
	}
	if at := scheme.FindStringIndex(text); at != nil {
		s.add(text[at[1]:])
	}
}

// addURL adds what MaskURL hides in a URL.
func (s *secretSet) addURL(text string) {
	u, err := url.Parse(text)
	if err != nil || MaskURL(text) == text {
		return
	}
	secrets := []string{u.User.Username()}
	if password, set := u.User.Password(); set {
		secrets = []string{password, base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))}
	}
	for name, values := range u.Query() {
		if SecretName(name) {
			secrets = append(secrets, values...)
		}
	}
	for _, secret := range secrets {
		s.add(secret, url.QueryEscape(secret), url.PathEscape(secret))
	}
}

func (s *secretSet) masker() *Masker {
	// The longest first: one may be a part of another.
	slices.SortFunc(s.texts, func(a, b string) int { return len(b) - len(a) })
	m := &Masker{names: map[string]bool{}}
	var pairs []string
	for i, text := range s.texts {
		if slices.Contains(s.texts[:i], text) {
			continue
		}
		shown := mask
		if len(text) <= shortSecret {
			text, shown = `"`+text+`"`, `"`+mask+`"`
		}
		pairs = append(pairs, text, shown)
		m.secrets = append(m.secrets, []byte(text))
	}
	m.replace = strings.NewReplacer(pairs...)
	return m
}

// Text hides what the scenario holds of secrets.
func (m *Masker) Text(text string) string { return m.replace.Replace(text) }

// End returns where to cut a text of which at most n bytes are to be shown:
// between characters, and not within a secret, which would no longer be known as one.
func (m *Masker) End(text []byte, n int) int {
	if len(text) <= n {
		return len(text)
	}
	end := n
	for moved := true; moved; {
		moved = false
		for _, secret := range m.secrets {
			from := max(0, end-len(secret)+1)
			to := min(len(text), end+len(secret)-1)
			if from >= to {
				continue
			}
			if i := bytes.Index(text[from:to], secret); i >= 0 {
				end, moved = from+i, true
			}
		}
	}
	for back := 0; back < utf8.UTFMax-1 && end > 0 && !utf8.RuneStart(text[end]); back++ {
		end--
	}
	return end
}

// Message hides what the scenario holds of secrets and, in a JSON text, whole or
// cut short, the values of members whose names look secret. The tokens of
// progress are none.
func (m *Masker) Message(text string) string {
	text = m.Text(text)
	var out strings.Builder
	done := 0
	for at := 0; ; {
		name, end, ok := nextString(text, at)
		if !ok {
			break
		}
		at = end
		colon := skipBlanks(text, end)
		if colon == len(text) || text[colon] != ':' {
			continue
		}
		begin := skipBlanks(text, colon+1)
		if begin == len(text) || text[begin] != '"' {
			continue
		}
		_, at, _ = nextString(text, begin)
		if m.SecretName(name) {
			out.WriteString(text[done:begin])
			out.WriteString(`"` + mask + `"`)
			done = at
		}
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

// nextString returns the text of the first JSON string at or behind from, as it
// is written, and where it ends. One that is cut short ends with the text, and is
// not ok.
func nextString(text string, from int) (inner string, end int, ok bool) {
	i := strings.IndexByte(text[from:], '"')
	if i < 0 {
		return "", len(text), false
	}
	start := from + i + 1
	for end = start; end < len(text); end++ {
		switch text[end] {
		case '\\':
			end++
		case '"':
			return text[start:end], end + 1, true
		}
	}
	return "", len(text), false
}

func skipBlanks(text string, i int) int {
	for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 {
		i++
	}
	return i
}

// maxNames bounds how many names of members are remembered: a server chooses them.
const maxNames = 1000

// SecretName reports whether the value of a member or a header is hidden for its name.
func (m *Masker) SecretName(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	secret, known := m.names[name]
	if !known {
		secret = name != "progressToken" && SecretName(name)
		if len(m.names) < maxNames {
			m.names[strings.Clone(name)] = secret
		}
	}
	return secret
}
