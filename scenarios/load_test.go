package scenarios_test

import (
	"errors"
	"testing"

	"mcpbench/scenarios"
)

func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func mustLoad(t *testing.T, text string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Load("bench.yaml", []byte(text), scenarios.LoadOptions{Env: environment(nil)})
	if err != nil {
		t.Fatalf("load: %v\n%s", err, text)
	}
	return s
}

func mustCompile(t *testing.T, s *scenarios.Scenario) *scenarios.Program {
	t.Helper()
	p, err := s.Compile()
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return p
}

func problemsOf(t *testing.T, err error) scenarios.Problems {
	t.Helper()
	var ps scenarios.Problems
	if !errors.As(err, &ps) {
		t.Fatalf("error %v (%T), want Problems", err, err)
	}
	return ps
}

func TestBundledScenariosCompile(t *testing.T) {
	for _, b := range scenarios.Bundled() {
		t.Run(b.Name, func(t *testing.T) {
			s, err := scenarios.LoadBundled("@"+b.Name, scenarios.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			p := mustCompile(t, s)
			if p.Name != b.Name || b.Description == "" || p.Description != b.Description {
				t.Errorf("name %q, description %q; want %q, %q", p.Name, p.Description, b.Name, b.Description)
			}
			if len(p.Unsupported) > 0 || len(p.Warnings) > 0 {
				t.Errorf("unsupported %v, warnings %v; want none", p.Unsupported, p.Warnings)
			}
		})
	}
}
