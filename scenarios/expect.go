package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"mcpbench/metrics"
	"mcpbench/scenarios/internal/expect"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// expectation is what a step expects of its answer.
type expectation struct {
	outcomes *expect.Outcomes // nil: ok
	parts    []*expect.Expectation
	golden   *paramsTemplate // of the file's name, when that holds expressions
	ignore   []string
	read     func(name string) ([]byte, error)
	vars     map[string]any

	mu    sync.Mutex // guards files
	files map[string]*expect.Expectation
}

// Expects tells that the step decides its outcome by the answer.
func (s *Step) Expects() bool { return s.expect != nil }

// Expect judges an outcome and, when there is one, a result. What comes back is
// the outcome to record: ok for one that was expected, check_failed for a result
// that is not as it should be, with what is wrong; else the outcome as it is. An
// error is an expression or a file at fault.
func (s *Step) Expect(env *Env, o metrics.Outcome, code int32, result []byte) (metrics.Outcome, string, error) {
	e := s.expect
	switch {
	case e.outcomes == nil:
		if o != metrics.OK {
			return o, "", nil
		}
	case e.outcomes.Match(o, code):
		o = metrics.OK
	case o == metrics.OK:
		return metrics.CheckFailed, "the request went well, which is not the outcome that was expected", nil
	default:
		return o, "", nil
	}
	if result == nil {
		return o, "", nil
	}
	for _, part := range e.parts {
		if failure := part.Test(result); failure != "" {
			return metrics.CheckFailed, failure, nil
		}
	}
	if e.golden == nil {
		return o, "", nil
	}
	part, err := e.file(env)
	if err != nil {
		return o, "", err
	}
	if failure := part.Test(result); failure != "" {
		return metrics.CheckFailed, failure, nil
	}
	return o, "", nil
}

// maxGolden bounds the files that are kept; beyond it they are read each time.
const maxGolden = 1000

// file returns what the file expects whose name the expressions give.
func (e *expectation) file(env *Env) (*expect.Expectation, error) {
	text, err := e.golden.appendTo(nil, env, e.vars)
	if err != nil {
		return nil, fmt.Errorf("expect.golden: %w", err)
	}
	var name string
	if err := json.Unmarshal(text, &name); err != nil { // of our own making
		return nil, fmt.Errorf("expect.golden: %w", err)
	}
	e.mu.Lock()
	known := e.files[name]
	e.mu.Unlock()
	if known != nil {
		return known, nil
	}
	data, err := e.read(name)
	if err != nil {
		return nil, fmt.Errorf("expect.golden: %w", err)
	}
	made, err := expect.CompileGolden(data, e.ignore)
	if err != nil {
		return nil, fmt.Errorf("expect: %s: %w", name, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.files == nil {
		e.files = map[string]*expect.Expectation{}
	}
	if len(e.files) < maxGolden {
		e.files[name] = made
	}
	return made, nil
}

// expectations compiles expect.
func (c *compiler) expectations(s *grammar.Step, out *Step, place int, at *scope) {
	in := s.Expect
	if in == nil || in.Node == nil || in.Node.Kind != syntax.Map {
		return
	}
	if len(in.Node.Pairs) == 0 {
		c.fault(s.Node.Key("expect"), in.Path, "expect wants an outcome, golden, schema, contains or matches")
		return
	}
	e := &expectation{ignore: in.Ignore, read: c.options.read, vars: c.vars}
	add := func(key string, part *expect.Expectation, err error) {
		var fault *expect.PartError
		switch {
		case err == nil:
			e.parts = append(e.parts, part)
		case errors.As(err, &fault) && fault.Part == "ignore":
			c.fault(in.Node.Lookup("ignore"), in.Path+".ignore", "%s", fault.Reason)
		case errors.As(err, &fault):
			c.fault(in.Node.Lookup(key), in.Path+"."+key, "%s", fault.Reason)
		default:
			c.fault(in.Node.Lookup(key), in.Path+"."+key, "%s", err)
		}
	}
	if len(in.Outcome.List) > 0 {
		outcomes, err := expect.CompileOutcomes(in.Outcome.List)
		if e.outcomes = outcomes; err != nil {
			c.fault(in.Outcome.Node, in.Path+".outcome", "%s", partReason(err))
		}
	}
	if in.Golden.Node != nil {
		c.golden(in, e, place, at, add)
	} else if n := in.Node.Key("ignore"); n != nil {
		c.fault(n, in.Path+".ignore", "ignore is for golden")
	}
	if n := in.Schema.Node; n != nil {
		data, err := c.schemaOf(n, in.Path+".schema")
		if err == nil && data != nil {
			part, err := expect.CompileSchema(data)
			add("schema", part, err)
		} else if err != nil {
			add("schema", nil, err)
		}
	}
	if n := in.Contains.Node; n != nil {
		switch n.Kind {
		case syntax.String:
			part, err := expect.CompileText(n.Text)
			add("contains", part, err)
		case syntax.Map:
			part, err := expect.CompileContains(c.literal(n, in.Path+".contains"))
			add("contains", part, err)
		case syntax.Null, syntax.Bool, syntax.Int, syntax.Float, syntax.Seq:
			c.fault(n, in.Path+".contains", "wants text or a map; this is %s", n.Kind)
		}
	}
	if n := in.Node.Lookup("matches"); n != nil && n.Kind == syntax.String && in.Matches == n.Text {
		part, err := expect.CompileMatches(in.Matches)
		add("matches", part, err)
	}
	out.expect = e
}

func partReason(err error) string {
	if fault, ok := errors.AsType[*expect.PartError](err); ok {
		return fault.Reason
	}
	return err.Error()
}

// golden compiles the file that a result must equal.
func (c *compiler) golden(in *grammar.Expect, e *expectation, place int, at *scope, add func(string, *expect.Expectation, error)) {
	n := in.Golden.Node
	if strings.Contains(n.Text, "${{") {
		b := paramsBuilder{compiler: c, scope: at}
		b.scalar(n, in.Path+".golden")
		if t := b.finish(place); t.parts != nil {
			e.golden = &t
			return
		}
	}
	if c.loading {
		return // files are not read yet
	}
	data, err := c.options.read(n.Text)
	if err != nil {
		add("golden", nil, err)
		return
	}
	part, err := expect.CompileGolden(data, in.Ignore)
	add("golden", part, err)
}

// schemaOf returns the text of a schema: the map itself, or the file that is named.
func (c *compiler) schemaOf(n *syntax.Node, path string) ([]byte, error) {
	switch n.Kind {
	case syntax.Map, syntax.Bool:
		return c.literal(n, path), nil
	case syntax.String:
		if c.loading {
			return nil, nil
		}
		return c.options.read(n.Text)
	case syntax.Null, syntax.Int, syntax.Float, syntax.Seq:
	}
	return nil, fmt.Errorf("wants a map or the name of a file; this is %s", n.Kind)
}

// literal is a tree without expressions as JSON.
func (c *compiler) literal(n *syntax.Node, path string) []byte {
	b := paramsBuilder{compiler: c, scope: &scope{}}
	b.value(n, path)
	t := b.finish(0)
	if t.parts != nil {
		c.fault(n, path, "holds no expressions")
		return []byte("{}")
	}
	return t.static
}
