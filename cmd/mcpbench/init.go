package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mcpbench/scenarios"
)

// initFlags are the flags of init.
type initFlags struct {
	targetFlags
	out         string
	force       bool
	allowWrites bool
}

func newInitCommand(s streams) *cobra.Command {
	f := &initFlags{}
	cmd := &cobra.Command{
		Use:   "init [flags] [-- COMMAND ARG...]",
		Short: "Ask a server what it has and write a first scenario",
		Long: "init opens a session, asks the server what it has, calls each tool that is marked\n" +
			"read-only once with arguments made from its input schema, and writes a scenario of those\n" +
			"that answered. The others stand in it commented out, with the reason. Without a server\n" +
			"it asks the demo target.",
		Example: "  mcpbench init --url http://127.0.0.1:8080/mcp\n" +
			"  mcpbench init --mcp-config .mcp.json --server filesystem -o files.yaml\n" +
			"  mcpbench init -o - -- ./my-server --stdio",
		RunE: func(cmd *cobra.Command, args []string) error {
			args, f.command = splitAtDash(cmd, args)
			if len(args) > 0 {
				return usage("init takes no %q; name the server with --url, --mcp-config or a command after --", args[0])
			}
			if err := fromEnvironment(cmd.Flags(), len(f.command) > 0, s.env); err != nil {
				return err
			}
			if err := errors.Join(f.validate(), f.free()); err != nil {
				return err
			}
			return interruptible(cmd.Context(), func(ctx context.Context) error { return f.init(ctx, s) })
		},
	}
	f.register(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVarP(&f.out, "out", "o", "bench.yaml", "`FILE` to write, or - for standard output")
	fs.BoolVarP(&f.force, "force", "f", false, "write over an existing file")
	fs.BoolVar(&f.allowWrites, "allow-writes", false, "use, and call once, also tools that are not marked read-only")
	return cmd
}

// free checks that the file may be written, before anything is sent.
func (f *initFlags) free() error {
	if f.out == "" {
		return usage("-o: name a file")
	}
	if f.out == "-" || f.force {
		return nil
	}
	_, err := os.Lstat(f.out)
	switch {
	case err == nil:
		return usage("%s exists already; -f writes over it, -o names another file", f.out)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return usage("-o: %w", err)
}

func (f *initFlags) init(ctx context.Context, s streams) error {
	q, err := f.quickConfig(s)
	if err != nil {
		return err
	}
	a, err := f.aimAt(s, q)
	if err != nil {
		return err
	}
	v := &survey{flags: f, mask: a.scenario.Masker()}
	if err := v.ask(ctx, a); err != nil {
		return err
	}
	defer v.close(ctx)
	starter, err := v.starter(ctx)
	if err != nil {
		return failure("%w", err)
	}
	starter.Server, v.variables, err = f.serverEntry()
	if err != nil {
		return err
	}
	data, err := starter.YAML()
	if err == nil {
		err = f.loads(s, data, v.variables)
	}
	if err != nil {
		return failure("write a scenario for %s: this is a fault of mcpbench: %w", clean(v.offer.Server.Name), err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := f.write(s, data); err != nil {
		return failure("write the scenario: %w", err)
	}
	return v.tell(s)
}

// loads checks that what is about to be written is a scenario.
func (f *initFlags) loads(s streams, data []byte, variables map[string]string) error {
	o := s.loadOptions(nil)
	o.Env = func(name string) (string, bool) {
		if value, ok := variables[name]; ok {
			return value, true
		}
		return s.env(name)
	}
	if f.out != "-" {
		o.Dir = dirOf(f.out)
	}
	sc, err := scenarios.Load(f.out, data, o)
	if err != nil {
		return err
	}
	_, err = compile(sc)
	return err
}

func (f *initFlags) write(s streams, data []byte) error {
	if f.out == "-" {
		_, err := s.out.Write(data)
		return err
	}
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(f.out, mode, 0o644) //nolint:gosec // the user's file, for others to read as any source
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// tell says what was written: the outcome on stdout, or beside the scenario on stderr.
func (v *survey) tell(s streams) error {
	var b strings.Builder
	to := s.out
	if v.flags.out == "-" {
		to = s.err
	} else {
		fmt.Fprintf(&b, "wrote %s: ", v.flags.out)
	}
	fmt.Fprintf(&b, "%d of %s", v.tools.live, count(v.tools.all, "tool"))
	if text := v.tools.skippedText(); text != "" {
		fmt.Fprintf(&b, " (%s)", text)
	}
	b.WriteByte('\n')
	for _, c := range []struct {
		n    *tally
		what string
	}{{&v.resources, "resource"}, {&v.prompts, "prompt"}} {
		if c.n.all == 0 {
			continue
		}
		fmt.Fprintf(&b, "%d of %s", c.n.live, count(c.n.all, c.what))
		if text := c.n.skippedText(); text != "" {
			fmt.Fprintf(&b, " (%s)", text)
		}
		b.WriteByte('\n')
	}
	if _, err := io.WriteString(to, b.String()); err != nil {
		return failure("print the result: %w", err)
	}
	var notes []string
	if v.tools.tried > 0 {
		notes = append(notes, fmt.Sprintf("called %s, once each, to see what answers to made-up arguments", count(v.tools.tried, "tool")))
	}
	for _, name := range sortedKeys(v.variables) {
		notes = append(notes, fmt.Sprintf("the scenario holds no secrets: set %s before it is run", name))
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(s.err, note); err != nil {
			return failure("print the result: %w", err)
		}
	}
	return nil
}

// tally counts what became of the tools, the resources or the prompts of a server.
type tally struct {
	all, live, tried int
	reasons          []string // in the order in which they came up
	skipped          map[string]int
}

func (t *tally) skip(reason string) {
	if t.skipped == nil {
		t.skipped = map[string]int{}
	}
	if t.skipped[reason] == 0 {
		t.reasons = append(t.reasons, reason)
	}
	t.skipped[reason]++
}

// skippedText is "5 skipped: not marked read-only", with a count each when there are
// several reasons.
func (t *tally) skippedText() string {
	sum := 0
	var parts []string
	for _, r := range t.reasons {
		sum += t.skipped[r]
		parts = append(parts, fmt.Sprintf("%d %s", t.skipped[r], r))
	}
	switch len(t.reasons) {
	case 0:
		return ""
	case 1:
		parts = t.reasons
	}
	return fmt.Sprintf("%d skipped: %s", sum, strings.Join(parts, ", "))
}
