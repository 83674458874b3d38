package scenarios_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing/fstest"
)

// generatedFiles are what generated scenarios read.
var generatedFiles = fstest.MapFS{
	"rows.csv":    {Data: []byte("name,n\nann,1\nbob,2\n\"c, d\",3\n")},
	"rows.jsonl":  {Data: []byte("{\"name\":\"ann\",\"n\":1}\n{\"name\":\"bob\",\"n\":2.5}\n{\"name\":\"eve\",\"n\":3}\n")},
	"times.csv":   {Data: []byte("at,took\n1,20ms\n2,1s\n")},
	"common.yaml": {Data: []byte("limits: {connect_timeout: 3s}\nflows: {shared: {on_error: continue, steps: [{ping: {}}, {think: 1ms}]}}\nvars: {more: 5}\n")},
}

// generatedKeys are the keys that enough of the generated scenarios must have.
var generatedKeys = []string{
	"when", "sample", "save", "on_error", "random", "weight", "parallel", "repeat", "while", "count", "max", "think", "flow", "args",
	"disconnect", "tags", "log_level", "before", "after", "use", "data", "pick", "on_end", "rows", "file", "exponent", "columns",
	"uniform", "exponential", "normal", "lognormal", "pareto", "empirical", "constant", "min", "in_flight", "all_pages",
}

// generator makes random valid scenarios.
type generator struct {
	*rand.Rand
	text    strings.Builder
	feeders int
	subs    int  // flows that may be called: a flow calls those after it
	loops   int  // repeats around the step
	once    bool // in before or after: no iteration, no disconnect
	beside  bool // in parallel
	in      int  // the called flow that is being written, -1 for one that groups run
	shared  bool // sessions have several requests in flight
}

func (g *generator) line(depth int, format string, args ...any) {
	fmt.Fprintf(&g.text, "%s%s\n", strings.Repeat("  ", depth), fmt.Sprintf(format, args...))
}

func (g *generator) maybe(depth int, format string, args ...any) {
	if g.IntN(2) == 0 {
		g.line(depth, format, args...)
	}
}

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func (g *generator) one(choices ...string) string { return choices[g.IntN(len(choices))] }

func (g *generator) duration() string { return g.one("5s", "250ms", "1m30s", "0.5s", "2h") }

func (g *generator) onError() string { return g.one("next_iteration", "continue", "end_session") }

// spread is a distribution, or a duration.
func (g *generator) spread() string {
	bounds := g.one("", ", min: 2ms", ", max: 10s", ", min: 1ms, max: 1m")
	switch g.IntN(8) {
	case 0:
		return "{uniform: [1ms, 20ms]}"
	case 1:
		return "{exponential: 100ms" + bounds + "}"
	case 2:
		return "{normal: {mean: 200ms, sd: 50ms}" + bounds + "}"
	case 3:
		return "{lognormal: {p50: 200ms, p99: 1s}" + bounds + "}"
	case 4:
		return "{pareto: {scale: 10ms, shape: 1.5}" + bounds + "}"
	case 5:
		return "{empirical: {file: times.csv, column: took}" + bounds + "}"
	case 6:
		return "{constant: 5ms}"
	}
	return g.duration()
}

// value is an expression of a number or text that has a value wherever the
// generator stands, without anything that it depends on being there.
func (g *generator) value() string {
	all := []string{
		"vars.page", "session.index", "protocol", "randInt(1, 9)", "uuid()", "pick(vars.list)", `saved.first ?? "none"`, "len(saved)", `env("SET")`,
		`capture("a12b", "[0-9]+")`, `sha256("x")`,
	}
	if g.in < 0 && !g.once {
		all = append(all, "iteration.index", "iteration.index")
	}
	if g.in >= 0 {
		all = append(all, `args.who ?? "nobody"`, `args.who ?? "nobody"`)
	}
	if g.loops > 0 {
		all = append(all, "loop.index", "loop.index + 1")
	}
	for i := range g.feeders {
		all = append(all, fmt.Sprintf("data.feeder%d.name", i), fmt.Sprintf("data.feeder%d.n", i))
	}
	return g.one(all...)
}

func (g *generator) condition() string {
	if g.loops > 0 && g.chance(3) {
		return g.one("loop.index < 3", "loop.index > 0 or saved.first == nil")
	}
	return g.one("true", "saved.first == nil", `protocol < "2026-01-01"`, "not (saved.n == 3)", "session.index % 2 == 0", "len(vars.list) == 2")
}

func (g *generator) text1() string {
	switch g.IntN(3) {
	case 0:
		return fmt.Sprintf("'${{ %s }}'", g.value())
	case 1:
		return fmt.Sprintf("'a ${{ %s }} b'", g.value())
	}
	return g.one("plain", "\"quoted\"", "'it''s'", "5", "true", "ü ö", "\"${{ vars.page }}\"", "${SET}", "\"x ${NONE:-y}\"", "[1, {a: b}]", "'$${{ no }}'")
}

func (g *generator) scenario() string {
	g.line(0, "version: 1")
	g.maybe(0, "name: s%d", g.IntN(100))
	g.maybe(0, "tags: {team: %s}", g.one("a", "5", "true"))
	g.line(0, "vars: {page: %d, who: ada, list: [1, 2]}", g.IntN(100))
	g.maybe(0, "x-note: [anything, {at: all}]")
	if g.chance(4) {
		g.line(0, "use: common.yaml")
	}
	g.feeders, g.subs, g.shared = g.IntN(3), g.IntN(3), g.chance(4)
	g.data()
	servers, flows := 1+g.IntN(3), 1+g.IntN(3)
	g.servers(servers)
	g.client()
	if g.chance(2) {
		g.line(0, "limits:")
		g.line(1, "request_timeout: %s", g.duration())
		g.maybe(1, "use: common.yaml#limits")
	}
	g.load(servers, flows)
	g.line(0, "flows:")
	for i := range flows {
		g.in = -1
		g.flow(fmt.Sprintf("flow%d", i), i == 0)
	}
	for i := range g.subs {
		g.in = i
		g.flow(fmt.Sprintf("sub%d", i), false)
	}
	if g.chance(4) {
		g.line(1, "extra: {use: common.yaml#flows.shared}")
	}
	g.maybe(0, "thresholds: [p99(latency) < 250ms, rate(errors) < 1%%]")
	g.maybe(0, "output: {dir: results}")
	return g.text.String()
}

func (g *generator) data() {
	if g.feeders == 0 {
		return
	}
	g.line(0, "data:")
	for i := range g.feeders {
		g.line(1, "feeder%d:", i)
		switch g.IntN(3) {
		case 0:
			g.line(2, "rows:")
			for k := range 3 {
				g.line(3, "- name: %s", g.one("ann", "\"b c\"", "ü"))
				g.line(4, "n: %d", k)
			}
		case 1:
			g.line(2, "file: rows.csv")
			g.maybe(2, "separator: \",\"")
			g.maybe(2, "format: csv")
		case 2:
			g.line(2, "file: rows.jsonl")
		}
		g.maybe(2, "columns: [name, n]")
		switch pick := g.one("sequential", "random", "unique", "zipf"); pick {
		case "zipf":
			g.line(2, "pick: zipf")
			g.maybe(2, "exponent: %s", g.one("0.5", "1", "1.2"))
		case "random":
			g.line(2, "pick: random")
		default:
			g.line(2, "pick: %s", pick)
			if pick == "sequential" {
				g.maybe(2, "on_end: %s", g.one("stop", "recycle"))
			}
		}
	}
}

func (g *generator) servers(n int) {
	g.line(0, "servers:")
	for i := range n {
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
}

func (g *generator) client() {
	if g.IntN(2) == 0 {
		return
	}
	g.line(0, "client:")
	g.line(1, "capabilities: {elicitation: true, sampling: true, roots: true}")
	g.line(1, "answers:")
	g.line(2, "elicitation: {content: {a: %s}, delay: %s}", g.one("x", "5", "\"${{ session.index }}\""), g.spread())
	g.line(2, "sampling:")
	g.line(3, "text: %s", g.one("plain", "5", "\"${{ session.index }}\""))
	g.maybe(3, "delay: %s", g.spread())
	g.maybe(2, "roots: [\"file:///w\"]")
}

func (g *generator) load(servers, flows int) {
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
			g.maybe(3, "think: %s", g.spread())
		} else {
			g.line(3, "arrivals: {process: %s, rate: %s}", g.one("constant", "poisson"), g.one("5/s", "0.5/s", "30/m"))
			g.maybe(3, "max_sessions: %d", 1+g.IntN(9))
		}
		if g.shared {
			g.line(3, "in_flight: 3")
		}
		g.maybe(3, "on_error: %s", g.onError())
		g.maybe(3, "duration: %s", g.duration())
		g.maybe(3, "iterations: %d", 1+g.IntN(99))
	}
}

func generate(seed uint64) string {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	return g.scenario()
}
