package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"mcpbench/internal/nearest"
	"mcpbench/metrics"
	"mcpbench/output"
)

// streams are the program's connections to the outside.
type streams struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	// commands is where commands to GitHub Actions go: out, without its guard.
	commands io.Writer
}

// exitError ends the program with a code of its own. A nil err prints nothing.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage is bad usage or a bad scenario: nothing was sent.
func usage(format string, args ...any) error {
	return &exitError{code: metrics.ExitUsage, err: fmt.Errorf(format, args...)}
}

// failure is something that could not finish.
func failure(format string, args ...any) error {
	return &exitError{code: metrics.ExitError, err: fmt.Errorf(format, args...)}
}

// cleanLines makes a message safe for a terminal: it may quote a server.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = output.Escape(strings.ReplaceAll(line, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// printed turns what a write to stdout returned into an error of ours.
func printed(_ int, err error) error {
	if err != nil {
		return failure("print the result: %w", err)
	}
	return nil
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	log.SetOutput(io.Discard) // net/http tells it what servers do wrong, as often as they do
	s = s.guarded()
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exitError](err)
	if !ok { // cobra's own errors are about usage
		exit = &exitError{code: metrics.ExitUsage, err: err}
	}
	if exit.err != nil {
		_, _ = fmt.Fprintf(s.err, "mcpbench: %s\n", cleanLines(strings.TrimRight(exit.err.Error(), "\n")))
	}
	return exit.code
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "mcpbench",
		Short:         "Load tests and benchmarks for MCP servers",
		Long:          "mcpbench opens pools of MCP client sessions over stdio or Streamable HTTP, replays a\nscenario under closed or open load, and records what every request took.",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.Version = version
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%w%s\nrun '%s --help' for the flags", err, nearFlag(cmd, err), cmd.CommandPath())
	})
	root.AddCommand(
		newRunCommand(s), newInitCommand(s), newCheckCommand(s), newDiscoverCommand(s), newCallCommand(s), newServeCommand(s),
		newRecoverCommand(s), newSchemaCommand(s), newVersionCommand(s),
	)
	root.AddCommand(notYetCommands()...)
	return root
}

// nearFlag suggests a flag for an unknown one.
func nearFlag(cmd *cobra.Command, err error) string {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest.Name(name, names); near != "" {
		return fmt.Sprintf(" (did you mean --%s?)", near)
	}
	return ""
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// getenv returns a variable of the injected environment, "" when it is not set.
func (s streams) getenv(name string) string {
	v, _ := s.env(name)
	return v
}
