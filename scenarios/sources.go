package scenarios

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// Setting is one value of a scenario and where it came from.
type Setting struct {
	Path   string // such as load.groups.main.sessions
	Value  string // as text, masked when it is secret
	Origin string // file:line, a flag, a variable, or default
}

// Settings returns every value that shapes the run, flows left out: first what
// was set, in the order of the file, then the defaults that apply.
func (s *Scenario) Settings() []Setting {
	s.markArguments()
	var out []Setting
	for _, p := range s.root.Pairs {
		if p.Key.Text == "flows" || strings.HasPrefix(p.Key.Text, "x-") {
			continue
		}
		out = s.settings(out, p.Value, p.Key.Text, []string{p.Key.Text})
	}
	f := s.file
	out = defaults(out, f.Limits.Place, "limits", f.Limits)
	out = defaults(out, f.Load.Place, "load", f.Load)
	for _, p := range s.root.Lookup("load").Lookup("groups").Entries() {
		g := f.Load.Groups[p.Key.Text]
		path := "load.groups." + p.Key.Text
		open := p.Value.Lookup("arrivals") != nil
		for _, d := range defaultsOf(p.Value, path, *g) {
			closedOnly := strings.HasSuffix(d.Path, ".sessions") || strings.HasSuffix(d.Path, ".think")
			openOnly := strings.HasSuffix(d.Path, ".max_sessions") || strings.HasSuffix(d.Path, ".on_saturation") || strings.HasSuffix(d.Path, ".queue_limit")
			if open && closedOnly || !open && openOnly {
				continue
			}
			out = append(out, d)
		}
		if p.Value.Lookup("duration") == nil && p.Value.Lookup("iterations") == nil && !staged(g) {
			out = append(out, Setting{Path: path + ".duration", Value: defaultDuration.String(), Origin: "default"})
		}
		if g.Arrivals != nil {
			out = defaults(out, g.Arrivals.Place, path+".arrivals", *g.Arrivals)
		}
	}
	answers := s.root.Lookup("client").Lookup("answers")
	if f.Client.Capabilities.Elicitation {
		out = append(out, defaultsOf(answers.Lookup("elicitation"), "client.answers.elicitation", grammar.Elicitation{})...)
	}
	if f.Client.Capabilities.Sampling {
		out = append(out, defaultsOf(answers.Lookup("sampling"), "client.answers.sampling", grammar.Sampling{})...)
	}
	return defaults(out, f.Output.Place, "output", f.Output)
}

// staged tells that a group's load says itself how long it is.
func staged(g *grammar.Group) bool {
	return len(g.Sessions.Stages) > 0 || g.Arrivals != nil && (len(g.Arrivals.Stages) > 0 || g.Arrivals.Replay != nil)
}

// settings adds the values below n; keys lead to it, as writer has them.
func (s *Scenario) settings(out []Setting, n *syntax.Node, path string, keys []string) []Setting {
	switch {
	case n.Kind == syntax.Map && len(n.Pairs) > 0:
		for _, p := range n.Pairs {
			out = s.settings(out, p.Value, syntax.Join(path, p.Key.Text), append(slices.Clip(keys), p.Key.Text))
		}
		return out
	case n.Kind == syntax.Seq && len(n.Items) > 0:
		for i, item := range n.Items {
			out = s.settings(out, item, fmt.Sprintf("%s[%d]", path, i), keys)
		}
		return out
	}
	value := shown(n, keys)
	if n.Kind == syntax.String {
		value = masked(n, keys)
	}
	return append(out, Setting{Path: path, Value: value, Origin: s.origin(n)})
}

func (s *Scenario) origin(n *syntax.Node) string {
	switch {
	case n.Origin != "":
		return n.Origin
	case n.Line > 0 && n.From != nil:
		return fmt.Sprintf("%s:%d", n.From.Name, n.Line)
	case n.Line > 0:
		return fmt.Sprintf("%s:%d", s.source, n.Line)
	}
	return "quick run"
}

func defaults(out []Setting, at grammar.Place, path string, of any) []Setting {
	return append(out, defaultsOf(at.Node, path, of)...)
}

func defaultsOf(n *syntax.Node, path string, of any) []Setting {
	var out []Setting
	for _, d := range grammar.Defaults(reflect.TypeOf(of)) {
		if n.Lookup(d.Key) == nil {
			out = append(out, Setting{Path: syntax.Join(path, d.Key), Value: d.Value, Origin: "default"})
		}
	}
	return out
}
