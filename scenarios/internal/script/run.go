package script

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Runner evaluates expressions one after the other. The zero value is ready;
// it must not be used by two goroutines at once.
type Runner struct {
	machine vm.VM
	turns   turns
	draws   draws
	value   *valueEnv
	header  *headerEnv
	checks  [numShapes]checkEnv
	text    []byte
}

func (r *Runner) run(e *Expression, env any) (any, error) {
	if e.isConstant {
		return e.constant, nil
	}
	r.turns = turns{}
	r.machine.MemoryBudget = maxMade
	out, err := r.machine.Run(e.program, env)
	if err != nil {
		return nil, &evalError{source: e.source, err: plainError(err)}
	}
	return out, nil
}

// plainError leaves out the excerpt that expr adds to its errors.
func plainError(err error) error {
	var at *file.Error
	if !errors.As(err, &at) {
		return err
	}
	if at.Prev != nil {
		return at.Prev
	}
	if strings.HasPrefix(at.Message, "memory budget exceeded") {
		return errMade
	}
	return errors.New(plainType(at.Message))
}

// Begin makes the values of in visible to the next Appends, and restarts the
// random draws of this step and iteration.
func (r *Runner) Begin(in Inputs) {
	if r.value == nil {
		r.value = &valueEnv{
			RandInt: r.draws.integer, RandFloat: func() float64 { return r.draws.rng.Float64() },
			Pick: r.draws.pick, UUID: r.draws.uuid, Turn: r.turns.next,
		}
	}
	r.draws.seed(in)
	v := r.value
	v.Vars, v.Protocol = in.Vars, in.Protocol
	v.Session.Index, v.Iteration.Index = in.Session, int(in.Iteration) //nolint:gosec // an arrival index never comes near 1<<63
	v.Saved, v.Args, v.Data, v.Loop.Index = in.Saved, in.Args, in.Data, in.Repeat
}

// Value evaluates an expression of a step. Begin comes before it.
func (r *Runner) Value(e *Expression) (any, error) { return r.run(e, r.value) }

// Holds evaluates a condition. Begin comes before it.
func (r *Runner) Holds(e *Expression) (bool, error) {
	v, err := r.run(e, r.value)
	if err != nil {
		return false, err
	}
	holds, ok := v.(bool)
	if !ok {
		return false, &evalError{source: e.source, err: fmt.Errorf("a condition must be true or false; this is %s", typeName(v))}
	}
	return holds, nil
}

// AppendValue appends the expression's value as JSON.
func (r *Runner) AppendValue(dst []byte, e *Expression) ([]byte, error) {
	v, err := r.run(e, r.value)
	if err != nil {
		return dst, err
	}
	out, err := appendValue(dst, v)
	if err != nil {
		return dst, &evalError{source: e.source, err: err}
	}
	return out, nil
}

// AppendInside appends the expression's value as it stands inside a JSON string.
func (r *Runner) AppendInside(dst []byte, e *Expression) ([]byte, error) {
	v, err := r.run(e, r.value)
	if err != nil {
		return dst, err
	}
	if text, ok := v.(string); ok {
		return appendInside(dst, text), nil
	}
	r.text, err = appendText(r.text[:0], v)
	if err != nil {
		return dst, &evalError{source: e.source, err: err}
	}
	return appendInside(dst, string(r.text)), nil
}

// Header returns a header's text for one session.
func (r *Runner) Header(parts []Part, in Inputs) (string, error) {
	if len(parts) == 1 && parts[0].Expr == nil {
		return parts[0].Text, nil
	}
	if r.header == nil {
		r.header = &headerEnv{Turn: r.turns.next}
	}
	r.header.Vars, r.header.Session.Index, r.header.Data = in.Vars, in.Session, in.Data
	out := r.text[:0]
	for _, p := range parts {
		if p.Expr == nil {
			out = append(out, p.Text...)
			continue
		}
		v, err := r.run(p.Expr, r.header)
		if err != nil {
			return "", err
		}
		if out, err = appendText(out, v); err != nil {
			return "", &evalError{source: p.Source, err: err}
		}
		if bytes.ContainsAny(out, "\r\n\x00") {
			return "", &evalError{source: p.Source, err: errors.New("a header has one line")}
		}
	}
	r.text = out
	return string(out), nil
}

// Answer is a result that checks and saves look at.
type Answer struct {
	Result  []byte
	Elapsed time.Duration
}

// Checks evaluates checks on one result, and then the expressions of save, whose
// values go to keep by their index, unless keep is nil. Bit i of failed is set
// when check i does not hold; a result of the wrong shape fails all of them, and
// is an error when there is something to save.
func (r *Runner) Checks(checks, saves []*Expression, s *Shape, in Inputs, a Answer, keep func(i int, v any)) (failed uint32, err error) {
	env := r.checks[s.index]
	if env == nil {
		env = s.env()
		r.checks[s.index] = env
	}
	env.set(in, a.Elapsed, &r.turns)
	if err := env.decode(a.Result); err != nil {
		if keep != nil && len(saves) > 0 {
			return 0, &evalError{source: saves[0].source, err: errors.New("the result does not have the shape that its method demands")}
		}
		return 1<<len(checks) - 1, nil // the server's fault, which the checks are there to find
	}
	for i, c := range checks {
		if c == nil { // not an expression
			continue
		}
		v, err := r.run(c, env)
		if err != nil {
			return 0, err
		}
		holds, ok := v.(bool)
		if !ok {
			return 0, &evalError{source: c.source, err: fmt.Errorf("a check must be true or false; this is %s", typeName(v))}
		}
		if !holds {
			failed |= 1 << i
		}
	}
	if keep == nil {
		return failed, nil
	}
	for i, e := range saves {
		v, err := r.run(e, env)
		if err != nil {
			return failed, err
		}
		keep(i, v)
	}
	return failed, nil
}
