package scenarios_test

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"mcpbench/scenarios"
)

// masker compiles a scenario and returns what hides its secrets.
func masker(t *testing.T, text string, o scenarios.LoadOptions) *scenarios.Masker {
	t.Helper()
	s, err := scenarios.Load("a.yaml", []byte(text+"\nload: {groups: {g: {iterations: 1}}}\nflows: {f: {steps: [{ping: {}}]}}\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	return s.Masker()
}

func TestMasker(t *testing.T) {
	m := masker(t, `
version: 1
servers: {s: {url: "http://127.0.0.1:1/mcp", headers: {Authorization: "Bearer abc123"}}}`, scenarios.LoadOptions{})
	for in, want := range map[string]string{
		`{"a":"Bearer abc123"}`:                          `{"a":"***"}`,
		`the token abc123 is bad`:                        `the token *** is bad`,
		`{"password":"x\"y","b":"z"}`:                    `{"password":"***","b":"z"}`,
		`{"api_key" : "k", "n": {"clientSecret":"cut sh`: `{"api_key" : "***", "n": {"clientSecret":"***"`,
		`{"progressToken":"7","token":"7"}`:              `{"progressToken":"7","token":"***"}`,
		`{"password":7,"text":"no \"token\": \"x\""}`:    `{"password":7,"text":"no \"token\": \"x\""}`,
		`no JSON`:                               `no JSON`,
		`{"token":"a","token":"b","t":"token"}`: `{"token":"***","token":"***","t":"token"}`,
		`["token","a:b",{"key":{"key":"x\\"}},"secret"]`: `["token","a:b",{"key":{"key":"***"}},"secret"]`,
		`{"token":"cut in an escape \`:                   `{"token":"***"`,
		`{"token":`:                                      `{"token":`,
		`{"token`:                                        `{"token`,
	} {
		if got := m.Message(in); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}

// Wherever a secret came in, what a server makes of it is hidden too.
func TestMaskerKnowsPartsOfValues(t *testing.T) {
	env := environment(map[string]string{"TOKEN": "hunter-env", "ID": "t7", "NAME": "plain", "PASS": `q"<hunter>`})
	files := map[string]string{
		".mcp.json": `{"mcpServers": {
			"web": {"url": "http://127.0.0.1:1/?key=hunter-query", "headers": {"X-Key": "hunter-name", "X-Other": "a ${TOKEN}", "X-Plain": "${NONE:-visible}"}},
			"local": {"command": "c", "args": ["--db", "pg://u:hunter-url@h/${NAME}", "--api-key=hunter-option", "--header", "Authorization: Bearer hunter-bearer", "${input:pin}"],
				"env": {"LEVEL": "visible", "SECRET": "hunter-named"}, "envFile": "vars"}}}`,
		"vars": "A=hunter-file\n",
	}
	o := scenarios.LoadOptions{
		Env: env, Input: func(string) (string, error) { return "hunter-input", nil },
		ReadFile: func(name string) ([]byte, error) {
			if i := strings.LastIndexByte(name, '/'); i >= 0 {
				name = name[i+1:]
			}
			if text, ok := files[name]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		},
	}
	for name, tt := range map[string]struct {
		server  string
		secrets []string
	}{
		"headers": {`{url: "http://u:hunter-password@127.0.0.1:1/?token=hunter-query", headers: {X-A: "${TOKEN}-${{ session.index }}", X-B: visible, X-C: "${PASS}"}}`, []string{
			"hunter-env", "hunter-password", "dTpodW50ZXItcGFzc3dvcmQ=", "hunter-query", `q\"<hunter>`, `q\"\u003chunter\u003e`,
		}},
		"command": {`{command: c, args: [--token, hunter-next, --key=hunter-option, "X-Api-Key: hunter-header"], env: {LEVEL: visible, PASSWORD: hunter-named, D: "pg://u:hunter-db@h"}}`, []string{
			"hunter-next", "hunter-option", "hunter-header", "hunter-named", "hunter-db",
		}},
		"editor, http":  {`{from: {file: .mcp.json, server: web}}`, []string{"hunter-query", "hunter-name", "hunter-env"}},
		"editor, stdio": {`{from: {file: .mcp.json, server: local}}`, []string{"hunter-url", "hunter-option", "hunter-bearer", "hunter-input", "hunter-named", "hunter-file"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := masker(t, "version: 1\nservers: {s: "+tt.server+"}", o)
			for _, secret := range tt.secrets {
				if got := m.Text("said " + secret + "!"); got != "said ***!" {
					t.Errorf("%s: %s", secret, got)
				}
			}
			if got := m.Text("visible 127.0.0.1"); got != "visible 127.0.0.1" {
				t.Error(got)
			}
		})
	}
}

// A secret of a few characters is found in everything; it is hidden where it
// stands alone.
// What env() reads of a variable with a secret name is hidden as what ${NAME} is.
func TestMaskerKnowsEnv(t *testing.T) {
	s, err := scenarios.Load("a.yaml", []byte(`version: 1
servers: {a: {url: "http://h/"}}
load: {groups: {main: }}
flows: {f: {steps: [{tools/call: {name: x, arguments: {a: "${{ env('API_TOKEN') }}", b: "${{ env('CITY') }}"}}}]}}
`), scenarios.LoadOptions{Env: environment(map[string]string{"API_TOKEN": "abc-9-xyz", "CITY": "Lisbon"})})
	if err != nil {
		t.Fatal(err)
	}
	p := mustCompile(t, s)
	params, err := p.Flows[0].Steps[0].Render(nil, &scenarios.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Mask(string(params)); strings.Contains(got, "abc-9") || !strings.Contains(got, "Lisbon") {
		t.Errorf("%s from %s", got, params)
	}
}

func TestMaskerOfAShortSecret(t *testing.T) {
	m := masker(t, "version: 1\nservers: {s: {command: c, env: {PIN: \"${PIN}\"}}}", scenarios.LoadOptions{Env: environment(map[string]string{"PIN": "12"})})
	if got := m.Text(`{"id":12,"pin":"12","n":"512"}`); got != `{"id":12,"pin":"***","n":"512"}` {
		t.Error(got)
	}
}

// A text is cut neither within a secret nor within a character.
func TestMaskerEnd(t *testing.T) {
	m := masker(t, `
version: 1
servers: {s: {url: "http://127.0.0.1:1/mcp", headers: {X-Key: secret, X-Token: "et,more"}}}`, scenarios.LoadOptions{})
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"a secret", 8, "a secret"},
		{"a secret,", 8, "a secret"},
		{"a secret, b", 4, "a "},
		{"a secret, b", 7, "a "},
		{"a secret,more", 9, "a "}, // into the second, which begins in the first
		{"x secre", 5, "x sec"},
		{"a€b", 3, "a"},
		{"\x80\x80\x80\x80\x80", 4, "\x80"},
		{"secret", 0, ""},
	} {
		if got := tt.text[:m.End([]byte(tt.text), tt.n)]; got != tt.want {
			t.Errorf("%q cut at %d: %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

// Whatever a message is, hiding its secrets leaves JSON what it is.
func FuzzMaskerMessage(f *testing.F) {
	for _, seed := range []string{`{"token":"a"}`, `{"a":{"password" : "x\""},"b":[1]}`, `"token":"`, `{"key\`, ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := masker(t, "version: 1\nservers: {s: {embedded: http}}", scenarios.LoadOptions{}).Message(text)
		if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
