package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/expect"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// Offer is what a server was found to have. A nil map or list was not asked for, or
// not answered, and nothing is held against it; an empty one is empty.
type Offer struct {
	Version string // of the protocol
	// Has tells whether the version has a method, Declares whether the server's
	// capabilities promise it too, or a notification of it.
	Has, Declares func(method string) bool
	Tools         map[string][]byte           // inputSchema by name
	Outputs       map[string][]byte           // outputSchema by the name of its tool, for those that have one
	Prompts       map[string][]PromptArgument // arguments by name
	Resources     []string                    // URIs
	Templates     []string                    // URI templates of resources
}

// PromptArgument is one argument of a prompt.
type PromptArgument struct {
	Name     string
	Required bool
}

// Compare holds the steps that the groups of the compiled scenario run on the server
// called name against what that has. Faults are what cannot go well; warnings what may
// yet: steps that are skipped or performed only when a condition holds, resources that
// no list names. Of arguments only what is written out is judged, not what an
// expression gives.
func (s *Scenario) Compare(p *Program, name string, o *Offer) (faults, warnings Problems) {
	c := &comparison{Scenario: s, server: name, offer: o, seen: map[comparedFlow]bool{}, schemas: map[string]*toolSchema{}}
	for i := range p.Groups {
		if server := &p.Servers[p.Groups[i].Server]; server.Name == name {
			c.pinned = server.Protocol != ""
			c.flow(p.Flows[p.Groups[i].Flow].Name, false)
		}
	}
	return c.faults.Sort(), c.warnings.Sort()
}

// comparedFlow is a flow that was compared, as one that is performed or may be.
type comparedFlow struct {
	flow    string
	perhaps bool
}

type comparison struct {
	*Scenario
	server           string
	offer            *Offer
	faults, warnings Problems
	seen             map[comparedFlow]bool
	schemas          map[string]*toolSchema
	perhaps          bool // the step at hand is performed only when a condition holds
	pinned           bool // the scenario names the version, and Compile has told what that skips
}

func (c *comparison) fault(n *syntax.Node, path, format string, args ...any) {
	if c.perhaps {
		c.warn(n, path, format, args...)
		return
	}
	c.faults = append(c.faults, c.src.Problem(n, -1, path, fmt.Sprintf(format, args...)))
}

func (c *comparison) warn(n *syntax.Node, path, format string, args ...any) {
	c.warnings = append(c.warnings, c.src.Problem(n, -1, path, fmt.Sprintf(format, args...)))
}

func (c *comparison) flow(name string, perhaps bool) {
	f, v := c.file.Flows[name], comparedFlow{name, perhaps}
	if f == nil || c.seen[v] {
		return
	}
	c.seen[v] = true
	for _, list := range [][]*grammar.Step{f.Before, f.Steps, f.After} {
		c.steps(list, perhaps)
	}
}

func (c *comparison) steps(list []*grammar.Step, perhaps bool) {
	for _, s := range list {
		if s == nil || s.Node == nil {
			continue
		}
		now := perhaps || s.When.Node != nil
		for _, b := range s.Random {
			if b != nil {
				c.steps(b.Steps, now)
			}
		}
		c.steps(s.Parallel, now)
		if s.Repeat != nil {
			c.steps(s.Repeat.Steps, now || s.Repeat.While.Node != nil)
		}
		if s.FlowStep != nil {
			c.flow(s.FlowStep.Name, now)
		}
		c.perhaps = now
		if refused, always := refusalExpected(s); always {
			continue // that the server does not have it is what the step is about
		} else if refused {
			c.perhaps = true
		}
		c.step(s)
	}
}

// refusalExpected reports whether a step expects an outcome other than ok, and
// whether it expects nothing else.
func refusalExpected(s *grammar.Step) (refused, always bool) {
	if s.Expect == nil || len(s.Expect.Outcome.List) == 0 {
		return false, false
	}
	ok := slices.Contains(s.Expect.Outcome.List, "ok")
	return !ok || len(s.Expect.Outcome.List) > 1, !ok
}

// comparedSteps are the keys of steps that are methods, and what is asked of the list
// that the method is about.
var comparedSteps = map[string]func(*comparison, *grammar.Step){
	"ping": nil, "server/discover": nil, "logging/setLevel": nil,
	"tools/list": nil, "resources/list": nil, "resources/templates/list": nil, "prompts/list": nil,
	"tools/call": (*comparison).toolCall,
	"resources/read": func(c *comparison, s *grammar.Step) {
		c.resource(s.ResourcesRead.URI.Node, s.Path+".resources/read.uri")
	},
	"prompts/get":         (*comparison).promptGet,
	"completion/complete": (*comparison).complete,
}

func (c *comparison) step(s *grammar.Step) {
	for _, p := range s.Node.Pairs {
		if more, known := comparedSteps[p.Key.Text]; known {
			if c.method(p.Key, s.Path, p.Key.Text) && more != nil {
				more(c, s)
			}
			return
		}
	}
	switch {
	case s.Node.Key("generate") != nil:
		c.generate(s)
	case s.Subscribe != nil:
		c.subscribe(s)
	case s.WaitFor != nil:
		name := s.WaitFor.Notification
		if !strings.HasPrefix(name, notificationPrefix) {
			name = notificationPrefix + name
		}
		if !c.offer.Declares(name) {
			c.warn(s.WaitFor.Node.Lookup("notification"), s.Path+".wait_for", "%s does not declare that it sends %s", c.who(), name)
		}
	}
}

const notificationPrefix = "notifications/"

func (c *comparison) who() string { return fmt.Sprintf("server %q (%s)", c.server, c.offer.Version) }

// method tells whether a method may be used.
func (c *comparison) method(key *syntax.Node, path, method string) bool {
	switch {
	case !c.offer.Has(method):
		if !c.perhaps && !c.pinned {
			c.warn(key, path, "%s does not exist in %s, which server %q speaks: the step is skipped", method, c.offer.Version, c.server)
		}
		return false
	case !c.offer.Declares(method):
		c.fault(key, path, "%s does not declare in its capabilities what %s needs", c.who(), method)
		return false
	}
	return true
}

// literalText is the text of a value, when no expression stands in it.
func literalText(n *syntax.Node) (text string, ok bool) {
	if n == nil {
		return "", false
	}
	if strings.Contains(strings.ReplaceAll(n.Text, "$${{", ""), "${{") {
		return "", false
	}
	return strings.ReplaceAll(n.Text, "$${{", "${{"), true
}

// namesShown is how many names a message lists.
const namesShown = 10

func (c *comparison) has(what string, names []string) string {
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "it has no " + what + "s"
	case len(names) > namesShown:
		return fmt.Sprintf("it has %d, such as %s", len(names), strings.Join(names[:namesShown], ", "))
	}
	return "it has " + strings.Join(names, ", ")
}

// unknown says that a name is none of those that the server has.
func (c *comparison) unknown(n *syntax.Node, path, what, name string, names []string) {
	if near := nearest.DidYouMean(name, names); near != "" {
		c.fault(n, path, "server %q has no %s %q%s", c.server, what, name, near)
		return
	}
	c.fault(n, path, "server %q has no %s %q; %s", c.server, what, name, c.has(what, names))
}

func (c *comparison) toolCall(s *grammar.Step) {
	call, path := s.ToolsCall, s.Path+".tools/call"
	name, ok := literalText(call.Name.Node)
	if !ok || c.offer.Tools == nil {
		return
	}
	schema, known := c.offer.Tools[name]
	if !known {
		c.unknown(call.Name.Node, path+".name", "tool", name, slices.Collect(maps.Keys(c.offer.Tools)))
		return
	}
	c.arguments(name, schema, call, path)
	c.output(name, s)
}

// output holds the check valid_output against what the server says of the tool's results.
func (c *comparison) output(tool string, s *grammar.Step) {
	for _, p := range s.Node.Lookup("check").Entries() {
		if p.Value.Text != validOutput {
			continue
		}
		path := syntax.Join(s.Path+".check", p.Key.Text)
		schema, has := c.offer.Outputs[tool]
		if !has {
			c.fault(p.Value, path, "tool %q of server %q has no outputSchema, so valid_output has nothing to hold its results against; check them with expect: {schema: …} or with expressions", tool, c.server)
		} else if _, err := expect.CompileOutput(schema); err != nil {
			c.fault(p.Value, path, "valid_output: the outputSchema of tool %q of server %q cannot be used: %s", tool, c.server, err)
		}
	}
}

func (c *comparison) generate(s *grammar.Step) {
	if !c.method(s.Node.Key("generate"), s.Path+".generate", "tools/call") || c.offer.Tools == nil {
		return
	}
	n := s.Node.Lookup("generate").Lookup("tool")
	name, ok := literalText(n)
	_, known := c.offer.Tools[name]
	switch {
	case known:
		c.output(name, s)
	case !ok:
	case name != "any":
		c.unknown(n, s.Path+".generate.tool", "tool", name, slices.Collect(maps.Keys(c.offer.Tools)))
	case len(c.offer.Tools) == 0:
		c.fault(n, s.Path+".generate.tool", "server %q has no tools", c.server)
	}
}

func (c *comparison) promptGet(s *grammar.Step) {
	get, path := s.PromptsGet, s.Path+".prompts/get"
	name, ok := literalText(get.Name.Node)
	if !ok || c.offer.Prompts == nil {
		return
	}
	arguments, known := c.offer.Prompts[name]
	if !known {
		c.unknown(get.Name.Node, path+".name", "prompt", name, slices.Collect(maps.Keys(c.offer.Prompts)))
		return
	}
	given := get.Node.Lookup("arguments")
	var names []string
	for _, a := range arguments {
		names = append(names, a.Name)
		if a.Required && given.Lookup(a.Name) == nil {
			at := get.Node.Key("arguments")
			if at == nil {
				at = get.Name.Node
			}
			c.fault(at, path+".arguments", "prompt %q wants an argument %q", name, a.Name)
		}
	}
	for _, key := range given.Keys() {
		if !slices.Contains(names, key) {
			c.warn(given.Key(key), path+".arguments."+key, "prompt %q has no argument %q%s", name, key, nearest.DidYouMean(key, names))
		}
	}
}

func (c *comparison) complete(s *grammar.Step) {
	o, path := s.CompletionComplete, s.Path+".completion/complete"
	if uri, ok := literalText(o.Ref.URI.Node); ok && o.Ref.Type == "ref/resource" && c.offer.Templates != nil {
		if !slices.Contains(c.offer.Templates, uri) && !slices.Contains(c.offer.Resources, uri) {
			c.warn(o.Ref.URI.Node, path+".ref.uri", "server %q lists no resource template %q%s", c.server, uri, nearest.DidYouMean(uri, c.offer.Templates))
		}
	}
	name, ok := literalText(o.Ref.Name.Node)
	if !ok || c.offer.Prompts == nil {
		return
	}
	arguments, known := c.offer.Prompts[name]
	if !known {
		c.unknown(o.Ref.Name.Node, path+".ref.name", "prompt", name, slices.Collect(maps.Keys(c.offer.Prompts)))
		return
	}
	var names []string
	for _, a := range arguments {
		names = append(names, a.Name)
	}
	if argument, ok := literalText(o.Argument.Name.Node); ok && !slices.Contains(names, argument) {
		c.fault(o.Argument.Name.Node, path+".argument.name", "prompt %q has no argument %q%s", name, argument, nearest.DidYouMean(argument, names))
	}
}

// resource warns of a URI that no list names: a server may have more than it lists.
func (c *comparison) resource(n *syntax.Node, path string) {
	uri, ok := literalText(n)
	if !ok || c.offer.Resources == nil || slices.Contains(c.offer.Resources, uri) {
		return
	}
	for _, t := range c.offer.Templates {
		if matchesTemplate(t, uri) {
			return
		}
	}
	c.warn(n, path, "server %q lists no resource %q%s", c.server, uri, nearest.DidYouMean(uri, c.offer.Resources))
}

// matchesTemplate tells whether a URI may come of a template (RFC 6570): whatever an
// expression stands for is taken for it.
func matchesTemplate(template, uri string) bool {
	first := true
	for {
		literal, rest, more := strings.Cut(template, "{")
		at := strings.Index(uri, literal)
		if first && at != 0 || at < 0 {
			return false
		}
		if !more {
			return uri == literal || !first && strings.HasSuffix(uri, literal)
		}
		uri, first = uri[at+len(literal):], false
		if _, template, more = strings.Cut(rest, "}"); !more {
			return false
		}
	}
}

func (c *comparison) subscribe(s *grammar.Step) {
	path := s.Path + ".subscribe"
	for _, part := range []struct {
		key, notification string
		wanted            bool
	}{
		{"uris", "notifications/resources/updated", len(s.Subscribe.URIs) > 0},
		{"tools", "notifications/tools/list_changed", s.Subscribe.Tools},
		{"prompts", "notifications/prompts/list_changed", s.Subscribe.Prompts},
		{"resources", "notifications/resources/list_changed", s.Subscribe.Resources},
	} {
		if part.wanted && !c.offer.Declares(part.notification) {
			c.fault(s.Subscribe.Node.Key(part.key), syntax.Join(path, part.key), "%s does not declare that it sends %s", c.who(), part.notification)
		}
	}
	for i, uri := range s.Subscribe.URIs {
		c.resource(uri.Node, fmt.Sprintf("%s.uris[%d]", path, i))
	}
}
