package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpbench/output"
)

func newDiscoverCommand(s streams) *cobra.Command {
	t := &targetFlags{}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "discover [flags] [-- COMMAND ARG...]",
		Short: "List what a server offers",
		Long: "discover opens a session and lists the server's tools, resources, templates and prompts,\n" +
			"what each list weighs, and, with a session for each, the protocol versions that it speaks.\n" +
			"Without a server it shows the demo target.",
		RunE: func(cmd *cobra.Command, args []string) error {
			args, t.command = splitAtDash(cmd, args)
			if len(args) > 0 {
				return usage("discover takes no %q; name the server with --url, --mcp-config or a command after --", args[0])
			}
			if err := fromEnvironment(cmd.Flags(), len(t.command) > 0, s.env); err != nil {
				return err
			}
			if err := t.validate(); err != nil {
				return err
			}
			return interruptible(cmd.Context(), func(ctx context.Context) error { return discover(ctx, s, t, asJSON) })
		},
	}
	t.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func discover(ctx context.Context, s streams, t *targetFlags, asJSON bool) error {
	q, err := t.quickConfig(s)
	if err != nil {
		return err
	}
	p, err := openProbe(ctx, s, t, q)
	if err != nil {
		return err
	}
	defer p.close(ctx)
	o, err := p.ask(ctx)
	if err == nil {
		o.Versions, err = p.versions(ctx)
	}
	if err != nil {
		return failure("%w", err)
	}
	if asJSON {
		enc := json.NewEncoder(s.out)
		enc.SetIndent("", "  ")
		err = enc.Encode(o)
	} else {
		err = o.print(s.out)
	}
	if err != nil {
		return failure("print what the server offers: %w", err)
	}
	return nil
}

// clean makes a server's text safe for a terminal, and one line.
func clean(s string) string { return output.Escape(strings.ReplaceAll(s, "\n", " ")) }

func sortedNames(m map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(m)) }
