package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"mcpbench/internal/nearest"
	"mcpbench/scenarios/internal/expect"
	"mcpbench/scenarios/internal/generate"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/script"
	"mcpbench/scenarios/internal/syntax"
)

// Tools are what a server lists, for the steps that need it: generate, and the
// check valid_output. Safe for concurrent use.
type Tools struct {
	byName map[string]*tool
	names  []string // sorted
	chosen []string // for generate: {tool: any}
}

// tool is one tool; what is made of its schemas is made when it is first needed.
type tool struct {
	input, output json.RawMessage

	arguments func() (*generate.Generator, error)
	result    func() (*expect.Expectation, error)
}

// NewTools reads the tools of listings, each the result of a tools/list. writes
// allows the choice of tools that are not hinted read-only. Of two tools of the
// same name the first counts.
func NewTools(listings []json.RawMessage, writes bool) (*Tools, error) {
	t := &Tools{byName: map[string]*tool{}}
	for _, listing := range listings {
		var page struct {
			Tools []struct {
				Name        string          `json:"name"`
				Input       json.RawMessage `json:"inputSchema"`
				Output      json.RawMessage `json:"outputSchema"`
				Annotations struct {
					ReadOnly bool `json:"readOnlyHint"`
				} `json:"annotations"`
			} `json:"tools"`
		}
		if err := json.Unmarshal(listing, &page); err != nil {
			return nil, fmt.Errorf("tools/list: %w", err)
		}
		for _, in := range page.Tools {
			if t.byName[in.Name] != nil {
				continue
			}
			made := &tool{input: in.Input, output: in.Output}
			made.arguments = sync.OnceValues(func() (*generate.Generator, error) { return generate.Compile(made.input) })
			made.result = sync.OnceValues(func() (*expect.Expectation, error) {
				if len(made.output) == 0 {
					return nil, errors.New("the tool has no outputSchema")
				}
				return expect.CompileOutput(made.output)
			})
			t.byName[in.Name] = made
			t.names = append(t.names, in.Name)
			if writes || in.Annotations.ReadOnly {
				t.chosen = append(t.chosen, in.Name)
			}
		}
	}
	slices.Sort(t.names)
	slices.Sort(t.chosen)
	return t, nil
}

// Ready says what stands in the way of a step with these tools, nil when nothing does.
func (t *Tools) Ready(s *Step) error {
	if s.output > 0 && s.RequestName != "" {
		if _, err := t.find(s.RequestName); err != nil {
			return err
		}
	}
	if s.generate == nil {
		return nil
	}
	if s.generate.tool != anyTool {
		found, err := t.find(s.generate.tool)
		if err != nil {
			return err
		}
		return s.generate.usable(s.generate.tool, found)
	}
	if len(t.chosen) == 0 {
		return errors.New("the server has no tool that is hinted read-only; name one, or allow others with --allow-writes")
	}
	for _, name := range t.chosen {
		if err := s.generate.usable(name, t.byName[name]); err != nil {
			return err
		}
	}
	return nil
}

// Unchecked says why the check valid_output of a step cannot be evaluated, so that
// each of its requests is a script_error; nil when it can, or there is none. Ready
// of the step comes before it.
func (t *Tools) Unchecked(s *Step) error {
	if s.output == 0 {
		return nil
	}
	names := []string{s.RequestName}
	if s.generate != nil {
		names = []string{s.generate.tool}
		if s.generate.tool == anyTool {
			names = t.chosen
		}
	}
	for _, name := range names {
		if found := t.byName[name]; found != nil {
			if _, err := found.result(); err != nil {
				return fmt.Errorf("valid_output: tool %q: %w", name, err)
			}
		}
	}
	return nil
}

func (t *Tools) find(name string) (*tool, error) {
	if found := t.byName[name]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("the server has no tool %q%s", name, nearest.DidYouMean(name, t.names))
}

// anyTool is the name that stands for all tools.
const anyTool = "any"

// generator is a step that makes its arguments.
type generator struct {
	tool    string
	seed    *uint64 // nil: that of the run
	invalid float64
}

func (g *generator) usable(name string, t *tool) error {
	made, err := t.arguments()
	switch {
	case err != nil:
		return fmt.Errorf("no arguments can be made for tool %q: %w", name, err)
	case g.invalid == 1 && !made.CanBeInvalid():
		return fmt.Errorf("tool %q: %w", name, generate.ErrAllowsAll)
	}
	return nil
}

// Generated is what Generate has made.
type Generated struct {
	Tool string
	// Invalid says what is wrong with the arguments; "" when they are valid.
	Invalid string
}

// Generates tells that the step makes its arguments by Generate instead of Render.
func (s *Step) Generates() bool { return s.generate != nil }

// Generate appends the params of a call of a tool of env.Tools with made
// arguments to dst. They depend on the same as Render, or on the step's own seed,
// and on the tools.
func (s *Step) Generate(dst []byte, env *Env) ([]byte, Generated, error) {
	if env.Tools == nil {
		return dst, Generated{}, errors.New("the tools of the server are not known")
	}
	run := env.Seed
	if s.generate.seed != nil {
		env.Seed = *s.generate.seed
	}
	r := env.stream(s.params.place, forGenerate)
	env.Seed = run
	made := Generated{Tool: s.generate.tool}
	if made.Tool == anyTool {
		if len(env.Tools.chosen) == 0 {
			return dst, made, env.Tools.Ready(s)
		}
		made.Tool = env.Tools.chosen[r.IntN(len(env.Tools.chosen))]
	}
	found, err := env.Tools.find(made.Tool)
	if err != nil {
		return dst, made, err
	}
	arguments, err := found.arguments()
	if err != nil {
		return dst, made, fmt.Errorf("tool %q: %w", made.Tool, err)
	}
	dst = append(dst, `{"name":`...)
	dst = script.AppendQuoted(dst, made.Tool)
	dst = append(dst, `,"arguments":`...)
	dst, made.Invalid, err = s.generate.arguments(dst, arguments, r)
	return append(dst, '}'), made, err
}

func (g *generator) arguments(dst []byte, from *generate.Generator, r *rand.Rand) (out []byte, how string, err error) {
	if g.invalid > 0 && r.Float64() < g.invalid && from.CanBeInvalid() {
		return from.AppendInvalid(dst, r)
	}
	return from.Append(dst, r), "", nil
}

// NeedsTools tells that a group has a step that needs to know the server's tools.
func (p *Program) NeedsTools(group int) bool {
	for s := range p.Flows[p.Groups[group].Flow].all() {
		if s.generate != nil || s.output > 0 {
			return true
		}
	}
	return false
}

// generating compiles a step that makes its arguments.
func (b *paramsBuilder) generating(in *grammar.Generate, out *Step) string {
	g := &generator{tool: in.Tool}
	if in.Tool == "" {
		if n := in.Node.Lookup("tool"); n != nil && n.Kind == syntax.String {
			b.fault(n, in.Path+".tool", "must not be empty")
		}
		return ""
	}
	if in.Seed != nil {
		seed := uint64(*in.Seed) //nolint:gosec // the grammar bounds it
		g.seed = &seed
	}
	if in.Invalid != nil {
		g.invalid = float64(*in.Invalid)
	}
	out.generate, out.Name = g, in.Tool
	if in.Tool == anyTool {
		out.Name = "{any}"
	}
	return "tools/call"
}
