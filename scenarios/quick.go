package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"mcpbench/scenarios/internal/syntax"
)

// QuickConfig describes a run of one tool without a scenario file. Exactly one
// of URL, Command, ConfigFile and Embedded names the server.
type QuickConfig struct {
	URL     string
	Command []string // with its arguments
	// ConfigFile and ConfigServer name an entry of an editor's configuration.
	ConfigFile, ConfigServer string
	Embedded                 string // http or stdio: the demo target
	Headers                  []HeaderValue
	Tool                     string
	// Args is a JSON object; empty is {}. Texts in it may hold ${{ }}, unless
	// Literal says that they stand for themselves, as made ones do.
	Args    []byte
	Literal bool
	Options LoadOptions
}

// Quick returns the scenario of a quick run: one server, one flow with one
// call, one closed group. Override gives it its load.
func Quick(q QuickConfig) (*Scenario, error) {
	if q.Tool == "" {
		return nil, fmt.Errorf("a quick run calls one tool; name it with -t")
	}
	arguments, err := argumentsNode(q.Args)
	if err != nil {
		return nil, err
	}
	if q.Literal {
		literal(arguments)
	}
	server := &syntax.Node{Kind: syntax.Map}
	name, named := "server", 0
	if q.URL != "" {
		if err := validURL(q.URL); err != nil {
			return nil, fmt.Errorf("--url: %w", err)
		}
		server.Set("url", syntax.NewText(q.URL, "--url"))
		named++
	}
	if len(q.Command) > 0 {
		server.Set("command", syntax.NewText(q.Command[0], "--"))
		server.Set("args", syntax.NewList(q.Command[1:], "--"))
		named++
	}
	if q.ConfigFile != "" {
		from := server.Child("from", "--mcp-config")
		from.Set("file", syntax.NewText(q.ConfigFile, "--mcp-config"))
		from.Set("server", syntax.NewText(q.ConfigServer, "--server"))
		name = q.ConfigServer
		named++
	}
	if q.Embedded != "" {
		server.Set("embedded", syntax.NewText(q.Embedded, ""))
		named++
	}
	if named != 1 {
		return nil, fmt.Errorf("a quick run has one server: give --url URL, -- COMMAND, or --mcp-config FILE with --server NAME")
	}
	if name == "" {
		return nil, fmt.Errorf("--mcp-config %s: give the server's name too, with --server NAME", filepath.Base(q.ConfigFile))
	}
	s := &Scenario{
		source: q.Tool, options: q.Options,
		src: syntax.NewSource(""), root: quickTree(name, server, q.Tool, arguments),
	}
	if faults := s.examine(); len(faults) > 0 {
		return nil, faults
	}
	if len(q.Headers) > 0 {
		if err := s.Override(Overrides{Headers: q.Headers}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func quickTree(name string, server *syntax.Node, tool string, arguments *syntax.Node) *syntax.Node {
	root := &syntax.Node{Kind: syntax.Map}
	root.Set("version", syntax.NewPlain("1", ""))
	root.Set("name", syntax.NewText(tool, "--tool"))
	root.Child("servers", "").Set(name, server)
	root.Child("load", "").Child("groups", "").Set("quick", &syntax.Node{Kind: syntax.Map})
	call := &syntax.Node{Kind: syntax.Map}
	call.Set("name", syntax.NewText(escapeTemplate(tool), "--tool"))
	call.Set("arguments", arguments)
	step := &syntax.Node{Kind: syntax.Map}
	step.Set("tools/call", call)
	root.Child("flows", "").Child("quick", "").Set("steps", &syntax.Node{Kind: syntax.Seq, Items: []*syntax.Node{step}})
	return root
}

// literal makes every text below n stand for itself.
func literal(n *syntax.Node) {
	if n.Kind == syntax.String {
		n.Text = escapeTemplate(n.Text)
	}
	for _, item := range n.Items {
		literal(item)
	}
	for _, p := range n.Pairs {
		literal(p.Value)
	}
}

// argumentsNode reads the JSON object of -a.
func argumentsNode(data []byte) (*syntax.Node, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return &syntax.Node{Kind: syntax.Map}, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(data))
	n, err := jsonNode(d)
	if err == nil {
		if _, more := d.ReadToken(); !errors.Is(more, io.EOF) {
			err = fmt.Errorf("more text after the object")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the tool's arguments (-a) are not JSON: %s", jsonReason(err))
	}
	if n.Kind != syntax.Map {
		return nil, fmt.Errorf(`the tool's arguments (-a) must be a JSON object, such as {"name": "value"}; this is %s`, n.Kind)
	}
	return n, nil
}

// jsonNode reads one JSON value; the decoder bounds its depth.
func jsonNode(d *jsontext.Decoder) (*syntax.Node, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() { //nolint:exhaustive // the others are scalars
	case '"':
		return syntax.NewText(t.String(), "--args"), nil
	case '[':
		n := &syntax.Node{Kind: syntax.Seq, Origin: "--args"}
		for d.PeekKind() != ']' {
			item, err := jsonNode(d)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, item)
		}
		_, err = d.ReadToken()
		return n, err
	case '{':
		n := &syntax.Node{Kind: syntax.Map, Origin: "--args"}
		for d.PeekKind() != '}' {
			key, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			name := key.String()
			value, err := jsonNode(d)
			if err != nil {
				return nil, err
			}
			n.Pairs = append(n.Pairs, syntax.Pair{Key: syntax.NewText(name, "--args"), Value: value})
		}
		_, err = d.ReadToken()
		return n, err
	default:
		return syntax.NewPlain(t.String(), "--args"), nil
	}
}
