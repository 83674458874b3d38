package script

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
)

// Inputs are what expressions read.
type Inputs struct {
	Seed      uint64
	Group     int
	Step      int // place in the flow, so that two steps draw different numbers
	Session   int
	Iteration uint64
	Protocol  string
	Vars      map[string]any
	Saved     map[string]any // by name
	Args      map[string]any // of the call of the flow that the step belongs to
	Data      map[string]any // the rows of the feeders, by their names
	Repeat    int            // turn of the innermost repeat, from 0
	// Salt keeps apart the random values of a step that an iteration performs
	// several times.
	Salt uint64
}

// Session is the variable session.
type Session struct {
	Index int `expr:"index"`
}

// Iteration is the variable iteration.
type Iteration struct {
	Index int `expr:"index"`
}

// Loop is the variable loop: the turn of the innermost repeat.
type Loop struct {
	Index int `expr:"index"`
}

// valueEnv holds the variables and functions of ${{ }} in a step.
type valueEnv struct {
	Vars      map[string]any              `expr:"vars"`
	Session   Session                     `expr:"session"`
	Iteration Iteration                   `expr:"iteration"`
	Protocol  string                      `expr:"protocol"`
	Saved     map[string]any              `expr:"saved"`
	Args      map[string]any              `expr:"args"`
	Data      map[string]any              `expr:"data"`
	Loop      Loop                        `expr:"loop"`
	RandInt   func(int, int) (int, error) `expr:"randInt"`
	RandFloat func() float64              `expr:"randFloat"`
	Pick      func(any) (any, error)      `expr:"pick"`
	UUID      func() string               `expr:"uuid"`
	Turn      func(...any) (any, error)   `expr:"__turn"`
}

// headerEnv holds the variables of ${{ }} in a header, which is made when a
// session dials.
type headerEnv struct {
	Vars    map[string]any            `expr:"vars"`
	Session Session                   `expr:"session"`
	Data    map[string]any            `expr:"data"`
	Turn    func(...any) (any, error) `expr:"__turn"`
}

// draws makes the random values of one step of one iteration. They depend on
// seed, group, step and iteration only, never on who runs it or when.
type draws struct {
	pcg rand.PCG
	rng *rand.Rand
}

func (d *draws) seed(in Inputs) {
	if d.rng == nil {
		d.rng = rand.New(&d.pcg)
	}
	// An odd multiplier keeps streams of near groups and steps apart; PCG mixes
	// the rest.
	const spread = 0x9e3779b97f4a7c15
	d.pcg.Seed(in.Seed^uint64(in.Group+1)*spread^uint64(in.Step+1)<<32^in.Salt, in.Iteration) //nolint:gosec // small indexes
}

func (d *draws) integer(low, high int) (int, error) {
	if high < low {
		return 0, fmt.Errorf("randInt(%d, %d): the second number must not be less than the first", low, high)
	}
	// In two's complement the differences are right also across 0.
	span := uint64(high) - uint64(low) + 1 //nolint:gosec // as said above
	if span == 0 {                         // all of int
		return int(d.rng.Uint64()), nil //nolint:gosec // as said above
	}
	return int(uint64(low) + d.rng.Uint64N(span)), nil //nolint:gosec // as said above
}

func (d *draws) pick(list any) (any, error) {
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil, fmt.Errorf("pick wants a list; this is %s", typeName(list))
	}
	if v.Len() == 0 {
		return nil, errors.New("pick of an empty list")
	}
	return v.Index(d.rng.IntN(v.Len())).Interface(), nil
}

// uuid returns a random UUID (RFC 9562 §5.4, version 4).
func (d *draws) uuid() string {
	high, low := d.rng.Uint64(), d.rng.Uint64()
	high = high&^0xf000 | 0x4000
	low = low&^(3<<62) | 1<<63
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", high>>32, high>>16&0xffff, high&0xffff, low>>48, low&0xffffffffffff)
}
