package scenarios

import (
	"fmt"
	"strings"
	"unicode"

	"mcpbench/scenarios/internal/syntax"
)

// Starter is a first scenario for one server, to be written for a person who sees
// the language for the first time. Every text in it stands for itself, whatever it
// holds: a server may have given it.
type Starter struct {
	Comments []string // at the head of the file
	Name     string   // of the server and the scenario
	Server   StarterServer
	// Answers has the client answer what the server asks of it.
	Answers       bool
	Before, Steps []StarterStep // at least one of Steps is not Off
	Thresholds    []string
}

// StarterServer is the server's entry. URL, Command, File or Embedded says which
// server it is.
type StarterServer struct {
	Embedded  string
	File      string // of an editor, relative to the scenario's folder
	FileEntry string
	URL       StarterText
	Headers   []StarterHeader
	Command   string
	Args      []StarterText
	Transport string
	Protocol  string
}

// StarterText is a text, followed by an environment variable unless Variable is "".
type StarterText struct{ Text, Variable string }

// StarterHeader is an HTTP header.
type StarterHeader struct {
	Name  string
	Value StarterText
}

// StarterStep is one operation.
type StarterStep struct {
	Comments []string
	Off      bool   // the step is commented out
	Method   string // of a request; "" leaves only the comments
	Params   []byte // a JSON object whose members are keys of the language
}

// YAML returns the file. An error is a step whose params are no JSON object.
func (s *Starter) YAML() ([]byte, error) {
	w := starterWriter{}
	w.line(0, "# yaml-language-server: $schema=./mcpbench.schema.json")
	w.comments(0, s.Comments)
	w.line(0, "version: 1")
	w.line(0, "name: "+scalarText(s.Name))
	w.line(0, "")
	w.line(0, "servers:")
	w.line(1, scalarText(s.Name)+":")
	w.server(&s.Server)
	w.line(0, "")
	if s.Answers {
		w.raw(starterClient)
	}
	w.raw(starterLoad)
	w.line(0, "flows:")
	w.line(1, "main:")
	if len(s.Before) > 0 {
		w.line(2, "# Once for each session, before its first iteration.")
		w.line(2, "before:")
		w.line(3, "- connect: {}")
	}
	if err := w.steps(s.Before); err != nil {
		return nil, err
	}
	w.line(2, "# Each iteration makes these requests, one after the other.")
	w.line(2, "steps:")
	if err := w.steps(s.Steps); err != nil {
		return nil, err
	}
	w.raw(starterThresholds)
	for _, t := range s.Thresholds {
		w.line(1, "- "+scalarText(t))
	}
	return []byte(w.text.String()), nil
}

const starterClient = `# What the server may ask of its client, and what it is answered.
client:
  capabilities: {elicitation: true, sampling: true, roots: true}
  answers:
    elicitation: {action: accept}   # the form is filled with its defaults
    sampling: {text: stub answer}   # instead of a model; delay: 300ms makes it take time
    roots: ["file:///workspace"]

`

// StarterRoot is the only root of the answers of a starter.
const StarterRoot = "file:///workspace"

const starterLoad = `load:
  groups:
    main:
      # A closed load: each of these sessions waits for its answers and starts over.
      sessions: 2
      duration: 10s
      # An open load starts iterations at their own times, whatever the server does.
      # It has these in place of sessions:
      # arrivals: {rate: 5/s}
      # max_sessions: 10

`

const starterThresholds = `
# When one does not hold the run fails, with exit code 99. Tighten them to what the
# users of the server bear.
thresholds:
`

type starterWriter struct{ text strings.Builder }

func (w *starterWriter) raw(text string) { w.text.WriteString(text) }

func (w *starterWriter) line(depth int, text string) {
	if text != "" {
		w.raw(strings.Repeat("  ", depth) + text)
	}
	w.raw("\n")
}

// commentWidth is the longest comment in characters, what follows is left out.
const commentWidth = 160

// comments writes each text as one line of comment.
func (w *starterWriter) comments(depth int, texts []string) {
	for _, text := range texts {
		w.line(depth, strings.TrimRight("# "+commentText(text), " "))
	}
}

// commentText makes any text one that ends no comment and does nothing to a terminal.
func commentText(text string) string {
	if len(text) > 8*commentWidth {
		text = text[:8*commentWidth]
	}
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))] // ours: texts of servers come after something
	words := indent + strings.Join(strings.Fields(text), " ")
	out := make([]rune, 0, len(words))
	for _, r := range words {
		if !unicode.IsPrint(r) {
			r = unicode.ReplacementChar
		}
		if out = append(out, r); len(out) == commentWidth {
			return string(out[:commentWidth-1]) + "…"
		}
	}
	return string(out)
}

func (w *starterWriter) server(s *StarterServer) {
	pair := func(key, value string) {
		if value != "" {
			w.line(2, key+": "+scalarText(escapeVariables(value)))
		}
	}
	pair("embedded", s.Embedded)
	if s.File != "" {
		w.line(2, "from:")
		w.line(3, "file: "+scalarText(escapeVariables(s.File)))
		w.line(3, "server: "+scalarText(escapeVariables(s.FileEntry)))
	}
	if s.URL != (StarterText{}) {
		w.line(2, "url: "+s.URL.yaml(escapeVariables))
	}
	pair("command", s.Command)
	if len(s.Args) > 0 {
		w.line(2, "args:")
	}
	for _, a := range s.Args {
		w.line(3, "- "+a.yaml(escapeVariables))
	}
	if len(s.Headers) > 0 {
		w.line(2, "headers:")
	}
	for _, h := range s.Headers {
		w.line(3, scalarText(h.Name)+": "+h.Value.yaml(standing))
	}
	pair("transport", s.Transport)
	if s.Protocol != "" {
		w.line(2, fmt.Sprintf("protocol: %q", s.Protocol)) // in quotes, as YAML 1.1 takes it for a date
	}
}

func (t StarterText) yaml(escape func(string) string) string {
	text := escape(t.Text)
	if t.Variable != "" {
		text += "${" + t.Variable + "}"
	}
	return scalarText(text)
}

// standing makes a text stand for itself where variables and expressions would be
// replaced.
func standing(text string) string { return escapeVariables(escapeTemplate(text)) }

func (w *starterWriter) steps(steps []StarterStep) error {
	for i := range steps {
		s := &steps[i]
		w.comments(3, s.Comments)
		if s.Method == "" {
			continue
		}
		params, err := argumentsNode(s.Params)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Method, err)
		}
		step := &syntax.Node{Kind: syntax.Map}
		step.Set(s.Method, params)
		y := writer{scalar: func(n *syntax.Node, path []string) string {
			if n.Kind == syntax.String {
				return scalarText(standing(n.Text))
			}
			return shown(n, path)
		}}
		y.text.WriteString("- ")
		y.mapping(step, 1, []string{"flows"})
		mark := ""
		if s.Off {
			mark = "# "
		}
		for line := range strings.Lines(y.text.String()) {
			w.raw(strings.Repeat("  ", 3) + mark + line)
		}
	}
	return nil
}
