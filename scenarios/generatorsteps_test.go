package scenarios_test

import "fmt"

// flow writes a flow. Its first step is a call that saves first and n; readsArgs
// is whether the flow reads args.who.
func (g *generator) flow(name string, callAll bool) {
	g.line(1, "%s:", name)
	g.maybe(2, "on_error: %s", g.onError())
	g.line(2, "steps:")
	g.line(3, "- tools/call:")
	g.line(6, "name: tool")
	g.line(6, "arguments:")
	g.line(7, "a0: %s", g.text1())
	if g.in >= 0 {
		g.line(7, "a1: '${{ args.who ?? 1 }}'")
	}
	g.line(4, "save:")
	g.line(5, "first: result.structuredContent.id")
	g.line(5, "n: len(result.content)")
	for range g.IntN(4) {
		g.step(3, 3)
	}
	if callAll {
		for i := range g.subs {
			g.call(3, i)
		}
	}
	if g.in >= 0 || g.chance(2) {
		return
	}
	g.line(3, "- wait_for: {notification: resources/updated, from: news, timeout: %s}", g.duration())
	g.once = true
	g.line(2, "before:")
	g.maybe(3, "- connect: {}")
	g.line(3, "- subscribe: {uris: [\"a://x\", %s], tools: %s}", g.one("\"b://${{ session.index }}\"", "c"), g.one("true", "false"))
	g.line(4, "as: news")
	for range g.IntN(3) {
		g.step(3, 2)
	}
	g.line(2, "after:")
	g.line(3, "- unsubscribe: {handle: news}")
	for range g.IntN(2) {
		g.step(3, 2)
	}
	g.once = false
}

// call writes a call of sub flow i.
func (g *generator) call(depth, i int) {
	g.line(depth, "- flow:")
	g.line(depth+3, "name: sub%d", i)
	g.line(depth+3, "args:")
	g.line(depth+4, "who: %s", g.text1())
}

// step writes a step at an indentation, with control steps nested at most levels deep.
func (g *generator) step(depth, levels int) {
	switch kind := g.IntN(14); {
	case kind < 6:
		g.operation(depth)
		return
	case kind < 8:
		g.beyond(depth)
		return
	case kind == 8:
		g.line(depth, "- think: %s", g.spread())
	case kind == 9 && g.in+1 < g.subs && !g.once:
		g.call(depth, g.in+1+g.IntN(g.subs-g.in-1))
		g.maybe(depth+1, "on_error: %s", g.onError())
	case kind == 10 && !g.once && !g.beside && !g.shared && g.in < 0:
		g.line(depth, "- disconnect: {}")
	case levels == 0:
		g.line(depth, "- ping: {}")
	default:
		g.control(depth, levels-1)
	}
	g.settings(depth + 1)
}

// settings are those that go with every step.
func (g *generator) settings(depth int) {
	if g.chance(4) {
		g.line(depth, "when: '%s'", g.condition())
	}
	if g.chance(6) {
		g.line(depth, "sample: %s", g.one("0.1", "0", "1", "0.999"))
	}
}

func (g *generator) control(depth, levels int) {
	body := func(depth int) {
		for range 1 + g.IntN(2) {
			g.step(depth, levels)
		}
	}
	switch g.IntN(3) {
	case 0:
		g.line(depth, "- random:")
		for range 1 + g.IntN(3) {
			g.line(depth+2, "- weight: %s", g.one("1", "8", "0.5"))
			g.line(depth+3, "steps:")
			body(depth + 4)
		}
	case 1:
		was := g.beside
		g.beside = true
		g.line(depth, "- parallel:")
		body(depth + 2)
		g.beside = was
	case 2:
		g.line(depth, "- repeat:")
		kind := g.IntN(3)
		if kind != 1 {
			g.line(depth+3, "count: %s", g.one("3", "1", "'${{ 1 + 1 }}'", fmt.Sprintf("'${{ len(string(%s)) }}'", g.value())))
		}
		g.loops++
		if kind != 0 {
			g.line(depth+3, "while: '%s'", g.condition())
			g.maybe(depth+3, "max: 7")
		}
		g.line(depth+3, "steps:")
		body(depth + 4)
		g.loops--
	}
	g.maybe(depth+1, "on_error: %s", g.onError())
}

func (g *generator) beyond(depth int) {
	switch g.IntN(4) {
	case 0:
		g.line(depth, "- tools/call: {name: slow, arguments: {n: 1}}")
		g.line(depth+1, "progress: true")
		g.maybe(depth+1, "idle_timeout: %s", g.duration())
		g.maybe(depth+1, "log_level: %s", g.one("debug", "emergency"))
	case 1:
		g.line(depth, "- prompts/get: {name: p}")
		g.line(depth+1, "cancel: {after: %s}", g.spread())
	case 2:
		g.line(depth, "- request:")
		g.line(depth+2, "method: x-vendor/a")
		g.line(depth+2, "params:")
		g.line(depth+3, "a: %s", g.text1())
		g.maybe(depth+1, "check: {any: result.a.b == 1, path: 'len(jsonpath(result, \"$..b\")) > 0'}")
	case 3:
		g.line(depth, "- notify: {method: x-vendor/b}")
	}
	g.maybe(depth+1, "timeout: %s", g.duration())
	g.maybe(depth+1, "tags: {kind: %s, n: 5}", g.one("read", "true"))
	g.maybe(depth+1, "on_error: %s", g.onError())
	g.settings(depth + 1)
}

func (g *generator) operation(depth int) {
	switch g.IntN(6) {
	case 0:
		g.line(depth, "- ping: {}")
	case 1:
		g.line(depth, "- tools/list: {all_pages: true}")
		g.maybe(depth+1, "check: {some: len(result.tools) > 0}")
		g.maybe(depth+1, "save: {tools: 'map(result.tools, .name)'}")
	case 2:
		g.line(depth, "- resources/read: {uri: 'a://${{ %s }}'}", g.value())
	case 3:
		g.line(depth, "- prompts/get: {name: p, arguments: {a: %s}}", g.one("x", "5", "\"${{ uuid() }}\""))
	case 4:
		g.line(depth, "- completion/complete:")
		g.line(depth+3, "ref: {type: ref/prompt, name: p}")
		g.line(depth+3, "argument: {name: a, value: b}")
	case 5:
		g.line(depth, "- tools/call:")
		g.line(depth+3, "name: tool%d", g.IntN(3))
		g.line(depth+3, "arguments:")
		for i := range 1 + g.IntN(3) {
			g.line(depth+4, "a%d: %s", i, g.text1())
		}
		g.maybe(depth+1, "check: {ok: not result.isError, fast: elapsed < duration(\"1s\"), again: saved.first != result.content}")
		g.maybe(depth+1, "save: {first: 'result.content[0].text'}")
	}
	g.maybe(depth+1, "timeout: %s", g.duration())
	g.settings(depth + 1)
}
