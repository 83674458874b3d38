package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpbench/metrics"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/script"
	"mcpbench/scenarios/internal/syntax"
)

// Defaults of the language; those of single keys stand in the tags of the
// grammar's types, and a test holds the two against each other.
const (
	defaultGrace    = 5 * time.Second
	defaultDuration = 10 * time.Second
	maxGroups       = 255 // a sample's group is one byte
	maxChecks       = 32  // a sample's failed checks are 32 bits
)

// compiler turns the decoded file into a program. Faults go to the source.
type compiler struct {
	*Scenario
	loading bool // a missing server may still come from a flag, editor files are not read
	vars    map[string]any
	exprs   *script.Compiler
	out     *Program

	columns   map[string][]string // of each feeder, nil when they are not known
	usedFlows map[string]bool     // flows that are called
	calls     []*grammar.Call
	argUses   map[string]*argUses // by flow
}

func newCompiler(s *Scenario) *compiler {
	return &compiler{Scenario: s, out: &Program{}, usedFlows: map[string]bool{}, argUses: map[string]*argUses{}}
}

// argsOf returns where the arguments are noted that a flow reads.
func (c *compiler) argsOf(flow string) *argUses {
	if c.argUses[flow] == nil {
		c.argUses[flow] = &argUses{}
	}
	return c.argUses[flow]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (c *compiler) fault(n *syntax.Node, path, format string, args ...any) {
	c.src.Fault(n, -1, path, format, args...)
}

// scriptFault reports the fault of an expression in n's text.
func (c *compiler) scriptFault(n *syntax.Node, path string, err error) {
	var fault *script.Error
	switch {
	case !errors.As(err, &fault):
		c.src.Fault(n, 0, path, "%s", err)
	case fault.NotYet != "":
		c.out.Unsupported = append(c.out.Unsupported, c.src.Problem(n, fault.Offset, path, fault.Message))
	default:
		hint := ""
		if strings.HasPrefix(fault.Message, "the expression ends") && c.src.CommentCut(n) {
			hint = "; in YAML # begins a comment here: put the expression into quotes"
		}
		c.src.Fault(n, fault.Offset, path, "%s%s", fault.Message, hint)
	}
}

func (c *compiler) warn(n *syntax.Node, path, format string, args ...any) {
	c.out.Warnings = append(c.out.Warnings, c.src.Problem(n, -1, path, fmt.Sprintf(format, args...)))
}

func (c *compiler) program() *Program {
	f := c.file
	c.vars = c.constants()
	c.exprs = script.NewCompiler(c.vars, c.options.lookup)
	p := c.out
	p.Name, p.Description = c.Name(), f.Description
	p.Tags = texts(f.Tags)
	p.OutputDir = f.Output.Dir
	c.warmup(&f.Load.Warmup)
	p.Grace = orDefault(f.Load.Grace, defaultGrace)
	p.Limits = c.limits(&f.Limits)
	p.Unsupported = slices.Clone(c.later)
	c.data()
	c.servers()
	p.Client = c.client()
	flows := c.flows()
	c.groups(flows)
	c.thresholds()
	for _, own := range c.ownProtocols {
		c.warn(own, "protocol", "the server pins its protocol version itself, so --protocol does not change it")
	}
	for name, value := range c.exprs.Env {
		if SecretName(name) {
			c.editorSecrets = append(c.editorSecrets, value)
		}
	}
	p.Unsupported = p.Unsupported.Sort()
	p.Warnings = p.Warnings.Sort()
	return p
}

func texts(m map[string]grammar.Label) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for name, t := range m {
		if t.Node != nil {
			out[name] = t.Node.Text
		}
	}
	return out
}

// constants returns the values of vars.
func (c *compiler) constants() map[string]any {
	out := make(map[string]any, len(c.file.Vars))
	for name, v := range c.file.Vars {
		if v.Node != nil {
			out[name] = c.plain(v.Node, "vars."+name)
		}
	}
	return out
}

// plain turns a tree without expressions into Go values.
func (c *compiler) plain(n *syntax.Node, path string) any {
	switch n.Kind {
	case syntax.Null:
		return nil
	case syntax.Bool:
		return n.True()
	case syntax.Int:
		if v, ok := n.Integer(); ok {
			return int(v)
		}
		c.fault(n, path, "%s is too large", n.Text)
	case syntax.Float:
		v, ok := n.Number()
		if !ok {
			c.fault(n, path, "%s is no number that JSON has", n.Text)
		}
		return v
	case syntax.String:
		if at := strings.Index(n.Text, "${{"); at >= 0 && (at == 0 || n.Text[at-1] != '$') {
			c.src.Fault(n, at, path, "vars are constants and hold no expressions")
		}
		return strings.ReplaceAll(n.Text, "$${{", "${{")
	case syntax.Seq:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = c.plain(item, fmt.Sprintf("%s[%d]", path, i))
		}
		return list
	case syntax.Map:
		m := make(map[string]any, len(n.Pairs))
		for _, p := range n.Pairs {
			m[p.Key.Text] = c.plain(p.Value, syntax.Join(path, p.Key.Text))
		}
		return m
	}
	return nil
}

// complete reports whether the program has all that thresholds may name: it is
// not being loaded before its flags, has no fault and nothing that was put off.
func (c *compiler) complete() bool {
	return !c.loading && len(c.src.Problems()) == 0 && len(c.out.Unsupported) == 0
}

func (c *compiler) thresholds() {
	complete := c.complete() // before the faults of thresholds themselves
	for _, t := range c.file.Thresholds {
		if t.Node == nil {
			continue
		}
		parsed, err := metrics.ParseThreshold(t.Node.Text)
		parsed.Abort = c.abort(&t.Abort)
		if err == nil && complete {
			err = parsed.Resolve(c.out.Catalog())
		}
		var fault *metrics.ThresholdError
		switch {
		case err == nil:
			c.out.Thresholds = append(c.out.Thresholds, parsed)
		case errors.As(err, &fault) && fault.NotYet != "":
			problem := c.src.Problem(t.Node, fault.Offset, t.Path, "not supported yet: "+fault.NotYet)
			c.out.Unsupported = append(c.out.Unsupported, problem)
		case errors.As(err, &fault) && c.partly:
			c.warn(t.Node, t.Path, "left out with its group: %s", fault.Message)
		case errors.As(err, &fault):
			c.src.Fault(t.Node, fault.Offset, t.Path, "%s", fault.Message)
		default:
			c.fault(t.Node, t.Path, "%s", err)
		}
	}
}
