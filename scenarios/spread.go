package scenarios

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"mcpbench/scenarios/internal/dist"
	"mcpbench/scenarios/internal/grammar"
	"mcpbench/scenarios/internal/syntax"
)

// Spread is a time that may differ from one time to the next. The zero value is
// always 0. It is immutable.
type Spread struct {
	dist dist.Dist
	text string
}

// spread compiles a distribution; one of recorded times reads its file.
func (c *compiler) spread(s grammar.Spread, path string) Spread {
	out := Spread{dist: s.Dist, text: s.Text}
	if s.Empirical == nil {
		return out
	}
	values, err := c.times(s.Empirical)
	if err == nil {
		out.dist, err = dist.Empirical(values, s.Bounds)
	}
	if err != nil {
		c.fault(s.Empirical.Node.Lookup("file"), syntax.Join(path, "empirical.file"), "%s", err)
	}
	return out
}

// maxTimes bounds the recorded times of one distribution.
const maxTimes = 1_000_000

// times reads a column of durations.
func (c *compiler) times(e *grammar.Empirical) ([]time.Duration, error) {
	data, err := c.options.read(e.File)
	if err != nil {
		return nil, err
	}
	r, column, err := column(data, e.File, e.Column)
	if err != nil {
		return nil, err
	}
	var out []time.Duration
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.File, err)
		}
		line, _ := r.FieldPos(column)
		v, err := grammar.ParseDuration(strings.TrimSpace(row[column]))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", e.File, line, err)
		}
		if out = append(out, v); len(out) > maxTimes {
			return nil, fmt.Errorf("%s has more than %d values", e.File, maxTimes)
		}
	}
}

// IsZero tells that every value is 0.
func (s Spread) IsZero() bool { return s.dist.IsZero() }

// String says it in words.
func (s Spread) String() string { return s.text }

// Equal tells that two are written alike.
func (s Spread) Equal(other Spread) bool { return s.text == other.text }

// Draw returns one value. A constant takes nothing from r, which may then be nil.
func (s Spread) Draw(r *rand.Rand) time.Duration { return s.dist.Draw(r) }

// draws makes the random times of steps, from streams of their own, so that a
// step's times do not change what its expressions draw.
type draws struct {
	pcg rand.PCG
	rng *rand.Rand
}

// CancelAfter returns when after the send the step's request is to be cancelled
// on purpose, 0 for never. It depends on the same as Render.
func (s *Step) CancelAfter(env *Env) time.Duration {
	if s.cancel == nil {
		return 0
	}
	return max(s.cancel.Draw(env.stream(s.params.place, forCancel)), 1)
}

// Cancels tells that the step cancels its request on purpose.
func (s *Step) Cancels() bool { return s.cancel != nil }

// ThinkTime is the pause of a session after an iteration.
func (g *Group) ThinkTime(env *Env) time.Duration {
	return g.Think.Draw(env.stream(placeThink, forThink))
}

// Constant is always d, which must not be negative.
func Constant(d time.Duration) Spread {
	out, _ := dist.Constant(d) // nothing else is an error
	return Spread{dist: out, text: d.String()}
}
