package schemas

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Pattern is a regular expression of a schema. Schemas use those of ECMA-262
// (JSON Schema 2020-12 core §6.4); what RE2 lacks of them are look-arounds and
// back-references. Look-aheads right after a leading ^ (as validators of e-mail
// addresses and passwords use) are tests of the whole text, so they are taken
// out and tested on their own.
type Pattern struct {
	source string
	core   *regexp.Regexp
	ahead  []lookAhead
}

type lookAhead struct {
	re   *regexp.Regexp
	want bool
}

// String returns the pattern as the schema has it.
func (p *Pattern) String() string { return p.source }

// Core returns the pattern without its look-aheads, in the syntax of package
// regexp/syntax: what it matches is tried against MatchString.
func (p *Pattern) Core() string { return p.core.String() }

// MatchString tells whether the pattern matches somewhere in text.
func (p *Pattern) MatchString(text string) bool {
	for _, a := range p.ahead {
		if a.re.MatchString(text) != a.want {
			return false
		}
	}
	return p.core.MatchString(text)
}

var errLookAhead = errors.New("look-aheads are understood at its beginning only")

func compilePattern(source string) (jsonschema.Regexp, error) {
	p := &Pattern{source: source}
	rest, anchored := strings.CutPrefix(source, "^")
	for anchored && (strings.HasPrefix(rest, "(?=") || strings.HasPrefix(rest, "(?!")) {
		end := closing(rest)
		if end < 0 {
			return nil, errLookAhead
		}
		re, err := regexp.Compile("^(?:" + translate(rest[len("(?="):end]) + ")")
		if err != nil {
			return nil, fmt.Errorf("pattern %s: %w", Cut(source, 100), err)
		}
		p.ahead = append(p.ahead, lookAhead{re, rest[2] == '='})
		rest = rest[end+1:]
	}
	if len(p.ahead) > 0 {
		if end := closing(rest); end != -1 { // an alternative without the look-aheads
			return nil, fmt.Errorf("pattern %s: %w", Cut(source, 100), errLookAhead)
		}
	}
	if anchored {
		rest = "^" + rest
	}
	var err error
	if p.core, err = regexp.Compile(translate(rest)); err != nil {
		return nil, fmt.Errorf("pattern %s: %w", Cut(source, 100), err)
	}
	return p, nil
}

// closing returns where the group that text opens ends; for a text that opens
// none, where an alternative begins on its outer level. It is -1 when there is
// no such place.
func closing(text string) int {
	depth, class := 0, false
	grouped := strings.HasPrefix(text, "(?=") || strings.HasPrefix(text, "(?!")
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			depth--
			if grouped && depth == 0 {
				return i
			}
		case c == '|' && depth == 0:
			return i
		}
	}
	return -1
}

// translate rewrites \uXXXX as package regexp has it.
func translate(source string) string {
	if !strings.Contains(source, `\u`) {
		return source
	}
	var b strings.Builder
	for i := 0; i < len(source); i++ {
		if source[i] != '\\' || i+1 == len(source) {
			b.WriteByte(source[i])
			continue
		}
		if source[i+1] == 'u' && i+6 <= len(source) && source[i+2] != '{' {
			b.WriteString(`\x{` + source[i+2:i+6] + `}`)
			i += 5
			continue
		}
		b.WriteString(source[i : i+2])
		i++
	}
	return b.String()
}
