package scenarios_test

import (
	"testing"

	"mcpbench/scenarios"
)

func TestMasker(t *testing.T) {
	const text = `
version: 1
servers: {s: {url: "http://127.0.0.1:1/mcp", headers: {Authorization: "Bearer abc123"}}}
load: {groups: {g: {iterations: 1}}}
flows: {f: {steps: [{ping: {}}]}}
`
	s, err := scenarios.Load("a.yaml", []byte(text), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := s.Masker()
	for in, want := range map[string]string{
		`{"a":"Bearer abc123"}`:                          `{"a":"***"}`,
		`{"password":"x\"y","b":"z"}`:                    `{"password":"***","b":"z"}`,
		`{"api_key" : "k", "n": {"clientSecret":"cut sh`: `{"api_key" : "***", "n": {"clientSecret":"***"`,
		`{"progressToken":"7","token":"7"}`:              `{"progressToken":"7","token":"***"}`,
		`{"password":7,"text":"no \"token\": \"x\""}`:    `{"password":7,"text":"no \"token\": \"x\""}`,
		`no JSON`: `no JSON`,
	} {
		if got := m.Message(in); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}
