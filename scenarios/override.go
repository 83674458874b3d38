package scenarios

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// Overrides are the flags that replace parts of a scenario. A zero field leaves
// the scenario as it is. Load flags (Sessions, Rate, Process, Duration,
// Iterations, InFlight) apply to each group.
type Overrides struct {
	// URL replaces the target of the only server, or, written NAME=URL, that of
	// a named one. Several entries are for several servers.
	URL []string
	// Command, with its arguments, replaces the target of the only server, or
	// of CommandServer.
	Command       []string
	CommandServer string
	// ConfigFile and ConfigServer name an entry of an editor's configuration
	// that replaces the only server. The file is relative to the current folder.
	ConfigFile, ConfigServer string

	Sessions int // closed load: sessions; open load: max_sessions
	// Rate such as 200/s or 200 makes each group open: sessions become
	// max_sessions and think goes.
	Rate    string
	Process string // constant or poisson
	// Iterations without Duration takes away the time limit.
	Iterations     int64
	Duration       time.Duration
	Warmup, Grace  *time.Duration
	RequestTimeout time.Duration
	ConnectTimeout time.Duration
	InFlight       int
	Protocol       string // for the servers that pin none themselves
	Transport      string // http, sse or stdio, for every server; "" or auto: as they say
	Headers        []HeaderValue
	Thresholds     []string // added to those of the scenario
	Tags           map[string]string
	Only           []string // groups to run; empty: all
	OutputDir      string
	// From says where a value came from when it was not the flag itself: its
	// keys are flag names such as "url", its values such as "MCPBENCH_URL".
	From map[string]string
}

// HeaderValue is one header given by a flag. Secret hides its value wherever
// the scenario is shown.
type HeaderValue struct {
	Name, Value string
	Secret      bool
}

// ParseHeader reads NAME:VALUE.
func ParseHeader(text string) (HeaderValue, error) {
	name, value, ok := strings.Cut(text, ":")
	if name = strings.TrimSpace(name); !ok || !validHeaderName(name) {
		return HeaderValue{}, fmt.Errorf("%q is no header; write NAME:VALUE", text)
	}
	return HeaderValue{Name: name, Value: strings.TrimSpace(value)}, nil
}

// Override applies flags to the scenario. The error is of type Problems and
// names the flag at fault; the scenario is then of no further use.
func (s *Scenario) Override(o Overrides) error {
	a := applier{Scenario: s, o: o}
	a.targets()
	a.headers()
	a.transport()
	a.protocol()
	a.load()
	a.rest()
	if faults := s.src.Problems(); len(faults) > 0 {
		s.src.Reset()
		return faults
	}
	if faults := s.examine(); len(faults) > 0 {
		return faults
	}
	return nil
}

type applier struct {
	*Scenario
	o Overrides
}

// origin names the flag or the variable that a value came from.
func (a *applier) origin(flag string) string {
	if from := a.o.From[flag]; from != "" {
		return from
	}
	return "--" + flag
}

func (a *applier) fault(flag, format string, args ...any) {
	a.src.Fault(syntax.NewText("", a.origin(flag)), -1, "", format, args...)
}

func (a *applier) text(flag, text string) *syntax.Node { return syntax.NewText(text, a.origin(flag)) }

func (a *applier) number(flag string, v int64) *syntax.Node {
	return syntax.NewPlain(fmt.Sprint(v), a.origin(flag))
}

func (a *applier) servers() *syntax.Node { return a.root.Lookup("servers") }

// targets replaces what servers are.
func (a *applier) targets() {
	for _, given := range a.o.URL {
		name, address := "", given
		if before, after, ok := strings.Cut(given, "="); ok && !strings.ContainsAny(before, ":/?") {
			name, address = before, after
		}
		if err := validURL(address); err != nil {
			a.fault("url", "%s", err)
			continue
		}
		if n := a.target("url", name, "--url NAME=URL"); n != nil {
			n.Set("url", a.text("url", address))
		}
	}
	if len(a.o.Command) > 0 {
		if n := a.target("command", a.o.CommandServer, "a command for one server only; use --url NAME=URL, or change the scenario"); n != nil {
			n.Set("command", a.text("command", a.o.Command[0]))
			n.Set("args", syntax.NewList(a.o.Command[1:], a.origin("command")))
		}
	}
	if a.o.ConfigFile != "" {
		file := a.o.ConfigFile
		if a.options.Dir != "" && !filepath.IsAbs(file) {
			if absolute, err := filepath.Abs(file); err == nil {
				file = absolute
			}
		}
		if n := a.target("mcp-config", "", "a scenario with one server; use from: in the scenario"); n != nil {
			from := n.Child("from", a.origin("mcp-config"))
			from.Set("file", a.text("mcp-config", file))
			from.Set("server", a.text("server", a.o.ConfigServer))
		}
	}
}

// survive are the keys that stay when a flag replaces a server's target, as far as
// they were there: how to reach it and to share it, but not what it is.
var survive = map[string][]string{"url": {"headers", "http", "connections"}, "command": {"per"}}

// target empties the server that a flag replaces and returns it. Without a
// name that is the only server, made when there is none. What belongs to the
// old target goes; a pinned protocol and keys not done yet stay.
func (a *applier) target(flag, name, hint string) *syntax.Node {
	servers := a.root.Child("servers", a.origin(flag))
	keys := servers.Keys()
	switch {
	case name == "" && len(keys) > 1:
		a.fault(flag, "the scenario has several servers (%s); give %s", strings.Join(keys, ", "), hint)
		return nil
	case name == "" && len(keys) == 1:
		name = keys[0]
	case name == "":
		name = "server"
	case len(keys) > 0 && !slices.Contains(keys, name):
		a.fault(flag, "the scenario has no server %q%s; it has: %s", name, nearest.DidYouMean(name, keys), strings.Join(keys, ", "))
		return nil
	}
	n := servers.Child(name, a.origin(flag))
	for _, t := range targets {
		n.Remove(t.key)
		for _, key := range t.with {
			if !slices.Contains(survive[flag], key) {
				n.Remove(key)
			}
		}
	}
	return n
}

func (a *applier) headers() {
	if len(a.o.Headers) == 0 {
		return
	}
	servers := a.servers()
	if keys := servers.Keys(); len(keys) != 1 {
		a.fault("header", "the scenario has several servers (%s); write headers: into the scenario", strings.Join(keys, ", "))
		return
	}
	server := servers.Pairs[0].Value
	if server.Lookup("url") == nil && server.Lookup("from") == nil {
		a.fault("header", "headers are for HTTP servers; server %q is none", servers.Pairs[0].Key.Text)
		return
	}
	table := server.Child("headers", a.origin("header"))
	for _, h := range a.o.Headers {
		n := a.text("header", h.Value)
		n.Secret = h.Secret
		for _, old := range table.Keys() {
			if strings.EqualFold(old, h.Name) {
				table.Remove(old)
			}
		}
		table.Set(h.Name, n)
	}
}

// transport chooses that of every server. Whether it can be is for the compiler to
// say; the demo target has two.
func (a *applier) transport() {
	chosen := a.o.Transport
	if chosen == "" || chosen == "auto" {
		return
	}
	for _, p := range a.servers().Entries() {
		switch {
		case p.Value.Kind != syntax.Map:
		case p.Value.Lookup("embedded") == nil:
			p.Value.Set("transport", a.text("transport", chosen))
		case chosen == "sse":
			a.fault("transport", "the demo target has no HTTP+SSE")
		default:
			p.Value.Remove("transport")
			p.Value.Set("embedded", a.text("transport", chosen))
		}
	}
}

// protocol pins the servers that pin none themselves.
func (a *applier) protocol() {
	if a.o.Protocol == "" {
		return
	}
	for _, p := range a.servers().Entries() {
		if p.Value.Kind != syntax.Map {
			continue
		}
		if own := p.Value.Lookup("protocol"); own != nil {
			if own.Text != a.o.Protocol {
				a.ownProtocols = append(a.ownProtocols, own)
			}
			continue
		}
		p.Value.Set("protocol", a.text("protocol", a.o.Protocol))
	}
}

// only leaves out every other group.
func (a *applier) only() {
	groups := a.root.Lookup("load").Lookup("groups")
	for _, name := range a.o.Only {
		if known := groups.Keys(); !slices.Contains(known, name) {
			a.fault("only", "the scenario has no group %q%s; it has: %s", name, nearest.DidYouMean(name, known), strings.Join(known, ", "))
			return
		}
	}
	for _, name := range groups.Keys() {
		if len(a.o.Only) > 0 && !slices.Contains(a.o.Only, name) {
			groups.Remove(name)
			a.partly = true
		}
	}
}

// load applies the load flags to each group.
func (a *applier) load() {
	a.only()
	load := a.root.Child("load", "")
	if a.o.Warmup != nil {
		load.Set("warmup", a.text("warmup", a.o.Warmup.String()))
	}
	if a.o.Grace != nil {
		load.Set("grace", a.text("grace", a.o.Grace.String()))
	}
	rate := a.o.Rate
	if rate != "" {
		if _, err := grammar.ParseRate(rate, true); err != nil {
			a.fault("rate", "%s", err)
			return
		}
		if !strings.Contains(rate, "/") {
			rate += "/s"
		}
	}
	for _, p := range load.Lookup("groups").Entries() {
		if p.Value.Kind == syntax.Null {
			p.Value.Kind = syntax.Map
		}
		if p.Value.Kind == syntax.Map {
			a.group(p.Key.Text, p.Value, rate)
		}
	}
}

func (a *applier) group(name string, g *syntax.Node, rate string) {
	if rate != "" {
		arrivals := g.Child("arrivals", a.origin("rate"))
		for _, shape := range shapes {
			arrivals.Remove(shape)
		}
		arrivals.Set("rate", a.text("rate", rate))
		if sessions := g.Lookup("sessions"); sessions != nil {
			if count := sessions.Lookup("count"); count != nil {
				sessions = count
			}
			if sessions.Kind == syntax.Int {
				g.Set("max_sessions", sessions)
			}
		}
		g.Remove("sessions")
		g.Remove("think")
	}
	open := g.Lookup("arrivals") != nil
	if a.o.Process != "" {
		if !open {
			a.fault("arrivals", "group %q has a closed load; give a rate too, e.g. -r 200/s", name)
			return
		}
		g.Child("arrivals", a.origin("arrivals")).Set("process", a.text("arrivals", a.o.Process))
	}
	if a.o.Sessions != 0 {
		key := "sessions"
		if open {
			key = "max_sessions"
		}
		g.Set(key, a.number("sessions", int64(a.o.Sessions)))
	}
	if a.o.Iterations != 0 {
		g.Set("iterations", a.number("iterations", a.o.Iterations))
		g.Remove("duration")
	}
	if a.o.Duration != 0 {
		g.Set("duration", a.text("duration", a.o.Duration.String()))
	}
	if a.o.InFlight != 0 {
		g.Set("in_flight", a.number("in-flight", int64(a.o.InFlight)))
	}
}

// rest applies the flags that concern the whole run.
func (a *applier) rest() {
	if a.o.RequestTimeout != 0 {
		a.root.Child("limits", "").Set("request_timeout", a.text("timeout", a.o.RequestTimeout.String()))
	}
	if a.o.ConnectTimeout != 0 {
		a.root.Child("limits", "").Set("connect_timeout", a.text("connect-timeout", a.o.ConnectTimeout.String()))
	}
	if a.o.OutputDir != "" {
		a.root.Child("output", "").Set("dir", a.text("out", a.o.OutputDir))
	}
	for _, name := range slices.Sorted(maps.Keys(a.o.Tags)) {
		a.root.Child("tags", a.origin("tag")).Set(name, a.text("tag", a.o.Tags[name]))
	}
	if len(a.o.Thresholds) == 0 {
		return
	}
	list := a.root.Lookup("thresholds")
	if list == nil || list.Kind != syntax.Seq {
		list = &syntax.Node{Kind: syntax.Seq, Origin: a.origin("threshold")}
		a.root.Set("thresholds", list)
	}
	for _, t := range a.o.Thresholds {
		list.Items = append(list.Items, a.text("threshold", t))
	}
}
