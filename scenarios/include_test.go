package scenarios_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbench/scenarios"
)

// loadFiles loads bench.yaml of a set of files.
func loadFiles(files map[string]string) (*scenarios.Scenario, error) {
	return scenarios.Load("bench.yaml", []byte(files["bench.yaml"]), scenarios.LoadOptions{
		Dir: "d",
		ReadFile: func(name string) ([]byte, error) {
			if data, ok := files[strings.TrimPrefix(name, "d/")]; ok {
				return []byte(data), nil
			}
			return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("no such file")}
		},
	})
}

const includedMain = `version: 1
use: ./base.yaml
servers: {a: {use: "./common.yaml#servers.prod", protocol: "2025-11-25"}}
load: {groups: {main: {flow: login, iterations: 1}}}
flows: {login: {use: "./common.yaml#flows.login"}}
`

func TestUseTakesOverParts(t *testing.T) {
	s, err := loadFiles(map[string]string{
		"bench.yaml":    includedMain,
		"base.yaml":     "limits: {request_timeout: 7s}\nload: {grace: 3s}\nvars: {who: ann}\n",
		"common.yaml":   "servers: {prod: {url: \"http://h/\", headers: {X-A: b}, protocol: \"2025-03-26\"}}\nflows: {login: {use: \"sub/more.yaml#flow\"}}\n",
		"sub/more.yaml": "flow: {steps: [{tools/call: {name: login, arguments: {who: \"${{ vars.who }}\"}}}]}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	p := mustCompile(t, s)
	got := []string{
		p.Servers[0].URL, p.Servers[0].Protocol, p.Servers[0].Headers[0].Name, p.Limits.RequestTimeout.String(), p.Grace.String(),
		p.Flows[0].Steps[0].Name, p.Flows[0].Steps[0].Params(),
	}
	want := []string{"http://h/", "2025-11-25", "X-A", "7s", "3s", "login", `{"name":"login","arguments":{"who":"${{ vars.who }}"}}`}
	want[6] = `{"name":"login","arguments":{"who":"ann"}}`
	params, err := p.Flows[0].Steps[0].Render(nil, &scenarios.Env{})
	if err != nil {
		t.Fatal(err)
	}
	got[6] = string(params)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("taken over (-want +got):\n%s", diff)
	}
	if resolved := string(s.Resolved()); strings.Contains(resolved, "use:") {
		t.Errorf("what was resolved still uses files:\n%s", resolved)
	}
}

func TestUseFaults(t *testing.T) {
	const flow = "load: {groups: {main: {}}}\nservers: {a: {url: \"http://h/\"}}\n"
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no file", map[string]string{"bench.yaml": "version: 1\nuse: ./x.yaml\n" + flow + "flows: {f: {steps: [{ping: {}}]}}\n"}, "bench.yaml:2:6: open d/x.yaml: no such file"},
		{"no part", map[string]string{"bench.yaml": "version: 1\n" + flow + "flows: {f: {use: x.yaml#flows.lgin}}\n", "x.yaml": "flows: {login: {steps: []}}"}, `bench.yaml:4:18: d/x.yaml#flows has no "lgin" (did you mean "login"?)`},
		{"itself", map[string]string{"bench.yaml": "version: 1\n" + flow + "flows: {f: {use: x.yaml#a}}\n", "x.yaml": "a: {use: x.yaml#a}"}, "d/x.yaml:1:10: x.yaml#a uses itself"},
		{"a fault in the other file", map[string]string{"bench.yaml": "version: 1\n" + flow + "flows: {f: {use: x.yaml#f}}\n", "x.yaml": "f:\n  steps:\n    - pin: {}\n"}, `d/x.yaml:3:7: unknown key "pin" (did you mean "ping"?)`},
		{"a bad expression in the other file", map[string]string{"bench.yaml": "version: 1\n" + flow + "flows: {f: {use: x.yaml#f}}\n", "x.yaml": "f:\n  steps:\n    - tools/call: {name: \"a${{ nope }}\"}\n"}, `d/x.yaml:3:32: unknown name "nope"`},
		{"no map", map[string]string{"bench.yaml": "version: 1\n" + flow + "flows: {f: {use: x.yaml#f}}\n", "x.yaml": "f: 3"}, "x.yaml#f is a number; use takes maps"},
		{"not YAML", map[string]string{"bench.yaml": "version: 1\n" + flow + "flows: {f: {use: x.yaml#f}}\n", "x.yaml": "f: [3"}, "d/x.yaml:1:4: not YAML"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadFiles(tt.files)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error\n%v\nwant %s", err, tt.want)
			}
		})
	}
}
