package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"mcpbench/mcp"
	"mcpbench/scenarios"
)

// declare has a session declare what the scenario's client does, and answer it.
// o.Version is set.
func (d *dialer) declare(o *mcp.Options, slot int) error {
	c := d.client
	if c == nil || !c.Asked() {
		return nil
	}
	version := o.Version
	if version == "" {
		version = mcp.V20251125 // what initialize asks for
	}
	o.Capabilities = version.Capabilities(c.Roots, c.Sampling, c.Elicitation)
	a, err := c.Answers(&scenarios.Env{Seed: d.seed, Group: d.group, Session: slot})
	if err != nil {
		return err
	}
	canned := mcp.Canned{
		Sampling: mcp.CannedSampling{
			Text: a.Text, Model: a.Model, StopReason: a.StopReason, Wait: d.pause(a.SamplingDelay, slot, 1),
		},
		Elicitation: mcp.CannedElicitation{
			Action: a.Action, Content: a.Content, Fill: a.Content == nil, Wait: d.pause(a.ElicitationDelay, slot, 2),
		},
	}
	for _, uri := range a.Roots {
		canned.Roots.List = append(canned.Roots.List, mcp.Root{URI: uri})
	}
	o.Answers, err = canned.Ready()
	return err
}

// pause takes the time that an answer is to take, from a random source of the
// session's own for each kind of answer.
func (d *dialer) pause(s scenarios.Spread, slot int, kind uint64) mcp.Wait {
	if s.IsZero() {
		return nil
	}
	var mu sync.Mutex // guards rng: several answers may be under way
	const spread = 0x9e3779b97f4a7c15
	rng := rand.New(rand.NewPCG(d.seed^uint64(d.group+1)*spread, uint64(slot)<<2|kind)) //nolint:gosec // small indexes
	return func(ctx context.Context) error {
		mu.Lock()
		t := time.NewTimer(s.Draw(rng))
		mu.Unlock()
		defer t.Stop()
		select {
		case <-t.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
