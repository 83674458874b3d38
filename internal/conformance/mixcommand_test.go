package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpbench/mcp"
)

// mixCommand runs a scenario that does everything.
func mixCommand(t *testing.T, s server, url string, version mcp.Version, duration time.Duration) {
	t.Helper()
	good := usable(t, s, url, version)
	r := newRow(t, s, url, version, mixEngine(s, 0))
	file := filepath.Join(t.TempDir(), "mix.mcpbench.yaml")
	text := r.scenario(good, duration)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := bench(t, []string{file})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the scenario was\n%s", text)
		}
	})
	if run.exit != 0 || run.summary == nil {
		t.Fatalf("exit code %d", run.exit)
	}
	sum := run.summary
	outcomes := sum.Requests.Outcomes
	if sum.Requests.Failed != 0 || outcomes["ok"]+outcomes["cancelled"] != sum.Requests.Total || outcomes["ok"] == 0 || sum.Requests.ChecksFailed != 0 {
		t.Errorf("requests %+v, want only ok and cancelled", sum.Requests)
	}
	if n := int64(mixCount(s)); sum.Sessions.Opened != n || sum.Sessions.Closed != n || sum.Sessions.Failed != 0 {
		t.Errorf("sessions %+v", sum.Sessions)
	}
	for kind, count := range sum.Anomalies {
		if count > 0 && r.known("anomaly", kind+": ") == nil {
			t.Errorf("anomaly %s ×%d is not in the list", kind, count)
		}
	}
	var asked []string
	for _, q := range sum.ServerRequests {
		asked = append(asked, fmt.Sprintf("%+v", q))
	}
	if _, ok := good["sampling"]; ok && len(asked) == 0 {
		t.Error("no question of the server is told")
	}
	if n := processesWith(t, r.mark); n > 0 {
		t.Errorf("%d processes of the server are left", n)
	}
	t.Logf("%d sessions: %d requests, outcomes %v, asked %s, anomalies %v, verdict %s %s",
		sum.Sessions.Opened, sum.Requests.Total, outcomes, asked, sum.Anomalies, sum.Verdict, sum.Soundness.Verdict)
}

// scenario writes the scenario for the dialect of the server, with the operations that
// go well there.
func (r *row) scenario(good map[string]operation, duration time.Duration) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("version: 1\nname: mix\nservers:\n  it:\n    protocol: %q", r.version)
	switch to := r.to.(type) {
	case *mcp.Stdio:
		line("    command: %q\n    args: [%s]", to.Command, quoted(to.Args))
	case *mcp.Streamable:
		line("    url: %q\n    transport: http", to.URL)
	case *mcp.LegacySSE:
		line("    url: %q\n    transport: sse", to.URL)
	}
	line("client:\n  capabilities: {elicitation: true, sampling: true, roots: true}\n  answers:")
	line("    sampling: {text: %q, delay: {uniform: [0ms, 5ms]}}", canned.Sampling.Text)
	line("    roots: [%q]", canned.Roots.List[0].URI)
	if r.perItem {
		line("    elicitation: {action: accept, content: %s}", canned.Elicitation.Content)
	}
	line("load:\n  grace: 10s\n  groups: {main: {sessions: %d, duration: %s}}", mixCount(r.server), duration)
	line("flows:\n  mix:")
	uri := r.resource
	if r.perItem {
		uri = "toy://any/" + r.mark + "-${{ session.index }}"
	}
	_, subscribes := good["subscribe"]
	if subscribes {
		line("    before:\n      - connect: {}\n      - subscribe: {uris: [%q]}\n        as: news", uri)
	}
	line("    steps:")
	call := func(id, tool, arguments, more string) {
		line("      - id: %s\n        tools/call: {name: %s, arguments: %s}%s", id, tool, arguments, more)
	}
	call("echo", "echo", `{"message":"hi ${{ iteration.index }}"}`, "\n        check: {right: 'result.content[0].text endsWith string(iteration.index)'}")
	tool, arguments := r.slow(4, 5, "")
	call("progress", tool, arguments, "\n        progress: true\n        idle_timeout: 10s")
	tool, arguments = r.slow(20, 20, "")
	call("cancelled", tool, arguments, "\n        cancel: {after: {uniform: [5ms, 20ms]}}")
	for name, a := range map[string]asked{"sampling": r.sampling, "elicitation": r.elicitation, "roots": r.roots} {
		if _, ok := good[name]; ok {
			call(name, a.tool, a.arguments, "\n        check: {ok: not (result.isError ?? false)}")
		}
	}
	if subscribes {
		for i, tool := range r.touch {
			arguments := "{}"
			if r.perItem {
				arguments = fmt.Sprintf(`{"uri":%q}`, uri)
			}
			call(fmt.Sprintf("touch%d", i), tool, arguments, "")
		}
		line("      - wait_for: {notification: resources/updated, from: news, timeout: 10s}\n    after:\n      - unsubscribe: {handle: news}")
	}
	return b.String()
}

func quoted(args []string) string {
	var out []string
	for _, a := range args {
		out = append(out, fmt.Sprintf("%q", a))
	}
	return strings.Join(out, ", ")
}
