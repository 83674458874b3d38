package scenarios_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"mcpbench/scenarios"
)

// generator makes random valid scenarios.
type generator struct {
	*rand.Rand
	text strings.Builder
}

func (g *generator) line(depth int, format string, args ...any) {
	fmt.Fprintf(&g.text, "%s%s\n", strings.Repeat("  ", depth), fmt.Sprintf(format, args...))
}

func (g *generator) maybe(depth int, format string, args ...any) {
	if g.IntN(2) == 0 {
		g.line(depth, format, args...)
	}
}

func (g *generator) one(choices ...string) string { return choices[g.IntN(len(choices))] }

func (g *generator) duration() string { return g.one("5s", "250ms", "1m30s", "0.5s", "2h") }

func (g *generator) text1() string {
	return g.one("plain", "\"quoted\"", "'it''s'", "5", "true", "ü ö", "\"${{ vars.page }}\"", "\"a ${{ session.index }} b\"", "${SET}", "\"x ${NONE:-y}\"")
}

func (g *generator) scenario() string {
	g.line(0, "version: 1")
	g.maybe(0, "name: s%d", g.IntN(100))
	g.maybe(0, "tags: {team: %s}", g.one("a", "5", "true"))
	g.line(0, "vars: {page: %d, who: ada, list: [1, 2]}", g.IntN(100))
	g.maybe(0, "x-note: [anything, {at: all}]")
	servers, flows := 1+g.IntN(3), 1+g.IntN(3)
	g.line(0, "servers:")
	for i := range servers {
		g.line(1, "server%d:", i)
		switch g.IntN(3) {
		case 0:
			g.line(2, "url: http://127.0.0.1:%d/mcp", 1+g.IntN(60000))
			g.maybe(2, "headers: {X-A: %s}", g.one("plain", "\"${{ session.index }}\"", "5"))
		case 1:
			g.line(2, "command: ./server")
			g.maybe(2, "args: [--stdio, %d]", g.IntN(10))
			g.maybe(2, "env: {A: %s}", g.one("b", "5"))
		case 2:
			g.line(2, "embedded: %s", g.one("http", "stdio"))
		}
		g.maybe(2, "protocol: \"%s\"", g.one("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"))
	}
	if g.IntN(2) == 0 {
		g.line(0, "client:")
		g.line(1, "capabilities: {elicitation: true, sampling: true, roots: true}")
		g.line(1, "answers:")
		g.line(2, "elicitation: {content: {a: %s}, delay: %s}", g.one("x", "5", "\"${{ session.index }}\""), g.duration())
		g.line(2, "sampling:")
		g.line(3, "text: %s", g.text1())
		g.maybe(3, "delay: {uniform: [1ms, 2ms]}")
		g.maybe(2, "roots: [\"file:///w\"]")
	}
	g.maybe(0, "limits: {request_timeout: %s}", g.duration())
	g.line(0, "load:")
	g.maybe(1, "warmup: %s", g.one("1s", "{duration: 1s}"))
	g.maybe(1, "grace: %s", g.duration())
	g.line(1, "groups:")
	for i := range 1 + g.IntN(3) {
		g.line(2, "group%d:", i)
		g.line(3, "server: server%d", g.IntN(servers))
		g.line(3, "flow: flow%d", g.IntN(flows))
		if g.IntN(2) == 0 {
			g.line(3, "sessions: %s", g.one("1", "20", "{count: 3}"))
			g.maybe(3, "think: %s", g.duration())
		} else {
			g.line(3, "arrivals: {process: %s, rate: %s}", g.one("constant", "poisson"), g.one("5/s", "0.5/s", "30/m"))
			g.maybe(3, "max_sessions: %d", 1+g.IntN(9))
		}
		g.maybe(3, "duration: %s", g.duration())
		g.maybe(3, "iterations: %d", 1+g.IntN(99))
	}
	g.line(0, "flows:")
	for i := range flows {
		g.line(1, "flow%d:", i)
		g.line(2, "steps:")
		for range 1 + g.IntN(4) {
			g.step()
		}
		g.once()
	}
	g.maybe(0, "thresholds: [p99(latency) < 250ms, rate(errors) < 1%%]")
	g.maybe(0, "output: {dir: results}")
	return g.text.String()
}

// once writes what a session has once, with a subscription that steps may use.
func (g *generator) once() {
	if g.IntN(2) == 0 {
		return
	}
	g.line(3, "- wait_for: {notification: resources/updated, from: news, timeout: %s}", g.duration())
	g.line(2, "before:")
	g.maybe(3, "- connect: {}")
	g.line(3, "- subscribe: {uris: [\"a://x\", %s], tools: %s}", g.one("\"b://${{ session.index }}\"", "c"), g.one("true", "false"))
	g.line(4, "as: news")
	g.line(2, "after:")
	g.line(3, "- unsubscribe: {handle: news}")
}

func (g *generator) beyond() {
	switch g.IntN(4) {
	case 0:
		g.line(3, "- tools/call: {name: slow, arguments: {n: 1}}")
		g.line(4, "progress: true")
		g.maybe(4, "idle_timeout: %s", g.duration())
		g.maybe(4, "log_level: %s", g.one("debug", "emergency"))
	case 1:
		g.line(3, "- prompts/get: {name: p}")
		g.line(4, "cancel: {after: %s}", g.one("20ms", "{uniform: [1ms, 2ms]}", "{exponential: 1s, max: 2s}", "{constant: 5ms}"))
	case 2:
		g.line(3, "- request:")
		g.line(5, "method: x-vendor/a")
		g.line(5, "params:")
		g.line(6, "a: %s", g.text1())
		g.maybe(4, "check: {any: result.a.b == 1}")
	case 3:
		g.line(3, "- notify: {method: x-vendor/b}")
	}
}

func (g *generator) step() {
	switch g.IntN(8) {
	case 6, 7:
		g.beyond()
	case 0:
		g.line(3, "- ping: {}")
	case 1:
		g.line(3, "- tools/list: {all_pages: true}")
		g.maybe(4, "check: {some: len(result.tools) > 0}")
	case 2:
		g.line(3, "- resources/read: {uri: \"a://${{ iteration.index }}\"}")
	case 3:
		g.line(3, "- prompts/get: {name: p, arguments: {a: %s}}", g.one("x", "5", "\"${{ uuid() }}\""))
	case 4:
		g.line(3, "- completion/complete:")
		g.line(6, "ref: {type: ref/prompt, name: p}")
		g.line(6, "argument: {name: a, value: b}")
	case 5:
		g.line(3, "- tools/call:")
		g.line(6, "name: tool%d", g.IntN(3))
		g.line(6, "arguments:")
		for i := range 1 + g.IntN(3) {
			g.line(7, "a%d: %s", i, g.text1())
		}
		g.maybe(4, "check: {ok: not result.isError, fast: elapsed < duration(\"1s\")}")
	}
	g.maybe(4, "timeout: %s", g.duration())
}

func generate(seed uint64) string {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	return g.scenario()
}

func loadGenerated(text string) (*scenarios.Scenario, error) {
	return scenarios.Load("g.yaml", []byte(text), scenarios.LoadOptions{Env: environment(map[string]string{"SET": "value"})})
}

func TestGeneratedScenariosLoad(t *testing.T) {
	schema := schemaOf(t)
	for seed := range uint64(300) {
		text := generate(seed)
		s, err := loadGenerated(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		p := mustCompile(t, s)
		for _, f := range p.Flows {
			for _, step := range f.Steps {
				if _, err := step.Render(nil, &scenarios.Env{Iteration: seed}); err != nil {
					t.Fatalf("seed %d: %v\n%s", seed, err, text)
				}
			}
		}
		if err := validates(t, schema, []byte(text)); err != nil {
			t.Fatalf("seed %d: schema: %v\n%s", seed, err, text)
		}
		if _, err := loadGenerated(string(s.Resolved())); err != nil {
			t.Fatalf("seed %d: resolved: %v\n%s", seed, err, s.Resolved())
		}
	}
}

// placed checks what every fault of a file must have: a line of the file, a
// message of one line, and an excerpt that shows the line.
func placed(t *testing.T, text string, err error) {
	t.Helper()
	lines := strings.Count(text, "\n") + 1
	for _, p := range problemsOf(t, err) {
		if p.File == "g.yaml" && p.Line == 0 && strings.HasSuffix(p.Message, "more problems not shown") {
			continue
		}
		switch {
		case p.File != "g.yaml" || p.Line < 1 || p.Line > lines || p.Column < 0:
			t.Fatalf("place %s (%d lines) of %q in:\n%s", p.Place(), lines, p.Message, text)
		case p.Message == "" || strings.ContainsAny(p.Message, "\n\r"):
			t.Fatalf("message %q", p.Message)
		case !strings.Contains(p.Excerpt, fmt.Sprintf("%d |", p.Line)) || p.Column > 0 && !strings.HasSuffix(p.Excerpt, "^\n"):
			t.Fatalf("excerpt\n%s", p.Excerpt)
		}
	}
}

// TestMisspelledKeysAreFoundOnTheirLine changes one key of a valid scenario.
func TestMisspelledKeysAreFoundOnTheirLine(t *testing.T) {
	free := []string{"server0", "server1", "server2", "group0", "group1", "group2", "flow0", "flow1", "flow2", "a0", "a1", "a2", "x-note"}
	tried := 0
	for seed := range uint64(300) {
		lines := strings.Split(generate(seed), "\n")
		rng := rand.New(rand.NewPCG(seed, 2))
		at := rng.IntN(len(lines) - 1)
		indent := len(lines[at]) - len(strings.TrimLeft(lines[at], " -"))
		key, rest, ok := strings.Cut(lines[at][indent:], ":")
		named := false
		for _, f := range free {
			named = named || key == f
		}
		if !ok || named || strings.Contains(key, "${") {
			continue
		}
		tried++
		cut := rng.IntN(len(key))
		wrong := key[:cut] + "q" + key[cut:]
		lines[at] = lines[at][:indent] + wrong + ":" + rest
		text := strings.Join(lines, "\n")
		_, err := loadGenerated(text)
		if err == nil {
			t.Fatalf("seed %d: %q accepted:\n%s", seed, wrong, text)
		}
		placed(t, text, err)
		want := fmt.Sprintf("g.yaml:%d:%d: unknown key %q (did you mean %q?)", at+1, indent+1, wrong, key)
		if len(wrong) > 2 && !strings.Contains(err.Error(), want) {
			t.Errorf("seed %d: want %s, got:\n%v", seed, want, err)
		}
	}
	if tried < 150 {
		t.Errorf("only %d of 300 were changed", tried)
	}
}

// TestMutatedScenariosNeverPanic changes bytes, lines and words at random.
func TestMutatedScenariosNeverPanic(t *testing.T) {
	full, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		text := generate(seed)
		if seed%10 == 0 {
			text = string(full)
		}
		for range 1 + rng.IntN(3) {
			text = mutate(rng, text)
		}
		s, err := loadGenerated(text)
		if err != nil {
			refused++
			placed(t, text, err)
			continue
		}
		if _, err := s.Compile(); err == nil {
			s.Resolved()
			s.Settings()
		}
	}
	if refused < 500 {
		t.Errorf("only %d of 1000 mutated scenarios were refused", refused)
	}
}

func mutate(rng *rand.Rand, text string) string {
	lines := strings.Split(text, "\n")
	at := rng.IntN(len(lines))
	switch rng.IntN(8) {
	case 0: // another byte
		if len(text) > 0 {
			i := rng.IntN(len(text))
			const bytes = " :-{}[]\"'#&*!|>%@`\t\n\x00\xff$0aZ"
			return text[:i] + bytes[rng.IntN(len(bytes)):][:1] + text[i+1:]
		}
	case 1: // a line less
		lines = append(lines[:at], lines[at+1:]...)
	case 2: // a line twice
		lines = append(lines[:at+1], lines[at:]...)
	case 3: // deeper
		lines[at] = strings.Repeat(" ", 1+rng.IntN(4)) + lines[at]
	case 4: // shallower
		lines[at] = strings.TrimPrefix(lines[at], "  ")
	case 5: // cut off
		if len(text) > 0 {
			return text[:rng.IntN(len(text))]
		}
	case 6: // another value
		if key, _, ok := strings.Cut(lines[at], ": "); ok {
			values := []string{"", "-1", "[", "{}", "[]", "null", "\"${{ x }}\"", "${{ vars. }}", "${", "&a b", "*a", "!!int 5", "|", "5 apples", ".nan", "99999999999999999999"}
			lines[at] = key + ": " + values[rng.IntN(len(values))]
		}
	case 7: // another key
		if _, value, ok := strings.Cut(lines[at], ": "); ok {
			keys := []string{"sessions", "matrix", "steps", "\"\"", "<<", "? x", "url", "check"}
			lines[at] = "  " + keys[rng.IntN(len(keys))] + ": " + value
		}
	}
	return strings.Join(lines, "\n")
}
