package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/script"
	"mcpbench/scenarios/internal/syntax"
)

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
		out := Flow{Name: name}
		if f.Node != nil && f.Node.Lookup("steps") != nil && f.Node.Lookup("steps").Kind == syntax.Seq && len(f.Steps) == 0 {
			c.fault(f.Node.Key("steps"), f.Path+".steps", "flow %q has no steps", name)
		}
		for i, s := range f.Steps {
			if step := c.step(s, i); step != nil {
				out.Steps = append(out.Steps, step)
			}
		}
		c.nameSteps(&out, f)
		c.out.Flows = append(c.out.Flows, out)
	}
	if table != nil && table.Kind == syntax.Map && len(names) == 0 {
		c.fault(table, "flows", "there is no flow; a flow is a list of steps")
	}
	return names
}

// step compiles one step; nil when it is at fault or of a kind not done yet.
func (c *compiler) step(s *grammar.Step, place int) *Step {
	if s == nil || s.Node == nil || s.Node.Kind != syntax.Map {
		return nil
	}
	out := &Step{Timeout: c.limit(s.Place, "timeout", s.Timeout, 0)}
	b := paramsBuilder{compiler: c}
	b.raw("{")
	out.Method = b.operation(s, out)
	if out.Method == "" {
		return nil
	}
	b.raw("}")
	out.params = b.finish(place)
	c.checks(s, out)
	return out
}

// operation writes the members of the step's params and returns its method.
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
func (c *compiler) checks(s *grammar.Step, out *Step) {
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
		out.Checks = append(out.Checks, name)
		out.checks = append(out.checks, e)
	}
	out.vars = c.vars
}

// nameSteps gives each step without an id one of its own: the method, for a
// tool call with the tool, and #2, #3 … when that is taken.
func (c *compiler) nameSteps(flow *Flow, f *grammar.Flow) {
	taken := map[string]int{}
	for _, s := range f.Steps {
		if s == nil || s.ID == "" {
			continue
		}
		n := s.Node.Lookup("id")
		if line, twice := taken[s.ID]; twice {
			c.fault(n, s.Path+".id", "step id %q stands twice in this flow (first on line %d)", s.ID, line)
			continue
		}
		taken[s.ID] = n.Line
	}
	next := 0
	for _, s := range f.Steps {
		if next >= len(flow.Steps) {
			return
		}
		step := flow.Steps[next]
		if s == nil || s.Node == nil || s.Node.Lookup(step.Method) == nil {
			continue
		}
		next++
		if step.ID = s.ID; step.ID != "" {
			continue
		}
		base := step.Method
		if base == "tools/call" {
			base += " " + step.Name
		}
		step.ID = base
		for i := 2; ; i++ {
			if _, used := taken[step.ID]; !used {
				break
			}
			step.ID = fmt.Sprintf("%s#%d", base, i)
		}
		taken[step.ID] = s.Node.Line
	}
}

// knownMethod tells whether a step's method exists in a protocol version; the
// step is skipped where it does not.
func knownMethod(method, version string) bool {
	modern := version == modernVersion
	switch method {
	case "ping", "logging/setLevel":
		return !modern
	case "server/discover":
		return modern
	}
	return true
}

// repeatable warns of requests that the seed does not determine, where it
// otherwise would: in open loads and with a number of iterations.
func (c *compiler) repeatable(g Group) {
	if g.Flow >= len(c.out.Flows) || !g.Open && g.Iterations == 0 {
		return
	}
	for _, s := range c.out.Flows[g.Flow].Steps {
		if s.params.usesSession() {
			at := c.root.Lookup("load").Lookup("groups").Key(g.Name)
			c.warn(at, "load.groups."+g.Name,
				"step %q uses session.*: which session takes an arrival is left to chance, so the same seed does not repeat the requests", s.ID)
			return
		}
	}
}

// pinned warns of steps that a group's server skips by its pinned version.
func (c *compiler) pinned(g Group) {
	if g.Server >= len(c.out.Servers) || g.Flow >= len(c.out.Flows) {
		return
	}
	server := c.out.Servers[g.Server]
	if server.Protocol == "" {
		return
	}
	var skipped []string
	for _, s := range c.out.Flows[g.Flow].Steps {
		if !knownMethod(s.Method, server.Protocol) && !slices.Contains(skipped, s.Method) {
			skipped = append(skipped, s.Method)
		}
	}
	if len(skipped) > 0 {
		at := c.root.Lookup("load").Lookup("groups").Key(g.Name)
		c.warn(at, "load.groups."+g.Name, "server %q is pinned to %s and skips %s", server.Name, server.Protocol, strings.Join(skipped, ", "))
	}
}
