package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mcpbench/scenarios"
)

// checkFlags are the flags of check.
type checkFlags struct {
	list, connect, upgrade bool
	vars                   map[string]string
}

func newCheckCommand(s streams) *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check SCENARIO...",
		Short: "Validate scenarios",
		Long: "check reads scenarios and names every fault with its place. Nothing is sent, unless\n" +
			"--connect asks the servers for their lists, to compare the scenario with what they have.\n" +
			"--upgrade rewrites files of an older version of the language. In GitHub Actions faults are\n" +
			"annotations too.",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.list:
				return listBundled(s.out)
			case len(args) == 0:
				return usage("name a scenario: a file, @NAME or - for standard input")
			case f.upgrade && f.connect:
				return usage("--upgrade and --connect do not go together")
			case f.upgrade:
				return upgradeAll(s, args)
			}
			return interruptible(cmd.Context(), func(ctx context.Context) error { return f.checkAll(ctx, s, args) })
		},
		ValidArgsFunction: completeScenarios,
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.list, "list", false, "list the built-in scenarios")
	fs.Var((*pairs)(&f.vars), "var", "scenario variable `K=V` (repeat)")
	fs.BoolVar(&f.connect, "connect", false, "ask the servers what they have, and compare")
	fs.BoolVar(&f.upgrade, "upgrade", false, "rewrite files of an older version of the language")
	return cmd
}

func listBundled(w io.Writer) error {
	var b strings.Builder
	for _, s := range scenarios.Bundled() {
		fmt.Fprintf(&b, "@%-12s %s\n", s.Name, s.Description)
	}
	return printed(io.WriteString(w, b.String()))
}

// verdict is what check has to say about all files.
type verdict struct {
	text                        strings.Builder
	guard                       workflowGuard // of what goes to text, commands aside
	annotate                    bool          // for GitHub Actions too
	faults, warnings, unreached int
}

func newVerdict(s streams) *verdict {
	v := &verdict{annotate: s.inWorkflow()}
	v.guard.to = &v.text
	return v
}

// checkAll checks each scenario and prints all that is to be said about them.
func (f *checkFlags) checkAll(ctx context.Context, s streams, names []string) error {
	v := newVerdict(s)
	for _, name := range names {
		o := s.loadOptions(f.vars)
		o.Thorough = true
		sc, program, err := checkOne(s, name, o)
		if err != nil {
			v.fault(err)
			continue
		}
		v.warn(program.Unsupported)
		v.warn(program.Warnings)
		if !f.connect {
			continue
		}
		c := compare(ctx, sc, program)
		if len(c.faults) > 0 {
			v.fault(c.faults)
		}
		v.warn(c.warnings)
		for _, err := range c.unreached {
			v.notReached(name, sc.Masker().Text(clean(err.Error())))
		}
	}
	return v.print(s, len(names))
}

func checkOne(s streams, name string, o scenarios.LoadOptions) (*scenarios.Scenario, *scenarios.Program, error) {
	sc, err := s.loadScenario(name, o)
	if err != nil {
		return nil, nil, err
	}
	program, err := sc.Compile()
	return sc, program, err
}

// print prints the verdict on n files; the error has the exit code.
func (v *verdict) print(s streams, n int) error {
	fmt.Fprintf(&v.text, "%s, %s", count(n, "file"), count(v.faults, "error"))
	if v.warnings > 0 {
		fmt.Fprintf(&v.text, ", %s", count(v.warnings, "warning"))
	}
	if v.unreached > 0 {
		fmt.Fprintf(&v.text, ", %s not reached", count(v.unreached, "server"))
	}
	v.text.WriteByte('\n')
	if _, err := io.WriteString(s.commands, v.text.String()); err != nil {
		return failure("print the result: %w", err)
	}
	return v.exit()
}

func (v *verdict) fault(err error) {
	problems, ok := errors.AsType[scenarios.Problems](err)
	if !ok {
		problems = scenarios.Problems{{Message: err.Error()}}
	}
	for _, p := range problems {
		v.say(p.String())
		v.annotation("error", p)
		v.faults += 1 + p.More
	}
}

func (v *verdict) warn(problems scenarios.Problems) {
	for _, p := range problems {
		v.say("warning: " + p.String())
		v.annotation("warning", p)
		v.warnings++
	}
}

func (v *verdict) notReached(file, reason string) {
	p := scenarios.Problem{File: file, Message: reason}
	v.say(p.String())
	v.annotation("error", p)
	v.unreached++
}

// say adds text that ends with its line.
func (v *verdict) say(text string) {
	to := io.Writer(&v.text)
	if v.annotate {
		to = &v.guard
	}
	_, _ = fmt.Fprintln(to, text) // a strings.Builder does not fail
}

// forData and forProperty escape what ends a workflow command or a part of it.
var (
	forData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	forProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// annotation tells GitHub Actions of a problem, as a workflow command.
func (v *verdict) annotation(level string, p scenarios.Problem) {
	if !v.annotate {
		return
	}
	var at []string
	if p.File != "" {
		at = append(at, "file="+forProperty.Replace(p.File))
	}
	if p.Line > 0 {
		at = append(at, fmt.Sprintf("line=%d", p.Line))
	}
	if p.Column > 0 {
		at = append(at, fmt.Sprintf("col=%d", p.Column))
	}
	space := ""
	if len(at) > 0 {
		space = " "
	}
	fmt.Fprintf(&v.text, "::%s%s%s::%s\n", level, space, strings.Join(at, ","), forData.Replace(p.Message))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
