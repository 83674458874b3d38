package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"mcpbench/mcp"
	"mcpbench/metrics"
	"mcpbench/scenarios"
)

// comparison is what check --connect has to say about one scenario.
type comparison struct {
	faults, warnings scenarios.Problems
	unreached        []error // a server each
}

// compare asks each server that a group of the scenario uses what it has, one after
// the other, and holds the scenario against it. Nothing but the handshake and the lists
// is sent.
func compare(ctx context.Context, sc *scenarios.Scenario, program *scenarios.Program) comparison {
	var c comparison
	for i := range program.Servers {
		group := slices.IndexFunc(program.Groups, func(g scenarios.Group) bool { return g.Server == i })
		if group < 0 || ctx.Err() != nil {
			continue
		}
		o, err := offered(ctx, sc, program, group)
		if err != nil {
			c.unreached = append(c.unreached, fmt.Errorf("server %q: %w", program.Servers[i].Name, err))
			continue
		}
		faults, warnings := sc.Compare(program, program.Servers[i].Name, o)
		c.faults, c.warnings = append(c.faults, faults...), append(c.warnings, warnings...)
	}
	return c
}

// offered asks the server of a group, as its sessions would.
func offered(ctx context.Context, sc *scenarios.Scenario, program *scenarios.Program, group int) (offer *scenarios.Offer, err error) {
	const seed = 1
	feeds, err := program.OpenFeeds(ctx, group, seed, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, feeds.Close()) }()
	a := &aim{scenario: sc, program: program, server: &program.Servers[program.Groups[group].Server]}
	d := &dialer{seed: seed, group: group, client: &program.Client, feeds: feeds}
	o := mcp.Options{Version: mcp.Version(a.server.Protocol)}
	if err := d.declare(&o, 0); err != nil {
		return nil, err
	}
	t := &targetFlags{timeout: program.Limits.RequestTimeout, connectTimeout: program.Limits.ConnectTimeout}
	p, err := a.open(ctx, t, d, o)
	if err != nil {
		return nil, err
	}
	defer p.close(ctx)
	has, err := p.ask(ctx)
	if err != nil {
		return nil, err
	}
	return has.forComparison(p.session.Info()), nil
}

// forComparison is the offer as scenarios are compared with it. A list that was not
// promised, or promised and not there, stays nil.
func (o *offer) forComparison(info mcp.Info) *scenarios.Offer {
	out := &scenarios.Offer{Version: string(info.Version), Has: info.Version.Features().Has, Declares: info.Declares}
	listed := func(method string) bool {
		i := slices.IndexFunc(o.Lists, func(l listOffer) bool { return l.Method == method })
		return i >= 0 && o.Lists[i].Declared && o.Lists[i].Error == ""
	}
	if listed("tools/list") {
		out.Tools, out.Outputs = o.schemas()
	}
	if listed("prompts/list") {
		out.Prompts = map[string][]scenarios.PromptArgument{}
		for _, raw := range o.Prompts {
			var p promptEntry
			if json.Unmarshal(raw, &p) != nil {
				continue
			}
			arguments := make([]scenarios.PromptArgument, len(p.Arguments))
			for i, a := range p.Arguments {
				arguments[i] = scenarios.PromptArgument{Name: a.Name, Required: a.Required}
			}
			out.Prompts[p.Name] = arguments
		}
	}
	for _, l := range []struct {
		method, member string
		from           []json.RawMessage
		into           *[]string
	}{
		{"resources/list", "uri", o.Resources, &out.Resources},
		{"resources/templates/list", "uriTemplate", o.ResourceTemplates, &out.Templates},
	} {
		if !listed(l.method) {
			continue
		}
		*l.into = []string{}
		for _, raw := range l.from {
			var entry map[string]any
			if json.Unmarshal(raw, &entry) == nil {
				uri, _ := entry[l.member].(string)
				*l.into = append(*l.into, uri)
			}
		}
	}
	return out
}

// schemas returns the inputSchema of each tool, and its outputSchema if it has one.
func (o *offer) schemas() (inputs, outputs map[string][]byte) {
	inputs, outputs = map[string][]byte{}, map[string][]byte{}
	for _, raw := range o.Tools {
		var t tool
		if json.Unmarshal(raw, &t) != nil {
			continue
		}
		inputs[t.Name] = t.InputSchema
		if len(t.Output) > 0 {
			outputs[t.Name] = t.Output
		}
	}
	return inputs, outputs
}

// exit is the exit code of check: faults of a file before a server that was not reached.
func (v *verdict) exit() error {
	switch {
	case v.faults > 0:
		return &exitError{code: metrics.ExitUsage}
	case v.unreached > 0:
		return &exitError{code: metrics.ExitError}
	}
	return nil
}
