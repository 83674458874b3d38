package scenarios_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpbench/scenarios"
)

const claudeConfig = `{
  "mcpServers": {
    "fs": {"command": "npx", "args": ["-y", "server", "${HOME}/docs", "${MODE:-ro}"], "env": {"TOKEN": "${TOKEN}", "LOG": "warn"}},
    "web": {"type": "http", "url": "https://${HOST:-example.com}/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
    "old": {"type": "sse", "url": "http://h/sse"},
    "extra": {"command": "x", "disabled": false, "alwaysAllow": []},
    "here": {"command": "${workspaceFolder}/run", "cwd": "sub", "args": ["${userHome}", "${workspaceFolderBasename}"]}
  },
  "theme": "dark"
}`

const codeConfig = `{
  // VS Code allows comments
  "inputs": [{"id": "api-key", "type": "promptString", "password": true}],
  "servers": {
    "web": {"url": "http://h/mcp", "headers": {"X-Key": "${input:api-key}"}},
    "file": {"type": "stdio", "command": "srv", "envFile": "${workspaceFolder}/.env", "env": {"B": "own"}}, /* trailing */
  },
}`

func TestReadEditorConfig(t *testing.T) {
	env := environment(map[string]string{"HOME": "/home/u", "TOKEN": "tok", "PATH": "/bin", "OTHER": "never inherited"})
	options := scenarios.LoadOptions{Env: env, Dir: "/project", ReadFile: func(name string) ([]byte, error) {
		if name == "/project/.env" {
			return []byte("# comment\nA=1\nexport B=\"from file\"\n\nC='x y'\r\n"), nil
		}
		return nil, os.ErrNotExist
	}}
	withInput := options
	withInput.Input = func(id string) (string, error) { return "typed " + id, nil }
	withEnv := options
	withEnv.Env = func(name string) (string, bool) {
		if name == "MCPBENCH_INPUT_API_KEY" {
			return "from env", true
		}
		return env(name)
	}
	inherited := []string{"HOME=/home/u"}
	for _, tt := range []struct {
		file, data, server string
		o                  scenarios.LoadOptions
		want               scenarios.EditorServer
		header             string
	}{
		{".mcp.json", claudeConfig, "fs", options, scenarios.EditorServer{Server: scenarios.Server{
			Name: "fs", Transport: "stdio", Command: "npx", Args: []string{"-y", "server", "/home/u/docs", "ro"},
			Env: append(inherited, "LOG=warn", "PATH=/bin", "TOKEN=tok"),
		}}, ""},
		{".mcp.json", claudeConfig, "web", options, scenarios.EditorServer{Server: scenarios.Server{
			Name: "web", Transport: "http", URL: "https://example.com/mcp", Headers: []scenarios.Header{{Name: "Authorization"}},
		}}, "Bearer tok"},
		{".mcp.json", claudeConfig, "old", options, scenarios.EditorServer{
			Server: scenarios.Server{Name: "old", Transport: "sse", URL: "http://h/sse"},
		}, ""},
		{".mcp.json", claudeConfig, "extra", options, scenarios.EditorServer{
			Server: scenarios.Server{Name: "extra", Transport: "stdio", Command: "x", Env: append(inherited, "PATH=/bin")},
			Notes:  []string{`.mcp.json: key "alwaysAllow" of server "extra" is ignored`, `.mcp.json: key "disabled" of server "extra" is ignored`},
		}, ""},
		{".cursor/mcp.json", claudeConfig, "here", options, scenarios.EditorServer{Server: scenarios.Server{
			Name: "here", Transport: "stdio", Command: "/project/run", Args: []string{"/home/u", "project"}, Dir: filepath.FromSlash("/project/sub"),
			Env: append(inherited, "PATH=/bin"),
		}}, ""},
		{".vscode/mcp.json", codeConfig, "web", withInput, scenarios.EditorServer{Server: scenarios.Server{
			Name: "web", Transport: "http", AnyHTTP: true, URL: "http://h/mcp", Headers: []scenarios.Header{{Name: "X-Key"}},
		}}, "typed api-key"},
		{".vscode/mcp.json", codeConfig, "web", withEnv, scenarios.EditorServer{Server: scenarios.Server{
			Name: "web", Transport: "http", AnyHTTP: true, URL: "http://h/mcp", Headers: []scenarios.Header{{Name: "X-Key"}},
		}}, "from env"},
		{".vscode/mcp.json", codeConfig, "file", options, scenarios.EditorServer{Server: scenarios.Server{
			Name: "file", Transport: "stdio", Command: "srv", Env: []string{"A=1", "B=own", "C=x y", "HOME=/home/u", "PATH=/bin"},
		}}, ""},
	} {
		t.Run(tt.file+" "+tt.server, func(t *testing.T) {
			got, err := scenarios.ReadEditorConfig(tt.file, []byte(tt.data), tt.server, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(scenarios.Header{}, "Value"), cmpopts.IgnoreFields(scenarios.EditorServer{}, "Secrets"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
			if tt.header != "" {
				if v, err := got.Server.Headers[0].Value.Render(&scenarios.Env{}); err != nil || v != tt.header {
					t.Errorf("header %q, %v; want %q", v, err, tt.header)
				}
			}
		})
	}
}

func TestReadEditorConfigErrors(t *testing.T) {
	for _, tt := range []struct{ name, data, server, want string }{
		{"unknown", claudeConfig, "fss", `f.json has no server "fss" (did you mean "fs"?); it has: extra, fs, here, old, web`},
		{"not JSON", "{", "a", "f.json is not JSON: line 1"},
		{"no config", `{"a": 1}`, "a", "f.json has neither mcpServers nor servers"},
		{"empty", `{"mcpServers": {}}`, "a", "f.json lists no server"},
		{"unset", claudeConfig, "fs", `server "fs" of f.json: args[2]: variable HOME is not set; env.TOKEN: variable TOKEN is not set`},
		{"input", codeConfig, "web", `server "web" of f.json: headers.X-Key: input "api-key" is not given; set MCPBENCH_INPUT_API_KEY`},
		{"both", `{"servers": {"a": {"url": "http://h/", "command": "x"}}}`, "a", `server "a" of f.json: it has both a command and a url, and no type`},
		{"neither", `{"servers": {"a": {}}}`, "a", `it has neither a command nor a url`},
		{"type", `{"servers": {"a": {"type": "htp", "url": "http://h/"}}}`, "a", `type "htp" is not one of stdio, http, sse (did you mean "http"?)`},
		{"shape", `{"servers": {"a": []}}`, "a", `an entry is an object`},
		{"args", `{"servers": {"a": {"command": "x", "args": "y"}}}`, "a", `args wants a list`},
		{"url", `{"servers": {"a": {"url": "ftp://h"}}}`, "a", `url: "ftp://h" wants a URL`},
		{"number", `{"servers": {"a": {"command": "x", "env": {"A": 5}}}}`, "a", `env.A wants text`},
		{"duplicate", `{"servers": {"a": {"command": "x"}, "a": {"command": "y"}}}`, "a", `duplicate`},
		{"envFile", `{"servers": {"a": {"command": "x", "envFile": "/none"}}}`, "a", `envFile: read /none: file does not exist`},
	} {
		_, err := scenarios.ReadEditorConfig("f.json", []byte(tt.data), tt.server, scenarios.LoadOptions{
			ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist },
		})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v; want %s", tt.name, err, tt.want)
		}
	}
}

func TestEditorServers(t *testing.T) {
	got, err := scenarios.EditorServers("f.json", []byte(codeConfig))
	if diff := cmp.Diff([]string{"file", "web"}, got); err != nil || diff != "" {
		t.Errorf("names %v, %v", got, err)
	}
}

func FuzzReadEditorConfig(f *testing.F) {
	f.Add([]byte(claudeConfig), "fs")
	f.Add([]byte(codeConfig), "web")
	f.Fuzz(func(t *testing.T, data []byte, server string) {
		got, err := scenarios.ReadEditorConfig("f.json", data, server, scenarios.LoadOptions{
			Env:      environment(map[string]string{"HOME": "/h"}),
			ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist },
		})
		if err == nil && got.Server.Transport == "" {
			t.Errorf("%q: no transport and no error", data)
		}
	})
}
