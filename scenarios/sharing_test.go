package scenarios_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/scenarios"
)

// limitsWith are the default limits but for the two timeouts.
func limitsWith(request, connect time.Duration) scenarios.Limits {
	return scenarios.Limits{
		RequestTimeout: request, ConnectTimeout: connect,
		ResponseBytes: 16 << 20, HeaderBytes: 1 << 20, StderrHead: 2 << 20, StderrTail: 2 << 20,
	}
}

// program compiles a scenario that has these servers and limits.
func program(t *testing.T, servers, limits string) (*scenarios.Program, error) {
	t.Helper()
	text := fmt.Sprintf("version: 1\nservers: {%s}\nlimits: {%s}\nload: {groups: {main: {server: s}}}\nflows: {f: {steps: [{ping: {}}]}}\n", servers, limits)
	sc, err := scenarios.Load("b.yaml", []byte(text), scenarios.LoadOptions{
		Env: environment(map[string]string{"PATH": "/bin", "HOME": "/home/u", "SECRET": "x", "WANTED": "y"}),
		ReadFile: func(string) ([]byte, error) {
			return []byte(`{"mcpServers": {"web": {"type": "http", "url": "http://h/"}, "child": {"command": "x"}}}`), nil
		},
	})
	if err != nil {
		return nil, err
	}
	return sc.Compile()
}

func TestSharing(t *testing.T) {
	type sharing struct {
		Process     bool
		Connections int
		OnLoss      scenarios.OnLoss
	}
	for server, want := range map[string]sharing{
		"url: http://h/": {},
		"url: http://h/, connections: per-session":                {},
		"url: http://h/, connections: 'shared:4'":                 {Connections: 4},
		"url: http://h/, http: {connections: 'shared:65535'}":     {Connections: 65535},
		"url: http://h/, http: {version: '1.1'}":                  {},
		"url: http://h/, http: {version: 1.1}":                    {},
		"url: http://h/, transport: sse, connections: 'shared:1'": {Connections: 1},
		"url: http://h/, on_session_loss: end_session":            {OnLoss: scenarios.LossEnds},
		"command: x, on_session_loss: abort":                      {OnLoss: scenarios.LossAborts},
		"command: x, per: shared, on_session_loss: reopen":        {Process: true},
		"command: x, per: session":                                {},
		"embedded: stdio, per: shared":                            {Process: true},
		"embedded: http, connections: 'shared:2'":                 {Connections: 2},
		"from: {file: m, server: web}, connections: 'shared:3'":   {Connections: 3},
		"from: {file: m, server: child}, per: shared":             {Process: true},
	} {
		p, err := program(t, "s: {"+server+"}", "")
		if err != nil || len(p.Unsupported) > 0 {
			t.Errorf("%s: %v, %v", server, err, p)
			continue
		}
		s := p.Servers[0]
		if diff := cmp.Diff(want, sharing{s.SharedProcess, s.Connections, s.OnLoss}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", server, diff)
		}
	}
	p, err := program(t, "s: {url: http://h/, http: {version: '2'}}", "")
	if err != nil || len(p.Unsupported) != 1 || p.Unsupported[0].Message != "not supported yet: servers.s.http.version 2" {
		t.Errorf("HTTP/2: %v, %+v", err, p)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"1KiB": 1 << 10, "1.5KiB": 1536, "8MiB": 8 << 20, "1GiB": 1 << 30, "2kB": 2000, "3MB": 3e6, "1GB": 1e9, "0.5MB": 5e5,
	} {
		p, err := program(t, "s: {url: http://h/}", "response_bytes: "+text)
		if err != nil || p.Limits.ResponseBytes != want {
			t.Errorf("%s: %v, want %d", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"8": "sizes carry units", "'8'": "sizes carry units", "8.5": "sizes carry units", "8M": "is no size", "8mib": "is no size",
		"8 MiB": "is no size", "-1MiB": "is no size", "MiB": "is no size", "1e3KiB": "is no size", "1.KiB": "is no size",
		".5MiB": "is no size", "0x8MiB": "is no size", "1.0001KiB": "no whole number of bytes", "1023.5kB": "", "0KiB": "at least 1KiB",
		"1kB": "at least 1KiB", "2GiB": "at most 1024MiB", "99999999999999GiB": "too large", "[1MiB]": "wants a size", "true": "wants a size",
	} {
		_, err := program(t, "s: {url: http://h/}", "response_bytes: "+text)
		if want == "" && err == nil {
			continue
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestWhatIsKeptOfStderr(t *testing.T) {
	for text, want := range map[string][2]int64{
		"keep-tail:64KiB": {0, 64 << 10}, "keep-head:1MiB": {1 << 20, 0},
		"'keep-head:1kB  keep-tail:2MB'": {1000, 2e6}, "keep-tail:2MB keep-head:1kB": {1000, 2e6}, "keep-tail:0KiB": {0, 0},
	} {
		p, err := program(t, "s: {command: x}", "stderr: "+text)
		if err != nil || [2]int64{p.Limits.StderrHead, p.Limits.StderrTail} != want {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"64KiB": "is not known here", "keep-tail": "is no size", "keep-tail:64": "keep-tail: sizes carry units", "keep-middle:1MiB": "is not known here",
		"keep-tail:1MiB keep-tail:2MiB": "keep-tail is there twice", "''": "says nothing", "7": "wants how much to keep", "keep-tail:1GiB": "at most 256MiB",
	} {
		if _, err := program(t, "s: {command: x}", "stderr: "+text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A child gets what inherit_env names of our environment, what env adds, and no more.
func TestInheritEnv(t *testing.T) {
	for server, want := range map[string][]string{
		"command: x": {"HOME=/home/u", "PATH=/bin"},
		"command: x, inherit_env: [PATH, WANTED, UNSET]":                {"PATH=/bin", "WANTED=y"},
		"command: x, inherit_env: []":                                   nil,
		"command: x, inherit_env: [PATH], env: {PATH: /mine, NEW: '1'}": {"NEW=1", "PATH=/mine"},
	} {
		p, err := program(t, "s: {"+server+"}", "")
		if err != nil || !slices.Equal(p.Servers[0].Env, want) || p.Servers[0].Env == nil {
			t.Errorf("%s: %v, %v; want %v", server, err, p.Servers[0].Env, want)
		}
	}
}

// The schema takes what the decoder takes of these keys, and no more.
func TestSharingSchema(t *testing.T) {
	schema := schemaOf(t)
	for text, ok := range map[string]bool{
		"servers: {s: {url: http://h/, connections: 'shared:4'}}": true, "servers: {s: {url: http://h/, connections: shared}}": false,
		"servers: {s: {url: http://h/, http: {version: 1.1}}}": true, "servers: {s: {url: http://h/, per: both}}": false,
		"limits: {response_bytes: 8MiB, stderr: keep-tail:64KiB}": true, "limits: {response_bytes: 8}": false,
		"limits: {stderr: 'keep-head:1kB keep-tail:1kB'}": true, "limits: {stderr: all}": false,
	} {
		doc := "version: 1\nload: {groups: {m: {}}}\nflows: {f: {steps: [{ping: {}}]}}\n" + text + "\n"
		if err := validates(t, schema, []byte(doc)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Flags that say where a server is leave what its sessions share.
func TestOverriddenTargetsKeepWhatIsShared(t *testing.T) {
	const text = "version: 1\nservers: {s: {%s}}\nload: {groups: {main: {}}}\nflows: {f: {steps: [{ping: {}}]}}\n"
	url, command := scenarios.Overrides{URL: []string{"http://new/"}}, scenarios.Overrides{Command: []string{"y"}}
	for _, tt := range []struct {
		server      string
		o           scenarios.Overrides
		process     bool
		connections int
	}{
		{"url: http://h/, connections: 'shared:4'", url, false, 4},
		{"url: http://h/, http: {connections: 'shared:4'}", url, false, 4},
		{"url: http://h/, connections: 'shared:4'", command, false, 0},
		{"command: x, per: shared", command, true, 0},
		{"command: x, per: shared", url, false, 0},
	} {
		p := overridden(t, fmt.Sprintf(text, tt.server), tt.o)
		if s := p.Servers[0]; s.SharedProcess != tt.process || s.Connections != tt.connections {
			t.Errorf("%s: %+v", tt.server, s)
		}
	}
}
