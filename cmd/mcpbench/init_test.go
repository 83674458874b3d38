package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"
	"unicode/utf8"

	"mcpbench/scenarios"
)

// listServer is a server of 2025-11-25 that lists what it is given and answers every
// call with an empty result.
type listServer struct {
	tools, resources, prompts []map[string]any
	name                      string
	calls                     atomic.Int64
}

func (l *listServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage
		Method string
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": req.ID}
	switch req.Method {
	case "initialize":
		answer["result"] = map[string]any{
			"protocolVersion": "2025-11-25", "serverInfo": map[string]any{"name": l.name, "version": l.name},
			"capabilities": map[string]any{"tools": map[string]any{}, "resources": map[string]any{}, "prompts": map[string]any{}},
		}
	case "tools/list":
		answer["result"] = map[string]any{"tools": l.tools}
	case "resources/list":
		answer["result"] = map[string]any{"resources": l.resources}
	case "resources/templates/list":
		answer["result"] = map[string]any{"resourceTemplates": l.resources}
	case "prompts/list":
		answer["result"] = map[string]any{"prompts": l.prompts}
	case "tools/call":
		l.calls.Add(1)
		answer["result"] = map[string]any{"content": []any{}}
	case "resources/read":
		answer["result"] = map[string]any{"contents": []any{}}
	case "prompts/get":
		answer["result"] = map[string]any{"messages": []any{}}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "no"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// initAgainst runs init against a server and returns the file and what was printed.
func initAgainst(t *testing.T, l *listServer, args ...string) (file, printed string) {
	t.Helper()
	server := httptest.NewServer(l)
	defer server.Close()
	path := filepath.Join(t.TempDir(), "bench.yaml")
	var out, log bytes.Buffer
	code := run(context.WithoutCancel(t.Context()), append([]string{"init", "--url", server.URL, "-o", path}, args...), streams{
		in: strings.NewReader(""), out: &out, err: &log, env: func(string) (string, bool) { return "", false },
	})
	if code != 0 {
		t.Fatalf("exit %d: %s", code, log.String())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), out.String() + log.String()
}

func TestInitOfTenThousandToolsIsBounded(t *testing.T) {
	l := &listServer{name: "many"}
	for i := range 10_000 {
		l.tools = append(l.tools, map[string]any{
			"name": fmt.Sprintf("tool%d", i), "description": strings.Repeat("long ", 50), "inputSchema": map[string]any{"type": "object"},
			"annotations": map[string]any{"readOnlyHint": true},
		})
	}
	file, printed := initAgainst(t, l)
	if !strings.Contains(printed, "100 of 10000 tools (9900 skipped: beyond the first 100)") || !strings.Contains(file, "# 9900 tools more not written") {
		t.Errorf("printed %s", printed)
	}
	if n := l.calls.Load(); n != initTools {
		t.Errorf("%d tools were called, want %d", n, initTools)
	}
	if len(file) > 100<<10 {
		t.Errorf("the file has %d bytes", len(file))
	}
}

func TestInitOfLargeArgumentsIsBounded(t *testing.T) {
	l := &listServer{name: "large"}
	big := make([]int, 900)
	for i := range 90 {
		l.tools = append(l.tools, map[string]any{
			"name": fmt.Sprintf("tool%d", i), "inputSchema": map[string]any{"type": "object", "required": []string{"a"}, "properties": map[string]any{"a": map[string]any{"const": big}}},
		})
	}
	l.tools = append(l.tools, map[string]any{"name": strings.Repeat("n", 100_000), "inputSchema": map[string]any{"type": "object"}})
	file, printed := initAgainst(t, l, "--allow-writes")
	if !strings.Contains(printed, " too large, 1 with a name of no use)") || len(file) > 1<<20 {
		t.Errorf("%d bytes; printed %s", len(file), printed)
	}
}

// Whatever a server says of itself, the file loads, holds a step for each tool and
// prints.
func FuzzInit(f *testing.F) {
	f.Add("tool", "Does a thing.", `{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`, true)
	f.Add("- x: y\n", "\x1b[31m# no\n- ping: {}", `{"type":"object","required":["${{ x }}"],"properties":{"${{ x }}":{"const":{"<<":["$${HOME}"]}}}}`, true)
	f.Add("\u202e", "", `5`, false)
	f.Add("", "# ", `{"type":"string"}`, true)
	f.Fuzz(func(t *testing.T, name, text, schema string, allow bool) {
		if !json.Valid([]byte(schema)) || !utf8.ValidString(name+text+schema) {
			t.Skip()
		}
		tool := map[string]any{
			"name": name, "description": text, "inputSchema": json.RawMessage(schema), "annotations": map[string]any{"readOnlyHint": !allow},
		}
		l := &listServer{
			name: text, tools: []map[string]any{tool},
			resources: []map[string]any{{"uri": text, "uriTemplate": text, "name": name}},
			prompts:   []map[string]any{{"name": name, "description": text, "arguments": []any{map[string]any{"name": text, "required": true}}}},
		}
		var args []string
		if allow {
			args = append(args, "--allow-writes")
		}
		file, printed := initAgainst(t, l, args...)
		for _, r := range file + printed {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("%q is shown:\n%s\n%s", r, file, printed)
			}
		}
		s, err := scenarios.Load("bench.yaml", []byte(file), scenarios.LoadOptions{})
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		p, err := s.Compile()
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		var calls int64
		for _, step := range p.Flows[0].Steps {
			if step.Method == "tools/call" {
				calls++
			}
		}
		if calls != l.calls.Load() {
			t.Errorf("%d steps call a tool, %d went well\n%s", calls, l.calls.Load(), file)
		}
	})
}
