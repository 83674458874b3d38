package scenarios_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"mcpbench/scenarios"
)

// starterOf is a starter in which every text is one that a server may give.
func starterOf(t *testing.T, name, text, argument string) (starter *scenarios.Starter, params []byte) {
	t.Helper()
	params, err := json.Marshal(map[string]any{"name": name, "arguments": map[string]any{
		argument: text, "list": []any{text, 1.5, nil, true, map[string]any{argument: text}}, "empty": map[string]any{},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &scenarios.Starter{
		Comments: []string{text, ""},
		Name:     "it",
		Server:   scenarios.StarterServer{URL: scenarios.StarterText{Text: "http://127.0.0.1:1/mcp"}},
		Before:   []scenarios.StarterStep{{Method: "tools/list", Params: []byte(`{"all_pages":true}`)}},
		Steps: []scenarios.StarterStep{
			{Method: "ping", Params: []byte(`{}`), Comments: []string{text}},
			{Method: "tools/call", Params: params, Off: true, Comments: []string{text, name}},
			{Comments: []string{text}},
			{Method: "tools/call", Params: params, Comments: []string{text, name}},
		},
		Thresholds: []string{"rate(errors) < 1%"},
	}, params
}

func checkStarter(t *testing.T, name, text, argument string) {
	t.Helper()
	starter, params := starterOf(t, name, text, argument)
	data, err := starter.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range string(data) {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("%q is written to the file:\n%q", r, data)
		}
	}
	s, err := scenarios.Load("it.yaml", data, scenarios.LoadOptions{})
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	p, err := s.Compile()
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if len(p.Flows) != 1 || len(p.Flows[0].Steps) != 2 || len(p.Flows[0].Before) != 1 || len(p.Servers) != 1 {
		t.Fatalf("%d steps, %d before, want 2 and 1:\n%s", len(p.Flows[0].Steps), len(p.Flows[0].Before), data)
	}
	got, err := p.Flows[0].Steps[1].Render(nil, &scenarios.Env{})
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	var have, want any
	if err := json.Unmarshal(got, &have); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(params, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("the step sends something else (-want +got):\n%s\n%s", diff, data)
	}
}

// hostile are texts that would mean something to YAML, to the language or to a terminal.
var hostile = []string{
	"plain", "a: b", "- x", "# no comment", "x # y", "\n- ping: {}", "x\r\n      - ping: {}", "'", `"`, `\`, "{", "[", "*a", "&a", "!t", "|", ">", "%", "@", "`",
	"null", "true", "0x1f", "1e5", "~", "", " ", "\t", " lead", "trail ", "<<", "=", "?", "? x", ": ", "---", "...", "${HOME}", "$${HOME}", "${{ 1 }}", "$${{ 1 }}", "$$${{ 1 }}", "${{", "${", "}}",
	"\x1b[31mred\x1b[0m", "\x00", "\u0085\u2028\u2029\u202e\ufeff", "\U000e0001", "é漢字🙂", strings.Repeat("long ", 1000), "yes", "2026-07-28", "12:30", "1_000",
}

func TestStarterOfHostileTexts(t *testing.T) {
	for _, text := range hostile {
		t.Run(fmt.Sprintf("%.20q", text), func(t *testing.T) {
			name := text
			if name == "" {
				name = "x"
			}
			checkStarter(t, name, text, "key"+text)
			checkStarter(t, "x", text, text)
		})
	}
}

func FuzzStarter(f *testing.F) {
	for _, text := range hostile {
		f.Add("x"+text, text, text)
	}
	f.Fuzz(func(t *testing.T, name, text, argument string) {
		if name == "" || argument == "list" || argument == "empty" || len(name)+len(text)+len(argument) > 4<<10 {
			t.Skip()
		}
		for _, s := range []string{name, text, argument} {
			if !utf8.ValidString(s) {
				t.Skip() // JSON has none
			}
		}
		checkStarter(t, name, text, argument)
	})
}

func TestStarterServer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server scenarios.StarterServer
		check  func(s *scenarios.Server) any
		want   any
	}{
		{
			"url",
			scenarios.StarterServer{URL: scenarios.StarterText{Text: "http://h/mcp?a=${b}"}},
			func(s *scenarios.Server) any { return s.URL }, "http://h/mcp?a=${b}",
		},
		{
			"secret url",
			scenarios.StarterServer{URL: scenarios.StarterText{Variable: "SERVER_URL"}},
			func(s *scenarios.Server) any { return s.URL }, "http://secret/",
		},
		{
			"command",
			scenarios.StarterServer{Command: "./a b", Args: []scenarios.StarterText{
				{Text: "--x=${Y}"}, {Text: "${{ z }}"}, {Text: "5"}, {Text: "--token=", Variable: "TOKEN"}, {Text: "\x1b#"},
			}},
			func(s *scenarios.Server) any { return append([]string{s.Command}, s.Args...) },
			[]string{"./a b", "--x=${Y}", "${{ z }}", "5", "--token=t", "\x1b#"},
		},
		{
			"header",
			scenarios.StarterServer{
				URL:      scenarios.StarterText{Text: "http://h/"},
				Headers:  []scenarios.StarterHeader{{Name: "Authorization", Value: scenarios.StarterText{Text: "Bearer ", Variable: "TOKEN"}}, {Name: "X-A", Value: scenarios.StarterText{Text: "${{ 1 }} ${TOKEN}"}}},
				Protocol: "2025-11-25", Transport: "http",
			},
			func(s *scenarios.Server) any {
				out := []string{s.Protocol, s.Transport}
				for _, h := range s.Headers {
					v, err := h.Value.Render(&scenarios.Env{})
					if err != nil {
						v = err.Error()
					}
					out = append(out, h.Name+": "+v)
				}
				return out
			},
			[]string{"2025-11-25", "http", "Authorization: Bearer t", "X-A: ${{ 1 }} ${TOKEN}"},
		},
		{
			"embedded",
			scenarios.StarterServer{Embedded: "stdio"},
			func(s *scenarios.Server) any { return s.Embedded }, true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			starter, _ := starterOf(t, "x", "y", "z")
			starter.Server, starter.Answers = tt.server, true
			data, err := starter.YAML()
			if err != nil {
				t.Fatal(err)
			}
			s, err := scenarios.Load("it.yaml", data, scenarios.LoadOptions{Env: environment(map[string]string{"TOKEN": "t", "SERVER_URL": "http://secret/"})})
			if err != nil {
				t.Fatalf("%v\n%s", err, data)
			}
			p := mustCompile(t, s)
			if diff := cmp.Diff(tt.want, tt.check(&p.Servers[0])); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, data)
			}
			if !p.Client.Asked() {
				t.Error("the client answers nothing")
			}
		})
	}
}
