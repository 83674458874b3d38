package scenarios_test

import (
	"bytes"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"mcpbench/scenarios"
)

// fullOptions are what the full example of the language needs.
func fullOptions() scenarios.LoadOptions {
	return scenarios.LoadOptions{
		Env: environment(map[string]string{
			"TOKEN_URL": "http://127.0.0.1/token", "CLIENT_SECRET": "s3cret-value", "CATALOG_URL": "http://127.0.0.1:9/mcp", "PATH": "/bin",
		}),
		OpenFile: func(name string) (fs.File, error) { return fullData.Open(name) },
		ReadFile: func(string) ([]byte, error) {
			return []byte(`{"mcpServers": {"filesystem": {"command": "npx", "args": ["server"]}}}`), nil
		},
	}
}

// fullData are the files of rows of the full example.
var fullData = fstest.MapFS{
	"data/queries.csv": {Data: []byte("text,weight\nshoes,1\nhats,2\n")},
	"data/ids.parquet": {Data: rowsOfIDs()},
}

func rowsOfIDs() []byte {
	type row struct {
		ID string `parquet:"id"`
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, []row{{"a"}, {"b"}}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func loadFull(t *testing.T) *scenarios.Scenario {
	t.Helper()
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenarios.Load("full.yaml", data, fullOptions())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFullExample loads the example that shows the whole language: all that
// this version does not do yet is named, and nothing else is wrong.
func TestFullExample(t *testing.T) {
	p := mustCompile(t, loadFull(t))
	var got strings.Builder
	for _, u := range p.Unsupported {
		got.WriteString(u.Place() + ": " + u.Message + "\n")
	}
	for _, w := range p.Warnings {
		got.WriteString("warning: " + w.Place() + ": " + w.Message + "\n")
	}
	golden(t, "testdata/full.unsupported", got.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestResolvedFullExample(t *testing.T) {
	s := loadFull(t)
	got := string(s.Resolved())
	if strings.Contains(got, "s3cret") {
		t.Error("the resolved scenario shows a secret")
	}
	golden(t, "testdata/full.resolved.yaml", got)
}

// TestResolvedLoadsToTheSameProgram holds for every scenario without secrets.
func TestResolvedLoadsToTheSameProgram(t *testing.T) {
	files := map[string]string{"big": bigScenario, "two groups": twoGroups}
	for _, b := range scenarios.Bundled() {
		files[b.Name] = string(b.Data)
	}
	full, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	start := strings.Index(string(full), "    auth:\n")
	end := strings.Index(string(full), "    tls:")
	files["full"] = string(full)[:start] + string(full)[end:]
	files["odd texts"] = `version: 1
vars: {a: "x: y", b: "# no", c: " lead", d: "é\t\"q\" \\ \u2028", e: "yes", f: "5", g: "null", h: "~", i: "- a", j: "", k: "$${HOME}", l: "$${{ x }}", m: "a\nb\n", n: 0x1f, o: 1e3, p: 2026-01-01, q: "true"}
servers: {a: {url: "http://h/?a=b#c"}}
load: {groups: {"odd: name": , "5": {flow: "f #1"}}}
flows: {"f #1": {steps: [{id: "a: b", tools/call: {name: x, arguments: {a: "${{ vars.a }}", k: "$${HOME}", l: "$${{ x }} ${{ vars.l }}", list: [[], {}, [[1]], [{a: [b]}]]}}, check: {"ok: 1": "not result.isError"}}]}}
`
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			load := func(text string) (*scenarios.Scenario, *scenarios.Program) {
				s, err := scenarios.Load("a.yaml", []byte(text), fullOptions())
				if err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				return s, mustCompile(t, s)
			}
			s, want := load(text)
			resolved := string(s.Resolved())
			_, got := load(resolved)
			opts := cmp.Options{
				cmp.AllowUnexported(scenarios.Step{}, scenarios.Spread{}), cmpopts.IgnoreUnexported(scenarios.Client{}, scenarios.Feeder{}), cmpopts.IgnoreFields(scenarios.Step{}, "params", "checks", "saves", "shape", "expect", "generate"), cmpopts.IgnoreUnexported(scenarios.Action{}),
				cmpopts.IgnoreFields(scenarios.Header{}, "Value"), cmpopts.IgnoreFields(scenarios.Program{}, "Unsupported", "Warnings", "Thresholds"),
			}
			if diff := cmp.Diff(want, got, opts); diff != "" {
				t.Errorf("program (-want +got):\n%s\n%s", diff, resolved)
			}
			if len(want.Unsupported) != len(got.Unsupported) || len(want.Thresholds) != len(got.Thresholds) {
				t.Errorf("unsupported %v, want %v", got.Unsupported, want.Unsupported)
			}
			if diff := cmp.Diff(allParams(want), allParams(got)); diff != "" {
				t.Errorf("params (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(answersOf(t, want), answersOf(t, got), cmp.AllowUnexported(scenarios.Spread{})); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

func allParams(p *scenarios.Program) []string {
	var out []string
	for _, f := range p.Flows {
		for _, step := range slices.Concat(f.Before, f.Steps, f.After) {
			out = append(out, step.Params())
		}
	}
	return out
}

func answersOf(t *testing.T, p *scenarios.Program) scenarios.Answers {
	t.Helper()
	a, err := p.Client.Answers(&scenarios.Env{Session: 3})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestResolvedMasks(t *testing.T) {
	s, err := scenarios.Load("a.yaml", []byte(`version: 1
vars: {api_key: abc1, page: 5, author: ann}
servers:
  web:
    url: https://user:abc2@h/?access_token=abc3&q=${SET}
    headers: {Authorization: Bearer abc4, X-Api-Key: abc5, Cookie: abc6, X-Env: "${TOKEN}", X-Plain: shown1}
  pipe:
    command: ${SET}
    args: ["--token", "${TOKEN}", shown2]
    env: {GITHUB_TOKEN: abc7, DB_PASSWORD: abc8, FROM_ENV: "${TOKEN}", MODE: shown3, DEFAULTED: "${NONE:-shown4}"}
load: {groups: {main: {server: web}}}
flows: {f: {steps: [{tools/call: {name: x, arguments: {password: "${TOKEN}", note: shown5}}}]}}
`), scenarios.LoadOptions{Env: environment(map[string]string{"TOKEN": "abc9", "SET": "shown6"})})
	if err != nil {
		t.Fatal(err)
	}
	got := string(s.Resolved())
	if strings.Contains(got, "abc") {
		t.Errorf("a secret is shown:\n%s", got)
	}
	for _, want := range []string{"shown1", "shown2", "shown3", "shown4", "shown5", "shown6", "page: 5", "author: ann", "user:***@h"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not shown:\n%s", want, got)
		}
	}
}
