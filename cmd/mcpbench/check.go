package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mcpbench/scenarios"
)

func newCheckCommand(s streams) *cobra.Command {
	var list bool
	var vars map[string]string
	cmd := &cobra.Command{
		Use:   "check SCENARIO...",
		Short: "Validate scenarios",
		Long:  "check reads scenarios and names every fault with its place. Nothing is sent.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := refuseNotYet(cmd.Flags()); err != nil {
				return err
			}
			if list {
				return listBundled(s.out)
			}
			if len(args) == 0 {
				return usage("name a scenario: a file, @NAME or - for standard input")
			}
			return checkAll(s, args, s.loadOptions(vars))
		},
		ValidArgsFunction: completeScenarios,
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the built-in scenarios")
	cmd.Flags().StringToStringVar(&vars, "var", nil, "scenario variable `K=V` (repeat)")
	notYetFlag(cmd.Flags(), "connect", true)
	notYetFlag(cmd.Flags(), "upgrade", true)
	return cmd
}

func listBundled(w io.Writer) error {
	var b strings.Builder
	for _, s := range scenarios.Bundled() {
		fmt.Fprintf(&b, "@%-12s %s\n", s.Name, s.Description)
	}
	return printed(io.WriteString(w, b.String()))
}

// checkAll checks each scenario and prints all that is to be said about them.
func checkAll(s streams, names []string, o scenarios.LoadOptions) error {
	var b strings.Builder
	faults, warnings := 0, 0
	for _, name := range names {
		program, err := checkOne(s, name, o)
		if err != nil {
			faults += printFaults(&b, err)
			continue
		}
		for _, p := range append(program.Unsupported, program.Warnings...) {
			fmt.Fprintf(&b, "warning: %s\n", p.String())
			warnings++
		}
	}
	fmt.Fprintf(&b, "%s, %s", count(len(names), "file"), count(faults, "error"))
	if warnings > 0 {
		fmt.Fprintf(&b, ", %s", count(warnings, "warning"))
	}
	b.WriteByte('\n')
	if _, err := io.WriteString(s.out, b.String()); err != nil {
		return failure("print the result: %w", err)
	}
	if faults > 0 {
		return &exitError{code: 2}
	}
	return nil
}

func checkOne(s streams, name string, o scenarios.LoadOptions) (*scenarios.Program, error) {
	sc, err := s.loadScenario(name, o)
	if err != nil {
		return nil, err
	}
	return sc.Compile()
}

func printFaults(b *strings.Builder, err error) int {
	if problems, ok := errors.AsType[scenarios.Problems](err); ok {
		for _, p := range problems {
			fmt.Fprintln(b, p.String())
		}
		return len(problems)
	}
	fmt.Fprintln(b, err)
	return 1
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
