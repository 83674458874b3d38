package scenarios_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbench/scenarios"
)

func loadGenerated(text string) (*scenarios.Scenario, error) {
	return scenarios.Load("g.yaml", []byte(text), scenarios.LoadOptions{
		Env:      environment(map[string]string{"SET": "value"}),
		ReadFile: func(name string) ([]byte, error) { return fs.ReadFile(generatedFiles, name) },
		OpenFile: func(name string) (fs.File, error) { return generatedFiles.Open(name) },
	})
}

// renders renders every step of every group, with the rows of its feeders.
func renders(t *testing.T, p *scenarios.Program, seed uint64) error {
	t.Helper()
	for g := range p.Groups {
		flow := &p.Flows[p.Groups[g].Flow]
		for _, once := range []bool{false, true} {
			feeds, err := p.OpenFeeds(t.Context(), g, seed, once)
			if err != nil {
				return err
			}
			env := scenarios.Env{Seed: seed, Group: g, Iteration: seed % 3, Protocol: "2025-11-25"}
			err = feeds.Fill(t.Context(), &env, 0)
			steps := flow.Steps
			if once {
				steps = slices.Concat(flow.Before, flow.After)
			}
			for _, step := range steps {
				if err == nil {
					_, err = step.Render(nil, &env)
				}
			}
			if err = errors.Join(err, feeds.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// inFull skips a test of a thousand scenarios with -short, as CI has it for the race
// detector: nothing in it runs at the same time as anything else.
func inFull(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("nothing here runs at the same time; the run without -short does it")
	}
}

func TestGeneratedScenariosLoad(t *testing.T) {
	inFull(t)
	schema := schemaOf(t)
	kinds := map[string]int{}
	for seed := range uint64(1000) {
		text := generate(seed)
		s, err := loadGenerated(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		p := mustCompile(t, s)
		if len(p.Unsupported) > 0 {
			t.Fatalf("seed %d: %v\n%s", seed, p.Unsupported, text)
		}
		if err := renders(t, p, seed); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		for _, key := range generatedKeys {
			if strings.Contains(text, key+":") {
				kinds[key]++
			}
		}
		if err := validates(t, schema, []byte(text)); err != nil {
			t.Fatalf("seed %d: schema: %v\n%s", seed, err, text)
		}
		again, err := loadGenerated(string(s.Resolved()))
		if err != nil {
			t.Fatalf("seed %d: resolved: %v\n%s", seed, err, s.Resolved())
		}
		if diff := cmp.Diff(described(p), described(mustCompile(t, again))); diff != "" {
			t.Fatalf("seed %d: resolved is another program (-want +got):\n%s\n%s", seed, diff, text)
		}
	}
	for _, key := range generatedKeys {
		if kinds[key] < 20 {
			t.Errorf("%d of 1000 scenarios have the key %s", kinds[key], key)
		}
	}
}

// described tells of each step what it sends and of each part of a flow what it does.
func described(p *scenarios.Program) []string {
	var out []string
	var walk func(actions []*scenarios.Action, depth int)
	walk = func(actions []*scenarios.Action, depth int) {
		for _, a := range actions {
			out = append(out, fmt.Sprintf("%*d %d %d", depth, a.Kind, a.Row, a.OnError))
			for _, b := range a.Branches {
				walk(b, depth+1)
			}
		}
	}
	for i := range p.Flows {
		f := &p.Flows[i]
		for _, step := range slices.Concat(f.Before, f.Steps, f.After) {
			params := strings.ReplaceAll(step.Params(), `"value"`, `"***"`) // of SET
			out = append(out, step.ID+" "+step.Method+" "+params)
		}
		walk(slices.Concat(f.DoBefore, f.Do, f.DoAfter), 1)
		out = append(out, strings.Join(f.Feeders, ","), strings.Join(f.FeedersOnce, ","))
	}
	return out
}

// placed checks what every fault of a file must have: a line of the file, a
// message of one line, and an excerpt that shows the line.
func placed(t *testing.T, text string, err error) {
	t.Helper()
	lines := strings.Count(text, "\n") + 1
	for _, p := range problemsOf(t, err) {
		if p.File == "common.yaml" && p.Line == 1 {
			continue // a key of the mutated file lets it be taken over in the wrong place
		}
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
	inFull(t)
	tried := 0
	for seed := range uint64(1000) {
		lines := strings.Split(generate(seed), "\n")
		rng := rand.New(rand.NewPCG(seed, 2))
		at := rng.IntN(len(lines) - 1)
		indent := len(lines[at]) - len(strings.TrimLeft(lines[at], " -"))
		key, rest, ok := strings.Cut(lines[at][indent:], ":")
		if !ok || !fixedKey(lines, at) {
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
	if tried < 500 {
		t.Errorf("only %d of 1000 were changed", tried)
	}
}

// fixedKey tells whether the line begins with a key of the language, and not
// with one of the user's.
func fixedKey(lines []string, at int) bool {
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " -")) }
	key, _, _ := strings.Cut(strings.TrimLeft(lines[at], " -"), ":")
	if own.MatchString(key) || key == "x-note" || key == "use" {
		return false // without use, what follows is missing too
	}
	for above := at - 1; above >= 0; above-- {
		if in := indent(lines[above]); in < indent(lines[at]) {
			parent, _, _ := strings.Cut(strings.TrimLeft(lines[above], " -"), ":")
			return !slices.Contains([]string{"save", "args", "arguments", "params", "check", "rows"}, parent)
		}
	}
	return true
}

// own are names that the generator gives.
var own = regexp.MustCompile(`^(server|group|flow|sub|a|feeder)[0-9]+$|^extra$`)

// TestMutatedScenariosNeverPanic changes bytes, lines and words at random.
func TestMutatedScenariosNeverPanic(t *testing.T) {
	inFull(t)
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
