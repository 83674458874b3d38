package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/script"
	"mcpbench/scenarios/internal/syntax"
)

// Places of steps that make their random values differ: a step of an iteration
// has its place in the flow.
const (
	placeBefore = 1 << 16
	placeAfter  = 2 << 16
	placeClient = 3 << 16
)

// compiled is a step with what it was made of.
type compiled struct {
	from *grammar.Step
	*Step
}

// flows compiles every flow, in the order of the file, and returns their names.
func (c *compiler) flows() []string {
	var names []string
	table := c.root.Lookup("flows")
	for _, name := range table.Keys() {
		f := c.file.Flows[name]
		if f == nil {
			continue
		}
		names = append(names, name)
		if f.Node != nil && f.Node.Lookup("steps") != nil && f.Node.Lookup("steps").Kind == syntax.Seq && len(f.Steps) == 0 {
			c.fault(f.Node.Key("steps"), f.Path+".steps", "flow %q has no steps", name)
		}
		before, steps, after := c.steps(f.Before, placeBefore), c.steps(f.Steps, 0), c.steps(f.After, placeAfter)
		c.nameSteps(slices.Concat(before, steps, after))
		c.subscriptions(before, steps, after)
		c.out.Flows = append(c.out.Flows, Flow{Name: name, Before: plain(before), Steps: plain(steps), After: plain(after)})
	}
	if table != nil && table.Kind == syntax.Map && len(names) == 0 {
		c.fault(table, "flows", "there is no flow; a flow is a list of steps")
	}
	return names
}

func plain(steps []compiled) []*Step {
	var out []*Step
	for _, s := range steps {
		out = append(out, s.Step)
	}
	return out
}

// steps compiles a list of steps. Those at fault or of a kind not done yet are left out.
func (c *compiler) steps(list []*grammar.Step, place int) []compiled {
	var out []compiled
	for i, s := range list {
		if s == nil || s.Node == nil || s.Node.Kind != syntax.Map {
			continue
		}
		c.together(s)
		if s.Connect != nil {
			if place != placeBefore || i > 0 {
				c.fault(s.Node.Key("connect"), s.Path+".connect", "connect stands first in before: a session is opened once, and by itself")
			}
			continue
		}
		if step := c.step(s, place+i); step != nil {
			out = append(out, compiled{from: s, Step: step})
		}
	}
	return out
}

// onceOnly are the variables without a value in what a session has once.
var onceOnly = map[string]string{"iteration": "before and after run once a session"}

// step compiles one step; nil when it is at fault or of a kind not done yet.
func (c *compiler) step(s *grammar.Step, place int) *Step {
	out := &Step{
		Timeout: c.limit(s.Place, "timeout", s.Timeout, 0), Progress: s.Progress, LogLevel: s.LogLevel,
		IdleTimeout: c.limit(s.Place, "idle_timeout", s.IdleTimeout, 0),
	}
	if s.Cancel != nil && s.Cancel.After.Node != nil {
		after := spreadOf(s.Cancel.After)
		out.cancel = &after
		if s.Cancel.After.Zero {
			c.fault(s.Cancel.After.Node, s.Cancel.Path+".after", "must be more than 0")
		}
	}
	b := paramsBuilder{compiler: c}
	if place >= placeBefore {
		b.unknown = onceOnly
	}
	b.raw("{")
	out.Method = b.operation(s, out)
	if out.Method == "" {
		out.Method = b.listening(s, out)
	}
	if out.Method == "" {
		return nil
	}
	b.raw("}")
	out.params = b.finish(place)
	c.checks(s, out, b.unknown)
	return out
}

// operation writes the members of the params of a request that the protocol
// defines and returns its method.
func (b *paramsBuilder) operation(s *grammar.Step, out *Step) string {
	lists := []struct {
		list   *grammar.List
		method string
	}{
		{s.ToolsList, "tools/list"},
		{s.ResourcesList, "resources/list"},
		{s.ResourceTemplatesList, "resources/templates/list"},
		{s.PromptsList, "prompts/list"},
	}
	for _, l := range lists {
		if l.list != nil {
			b.list(l.list, out)
			return l.method
		}
	}
	switch {
	case s.Ping != nil:
		return "ping"
	case s.ServerDiscover != nil:
		return "server/discover"
	case s.ToolsCall != nil:
		b.member("name").named(s.ToolsCall.Name.Node, s.ToolsCall.Path+".name", out)
		if n := s.ToolsCall.Arguments.Node; n != nil {
			b.member("arguments").value(n, s.ToolsCall.Path+".arguments")
		} else {
			b.member("arguments").raw("{}")
		}
		return "tools/call"
	case s.ResourcesRead != nil:
		b.member("uri").named(s.ResourcesRead.URI.Node, s.ResourcesRead.Path+".uri", out)
		return "resources/read"
	case s.PromptsGet != nil:
		b.member("name").named(s.PromptsGet.Name.Node, s.PromptsGet.Path+".name", out)
		b.texts(s.PromptsGet.Arguments, s.PromptsGet.Place)
		return "prompts/get"
	case s.CompletionComplete != nil:
		b.complete(s.CompletionComplete, out)
		return "completion/complete"
	case s.LoggingSetLevel != nil:
		b.member("level").quoted(s.LoggingSetLevel.Level)
		return "logging/setLevel"
	}
	return ""
}

func (b *paramsBuilder) list(l *grammar.List, out *Step) {
	out.AllPages = l.AllPages
	if l.Cursor.Node == nil {
		return
	}
	if l.AllPages {
		b.fault(l.Node.Key("cursor"), l.Path+".cursor", "cursor does not go with all_pages, which starts at the first page")
	}
	b.member("cursor").scalar(l.Cursor.Node, l.Path+".cursor")
}

// texts writes a member arguments whose values are texts.
func (b *paramsBuilder) texts(arguments map[string]grammar.Template, at grammar.Place) {
	table := at.Node.Lookup("arguments")
	if table == nil || table.Kind != syntax.Map {
		return
	}
	b.member("arguments").raw("{")
	b.first = true
	for _, name := range table.Keys() {
		if n := arguments[name].Node; n != nil {
			b.member(name).scalar(n, at.Path+".arguments."+name)
		}
	}
	b.first = false
	b.raw("}")
}

func (b *paramsBuilder) complete(o *grammar.Complete, out *Step) {
	prompt := o.Ref.Type == "ref/prompt"
	key, other, target := "name", "uri", o.Ref.Name.Node
	if !prompt {
		key, other, target = "uri", "name", o.Ref.URI.Node
	}
	if n := o.Ref.Node.Key(other); n != nil && o.Ref.Type != "" {
		b.fault(n, o.Ref.Path+"."+other, "%s does not go with type: %s, which has a %s", other, o.Ref.Type, key)
	}
	if o.Ref.Type != "" && o.Ref.Node.Lookup(key) == nil {
		b.fault(o.Ref.Node, o.Ref.Path, "a ref of type %s wants a key %q", o.Ref.Type, key)
	}
	b.member("ref").raw("{")
	b.first = true
	b.member("type").quoted(o.Ref.Type)
	b.member(key).named(target, o.Ref.Path+"."+key, out)
	out.RequestName = "" // the Mcp-Name header is for calls, reads and prompts only
	b.raw("}")
	b.member("argument").raw("{")
	b.first = true
	b.member("name").scalar(o.Argument.Name.Node, o.Argument.Path+".name")
	b.member("value").scalar(o.Argument.Value.Node, o.Argument.Path+".value")
	b.raw("}")
	if o.Context.Node != nil && o.Context.Node.Kind == syntax.Map {
		b.member("context").raw("{")
		b.first = true
		b.texts(o.Context.Arguments, o.Context.Place)
		b.first = false
		b.raw("}")
	}
}

// checks compiles the checks of a step, in the order of the file.
func (c *compiler) checks(s *grammar.Step, out *Step, unknown map[string]string) {
	table := s.Node.Lookup("check")
	if table == nil || table.Kind != syntax.Map {
		return
	}
	names := table.Keys()
	if len(names) > maxChecks {
		c.fault(table.Key(names[maxChecks]), s.Path+".check", "a step has at most %d checks", maxChecks)
		return
	}
	out.shape = script.ShapeOf(out.Method)
	if s.Request != nil { // whatever its method, what comes back is as raw as what was sent
		out.shape = script.AnyShape
	}
	for _, name := range names {
		n := s.Check[name].Node
		if n == nil {
			continue
		}
		path := s.Path + ".check." + name
		if n.Text == "valid_output" {
			c.postpone(n, path, "valid_output")
			continue
		}
		if at := strings.Index(n.Text, "${{"); at >= 0 {
			c.src.Fault(n, at, path, "a check is an expression as it is; leave out ${{ and }}")
			continue
		}
		e, err := c.exprs.Check(n.Text, out.shape)
		if err != nil {
			c.scriptFault(n, path, err)
			continue
		}
		c.known(e, n, 0, path, unknown)
		out.Checks = append(out.Checks, name)
		out.checks = append(out.checks, e)
	}
	out.vars = c.vars
}

// nameSteps gives each step without an id one of its own: the operation with
// what it names, and #2, #3 … when that is taken.
func (c *compiler) nameSteps(steps []compiled) {
	taken := map[string]int{}
	for _, s := range steps {
		if s.from.ID == "" {
			continue
		}
		n := s.from.Node.Lookup("id")
		if line, twice := taken[s.from.ID]; twice {
			c.fault(n, s.from.Path+".id", "step id %q stands twice in this flow (first on line %d)", s.from.ID, line)
			continue
		}
		taken[s.from.ID] = n.Line
	}
	for _, s := range steps {
		if s.ID = s.from.ID; s.ID != "" {
			continue
		}
		base := s.baseName()
		s.ID = base
		for i := 2; ; i++ {
			if _, used := taken[s.ID]; !used {
				break
			}
			s.ID = fmt.Sprintf("%s#%d", base, i)
		}
		taken[s.ID] = s.from.Node.Line
	}
}

func (s *Step) baseName() string {
	switch {
	case s.Kind == StepSubscribe:
		return "subscribe"
	case s.Kind == StepUnsubscribe:
		return "unsubscribe " + s.Handle
	case s.Kind == StepWait, s.Method == "tools/call":
		return s.Method + " " + s.Name
	}
	return s.Method
}
