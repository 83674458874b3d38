package scenarios_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpbench/internal/curve"
	"mcpbench/scenarios"
)

func TestQuick(t *testing.T) {
	s, err := scenarios.Quick(scenarios.QuickConfig{
		URL: "http://127.0.0.1:1/mcp", Tool: "echo", Args: []byte(`{"message": "hi ${{ iteration.index }}", "n": 5, "l": [1.5, null, true, {"a": ""}]}`),
		Headers: []scenarios.HeaderValue{{Name: "Authorization", Value: "Bearer hidden"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Override(scenarios.Overrides{Sessions: 20, Duration: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	p := mustCompile(t, s)
	want := &scenarios.Program{
		Name:    "echo",
		Servers: []scenarios.Server{{Name: "server", Transport: "http", AnyHTTP: true, URL: "http://127.0.0.1:1/mcp", Headers: []scenarios.Header{{Name: "Authorization"}}}},
		Groups:  []scenarios.Group{{Name: "quick", Sessions: 20, Level: curve.Constant(20), WarmLevel: 20, Duration: 5 * time.Second, InFlight: 1}},
		Flows: []scenarios.Flow{{Name: "quick", Steps: []*scenarios.Step{
			{ID: "tools/call echo", Method: "tools/call", Name: "echo", RequestName: "echo"},
		}}},
		Grace: 5 * time.Second, Limits: limitsWith(30*time.Second, 10*time.Second),
	}
	if diff := cmp.Diff(want, p, cmpopts.IgnoreUnexported(scenarios.Step{}, scenarios.Client{}), cmpopts.IgnoreFields(scenarios.Flow{}, "Do"), cmpopts.IgnoreFields(scenarios.Group{}, "OnError"), cmpopts.IgnoreFields(scenarios.Header{}, "Value"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("program (-want +got):\n%s", diff)
	}
	got, err := p.Flows[0].Steps[0].Render(nil, &scenarios.Env{Iteration: 3})
	if want := `{"name":"echo","arguments":{"message":"hi 3","n":5,"l":[1.5,null,true,{"a":""}]}}`; err != nil || string(got) != want {
		t.Errorf("params %s, %v; want %s", got, err, want)
	}
	if r := string(s.Resolved()); strings.Contains(r, "hidden") || !strings.Contains(r, "sessions: 20") {
		t.Errorf("resolved:\n%s", r)
	}
}

func TestQuickStdioAndEditor(t *testing.T) {
	s, err := scenarios.Quick(scenarios.QuickConfig{Command: []string{"./srv", "--stdio"}, Tool: "odd ${{ name"})
	if err != nil {
		t.Fatal(err)
	}
	p := mustCompile(t, s)
	if got := p.Servers[0]; got.Transport != "stdio" || got.Command != "./srv" || got.Args[0] != "--stdio" {
		t.Errorf("server %+v", got)
	}
	if got := p.Flows[0].Steps[0].Name; got != "odd ${{ name" {
		t.Errorf("tool %q", got)
	}
	s, err = scenarios.Quick(scenarios.QuickConfig{ConfigFile: ".mcp.json", ConfigServer: "fs", Tool: "x", Options: scenarios.LoadOptions{
		ReadFile: func(string) ([]byte, error) { return []byte(`{"mcpServers": {"fs": {"url": "http://h/"}}}`), nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := mustCompile(t, s).Servers[0]; got.Name != "fs" || got.URL != "http://h/" {
		t.Errorf("server %+v", got)
	}
}

func TestQuickErrors(t *testing.T) {
	for _, tt := range []struct {
		q    scenarios.QuickConfig
		want string
	}{
		{scenarios.QuickConfig{URL: "http://h/"}, "name it with -t"},
		{scenarios.QuickConfig{Tool: "x"}, "a quick run has one server"},
		{scenarios.QuickConfig{Tool: "x", URL: "http://h/", Command: []string{"y"}}, "a quick run has one server"},
		{scenarios.QuickConfig{Tool: "x", URL: "h"}, "--url: "},
		{scenarios.QuickConfig{Tool: "x", URL: "http://h/", Args: []byte("{")}, "(-a) are not JSON"},
		{scenarios.QuickConfig{Tool: "x", URL: "http://h/", Args: []byte("{} {}")}, "(-a) are not JSON"},
		{scenarios.QuickConfig{Tool: "x", URL: "http://h/", Args: []byte(`{"a":1,"a":2}`)}, "(-a) are not JSON"},
		{scenarios.QuickConfig{Tool: "x", URL: "http://h/", Args: []byte("[1]")}, "must be a JSON object"},
		{scenarios.QuickConfig{Tool: "x", URL: "http://h/", Args: []byte(`{"a":"${{ nope }}"}`)}, `--args: unknown name "nope"`},
	} {
		if _, err := scenarios.Quick(tt.q); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v; want %q", tt.q, err, tt.want)
		}
	}
}

func TestQuickLiteralArguments(t *testing.T) {
	s, err := scenarios.Quick(scenarios.QuickConfig{URL: "http://h/", Tool: "x", Literal: true, Args: []byte(`{"a":"${{ 1 }} $${{ 2 }}","l":["${{ 3 }}"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := mustCompile(t, s).Flows[0].Steps[0].Render(nil, &scenarios.Env{})
	if want := `{"name":"x","arguments":{"a":"${{ 1 }} $${{ 2 }}","l":["${{ 3 }}"]}}`; err != nil || string(got) != want {
		t.Errorf("params %s, %v; want %s", got, err, want)
	}
}
