package target_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbench/internal/target"
)

var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

func listen(t *testing.T, c target.Config) (*target.Target, *target.Server) {
	t.Helper()
	tg := target.New(c)
	server, err := tg.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return tg, server
}

func connectHTTP(t *testing.T, url, version string) (*mcp.ClientSession, error) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil)
	return client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
}

// message is what a raw request brought back.
type message struct {
	status  int
	session string
	ID      any             `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	contentType, body string
}

// exchange sends one request; headers are name, value, name, value.
func exchange(t *testing.T, method, url, body string, headers ...string) message {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := message{
		status: res.StatusCode, session: res.Header.Get("Mcp-Session-Id"),
		contentType: res.Header.Get("Content-Type"), body: string(data),
	}
	payload := string(data)
	if m.contentType == "text/event-stream" {
		for line := range strings.Lines(payload) {
			if rest, ok := strings.CutPrefix(line, "data: "); ok {
				payload = rest
			}
		}
	}
	if strings.HasPrefix(payload, "{") {
		if err := json.Unmarshal([]byte(payload), &m); err != nil {
			t.Errorf("%s: %v", payload, err)
		}
	}
	return m
}

const (
	modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`
)

func modern(t *testing.T, url, method, params string, headers ...string) message {
	t.Helper()
	if params != "" {
		params += ","
	}
	return exchange(t, http.MethodPost, url,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, modernMeta),
		append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}, headers...)...)
}

func TestHTTPServesEveryVersion(t *testing.T) {
	for _, mode := range []target.Config{{}, {JSONResponse: true}, {Stateless: true}, {Stateless: true, JSONResponse: true}} {
		for _, version := range versions {
			t.Run(fmt.Sprintf("stateless=%v json=%v %s", mode.Stateless, mode.JSONResponse, version),
				func(t *testing.T) { serveVersion(t, mode, version) })
		}
	}
}

func serveVersion(t *testing.T, mode target.Config, version string) {
	t.Helper()
	tg, server := listen(t, mode)
	session, err := connectHTTP(t, server.URL, version)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("negotiated %s, want %s", got, version)
	}
	for range 5 {
		res, err := call(t, session, "echo", hi)
		if err != nil || textOf(t, res) != "hi" {
			t.Errorf("echo = %v, %v", res, err)
		}
	}
	_ = session.Close()

	s := tg.Stats()
	if got, want := s.Methods["tools/call"], (target.Counts{Received: 5, OK: 5}); got != want {
		t.Errorf("tools/call counts = %+v, want %+v", got, want)
	}
	var opened, closed int64
	if version != "2026-07-28" {
		opened = 1
		if !mode.Stateless {
			closed = 1
		}
	}
	if s.SessionsOpened != opened || s.SessionsClosed != closed {
		t.Errorf("sessions opened and closed = %d, %d, want %d, %d", s.SessionsOpened, s.SessionsClosed, opened, closed)
	}
}

func TestModernRequests(t *testing.T) {
	_, server := listen(t, target.Config{JSONResponse: true})
	discovered := modern(t, server.URL, "server/discover", "")
	var discover struct{ SupportedVersions []string }
	if err := json.Unmarshal(discovered.Result, &discover); err != nil {
		t.Fatalf("discover: %v in %s", err, discovered.body)
	}
	if diff := cmp.Diff(len(versions), len(discover.SupportedVersions)); diff != "" || discover.SupportedVersions[0] != "2026-07-28" {
		t.Errorf("supportedVersions = %v, want all five, newest first", discover.SupportedVersions)
	}
	m := modern(t, server.URL, "tools/call", `"name":"echo","arguments":{"message":"hi"}`, "Mcp-Name", "echo")
	if m.status != 200 || m.session != "" || !strings.Contains(string(m.Result), `"resultType":"complete"`) {
		t.Errorf("echo: %+v", m)
	}
	m = exchange(t, http.MethodPost, server.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+
		strings.ReplaceAll(modernMeta, "2026-07-28", "2099-01-01")+`}}`, "MCP-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list")
	if m.status != 400 || m.Error == nil || m.Error.Code != -32022 {
		t.Errorf("unknown newer version: %+v", m)
	}
	if m := exchange(t, http.MethodDelete, server.URL, "", "MCP-Protocol-Version", "2026-07-28"); m.status != http.StatusMethodNotAllowed {
		t.Errorf("DELETE in 2026-07-28: %d, want 405", m.status)
	}
}

func TestSessionsAreCountedOnce(t *testing.T) {
	tg, server := listen(t, target.Config{})
	opened := exchange(t, http.MethodPost, server.URL, fmt.Sprintf(initialize, "2025-06-18"))
	if opened.session == "" {
		t.Fatalf("initialize: %+v", opened)
	}
	header := []string{"Mcp-Session-Id", opened.session, "MCP-Protocol-Version", "2025-06-18"}
	for _, step := range []struct {
		method, body string
		want         int
	}{
		{http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202},
		{http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}`, 200},
		{http.MethodPost, `{"jsonrpc":"2.0","id":3,"method":"no/such/method"}`, 400},
		{http.MethodDelete, "", 204},
		{http.MethodDelete, "", 404},
		{http.MethodPost, `{"jsonrpc":"2.0","id":4,"method":"ping"}`, 404},
	} {
		if m := exchange(t, step.method, server.URL, step.body, header...); m.status != step.want {
			t.Errorf("%s %s: status %d, want %d", step.method, step.body, m.status, step.want)
		}
	}
	want := target.Stats{
		Requests: target.Counts{Received: 2, OK: 2},
		Methods: map[string]target.Counts{
			"initialize": {Received: 1, OK: 1}, "tools/call": {Received: 1, OK: 1},
		},
		Tools:         map[string]target.Counts{"echo": {Received: 1, OK: 1}},
		Notifications: 1, SessionsOpened: 1, SessionsClosed: 1,
	}
	if diff := cmp.Diff(want, tg.Stats()); diff != "" {
		t.Errorf("Stats (-want +got):\n%s", diff)
	}
}

func TestTools(t *testing.T) {
	tg, server := listen(t, target.Config{})
	session, err := connectHTTP(t, server.URL, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()

	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if a := tool.Annotations; a == nil || !a.ReadOnlyHint || a.DestructiveHint == nil || *a.DestructiveHint {
			t.Errorf("tool %s is not marked read-only: %+v", tool.Name, a)
		}
	}
	if len(tools.Tools) != 6 {
		t.Errorf("%d tools, want 6", len(tools.Tools))
	}

	message := "grüße \"\\ \u2028 <b> \x00 \U0001F600"
	if res, err := call(t, session, "echo", map[string]any{"message": message}); err != nil || textOf(t, res) != message {
		t.Errorf("echo = %v, %v", res, err)
	}
	res, err := call(t, session, "add", map[string]any{"a": 1e6, "b": 0.5})
	if err != nil || textOf(t, res) != "1000000.5" {
		t.Errorf("add = %v, %v", res, err)
	}
	if diff := cmp.Diff(map[string]any{"sum": 1000000.5}, res.StructuredContent); diff != "" {
		t.Errorf("structuredContent (-want +got):\n%s", diff)
	}
	for _, bad := range []struct {
		tool string
		args map[string]any
	}{
		{"add", map[string]any{"a": 1e308, "b": 1e308}},
		{"add", map[string]any{"a": "one", "b": 2}},
		{"echo", map[string]any{}},
		{"fail", nil},
	} {
		if res, err := call(t, session, bad.tool, bad.args); err != nil || !res.IsError {
			t.Errorf("%s %v = %v, %v, want isError", bad.tool, bad.args, res, err)
		}
	}
	for tool, code := range map[string]string{"rpc_error": "always answers with an error", "no_such_tool": "unknown tool"} {
		if _, err := call(t, session, tool, nil); err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: error %v, want %q", tool, err, code)
		}
	}
	want := map[string]target.Counts{
		"add":  {Received: 3, OK: 1, ToolErrors: 2},
		"echo": {Received: 2, OK: 1, ToolErrors: 1},
		"fail": {Received: 1, ToolErrors: 1}, "rpc_error": {Received: 1, RPCErrors: 1},
		target.UnknownTool: {Received: 1, RPCErrors: 1},
	}
	if diff := cmp.Diff(want, tg.Stats().Tools); diff != "" {
		t.Errorf("Stats.Tools (-want +got):\n%s", diff)
	}
}

func TestRefusedSessions(t *testing.T) {
	t.Run("all", func(t *testing.T) {
		tg, server := listen(t, target.Config{RefuseSessions: true})
		for _, version := range versions[:4] {
			m := exchange(t, http.MethodPost, server.URL, fmt.Sprintf(initialize, version))
			if m.Error == nil || m.Error.Code != -32000 {
				t.Errorf("initialize %s: %+v, want error -32000", version, m)
			}
		}
		if m := modern(t, server.URL, "tools/list", ""); m.Error == nil || m.Error.Code != -32000 {
			t.Errorf("tools/list in 2026-07-28: %+v, want error -32000", m)
		}
		if s := tg.Stats(); s.SessionsRefused != 5 || s.SessionsOpened != 0 {
			t.Errorf("refused %d, opened %d, want 5, 0", s.SessionsRefused, s.SessionsOpened)
		}
	})
	t.Run("past the limit", func(t *testing.T) {
		tg, server := listen(t, target.Config{MaxSessions: 2})
		open := func() message { return exchange(t, http.MethodPost, server.URL, fmt.Sprintf(initialize, "2025-11-25")) }
		first := open()
		open()
		if m := open(); m.Error == nil {
			t.Errorf("third session: %+v, want an error", m)
		}
		exchange(t, http.MethodDelete, server.URL, "", "Mcp-Session-Id", first.session)
		if m := open(); m.Error != nil {
			t.Errorf("after one ended: %+v, want a session", m)
		}
		if s := tg.Stats(); s.SessionsOpened != 3 || s.SessionsRefused != 1 || s.SessionsClosed != 1 {
			t.Errorf("opened %d, refused %d, closed %d, want 3, 1, 1", s.SessionsOpened, s.SessionsRefused, s.SessionsClosed)
		}
	})
}
