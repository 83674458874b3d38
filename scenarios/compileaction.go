package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// partCompiler compiles one part of a flow: what is done before, in each
// iteration, or after.
type partCompiler struct {
	*compiler
	scope  *scope
	place  int
	once   bool // before or after
	rows   []compiled
	called map[string][]*Action // of flows that were called before, by name
	stack  []string             // the flows that are being compiled
	prefix string               // of the ids of steps in called flows
	loops  int                  // repeats around
	policy OnError              // of the flow whose steps are being compiled
}

// actions compiles a list of steps. Those at fault or of a kind not done yet are left out.
// around is the on_error of the control step around them.
func (p *partCompiler) actions(list []*grammar.Step, around OnError) []*Action {
	var out []*Action
	for _, s := range list {
		if s == nil || s.Node == nil || s.Node.Kind != syntax.Map {
			continue
		}
		p.together(s)
		a := &Action{place: p.place, share: 1, Row: -1, vars: p.vars, OnError: onErrorOf(s.OnError).Or(around), FlowOnError: p.policy}
		p.place++
		before := len(p.rows)
		if !p.fill(a, s) {
			continue
		}
		p.condition(a, s)
		if a.Row < 0 && len(p.rows) > before {
			a.Row = before // the first step within it
		} else if a.Row < 0 {
			a.Row = before - 1
		}
		out = append(out, a)
	}
	return out
}

// firstRows has the failures of what stands before all rows charged to the first one.
func firstRows(actions []*Action, rows int) {
	for _, a := range actions {
		if a.Row < 0 && rows > 0 {
			a.Row = 0
		}
		for _, b := range a.Branches {
			firstRows(b, rows)
		}
	}
}

func onErrorOf(text string) OnError {
	switch text {
	case "next_iteration":
		return NextIteration
	case "continue":
		return Continue
	case "end_session":
		return EndSession
	}
	return 0
}

// here is the scope of expressions at this place.
func (p *partCompiler) here() *scope {
	if p.loops == 0 && p.prefix == "" {
		return p.scope.without(map[string]string{"loop": "the step is in no repeat"})
	}
	return p.scope
}

// fill compiles what the step does; false when there is nothing.
func (p *partCompiler) fill(a *Action, s *grammar.Step) bool {
	switch {
	case s.ThinkStep != nil:
		a.Kind, a.think = ActThink, p.spread(*s.ThinkStep, s.Path+".think")
	case s.Random != nil:
		a.Kind = ActRandom
		return p.random(a, s)
	case s.Parallel != nil:
		a.Kind = ActParallel
		return p.parallel(a, s)
	case s.Repeat != nil:
		a.Kind = ActRepeat
		return p.repeat(a, s)
	case s.FlowStep != nil:
		a.Kind = ActCall
		return p.call(a, s)
	case s.Connect != nil:
		a.Kind = ActConnect
		if p.place > placeBefore+1 && p.once {
			p.fault(s.Node.Key("connect"), s.Path+".connect", "in before, connect stands first: a session is opened once; in after it makes no sense")
		}
		return !p.once
	case s.Disconnect != nil:
		a.Kind = ActDisconnect
		if p.once {
			p.fault(s.Node.Key("disconnect"), s.Path+".disconnect", "disconnect is for the steps of an iteration; before and after belong to one session")
		}
	default:
		step := p.step(s, a.place, p.here())
		if step == nil {
			return false
		}
		a.Step, a.Row = step, len(p.rows)
		p.rows = append(p.rows, compiled{from: s, Step: step, prefix: p.prefix})
	}
	return true
}

// condition compiles when and sample.
func (p *partCompiler) condition(a *Action, s *grammar.Step) {
	if s.Sample != nil {
		a.share = float64(*s.Sample)
	}
	if s.When.Node != nil {
		a.when = p.decision(s.When, syntax.Join(s.Path, "when"))
	}
}

// random compiles the branches of random with their weights.
func (p *partCompiler) random(a *Action, s *grammar.Step) bool {
	sum := 0.0
	key, path := s.Node.Key("random"), s.Path+".random"
	for i, b := range s.Random {
		if b == nil || b.Node == nil || b.Node.Kind != syntax.Map {
			continue
		}
		w := 1.0
		if b.Weight.Set {
			w = b.Weight.W
		}
		sum += w
		a.weights = append(a.weights, sum)
		a.Branches = append(a.Branches, p.body(b.Steps, b.Node, fmt.Sprintf("%s[%d]", path, i), a.OnError))
	}
	if len(a.Branches) == 0 {
		p.fault(key, path, "random wants branches: a list of {weight, steps}")
		return false
	}
	if sum == 0 {
		p.fault(key, path, "all weights are 0, so no branch can be chosen")
		return false
	}
	return true
}

// body compiles the steps within a control step.
func (p *partCompiler) body(list []*grammar.Step, at *syntax.Node, path string, around OnError) []*Action {
	if n := at.Lookup("steps"); n != nil && n.Kind == syntax.Seq && len(list) == 0 {
		p.fault(at.Key("steps"), syntax.Join(path, "steps"), "there are no steps")
	}
	return p.actions(list, around)
}

func (p *partCompiler) parallel(a *Action, s *grammar.Step) bool {
	if len(s.Parallel) == 0 {
		p.fault(s.Node.Key("parallel"), s.Path+".parallel", "there are no steps")
	}
	if len(s.Parallel) > maxParallel {
		p.fault(s.Node.Key("parallel"), s.Path+".parallel", "at most %d steps run at the same time", maxParallel)
		return false
	}
	a.Branches = [][]*Action{p.actions(s.Parallel, a.OnError)}
	return len(a.Branches[0]) > 0
}

// maxParallel bounds the steps of one parallel: each is a goroutine of each session.
const maxParallel = 256

func (p *partCompiler) repeat(a *Action, s *grammar.Step) bool {
	r := s.Repeat
	path := s.Path + ".repeat"
	a.turns, a.max = -1, r.Max
	if a.max == 0 {
		a.max = defaultTurns
	}
	n := r.Count.Node
	switch {
	case n == nil && r.While.Node == nil:
		p.fault(s.Node.Key("repeat"), path, "repeat wants a count or a while")
	case n == nil:
	case n.Kind == syntax.String && strings.Contains(n.Text, "${{"):
		b := paramsBuilder{compiler: p.compiler, scope: p.here()}
		parts := b.parse(n, path+".count")
		if len(parts) == 1 && parts[0].Expr != nil {
			a.count = parts[0].Expr
		} else if len(parts) > 0 {
			p.fault(n, path+".count", "wants a number, or one ${{ }} expression")
		}
	default:
		typed := n.Typed()
		count, ok := typed.Integer()
		switch {
		case typed.Kind != syntax.Int || !ok || count < 1:
			p.fault(n, path+".count", "wants a whole number of at least 1")
		case r.While.Node == nil && r.Max == 0:
			a.max = max(a.max, int(count)) // a plain count needs no other bound
			fallthrough
		default:
			a.turns = int(count)
		}
		switch {
		case ok && count > maxTurns:
			p.fault(n, path+".count", "at most %d turns", maxTurns)
		case ok && r.Max > 0 && count > int64(r.Max) && r.While.Node == nil:
			p.fault(r.Node.Key("max"), path+".max", "is less than the count of %d, which would always fail", count)
		}
	}
	p.loops++
	if r.While.Node != nil {
		a.while = p.decision(r.While, path+".while")
	}
	a.Branches = [][]*Action{p.body(r.Steps, r.Node, path, a.OnError)}
	p.loops--
	return len(a.Branches[0]) > 0
}

const (
	defaultTurns = 1000 // as the tag of max has it
	maxTurns     = 1_000_000
)

// call compiles a call of another flow: its steps are compiled once for each
// part of a flow, whatever the number of calls.
func (p *partCompiler) call(a *Action, s *grammar.Step) bool {
	c := s.FlowStep
	if c.Name == "" {
		return false
	}
	flow := p.file.Flows[c.Name]
	at := c.Node
	if named := c.Node.Lookup("name"); named != nil {
		at = named
	}
	if flow == nil || flow.Node == nil {
		known := p.root.Lookup("flows").Keys()
		if !slices.Contains(known, c.Name) {
			p.fault(at, c.Path, "there is no flow %q%s", c.Name, nearest.DidYouMean(c.Name, known))
		}
		return false
	}
	p.usedFlows[c.Name] = true
	if i := slices.Index(p.stack, c.Name); i >= 0 {
		p.fault(at, c.Path, "flow %q calls itself: %s", c.Name, strings.Join(append(slices.Clone(p.stack[i:]), c.Name), " → "))
		return false
	}
	p.arguments(a, c)
	actions, done := p.called[c.Name]
	if !done {
		for _, key := range []string{"before", "after"} {
			if n := flow.Node.Key(key); n != nil {
				p.warn(at, c.Path, "%s of flow %q is not performed by a call: a session has it once, in a group that runs the flow", key, c.Name)
			}
		}
		prefix, inner, policy := p.prefix, p.scope, p.policy
		p.prefix, p.policy = c.Name+".", onErrorOf(flow.OnError)
		p.scope = p.calledScope(c.Name)
		p.stack = append(p.stack, c.Name)
		actions = p.actions(flow.Steps, 0) // what the call says of errors depends on the call
		p.stack = p.stack[:len(p.stack)-1]
		p.prefix, p.scope, p.policy = prefix, inner, policy
		p.called[c.Name] = actions
	}
	a.Branches = [][]*Action{actions}
	return len(actions) > 0
}

// calledScope is the scope of the steps of a called flow: what it reads of args
// is noted for the flow.
func (p *partCompiler) calledScope(flow string) *scope {
	s := *p.scope
	s.args = p.argsOf(flow)
	return &s
}

// arguments compiles what a call gives, and notes it for the check of all calls.
func (p *partCompiler) arguments(a *Action, c *grammar.Call) {
	p.calls = append(p.calls, c)
	n := c.Args.Node
	if n == nil {
		return
	}
	for _, pair := range n.Pairs {
		name, path := pair.Key.Text, syntax.Join(c.Path+".args", pair.Key.Text)
		b := paramsBuilder{compiler: p.compiler, scope: p.here()}
		b.value(pair.Value, path)
		arg := argument{name: name}
		switch t := b.finish(0); {
		case t.parts != nil:
			arg.parts = t.parts
		case !hasExpression(pair.Value):
			arg.value = p.plain(pair.Value, path)
		case json.Unmarshal(t.static, &arg.value) != nil: // of constants; one at fault is reported
			continue
		}
		a.args = append(a.args, arg)
	}
}

// hasExpression tells that a text of the tree has a ${{ that stands for more than itself.
func hasExpression(n *syntax.Node) bool {
	return strings.Contains(strings.ReplaceAll(n.Text, "$${{", ""), "${{") ||
		slices.ContainsFunc(n.Items, hasExpression) ||
		slices.ContainsFunc(n.Pairs, func(p syntax.Pair) bool { return hasExpression(p.Value) })
}

// checkCalls holds what calls give against what the flows read.
func (c *compiler) checkCalls() {
	for _, call := range c.calls {
		uses := c.argsOf(call.Name).first
		given := call.Args.Node.Keys()
		var missing []string
		for name := range uses {
			if !slices.Contains(given, name) {
				missing = append(missing, name)
			}
		}
		slices.Sort(missing)
		if len(missing) > 0 {
			c.fault(call.Node, call.Path, "flow %q reads args.%s, which this call does not give: flow: {name: %s, args: {%s: …}}",
				call.Name, strings.Join(missing, ", args."), call.Name, strings.Join(missing, ": …, "))
		}
		for _, name := range given {
			if _, used := uses[name]; !used {
				c.fault(call.Args.Node.Key(name), call.Path+".args", "flow %q does not read args.%s%s", call.Name, name, nearest.DidYouMean(name, sortedKeys(uses)))
			}
		}
	}
}
