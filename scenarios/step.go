package scenarios

import (
	"errors"
	"fmt"

	"mcpbench/scenarios/internal/script"
)

func (e *Env) inputs(step int, vars map[string]any) script.Inputs {
	return script.Inputs{
		Seed: e.Seed, Group: e.Group, Step: step, Session: e.Session,
		Iteration: e.Iteration, Protocol: e.Protocol, Vars: vars,
		Saved: e.saved, Args: e.args, Data: e.Data, Repeat: e.repeat, Salt: e.salt,
	}
}

// Render appends the step's params as one JSON object to dst and returns the
// extended slice. A step without expressions only copies and does not allocate
// when dst is large enough. The values depend on the fields of env only;
// random ones on its seed, group and arrival index and on the step. An error is
// an expression that failed; dst then comes back as long as it was.
func (s *Step) Render(dst []byte, env *Env) ([]byte, error) {
	return s.params.appendTo(dst, env, s.vars)
}

// Static tells that Render gives the same params each time.
func (s *Step) Static() bool { return s.params.parts == nil }

// Params returns the params as they stand in the scenario, with ${{ }} where
// an expression is evaluated, for plans and messages.
func (s *Step) Params() string { return s.params.String() }

// Check evaluates the step's checks on one answer, and saves what the step saves
// when the request has gone well. Bit i of failed is set when check i did not
// hold. err is an expression that failed at run time; what comes after it is then
// not evaluated. A result that does not have the shape its method demands fails
// every check. A step without checks and saves does nothing.
func (s *Step) Check(env *Env, r Response) (failed uint32, err error) {
	if len(s.checks) == 0 && len(s.saves) == 0 {
		return 0, nil
	}
	var keep func(i int, v any)
	if r.OK {
		keep = func(i int, v any) { s.keep(env, i, v, r.Page) }
	}
	in := env.inputs(s.params.place, s.vars)
	if s.output > 0 {
		holds, err := s.validOutput(env, r)
		if err != nil {
			return 0, err
		}
		defer func() {
			if !holds {
				failed |= 1 << (s.output - 1)
			}
		}()
	}
	return env.scratch.Checks(s.checks, s.saves, s.shape, in, script.Answer{Result: r.Result, Elapsed: r.Elapsed}, keep)
}

// validOutput tells that the result is what the tool's outputSchema allows.
func (s *Step) validOutput(env *Env, r Response) (bool, error) {
	name := r.Tool
	if name == "" {
		name = s.RequestName
	}
	if env.Tools == nil {
		return false, errors.New("valid_output: the tools of the server are not known")
	}
	found, err := env.Tools.find(name)
	if err != nil {
		return false, fmt.Errorf("valid_output: %w", err)
	}
	allowed, err := found.result()
	if err != nil {
		return false, fmt.Errorf("valid_output: tool %q: %w", name, err)
	}
	return allowed.Test(r.Result) == "", nil
}

// Looks tells that Check has something to do.
func (s *Step) Looks() bool { return len(s.checks) > 0 || len(s.saves) > 0 }

// keep saves a value. What the pages of a listing give is joined when they are lists.
func (s *Step) keep(env *Env, i int, v any, page int) {
	name := s.saved[i]
	if page > 0 {
		before, one := env.saved[name].([]any)
		more, other := v.([]any)
		if one && other {
			v = append(before, more...)
		}
	}
	env.keep(name, v)
}

// Template is a text that may hold ${{ }} expressions, such as a header value.
// It is immutable and safe for concurrent use, each caller with its own Env.
type Template struct {
	parts []script.Part
	vars  map[string]any
}

// Text returns a Template without expressions.
func Text(text string) Template { return Template{parts: []script.Part{{Text: text}}} }

// Render returns the text with its expressions evaluated. It reads only
// Session and Data of env. An error is an expression that failed, or a text that spans
// lines, which no header may.
func (t Template) Render(env *Env) (string, error) {
	if len(t.parts) == 0 {
		return "", nil
	}
	return env.scratch.Header(t.parts, env.inputs(0, t.vars))
}
