package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"mcpbench/mcp"
	"mcpbench/output"
)

// offer is what a server has, as discover --json prints it.
type offer struct {
	Server            mcp.Implementation `json:"server_info"`
	Transport         string             `json:"transport"`
	ProtocolVersion   mcp.Version        `json:"protocol_version"`
	SupportedVersions []mcp.Version      `json:"supported_versions"` // as far as the server said
	Versions          []versionOffer     `json:"versions"`
	Capabilities      json.RawMessage    `json:"capabilities"`
	Instructions      string             `json:"instructions,omitempty"`
	Tools             []json.RawMessage  `json:"tools"`
	Resources         []json.RawMessage  `json:"resources"`
	ResourceTemplates []json.RawMessage  `json:"resource_templates"`
	Prompts           []json.RawMessage  `json:"prompts"`
	Lists             []listOffer        `json:"lists"`
}

// versionOffer tells whether a session could be opened in a version.
type versionOffer struct {
	Version mcp.Version `json:"version"`
	Spoken  bool        `json:"spoken"`
	Reason  string      `json:"reason,omitempty"` // why not
}

// listOffer is what a listing weighs.
type listOffer struct {
	Method string `json:"method"`
	// Declared: the server's capabilities promise the list. One that is not
	// promised is not asked for.
	Declared bool    `json:"declared"`
	Entries  int     `json:"entries"`
	Pages    int     `json:"pages"`
	Bytes    int     `json:"bytes"`  // of the messages that brought it
	Tokens   int     `json:"tokens"` // what a model reads, estimated: a token for four bytes of the entries
	MS       float64 `json:"ms"`     // all pages together
	// The hints of 2026-07-28 on the first page, absent when it had none.
	TTLMS      *int64 `json:"ttl_ms,omitempty"`
	CacheScope string `json:"cache_scope,omitempty"`
	Error      string `json:"error,omitempty"`
}

// bytesPerToken is the usual rule of thumb for English and JSON.
const bytesPerToken = 4

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
		entry := listOffer{Method: l.method}
		if _, entry.Declared = caps[l.capability]; entry.Declared {
			items, err := p.weigh(ctx, &entry, l.member)
			if e, ok := errors.AsType[*mcp.RPCError](err); ok && e.Code == -32601 {
				entry.Error, err = e.Error(), nil // promised, but not there
			}
			if err != nil {
				return nil, err
			}
			*l.into = append(*l.into, items...)
		}
		o.Lists = append(o.Lists, entry)
	}
	return o, nil
}

// weigh makes one listing and notes what it weighs.
func (p *probe) weigh(ctx context.Context, l *listOffer, member string) ([]json.RawMessage, error) {
	var took time.Duration
	items, err := list[json.RawMessage](ctx, p, l.Method, member, func(r mcp.Reply) {
		l.Pages++
		l.Bytes += r.BytesIn
		took += r.Timing.End - r.Timing.Start
		var hints struct {
			TTL   *int64 `json:"ttlMs"`
			Scope string `json:"cacheScope"`
		}
		if l.Pages == 1 && json.Unmarshal(r.Result, &hints) == nil {
			l.TTLMS, l.CacheScope = hints.TTL, hints.Scope
		}
	})
	l.Entries, l.MS = len(items), inMS(took)
	size := 0
	for _, item := range items {
		size += len(item)
	}
	l.Tokens = (size + bytesPerToken - 1) / bytesPerToken
	return items, err
}

// versions opens a session in each version, one after the other, to see which
// the server speaks. The one at hand need not be tried.
func (p *probe) versions(ctx context.Context) ([]versionOffer, error) {
	all := mcp.Versions()
	out := make([]versionOffer, 0, len(all))
	for _, v := range all {
		o := versionOffer{Version: v, Spoken: v == p.session.Info().Version}
		if !o.Spoken {
			err := p.try(ctx, v)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			o.Spoken = err == nil
			if err != nil {
				o.Reason = err.Error()
			}
		}
		out = append(out, o)
	}
	return out, nil
}

// try opens and closes a session in version v.
func (p *probe) try(ctx context.Context, v mcp.Version) error {
	session, err := p.connect(ctx, v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	_ = session.Close(ctx) // it spoke the version, however it ends
	return nil
}

// print writes the offer for a person. All text in it is the server's.
func (o *offer) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s · %s · protocol %s\n", clean(o.Server.Name), clean(o.Server.Version), o.Transport, o.ProtocolVersion)
	var spoken, not []string
	for _, v := range o.Versions {
		if v.Spoken {
			spoken = append(spoken, string(v.Version))
		} else {
			not = append(not, string(v.Version))
		}
	}
	fmt.Fprintf(&b, "versions      %s", strings.Join(spoken, ", "))
	if len(not) > 0 {
		fmt.Fprintf(&b, "; not %s", strings.Join(not, ", "))
	}
	fmt.Fprintf(&b, "\ncapabilities  %s\n", orNone(clean(capabilityNames(o.Capabilities))))
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(tab, format+"\n", args...) } // a strings.Builder does not fail
	if len(o.Tools) > 0 {
		line("\nTOOL\tARGUMENTS\tHINTS")
	}
	for _, raw := range o.Tools {
		var t tool
		if err := json.Unmarshal(raw, &t); err != nil {
			return fmt.Errorf("an entry of tools/list: %w", err)
		}
		hints := t.hints()
		if o.Transport == "http" && o.ProtocolVersion.Features().MethodHeaders {
			if err := mcp.HeaderRules(t.InputSchema); err != nil {
				hints = "not for use over HTTP: " + clean(err.Error())
			}
		}
		line("%s\t%s\t%s", clean(t.Name), clean(t.arguments()), hints)
	}
	line("\nLIST\tENTRIES\tPAGES\tSIZE\tTOKENS\tTIME\tCACHE")
	for i := range o.Lists {
		o.Lists[i].print(line)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (l *listOffer) print(line func(format string, args ...any)) {
	switch {
	case !l.Declared:
		line("%s\t–\t\t\t\t\tnot declared", l.Method)
	case l.Error != "":
		line("%s\t–\t\t\t\t\tdeclared, but %s", l.Method, clean(l.Error))
	default:
		cache := "–"
		if l.TTLMS != nil {
			cache = strings.TrimSpace(fmt.Sprintf("%v %s", time.Duration(*l.TTLMS)*time.Millisecond, clean(l.CacheScope)))
		}
		line("%s\t%d\t%d\t%s\t≈ %d\t%s\t%s", l.Method, l.Entries, l.Pages, output.FormatBytes(int64(l.Bytes)), l.Tokens, ms(l.MS), cache)
	}
}

// capabilityNames lists what a capabilities object declares: tools(listChanged), logging.
func capabilityNames(raw json.RawMessage) string {
	var caps map[string]map[string]json.RawMessage
	if json.Unmarshal(raw, &caps) != nil {
		return string(raw) // whatever it is
	}
	var out []string
	for name, members := range caps {
		var set []string
		for member, value := range members {
			if string(value) != "false" {
				set = append(set, member)
			}
		}
		slices.Sort(set)
		if len(set) > 0 {
			name += "(" + strings.Join(set, ", ") + ")"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
