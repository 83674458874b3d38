package generate

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// text draws a string that all of flat allow; name is the member it is for.
func (m *maker) text(flat []*node, name string) (any, bool) {
	c := textRules{most: math.MaxInt}
	for _, n := range flat {
		c.add(n)
	}
	if c.least > c.most || c.least > maxBytes {
		return nil, false
	}
	for try := range 24 {
		if s, ok := m.candidate(&c, name, try); ok && c.allow(s) {
			m.size += len(s)
			return s, true
		}
	}
	return nil, false
}

type textRules struct {
	least, most int // runes
	shapes      []*shape
	formats     []*jsonschema.Format
}

func (c *textRules) add(n *node) {
	s := n.schema
	if s.MinLength != nil {
		c.least = max(c.least, *s.MinLength)
	}
	if s.MaxLength != nil {
		c.most = min(c.most, *s.MaxLength)
	}
	if n.shape != nil {
		c.shapes = append(c.shapes, n.shape)
	}
	if s.Format != nil {
		c.formats = append(c.formats, s.Format)
	}
}

func (c *textRules) allow(s string) bool {
	if length := utf8.RuneCountInString(s); length < c.least || length > c.most {
		return false
	}
	for _, p := range c.shapes {
		if !p.re.MatchString(s) {
			return false
		}
	}
	for _, f := range c.formats {
		if f.Validate(s) != nil {
			return false
		}
	}
	return true
}

// candidate is a text that probably keeps the rules: by a format where there
// is one, else by a pattern, else of words that suit the member's name. When a
// format and patterns do not go together they take turns.
func (m *maker) candidate(c *textRules, name string, try int) (string, bool) {
	if len(c.formats) > 0 && (len(c.shapes) == 0 || try%2 == 0) {
		if s := m.formatted(c.formats[try/2%len(c.formats)].Name); s != "" {
			return s, true
		}
	}
	if len(c.shapes) > 0 {
		p := c.shapes[try%len(c.shapes)]
		wish := max(c.least, p.min)
		if room := c.most - wish; room > 0 && (!m.plain || try > 0) {
			wish += m.r.IntN(min(room, 8) + 1)
		}
		spare := wish - p.min
		b, ok := m.appendShape(nil, p.tree, &spare)
		return string(b), ok
	}
	if m.plain {
		return fit("test", c, "x"), true
	}
	return fit(m.wordsFor(name), c, " "+m.word()), true
}

// fit cuts or fills s, which is ASCII, to the lengths allowed.
func fit(s string, c *textRules, filler string) string {
	if len(s) < c.least {
		missing := c.least - len(s)
		s += strings.Repeat(filler, missing/len(filler)+1)[:missing]
	}
	return s[:min(len(s), c.most)]
}

// formatted draws a text of a format of JSON Schema 2020-12 validation §7.3,
// "" for formats it does not know. Hosts and addresses are those set aside for
// documentation (RFC 2606, RFC 5737, RFC 3849).
func (m *maker) formatted(format string) string {
	switch format {
	case "date-time":
		return m.moment().Format(time.RFC3339)
	case "date":
		return m.moment().Format(time.DateOnly)
	case "time":
		return m.moment().Format(time.TimeOnly) + "Z"
	case "duration":
		return fmt.Sprintf("PT%d%s", 1+m.pick(59), m.of("S", "M", "H"))
	case "period":
		return m.moment().Format(time.RFC3339) + "/P1D"
	case "email":
		return m.of(people...) + "@example.com"
	case "hostname":
		return m.of("example.com", "example.org", "www.example.com", "api.example.net")
	case "ipv4":
		return fmt.Sprintf("192.0.2.%d", 1+m.pick(254))
	case "ipv6":
		return fmt.Sprintf("2001:db8::%x", 1+m.pick(0xfffe))
	case "uri", "iri":
		return "https://example.com/" + m.of(words...)
	case "uri-reference", "iri-reference":
		return "/" + m.of(words...)
	case "uri-template":
		return "/" + m.of(words...) + "/{id}"
	case "uuid":
		if m.plain {
			return "00000000-0000-4000-8000-000000000000"
		}
		a, b := m.r.Uint64(), m.r.Uint64() // version 4 (RFC 9562 §5.4)
		return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&(1<<48-1))
	case "json-pointer":
		return "/" + m.of(words...) + fmt.Sprintf("/%d", m.pick(10))
	case "relative-json-pointer":
		return fmt.Sprintf("%d", m.pick(3))
	case "regex":
		return m.of("^[a-z]+$", ".*", "[0-9]{3}")
	case "semver":
		return fmt.Sprintf("1.%d.%d", m.pick(20), m.pick(20))
	}
	return ""
}

// moment is a second of the year 2026; the plain one is its first.
func (m *maker) moment() time.Time {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return start.Add(time.Duration(m.pick(365*24*60*60)) * time.Second)
}

var (
	words = strings.Fields("alpha river stone cloud paper garden signal market winter copper bridge silver harbor " +
		"forest engine window letter planet coffee travel report budget meeting project invoice schedule")
	people    = strings.Fields("ada grace alan edsger barbara donald margaret ken radia dennis")
	cities    = []string{"Berlin", "London", "New York", "Tokyo", "Paris", "Nairobi", "Lima", "Oslo"}
	countries = []string{"Germany", "Kenya", "Japan", "Peru", "Norway", "France", "Canada", "India"}
)

// hints say what a member with a name that contains a key usually holds. The
// first that fits counts.
var hints = []struct {
	part string
	draw func(m *maker) string
}{
	{"email", func(m *maker) string { return m.formatted("email") }},
	{"url", func(m *maker) string { return m.formatted("uri") }},
	{"uri", func(m *maker) string { return m.formatted("uri") }},
	{"uuid", func(m *maker) string { return m.formatted("uuid") }},
	{"timezone", func(m *maker) string { return m.of("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo") }},
	{"date", func(m *maker) string { return m.formatted("date") }},
	{"timestamp", func(m *maker) string { return m.formatted("date-time") }},
	{"filename", func(m *maker) string { return m.word() + ".txt" }},
	{"path", func(m *maker) string { return m.word() + "/" + m.word() + ".txt" }},
	{"file", func(m *maker) string { return m.word() + ".txt" }},
	{"dir", func(m *maker) string { return m.word() }},
	{"city", func(m *maker) string { return m.of(cities...) }},
	{"location", func(m *maker) string { return m.of(cities...) }},
	{"country", func(m *maker) string { return m.of(countries...) }},
	{"lang", func(m *maker) string { return m.of("en", "de", "fr", "ja") }},
	{"currency", func(m *maker) string { return m.of("EUR", "USD", "JPY") }},
	{"user", func(m *maker) string { return m.of(people...) }},
	{"owner", func(m *maker) string { return m.of(people...) }},
	{"name", func(m *maker) string { return m.word() + "-" + m.word() }},
	{"content", sentence},
	{"text", sentence},
	{"message", sentence},
	{"prompt", sentence},
	{"body", sentence},
	{"description", sentence},
	{"comment", sentence},
	{"question", sentence},
	{"query", func(m *maker) string { return m.word() + " " + m.word() }},
	{"title", func(m *maker) string { return m.word() + " " + m.word() }},
	{"id", func(m *maker) string { return fmt.Sprintf("%s-%d", m.word(), m.r.IntN(1000)) }},
}

func (m *maker) wordsFor(name string) string {
	name = strings.ToLower(name)
	for _, h := range hints {
		if strings.Contains(name, h.part) {
			return h.draw(m)
		}
	}
	return m.word()
}

func sentence(m *maker) string {
	n := 3 + m.r.IntN(8)
	var b strings.Builder
	for range n {
		b.WriteString(m.word())
		b.WriteByte(' ')
	}
	s := b.String()
	return strings.ToUpper(s[:1]) + s[1:len(s)-1] + "."
}

func (m *maker) word() string { return m.of(words...) }

// of draws one of list; the plainest is the first.
func (m *maker) of(list ...string) string { return list[m.pick(len(list))] }
