package scenarios_test

import (
	"encoding/json"
	"testing"

	"mcpbench/scenarios"
)

// checkTemplate renders a text as a tool's argument; whatever it is, the params
// are JSON or there is an error.
func checkTemplate(t *testing.T, text string) {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"a": text})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenarios.Quick(scenarios.QuickConfig{URL: "http://h/", Tool: "x", Args: arguments})
	if err != nil {
		return
	}
	p := mustCompile(t, s)
	params, err := p.Flows[0].Steps[0].Render(nil, &scenarios.Env{})
	if err == nil && !json.Valid(params) {
		t.Errorf("%q renders %s", text, params)
	}
}

func TestTemplateTexts(t *testing.T) {
	for _, text := range []string{"", "\x00", "\u2028", "${{ 'a\"b' }}", "x${{ 'a\"b' }}y", "${{ 1/0 }}", "x ${{ 1.5/0 }}", "${{ nil }}", "x ${{ nil }}"} {
		checkTemplate(t, text)
	}
}
