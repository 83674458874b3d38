package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"mcpbench/mcp"
	"mcpbench/output"
)

func newDiscoverCommand(s streams) *cobra.Command {
	t := &targetFlags{}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "discover [flags] [-- COMMAND ARG...]",
		Short: "List what a server offers",
		Long:  "discover opens one session and lists the server's tools, resources and prompts. Without\na server it shows the demo target.",
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

// offer is what a server has, as discover --json prints it.
type offer struct {
	Server            mcp.Implementation `json:"server_info"`
	Transport         string             `json:"transport"`
	ProtocolVersion   mcp.Version        `json:"protocol_version"`
	SupportedVersions []mcp.Version      `json:"supported_versions"` // as far as the server said
	Capabilities      json.RawMessage    `json:"capabilities"`
	Instructions      string             `json:"instructions,omitempty"`
	Tools             []json.RawMessage  `json:"tools"`
	Resources         []json.RawMessage  `json:"resources"`
	ResourceTemplates []json.RawMessage  `json:"resource_templates"`
	Prompts           []json.RawMessage  `json:"prompts"`
}

func discover(ctx context.Context, s streams, t *targetFlags, asJSON bool) error {
	q, err := t.quickConfig(s)
	if err != nil {
		return err
	}
	p, err := openProbe(ctx, s, t, q, nil)
	if err != nil {
		return err
	}
	defer p.close(ctx)
	o, err := p.ask(ctx)
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

// ask makes the listings that the server's capabilities promise.
func (p *probe) ask(ctx context.Context) (*offer, error) {
	info := p.session.Info()
	o := &offer{
		Server: info.Server, Transport: info.Transport, ProtocolVersion: info.Version, SupportedVersions: info.Supported,
		Capabilities: info.Capabilities, Instructions: info.Instructions,
		Tools: []json.RawMessage{}, Resources: []json.RawMessage{}, ResourceTemplates: []json.RawMessage{}, Prompts: []json.RawMessage{},
	}
	if len(o.SupportedVersions) == 0 {
		o.SupportedVersions = []mcp.Version{info.Version}
	}
	var caps map[string]json.RawMessage
	if len(info.Capabilities) > 0 {
		if err := json.Unmarshal(info.Capabilities, &caps); err != nil {
			return nil, fmt.Errorf("the server's capabilities: %w", err)
		}
	}
	for _, l := range []struct {
		capability, method, member string
		into                       *[]json.RawMessage
	}{
		{"tools", "tools/list", "tools", &o.Tools},
		{"resources", "resources/list", "resources", &o.Resources},
		{"resources", "resources/templates/list", "resourceTemplates", &o.ResourceTemplates},
		{"prompts", "prompts/list", "prompts", &o.Prompts},
	} {
		if _, ok := caps[l.capability]; !ok {
			continue
		}
		items, err := list[json.RawMessage](ctx, p, l.method, l.member)
		if e, ok := errors.AsType[*mcp.RPCError](err); ok && e.Code == -32601 {
			continue // promised, but not there: an empty list
		}
		if err != nil {
			return nil, err
		}
		*l.into = items
	}
	return o, nil
}

// print writes the offer for a person. All text in it is the server's.
func (o *offer) print(w io.Writer) error {
	versions := make([]string, len(o.SupportedVersions))
	for i, v := range o.SupportedVersions {
		versions[i] = string(v)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s · %s · protocol %s", clean(o.Server.Name), clean(o.Server.Version), o.Transport, o.ProtocolVersion)
	if len(versions) > 1 {
		fmt.Fprintf(&b, " of %s", strings.Join(versions, ", "))
	}
	b.WriteByte('\n')
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(o.Tools) > 0 {
		_, _ = fmt.Fprintln(tab, "TOOL\tARGUMENTS\tHINTS") // a strings.Builder does not fail
	}
	for _, raw := range o.Tools {
		var t tool
		if err := json.Unmarshal(raw, &t); err != nil {
			return fmt.Errorf("an entry of tools/list: %w", err)
		}
		_, _ = fmt.Fprintf(tab, "%s\t%s\t%s\n", clean(t.Name), clean(t.arguments()), t.hints())
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "%s · %s · %s · %s\n", count(len(o.Tools), "tool"), count(len(o.Resources), "resource"),
		count(len(o.ResourceTemplates), "template"), count(len(o.Prompts), "prompt"))
	_, err := io.WriteString(w, b.String())
	return err
}

// clean makes a server's text safe for a terminal, and one line.
func clean(s string) string { return output.Escape(strings.ReplaceAll(s, "\n", " ")) }

func sortedNames(m map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(m)) }
