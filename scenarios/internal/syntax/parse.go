package syntax

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of one file. Keys are few because the YAML parser's time grows with
// the square of the keys of one map.
const (
	maxBytes      = 10 << 20
	maxNodes      = 1_000_000
	maxKeys       = 20_000
	maxDepth      = 100
	maxMarks      = 200_000 // characters that could begin or end a value: a token takes 300 bytes
	maxAliasDepth = 10
	maxProblems   = 100
)

// lineEnds makes one of the three line breaks of YAML (YAML 1.2.2 §5.4).
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Source is the text of one file.
type Source struct {
	Name     string
	lines    []string
	problems Problems
	more     int // problems not kept
}

// NewSource returns a source without text, for values that come from no file.
func NewSource(name string) *Source { return &Source{Name: name} }

// Report adds a problem at a place of the file; line 0 is no place.
func (s *Source) Report(line, column int, path, format string, args ...any) {
	if s.full() {
		return
	}
	s.problems = append(s.problems, s.problem(line, column, path, fmt.Sprintf(format, args...)))
}

// Fault adds a problem at byte offset at of n's text; -1 is its start.
func (s *Source) Fault(n *Node, at int, path, format string, args ...any) {
	if n != nil && n.broken || s.full() {
		return
	}
	s.problems = append(s.problems, s.Problem(n, at, path, fmt.Sprintf(format, args...)))
}

// full tells that enough problems were seen; each one costs the making of an
// excerpt.
func (s *Source) full() bool {
	if len(s.problems) >= maxProblems {
		s.more++
		return true
	}
	return false
}

func (s *Source) problem(line, column int, path, message string) Problem {
	return Problem{
		File: s.Name, Line: line, Column: column, Path: path,
		Message: printable(message), Excerpt: s.Excerpt(line, column),
	}
}

// Problem returns a problem at byte offset at of n's text; -1 is its start. A
// value that a flag gave names the flag as its file.
func (s *Source) Problem(n *Node, at int, path, message string) Problem {
	switch {
	case n == nil:
		return Problem{File: s.Name, Path: path, Message: printable(message)}
	case n.Origin != "":
		return Problem{File: n.Origin, Path: path, Message: printable(message)}
	}
	if n.From != nil {
		s = n.From
	}
	line, column := n.Line, n.Column
	if at >= 0 {
		line, column = s.position(n, at)
	}
	return s.problem(line, column, path, message)
}

// Adopt takes over the problems of another file.
func (s *Source) Adopt(other *Source) {
	s.problems, s.more = append(s.problems, other.problems...), s.more+other.more
	other.Reset()
}

// Problems returns what was reported so far, sorted; past a hundred only their
// number is kept.
func (s *Source) Problems() Problems {
	ps := slices.Clone(s.problems).Sort()
	if s.more > 0 {
		ps = append(ps, Problem{File: s.Name, Message: fmt.Sprintf("%d more problems not shown", s.more), More: s.more - 1})
	}
	return ps
}

// Reset forgets the reported problems.
func (s *Source) Reset() { s.problems, s.more = nil, 0 }

// Parse reads one YAML document. The root is nil when the text is not YAML or
// breaks a limit; the source's Problems then say why. They may hold problems
// also beside a root.
func Parse(name string, data []byte) (*Source, *Node) {
	s := &Source{Name: name}
	if len(data) > maxBytes {
		s.Report(0, 0, "", "the file has %d bytes; a scenario may have 10 MiB at most", len(data))
		return s, nil
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	text := lineEnds.Replace(string(data))
	s.lines = strings.Split(text, "\n")
	if !s.plainText(text) {
		return s, nil
	}
	if n := marks(text); n > maxMarks {
		s.Report(1, 0, "", "too many values; put rows of data into a file of their own")
		return s, nil
	}
	tokens := lexer.Tokenize(text)
	if !s.bounded(tokens) {
		return s, nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		s.syntaxError(err)
		return s, nil
	}
	var body ast.Node
	docs := 0
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if docs++; docs == 2 {
			line, column := place(doc.Body)
			s.Report(line, column, "", "a second document; a scenario is one YAML document")
			return s, nil
		}
		body = doc.Body
	}
	if body == nil {
		return s, &Node{Kind: Null, Line: 1, Column: 1, Plain: true}
	}
	c := converter{source: s, anchors: map[string]*anchor{}}
	root := c.node(body)
	if c.failed {
		return s, nil
	}
	return s, root
}

// marks counts what could divide text into tokens.
func marks(text string) int {
	n := 0
	for i := range len(text) {
		switch text[i] {
		case '[', ']', '{', '}', ',', '#', '&', '*', '!', '"', '\'':
			n++
		case '-', '?', ':':
			if i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n' || text[i+1] == '\t' {
				n++
			}
		}
	}
	return n
}

// plainText refuses what YAML does not allow in a stream (YAML 1.2.2 §5.1).
func (s *Source) plainText(text string) bool {
	if utf8.ValidString(text) && !strings.ContainsRune(text, 0) {
		return true
	}
	for i, line := range s.lines {
		if !utf8.ValidString(line) || strings.ContainsRune(line, 0) {
			s.Report(i+1, 0, "", "not UTF-8 text")
			return false
		}
	}
	return false
}

func (s *Source) syntaxError(err error) {
	var syntaxErr *yaml.SyntaxError
	if !errors.As(err, &syntaxErr) || syntaxErr.Token == nil || syntaxErr.Token.Position == nil {
		s.Report(0, 0, "", "not YAML: %s", firstLine(err.Error()))
		return
	}
	line, column := syntaxErr.Token.Position.Line, max(syntaxErr.Token.Position.Column, 1)
	if line > len(s.lines) { // what is missing at the end of the file is placed behind it
		line = len(s.lines)
		column = utf8.RuneCountInString(s.lines[line-1]) + 1
	}
	message := firstLine(syntaxErr.Message)
	if strings.Contains(message, "'\t'") {
		message = "a tab where YAML wants spaces"
	}
	s.Report(max(line, 1), column, "", "not YAML: %s%s", message, s.quoteHint(max(line, 1), column))
}

// quoteHint says what to do when the text that YAML cannot place follows a double
// quote, which has then ended a text that was meant to have one within.
func (s *Source) quoteHint(line, column int) string {
	text := []rune(s.lines[line-1])
	if column < 3 || column > len(text) || text[column-2] != '"' || strings.ContainsRune(" ,]}:", text[column-1]) {
		return ""
	}
	return `; a text in double quotes ends at the next one: put single quotes around it, as in '"a" in saved.list', or write \" within`
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// bounded refuses what would make the parser recurse or loop out of proportion.
func (s *Source) bounded(tokens token.Tokens) bool {
	var columns []int // of the open block collections
	flow, keys := 0, 0
	for i, tk := range tokens {
		switch tk.Type { //nolint:exhaustive // the types that nest
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.MappingValueType:
			keys++
			if i > 0 && flow == 0 {
				columns = open(columns, tokens[i-1].Position.Column)
			}
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			if flow == 0 {
				columns = open(columns, tk.Position.Column)
			}
		}
		var fault string
		switch {
		case flow+len(columns) > maxDepth:
			fault = fmt.Sprintf("nested more than %d levels deep", maxDepth)
		case keys > maxKeys:
			fault = fmt.Sprintf("more than %d keys; put rows of data into a file of their own", maxKeys)
		default:
			continue
		}
		s.Report(tk.Position.Line, max(tk.Position.Column, 1), "", "%s", fault)
		return false
	}
	return true
}

func open(columns []int, column int) []int {
	for len(columns) > 0 && columns[len(columns)-1] >= column {
		columns = columns[:len(columns)-1]
	}
	return append(columns, column)
}

func place(n ast.Node) (line, column int) {
	tk := n.GetToken()
	if mapping, ok := n.(*ast.MappingNode); ok && !mapping.IsFlowStyle && len(mapping.Values) > 0 {
		tk = mapping.Values[0].Key.GetToken()
	}
	if pair, ok := n.(*ast.MappingValueNode); ok {
		tk = pair.Key.GetToken()
	}
	if tk == nil || tk.Position == nil {
		return 1, 1
	}
	return tk.Position.Line, max(tk.Position.Column, 1)
}

// addSize adds counts of nodes without overflow.
func addSize(a, b int) int {
	if a > math.MaxInt32 || b > math.MaxInt32 {
		return math.MaxInt32
	}
	return a + b
}
