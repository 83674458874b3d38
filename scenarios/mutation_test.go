package scenarios_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// mutation puts one fault into a line, and says what must be told of that line.
type mutation struct {
	name    string
	find    *regexp.Regexp
	replace string
	want    string // in a message
	above   bool   // the fault may be told of a line above: something is missing
}

// mutations are faults that a writer makes, one of each kind.
var mutations = []mutation{
	{name: "no unit", find: regexp.MustCompile(`timeout: [0-9a-z.]+$`), replace: "timeout: 5", want: "durations carry units"},
	{name: "wrong unit", find: regexp.MustCompile(`timeout: [0-9a-z.]+$`), replace: "timeout: 5 apples", want: "is no duration"},
	{name: "rate without unit", find: regexp.MustCompile(`rate: [0-9.]+/.`), replace: "rate: 5", want: "rates carry units"},
	{name: "negative duration", find: regexp.MustCompile(`request_timeout: .*`), replace: "request_timeout: -5s", want: "must not be negative"},
	{name: "list for a map", find: regexp.MustCompile(`save: \{.*\}$`), replace: "save: [a]", want: "wants a map"},
	{name: "text for steps", find: regexp.MustCompile(`- ping: \{\}$`), replace: "- ping: 5", want: "wants a map"},
	{name: "two operations", find: regexp.MustCompile(`tags: \{kind.*`), replace: "think: 1s", want: "two steps"},
	{name: "no operation", find: regexp.MustCompile(`- ping: \{\}$`), replace: "- x-ping: {}", want: "wants an operation"},
	{name: "share above one", find: regexp.MustCompile(`sample: [0-9.]+$`), replace: "sample: 1.5", want: "must be from 0 to 1"},
	{name: "text for a weight", find: regexp.MustCompile(`weight: [0-9.]+$`), replace: "weight: heavy", want: "wants a number"},
	{name: "unknown on_error", find: regexp.MustCompile(`on_error: \w+$`), replace: "on_error: next_iteratoin", want: `(did you mean "next_iteration"?)`},
	{name: "unknown log level", find: regexp.MustCompile(`log_level: \w+$`), replace: "log_level: debgu", want: `(did you mean "debug"?)`},
	{name: "condition without end", find: regexp.MustCompile(`when: '.*'$`), replace: "when: 'saved.first =='", want: "ends"},
	{name: "condition that is no truth", find: regexp.MustCompile(`when: '.*'$`), replace: "when: len(saved)", want: "a condition must be true or false"},
	{name: "while without end", find: regexp.MustCompile(`while: '.*'$`), replace: "while: '(saved.first'", want: ""},
	{name: "expression without end", find: regexp.MustCompile(`\$\{\{ [^}]+ \}\}`), replace: "${{ vars.page", want: "has no }}"},
	{name: "nothing in an expression", find: regexp.MustCompile(`\$\{\{ [^}]+ \}\}`), replace: "${{ }}", want: "holds no expression"},
	{name: "unknown name saved", find: regexp.MustCompile(`saved\.first`), replace: "saved.frist", want: `(did you mean "first"?)`},
	{name: "unknown feeder", find: regexp.MustCompile(`data\.feeder[0-9]\.`), replace: "data.feder0.", want: `data has no feeder "feder0"`},
	{name: "unknown column", find: regexp.MustCompile(`(data\.feeder[0-9])\.name`), replace: "$1.nname", want: `have no column "nname"`},
	{name: "unknown constant", find: regexp.MustCompile(`vars\.page`), replace: "vars.pgae", want: "pgae"},
	{name: "unknown argument", find: regexp.MustCompile(`args\.who`), replace: "args.whom", want: "", above: true},
	{name: "unknown function", find: regexp.MustCompile(`uuid\(\)`), replace: "uiud()", want: "uiud"},
	{name: "unknown variable of the environment", find: regexp.MustCompile(`env\("SET"\)`), replace: `env("TES")`, want: "no variable TES"},
	{name: "pattern without end", find: regexp.MustCompile(`\[0-9\]\+"\)`), replace: `[0-9+")`, want: "missing closing ]"},
	{name: "path without end", find: regexp.MustCompile(`\$\.\.b`), replace: `$..[`, want: ""},
	{name: "unknown flow", find: regexp.MustCompile(`name: sub[0-9]$`), replace: "name: sbu0", want: `there is no flow "sbu0"`},
	{name: "argument that is not read", find: regexp.MustCompile(`^( {8,})who: (.*)$`), replace: "${1}wno: $2", want: "", above: true},
	{name: "unknown subscription", find: regexp.MustCompile(`from: news`), replace: "from: nwes", want: "nwes"},
	{name: "unknown pick", find: regexp.MustCompile(`pick: \w+$`), replace: "pick: randm", want: `(did you mean "random"?)`},
	{name: "no such file of rows", find: regexp.MustCompile(`file: rows.csv`), replace: "file: rwos.csv", want: "rwos.csv"},
	{name: "no such column of times", find: regexp.MustCompile(`column: took`), replace: "column: tok", want: `no column "tok"`},
	{name: "uniform from high to low", find: regexp.MustCompile(`uniform: \[1ms, 20ms\]`), replace: "uniform: [30ms, 20ms]", want: "must not be less"},
	{name: "percentile of nothing", find: regexp.MustCompile(`p50: 200ms`), replace: "median: 200ms", want: "is no percentile"},
	{name: "normal without sd", find: regexp.MustCompile(`, sd: 50ms`), replace: "", want: `wants a key "sd"`},
	{name: "pareto without shape", find: regexp.MustCompile(`, shape: 1.5`), replace: "", want: `wants a key "shape"`},
	{name: "two distributions", find: regexp.MustCompile(`constant: 5ms`), replace: "constant: 5ms, uniform: [1ms, 2ms]", want: "two distributions"},
	{name: "count below one", find: regexp.MustCompile(`count: [13]$`), replace: "count: 0", want: "at least 1"},
	{name: "max too large", find: regexp.MustCompile(`max: 7$`), replace: "max: 2000000", want: "at most 1000000"},
	{name: "name is missing", find: regexp.MustCompile(`name: tool[0-9]?$`), replace: "x-none: 1", want: `wants a key "name"`, above: true},
	{name: "steps are missing", find: regexp.MustCompile(`^    steps:$`), replace: "    x-steps:", want: `wants a key "steps"`, above: true},
	{name: "no such file to use", find: regexp.MustCompile(`use: common.yaml$`), replace: "use: comon.yaml", want: "comon.yaml"},
	{name: "no such part to use", find: regexp.MustCompile(`common.yaml#limits`), replace: "common.yaml#limit", want: `(did you mean "limits"?)`},
}

// TestEachKindOfFaultIsToldOnItsLine puts one fault into each of many scenarios.
func TestEachKindOfFaultIsToldOnItsLine(t *testing.T) {
	inFull(t)
	tried := map[string]int{}
	for seed := range uint64(1000) {
		lines := strings.Split(generate(seed), "\n")
		rng := rand.New(rand.NewPCG(seed, 4))
		m, at := pickMutation(rng, lines, tried)
		if at < 0 {
			continue
		}
		tried[m.name]++
		lines[at] = m.find.ReplaceAllString(lines[at], m.replace)
		text := strings.Join(lines, "\n")
		s, err := loadGenerated(text)
		if err == nil {
			_, err = s.Compile() // files of rows are read then
		}
		if err == nil {
			t.Errorf("seed %d, %s: %q is accepted", seed, m.name, lines[at])
			continue
		}
		placed(t, text, err)
		if !told(t, err, m, at+1) {
			t.Errorf("seed %d, %s: line %d, %q: want %q, got:\n%v", seed, m.name, at+1, lines[at], m.want, err)
		}
	}
	for _, m := range mutations {
		if tried[m.name] < 3 {
			t.Errorf("%s was tried %d times", m.name, tried[m.name])
		}
	}
}

// pickMutation returns the mutation that was tried least of those that the lines
// have a place for, with the line; -1 when there is none.
func pickMutation(rng *rand.Rand, lines []string, tried map[string]int) (mutation, int) {
	best, at := mutation{}, -1
	for _, m := range mutations {
		if at >= 0 && tried[m.name] >= tried[best.name] {
			continue
		}
		var places []int
		for i, line := range lines {
			if m.find.MatchString(line) {
				places = append(places, i)
			}
		}
		if len(places) > 0 {
			best, at = m, places[rng.IntN(len(places))]
		}
	}
	return best, at
}

func told(t *testing.T, err error, m mutation, line int) bool {
	t.Helper()
	for _, p := range problemsOf(t, err) {
		if strings.Contains(p.Message, m.want) && (p.Line == line || m.above) {
			return true
		}
	}
	return false
}
