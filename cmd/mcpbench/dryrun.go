package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"mcpbench/scenarios"
)

// dryRun prints what a run would do: where each value comes from, and one
// rendered request of each step. Nothing is sent.
func dryRun(s streams, f *runFlags, sc *scenarios.Scenario, p *scenarios.Program) error {
	var b strings.Builder
	fmt.Fprintf(&b, "scenario %s\n\n", p.Name)
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tab, "VALUE\t\tFROM") // a strings.Builder does not fail
	for _, v := range sc.Settings() {
		_, _ = fmt.Fprintf(tab, "%s\t%s\t%s\n", v.Path, clean(v.Value), v.Origin)
	}
	if err := tab.Flush(); err != nil {
		return failure("print the plan: %w", err)
	}
	for gi := range p.Groups {
		g := &p.Groups[gi]
		server := &p.Servers[g.Server]
		fmt.Fprintf(&b, "\ngroup %s on %s: %s\n", g.Name, server.Name, loadText(g))
		env := &scenarios.Env{Seed: f.seed, Group: gi, Protocol: server.Protocol}
		flow := &p.Flows[g.Flow]
		for _, part := range []struct {
			name  string
			steps []*scenarios.Step
		}{{"before: ", flow.Before}, {"", flow.Steps}, {"after: ", flow.After}} {
			for _, step := range part.steps {
				line, err := dryStep(step, env)
				if err != nil {
					return usage("step %s: %w", step.ID, err)
				}
				fmt.Fprintf(&b, "  %s%s\n", part.name, line)
			}
		}
	}
	for i := range p.Thresholds {
		if t := &p.Thresholds[i]; t.Abort != nil {
			fmt.Fprintf(&b, "\n%s ends the run: judged each second from %v on, over the last %v\n", clean(t.Expr), t.Abort.After, t.Abort.Window)
		}
	}
	if f.tool != "" && f.args == "" {
		b.WriteString("\nwithout -a the arguments are made from the tool's input schema when the run starts\n")
	}
	b.WriteString("\nnothing was sent\n")
	if _, err := io.WriteString(s.out, sc.Mask(b.String())); err != nil {
		return failure("print the plan: %w", err)
	}
	return nil
}

// dryStep says what a step does.
func dryStep(step *scenarios.Step, env *scenarios.Env) (string, error) {
	switch step.Kind {
	case scenarios.StepWait, scenarios.StepUnsubscribe:
		return step.ID, nil
	case scenarios.StepRequest, scenarios.StepSubscribe, scenarios.StepNotify:
	}
	params, err := step.Render(nil, env)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("%s: %s %s", step.ID, step.Method, params)
	if after := step.CancelAfter(env); after > 0 {
		line += fmt.Sprintf(" cancelled after %v", after)
	}
	return line, nil
}

func loadText(g *scenarios.Group) string {
	var b strings.Builder
	switch {
	case g.Open && g.Process == "replay":
		fmt.Fprintf(&b, "%s as recorded on at most %s", count(len(g.Times), "arrival"), count(g.Sessions, "session"))
	case g.Open && g.Changes:
		fmt.Fprintf(&b, "%s arrivals at up to %g/s on at most %s", g.Process, g.Peak(), count(g.Sessions, "session"))
	case g.Open:
		fmt.Fprintf(&b, "%s arrivals at %g/s on at most %s", g.Process, g.Peak(), count(g.Sessions, "session"))
	case g.Changes:
		fmt.Fprintf(&b, "up to %s", count(g.Sessions, "session"))
	default:
		b.WriteString(count(g.Sessions, "session"))
	}
	if !g.Open && !g.Think.IsZero() {
		fmt.Fprintf(&b, " thinking %v", g.Think)
	}
	if g.IdleSessions > 0 {
		fmt.Fprintf(&b, " and %s", count(g.IdleSessions, "idle one"))
	}
	if g.InFlight > 1 {
		fmt.Fprintf(&b, ", %d requests in flight on each", g.InFlight)
	}
	if g.Iterations > 0 {
		fmt.Fprintf(&b, ", %s in all", count(int(g.Iterations), "iteration"))
	}
	if g.PerSession > 0 {
		fmt.Fprintf(&b, ", %s each", count(int(g.PerSession), "iteration"))
	}
	if g.Duration > 0 {
		fmt.Fprintf(&b, ", for %v", g.Duration)
	}
	return b.String()
}
