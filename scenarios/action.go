package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"mcpbench/scenarios/internal/script"
)

// ActionKind says what an Action does.
type ActionKind uint8

// Kinds of actions.
const (
	// ActStep performs Step.
	ActStep ActionKind = iota
	// ActThink pauses for Think.
	ActThink
	// ActRandom performs the one of Branches that Choose gives.
	ActRandom
	// ActParallel performs Branches[0], all at the same time.
	ActParallel
	// ActRepeat performs Branches[0] while Again holds.
	ActRepeat
	// ActCall performs Branches[0], the actions of another flow, between Enter and Leave.
	ActCall
	// ActConnect opens a session unless one is open.
	ActConnect
	// ActDisconnect closes the session.
	ActDisconnect
)

// OnError says what happens to an iteration when a step of it fails.
type OnError uint8

// What happens when a step fails. The zero value leaves it to what is around:
// the flow, the group, and at last NextIteration.
const (
	_ OnError = iota
	// NextIteration ends the iteration.
	NextIteration
	// Continue goes on with the next step; the iteration has failed all the same.
	Continue
	// EndSession ends the iteration and closes the session.
	EndSession
)

// Or is o, or other when o leaves it open.
func (o OnError) Or(other OnError) OnError {
	if o == 0 {
		return other
	}
	return o
}

// Action is one entry of what a flow does: a step that makes requests, or a
// control step. It is immutable and safe for concurrent use, each caller with an
// Env of its own.
type Action struct {
	Kind ActionKind
	Step *Step // of ActStep, else nil
	// Row is the place of Step among the rows of its part of the flow; of a control
	// step that of the step to which a failure of its own expressions is charged;
	// -1 when there is none.
	Row      int
	OnError  OnError // of the step, or of the control step around it in its flow; else 0
	Branches [][]*Action
	// FlowOnError is that of the flow that the step stands in; it counts after
	// OnError and that of the calls of the flow.
	FlowOnError OnError

	place   int
	when    *script.Expression
	share   float64 // of the iterations that perform it; 1 is all
	think   Spread
	weights []float64 // cumulated
	count   *script.Expression
	turns   int // when count is nil and not -1
	while   *script.Expression
	max     int
	args    []argument
	vars    map[string]any
}

// argument is what a call gives to the flow that it calls.
type argument struct {
	name  string
	value any
	parts []paramPart // instead of value, when it holds expressions
}

// Begin forgets what the iteration before saved, and starts with base, which is
// only read: what the session's steps before saved.
func (e *Env) Begin(base map[string]any) {
	e.salt, e.repeat, e.args = 0, 0, nil
	e.forked, e.anew = false, e.anew[:0]
	if e.saved == nil && len(base) == 0 {
		return
	}
	if e.saved == nil {
		e.saved = map[string]any{}
	}
	clear(e.saved)
	maps.Copy(e.saved, base)
}

// Saved returns what was saved since Begin. It is shared with e.
func (e *Env) Saved() map[string]any { return e.saved }

// Fork makes e go on where other is, for what runs beside it. other may be used
// on, but what it saves later e does not see.
func (e *Env) Fork(other *Env) {
	e.Seed, e.Group, e.Session, e.Iteration = other.Seed, other.Group, other.Session, other.Iteration
	e.Protocol, e.Data, e.Tools = other.Protocol, other.Data, other.Tools
	e.Begin(other.saved)
	e.salt, e.repeat, e.args = other.salt, other.repeat, other.args
	e.forked = true
}

// Join takes over what other, which was forked from e, has saved since. Of what
// several have saved the last to join counts.
func (e *Env) Join(other *Env) {
	for _, name := range other.anew {
		e.keep(name, other.saved[name])
	}
}

func (e *Env) keep(name string, v any) {
	if e.saved == nil {
		e.saved = map[string]any{}
	}
	e.saved[name] = v
	if e.forked && !slices.Contains(e.anew, name) {
		e.anew = append(e.anew, name)
	}
}

// salted mixes what keeps apart the draws of steps that are performed several times.
func salted(salt, by uint64) uint64 { return (salt + by + 1) * 0x9e3779b97f4a7c15 }

// stream returns the random numbers of one purpose of a step.
func (e *Env) stream(place int, purpose uint64) *rand.Rand {
	if e.draws.rng == nil {
		e.draws.rng = rand.New(&e.draws.pcg)
	}
	// As for expressions, odd multipliers keep near groups and steps apart.
	const spread = 0x9e3779b97f4a7c15
	e.draws.pcg.Seed(e.Seed^uint64(e.Group+1)*spread^uint64(place+1)*purpose^e.salt, e.Iteration) //nolint:gosec // small indexes
	return e.draws.rng
}

// Odd multipliers that keep apart the purposes of random numbers.
const (
	forCancel = 0xd1b54a32d192ed03
	forShare  = 0x8cb92ba72f3d8dd7
	forThink  = 0xaef17502108ef2d9
	forBranch = 0xf58e8c4bd1e4ae55

	forGenerate = 0xc2b2ae3d27d4eb4f
)

// Skip tells that the action is not to be performed now: its condition does not
// hold, or its share of the iterations leaves this one out. An error is an
// expression that failed.
func (a *Action) Skip(e *Env) (bool, error) {
	if a.share < 1 && e.stream(a.place, forShare).Float64() >= a.share {
		return true, nil
	}
	if a.when == nil {
		return false, nil
	}
	e.scratch.Begin(e.inputs(a.place, a.vars))
	holds, err := e.scratch.Holds(a.when)
	return !holds, err
}

// Conditional tells that Skip may tell something.
func (a *Action) Conditional() bool { return a.when != nil || a.share < 1 }

// Think returns the length of a pause.
func (a *Action) Think(e *Env) time.Duration { return a.think.Draw(e.stream(a.place, forThink)) }

// Choose returns which of the branches is to be performed.
func (a *Action) Choose(e *Env) int {
	at := e.stream(a.place, forBranch).Float64() * a.weights[len(a.weights)-1]
	for i, sum := range a.weights {
		if at < sum {
			return i
		}
	}
	return len(a.weights) - 1
}

// Loop is where a repeat is. The zero value is before the first turn.
type Loop struct {
	turn, count  int
	salt         uint64
	outer, begun int
}

// Again begins the next turn of a repeat and tells whether there is one; what
// expressions read of the turn is set in e, and set back after the last one. An
// error is an expression that failed, or a repeat without end.
func (a *Action) Again(e *Env, l *Loop) (more bool, err error) {
	if l.begun == 0 {
		l.begun, l.salt, l.outer = 1, e.salt, e.repeat
		if l.count, err = a.turnsOf(e); err != nil {
			return false, err
		}
	} else {
		l.turn++
	}
	e.repeat, e.salt = l.turn, salted(l.salt, uint64(a.place)<<32|uint64(l.turn)) //nolint:gosec // not negative
	more = l.count < 0 || l.turn < l.count
	if more && a.while != nil {
		e.scratch.Begin(e.inputs(a.place, a.vars))
		more, err = e.scratch.Holds(a.while)
	}
	if more && l.turn >= a.max {
		more, err = false, fmt.Errorf("repeat goes on after %d turns; max: allows more", a.max)
	}
	if !more || err != nil {
		e.repeat, e.salt = l.outer, l.salt
	}
	return more && err == nil, err
}

// Stop sets back what Again has set, when a turn is not brought to its end.
func (a *Action) Stop(e *Env, l *Loop) { e.repeat, e.salt = l.outer, l.salt }

// turnsOf is how many turns a repeat has, -1 when only its condition ends it.
func (a *Action) turnsOf(e *Env) (int, error) {
	if a.count == nil {
		return a.turns, nil
	}
	e.scratch.Begin(e.inputs(a.place, a.vars))
	v, err := e.scratch.Value(a.count)
	if err != nil {
		return 0, err
	}
	switch n := v.(type) {
	case int:
		if n >= 0 {
			return n, nil
		}
	case float64:
		if n == float64(int(n)) && n >= 0 {
			return int(n), nil
		}
	}
	return 0, fmt.Errorf("count of repeat: %v is no whole number of turns", v)
}

// Leave takes back what Enter did.
type Leave struct {
	args map[string]any
	salt uint64
}

// Enter makes the arguments of a call visible. An error is an expression that
// failed; nothing is then to be taken back.
func (a *Action) Enter(e *Env) (Leave, error) {
	back := Leave{args: e.args, salt: e.salt}
	var args map[string]any
	if len(a.args) > 0 {
		args = make(map[string]any, len(a.args))
		e.scratch.Begin(e.inputs(a.place, a.vars))
	}
	for i := range a.args {
		v, err := a.args[i].evaluate(&e.scratch)
		if err != nil {
			return back, fmt.Errorf("args.%s: %w", a.args[i].name, err)
		}
		args[a.args[i].name] = v
	}
	e.args, e.salt = args, salted(e.salt, uint64(a.place)) //nolint:gosec // not negative
	return back, nil
}

// Return takes back what Enter did.
func (e *Env) Return(back Leave) { e.args, e.salt = back.args, back.salt }

// evaluate makes the argument's value. Begin of r comes before it.
func (a *argument) evaluate(r *script.Runner) (any, error) {
	if a.parts == nil {
		return a.value, nil
	}
	if len(a.parts) == 1 && a.parts[0].expr != nil && !a.parts[0].inside {
		return r.Value(a.parts[0].expr)
	}
	text, err := appendParts(nil, r, a.parts)
	if err != nil {
		return nil, err
	}
	var v any
	err = json.Unmarshal(text, &v)
	return v, err
}

// InOrder returns the actions that perform each of the steps, one after the other.
func InOrder(steps []*Step) []*Action {
	out := make([]*Action, len(steps))
	for i, s := range steps {
		out[i] = &Action{Step: s, Row: i, place: i, share: 1}
	}
	return out
}
