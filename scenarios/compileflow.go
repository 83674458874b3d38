package scenarios

import (
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
	placeThink  = 4 << 16
)

// compiled is a step with what it was made of.
type compiled struct {
	from *grammar.Step
	*Step
	prefix string // of its id: it belongs to a called flow
}

// flows compiles every flow, in the order of the file, and returns their names.
// One that is only called is compiled where it is called.
func (c *compiler) flows() []string {
	var names []string
	table := c.root.Lookup("flows")
	run, called := c.runByGroups(), c.calledFlows()
	for _, name := range table.Keys() {
		f := c.file.Flows[name]
		if f == nil {
			continue
		}
		names = append(names, name)
		if f.Node != nil && f.Node.Lookup("steps") != nil && f.Node.Lookup("steps").Kind == syntax.Seq && len(f.Steps) == 0 {
			c.fault(f.Node.Key("steps"), f.Path+".steps", "flow %q has no steps", name)
		}
		if called[name] && !run[name] {
			c.out.Flows = append(c.out.Flows, Flow{Name: name})
			continue
		}
		c.out.Flows = append(c.out.Flows, c.flow(name, f, !run[name]))
	}
	if table != nil && table.Kind == syntax.Map && len(names) == 0 {
		c.fault(table, "flows", "there is no flow; a flow is a list of steps")
	}
	c.checkCalls()
	return names
}

// runByGroups returns the names of the flows that groups run.
func (c *compiler) runByGroups() map[string]bool {
	out := map[string]bool{}
	for _, g := range c.file.Load.Groups {
		switch {
		case g == nil:
		case g.Flow != "":
			out[g.Flow] = true
		case len(c.file.Flows) == 1:
			for name := range c.file.Flows {
				out[name] = true
			}
		}
	}
	return out
}

// calledFlows returns the names of the flows that steps call.
func (c *compiler) calledFlows() map[string]bool {
	out := map[string]bool{}
	for _, f := range c.file.Flows {
		if f == nil {
			continue
		}
		for s := range nested(f.Before, f.Steps, f.After) {
			if s.FlowStep != nil {
				out[s.FlowStep.Name] = true
			}
		}
	}
	return out
}

// flow compiles a flow that a group may run; idle says that none does, nor does a
// step call it.
func (c *compiler) flow(name string, f *grammar.Flow, idle bool) Flow {
	out := Flow{Name: name}
	feeders, once := map[string]bool{}, map[string]bool{}
	lists := [][]*grammar.Step{f.Before, f.Steps, f.After}
	saved := c.savedBy(map[string]bool{}, lists...)
	var parts [3]*partCompiler
	var actions [3][]*Action
	for i, place := range []int{placeBefore, 0, placeAfter} {
		s := &scope{saved: saved, args: &argUses{}, columns: c.columns, feeds: func(feeder string) { feeders[feeder] = true }}
		if place != 0 {
			s.feeds = func(feeder string) { once[feeder] = true }
			s = s.without(onceOnly)
		}
		parts[i] = &partCompiler{compiler: c, scope: s, place: place, once: place != 0, called: map[string][]*Action{}, stack: []string{name}, policy: onErrorOf(f.OnError)}
		actions[i] = parts[i].actions(lists[i], 0)
		firstRows(actions[i], len(parts[i].rows))
		if idle {
			continue // nobody runs it: it may be there to be called
		}
		for arg, at := range s.args.first {
			c.src.Fault(at.n, at.offset, at.path, "args.%s has no value here: flow %q is run by a group, not called", arg, name)
		}
	}
	c.alone(f.Steps, company{})
	c.nameSteps(slices.Concat(parts[0].rows, parts[1].rows, parts[2].rows))
	c.subscriptions(parts[0].rows, parts[1].rows, parts[2].rows)
	out.Before, out.Steps, out.After = plain(parts[0].rows), plain(parts[1].rows), plain(parts[2].rows)
	out.DoBefore, out.Do, out.DoAfter = actions[0], actions[1], actions[2]
	out.Feeders, out.FeedersOnce = sortedKeys(feeders), sortedKeys(once)
	if len(out.Steps) == 0 && len(f.Steps) > 0 && c.complete() {
		c.fault(f.Node.Key("steps"), f.Path+".steps", "no step of flow %q makes a request", name)
	}
	return out
}

// savedBy returns the names that steps save, also those of the flows they call.
func (c *compiler) savedBy(seen map[string]bool, lists ...[]*grammar.Step) []string {
	out := savedNames(lists...)
	for s := range nested(lists...) {
		if s.FlowStep == nil || seen[s.FlowStep.Name] {
			continue
		}
		seen[s.FlowStep.Name] = true
		if f := c.file.Flows[s.FlowStep.Name]; f != nil {
			out = append(out, c.savedBy(seen, f.Steps)...)
		}
	}
	return out
}

func plain(steps []compiled) []*Step {
	var out []*Step
	for _, s := range steps {
		out = append(out, s.Step)
	}
	return out
}

// onceOnly are the variables without a value in what a session has once.
var onceOnly = map[string]string{"iteration": "before and after run once a session"}

// step compiles one step; nil when it is at fault or of a kind not done yet.
func (c *compiler) step(s *grammar.Step, place int, at *scope) *Step {
	out := &Step{
		Timeout: c.limit(s.Place, "timeout", s.Timeout, 0), Progress: s.Progress, LogLevel: s.LogLevel,
		IdleTimeout: c.limit(s.Place, "idle_timeout", s.IdleTimeout, 0), Tags: texts(s.Tags),
	}
	if s.Cancel != nil && s.Cancel.After.Node != nil {
		after := c.spread(s.Cancel.After, s.Cancel.Path+".after")
		out.cancel = &after
		if s.Cancel.After.Zero {
			c.fault(s.Cancel.After.Node, s.Cancel.Path+".after", "must be more than 0")
		}
	}
	b := paramsBuilder{compiler: c, scope: at}
	b.raw("{")
	if s.Generate != nil {
		out.Method = b.generating(s.Generate, out)
	} else {
		out.Method = b.operation(s, out)
	}
	if out.Method == "" {
		out.Method = b.listening(s, out)
	}
	if out.Method == "" {
		return nil
	}
	b.raw("}")
	out.params = b.finish(place)
	c.answers(s, out, at)
	c.expectations(s, out, place, at)
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

// answers compiles what looks at the answers of a step: checks and saves, in the
// order of the file.
func (c *compiler) answers(s *grammar.Step, out *Step, at *scope) {
	out.shape = script.ShapeOf(out.Method)
	if s.Request != nil { // whatever its method, what comes back is as raw as what was sent
		out.shape = script.AnyShape
	}
	out.vars = c.vars
	c.checks(s, out, at)
	for _, p := range s.Save.Node.Entries() {
		n, path := p.Value, syntax.Join(s.Save.Path, p.Key.Text)
		if n.Kind != syntax.String && n.Kind != syntax.Bool {
			continue // reported, or not done yet
		}
		if e := c.expression(n, path, at, func(text string) (*script.Expression, error) { return c.exprs.Save(text, out.shape) }); e != nil {
			out.saved = append(out.saved, p.Key.Text)
			out.saves = append(out.saves, e)
		}
	}
}

func (c *compiler) checks(s *grammar.Step, out *Step, at *scope) {
	table := s.Node.Lookup("check")
	if table == nil || table.Kind != syntax.Map {
		return
	}
	names := table.Keys()
	if len(names) > maxChecks {
		c.fault(table.Key(names[maxChecks]), s.Path+".check", "a step has at most %d checks", maxChecks)
		return
	}
	for _, name := range names {
		n := s.Check[name].Node
		if n == nil {
			continue
		}
		path := s.Path + ".check." + name
		if n.Text == validOutput {
			switch {
			case out.Method != "tools/call":
				c.fault(n, path, "valid_output is for calls of tools, whose outputSchema it is about")
			case out.RequestName == "" && out.generate == nil:
				c.fault(n, path, "valid_output needs a tool whose name holds no expression")
			}
			out.output = len(out.Checks) + 1
			out.Checks = append(out.Checks, name)
			out.checks = append(out.checks, nil)
			continue
		}
		if e := c.expression(n, path, at, func(text string) (*script.Expression, error) { return c.exprs.Check(text, out.shape) }); e != nil {
			out.Checks = append(out.Checks, name)
			out.checks = append(out.checks, e)
		}
	}
}

// validOutput is a check of the result against the outputSchema of its tool.
const validOutput = "valid_output"

// decision compiles an expression that is decided before a step; nil when it is at fault.
func (p *partCompiler) decision(e grammar.Expr, path string) *script.Expression {
	if e.Node == nil {
		return nil
	}
	return p.expression(e.Node, path, p.here(), p.exprs.Condition)
}

// expression compiles a value that is an expression as it is; nil when it is at fault.
func (c *compiler) expression(n *syntax.Node, path string, at *scope, compile func(string) (*script.Expression, error)) *script.Expression {
	if from := strings.Index(n.Text, "${{"); from >= 0 {
		c.src.Fault(n, from, path, "this is an expression as it is; leave out ${{ and }}")
		return nil
	}
	e, err := compile(n.Text)
	if err != nil {
		c.scriptFault(n, path, err)
		return nil
	}
	c.known(e, n, 0, path, at)
	return e
}
