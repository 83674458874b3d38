package scenarios_test

import (
	"os"
	"strings"
	"testing"

	"mcpbench/scenarios"
)

const oneServer = `version: 1
servers:
  SERVER
load: {groups: {main: {}}}
flows: {f: {steps: [{tools/list: {}}]}}
`

// Which transport a server has, and whether somebody chose it.
func TestTransport(t *testing.T) {
	config := `{"mcpServers": {"open": {"url": "http://h/"}, "new": {"type": "http", "url": "http://h/"},
		"old": {"type": "sse", "url": "http://h/sse", "headers": {"A": "b"}}, "pipe": {"command": "x"}}}`
	tests := []struct {
		server, flag string
		transport    string
		open         bool
		text         string // of the error
	}{
		{"s: {url: http://h/}", "", "http", true, ""},
		{"s: {url: http://h/sse}", "", "http", true, ""}, // the end of a URL decides nothing
		{"s: {url: http://h/, transport: auto}", "", "http", true, ""},
		{"s: {url: http://h/, transport: http}", "", "http", false, ""},
		{"s: {url: http://h/, transport: sse}", "", "sse", false, ""},
		{"s: {url: http://h/, transport: sse, protocol: '2024-11-05'}", "", "sse", false, ""},
		{"s: {command: x, transport: auto}", "", "stdio", false, ""},
		{"s: {embedded: http, transport: auto}", "", "http", false, ""},
		{"s: {from: {file: m.json, server: open}}", "", "http", true, ""},
		{"s: {from: {file: m.json, server: new}}", "", "http", false, ""},
		{"s: {from: {file: m.json, server: old}}", "", "sse", false, ""},
		{"s: {from: {file: m.json, server: old}, headers: {C: d}}", "", "sse", false, ""},
		{"s: {from: {file: m.json, server: pipe}}", "", "stdio", false, ""},
		{"s: {from: {file: m.json, server: open}, transport: sse}", "", "sse", false, ""},
		{"s: {from: {file: m.json, server: old}, transport: http}", "", "http", false, ""},
		{"s: {from: {file: m.json, server: pipe}, transport: sse}", "", "", false, `transport sse does not go with "pipe" of m.json, which is stdio`},
		{"s: {from: {file: m.json, server: open}, transport: stdio}", "", "", false, `transport stdio does not go with "open" of m.json, which is http`},

		{"s: {url: http://h/}", "auto", "http", true, ""},
		{"s: {url: http://h/}", "http", "http", false, ""},
		{"s: {url: http://h/}", "sse", "sse", false, ""},
		{"s: {url: http://h/, transport: http}", "sse", "sse", false, ""},
		{"s: {from: {file: m.json, server: open}}", "sse", "sse", false, ""},
		{"s: {url: http://h/}", "stdio", "", false, "transport stdio does not go with url, which is http"},
		{"s: {command: x}", "stdio", "stdio", false, ""},
		{"s: {command: x}", "sse", "", false, "transport sse does not go with command, which is stdio"},
		{"s: {embedded: http}", "stdio", "stdio", false, ""},
		{"s: {embedded: stdio, transport: stdio}", "http", "http", false, ""},
		{"s: {embedded: http}", "sse", "", false, "the demo target has no HTTP+SSE"},
	}
	for _, tt := range tests {
		o := scenarios.LoadOptions{ReadFile: func(name string) ([]byte, error) {
			if name == "m.json" {
				return []byte(config), nil
			}
			return nil, os.ErrNotExist
		}}
		s, err := scenarios.Load("bench.yaml", []byte(strings.ReplaceAll(oneServer, "SERVER", tt.server)), o)
		if err == nil {
			err = s.Override(scenarios.Overrides{Transport: tt.flag})
		}
		var p *scenarios.Program
		if err == nil {
			p, err = s.Compile()
		}
		switch {
		case tt.text != "":
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s %s: error %v, want %q", tt.server, tt.flag, err, tt.text)
			}
		case err != nil:
			t.Errorf("%s %s: %v", tt.server, tt.flag, err)
		case p.Servers[0].Transport != tt.transport || p.Servers[0].AnyHTTP != tt.open || len(p.Unsupported) > 0:
			t.Errorf("%s %s: %+v, %v", tt.server, tt.flag, p.Servers[0], p.Unsupported)
		}
	}
}
