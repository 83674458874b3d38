package main

import (
	"testing"

	"mcpbench/scenarios"
)

func TestSharesMachine(t *testing.T) {
	program := func(server scenarios.Server, open bool) *scenarios.Program {
		return &scenarios.Program{
			Servers: []scenarios.Server{{Transport: "stdio"}, server},
			Groups:  []scenarios.Group{{Server: 0}, {Server: 1, Open: open}},
		}
	}
	url := func(text string) scenarios.Server { return scenarios.Server{Transport: "http", URL: text} }
	for name, test := range map[string]struct {
		program *scenarios.Program
		want    bool
	}{
		"stdio":       {program(scenarios.Server{Transport: "stdio"}, false), true},
		"name":        {program(url("http://LOCALHOST:1/mcp"), false), true},
		"ip4":         {program(url("http://127.0.0.9:1/mcp"), false), true},
		"ip6":         {program(url("https://[::1]/mcp"), false), true},
		"open":        {program(url("http://127.0.0.1:1/mcp"), true), false},
		"elsewhere":   {program(url("http://10.0.0.1:1/mcp"), false), false},
		"remote name": {program(url("http://localhost.example/mcp"), false), false},
		"in process":  {program(scenarios.Server{Transport: "http", Embedded: true}, false), false},
	} {
		if got := sharesMachine(test.program); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
